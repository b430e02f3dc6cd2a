//! The loopback device of a new network namespace, which is down at first: `localhost` would not answer.

use std::os::fd::AsRawFd as _;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::{Doing as _, EnterError};

const NEW_LINK: u16 = 16;
const REQUEST_AND_ANSWER: u16 = 1 | 4;
const LOOPBACK: i32 = 1;
const UP: u32 = 1;

pub(super) fn raise_loopback() -> Result<(), EnterError> {
    let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute);
    let socket =
        socket(AddressFamily::Netlink, SockType::Raw, flags, protocol).doing("open a netlink socket")?;
    send(socket.as_raw_fd(), &request(), MsgFlags::empty()).doing("raise the loopback device")?;
    let mut answer = [0; 64];
    // A refusal is no reason to stop: without the device there is less network, not more.
    let _ = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty());
    Ok(())
}

/// `nlmsghdr` and `ifinfomsg` of linux/rtnetlink.h.
fn request() -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    out.extend(32_u32.to_ne_bytes());
    out.extend(NEW_LINK.to_ne_bytes());
    out.extend(REQUEST_AND_ANSWER.to_ne_bytes());
    out.extend([0; 8]);
    out.extend([0; 4]);
    out.extend(LOOPBACK.to_ne_bytes());
    out.extend(UP.to_ne_bytes());
    out.extend(UP.to_ne_bytes());
    out
}
