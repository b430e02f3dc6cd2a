//! A port that nobody else is given.

use std::io;
use std::net::Ipv4Addr;

use tokio::net::TcpSocket;

/// A port of 127.0.0.1 that refuses connections until somebody who knows its number listens on it: the program under test, or its owner.
/// As long as this lives the system gives it to nobody else.
#[derive(Debug)]
pub struct ReservedPort(TcpSocket);

impl ReservedPort {
    /// Reserves a port that is free now.
    ///
    /// # Errors
    /// When there is none.
    pub fn any() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // The other user of the port has to say so too.
        socket.set_reuseaddr(true)?;
        // Bound and not listening: the system refuses who connects.
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self(socket))
    }

    /// Port number.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn number(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }
}
