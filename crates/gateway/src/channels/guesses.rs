//! Wrong secrets that listeners of accounts are given count where the gateway's own count (decisions 25, 26).

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{GuessThrottle, Knock, SecretGiven};
use openclaw_sessions::time::now_ms;

use crate::entrance::Entrance;
use crate::handshake::client_address::{ClientAddress, Origination};

/// The throttle of this gateway.
pub(super) struct SharedThrottle(pub(super) Arc<Entrance>);

impl GuessThrottle for SharedThrottle {
    fn count(&self, Knock { peer, local, headers }: Knock<'_>, given: SecretGiven) -> Result<(), Duration> {
        let Self(entrance) = self;
        let origination = Origination::of(headers, peer, local);
        let door = entrance.door_for(&origination);
        let client = ClientAddress::of(&origination, &door.addresses).ip;
        let now = now_ms();
        let mut throttle = entrance.guesses();
        if let Some(wait) = throttle.locked_for(client, now) {
            return Err(Duration::from_millis(u64::try_from(wait).unwrap_or_default()));
        }
        match given {
            SecretGiven::Right => throttle.succeeded(client),
            SecretGiven::Wrong => throttle.failed(client, now),
            SecretGiven::Nothing => {}
        }
        Ok(())
    }
}
