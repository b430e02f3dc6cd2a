//! The entrance of a running gateway: what it asks of those who come in, and the guesses that were
//! made at its secret. Sockets, HTTP requests and the listeners of accounts share one.

use parking_lot::{Mutex, MutexGuard};

use crate::handshake::client_address::{AddressBook, Origination, host_name};
use crate::handshake::machine::Door;
use crate::handshake::origin::is_loopback;
use crate::handshake::throttle::Throttle;
use crate::host::own_addresses;

/// The door, and the throttle of those who guess at it.
#[derive(Debug)]
pub(crate) struct Entrance {
    door: Door,
    throttle: Mutex<Throttle>,
}

impl Entrance {
    /// An entrance at which nobody has guessed yet.
    pub(crate) fn new(door: Door) -> Self {
        Self { door, throttle: Mutex::default() }
    }

    /// The door as of now: this host's addresses are looked up for those who are not on loopback
    /// anyway, for pages, and for those who ask for the gateway by another name than loopback's.
    pub(crate) fn door_for(&self, origination: &Origination) -> Door {
        let mut door = self.door.clone();
        let is_plain = || origination.host.as_deref().is_some_and(|host| is_loopback(&host_name(host)));
        let is_near = origination.peer.ip().to_canonical().is_loopback() && origination.origin.is_none();
        if !is_near || !is_plain() {
            door.addresses = AddressBook { own: own_addresses(), ..door.addresses };
        }
        door
    }

    /// The wrong guesses by address.
    pub(crate) fn guesses(&self) -> MutexGuard<'_, Throttle> {
        self.throttle.lock()
    }
}
