//! A port that nobody else is given.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// A port of 127.0.0.1 that refuses connections until somebody who knows its number listens on it: the program under test, or its owner.
/// As long as this lives the system gives it to nobody else.
#[derive(Debug)]
pub struct ReservedPort(TcpSocket);

impl ReservedPort {
    /// One that is free now.
    ///
    /// # Errors
    /// When there is none.
    pub fn any() -> io::Result<Self> {
        Self::at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// This one, on which nobody listens.
    ///
    /// # Errors
    /// When somebody has it.
    pub fn at(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // Whoever listens on it says so too.
        socket.set_reuseaddr(true)?;
        // Bound and not listening: the system refuses who connects.
        socket.bind(address)?;
        Ok(Self(socket))
    }

    /// Its number.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn number(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }

    /// Takes connections from now on. In a runtime.
    ///
    /// # Errors
    /// When somebody else does.
    pub fn listen(self) -> io::Result<TcpListener> {
        self.0.listen(1024)
    }
}
