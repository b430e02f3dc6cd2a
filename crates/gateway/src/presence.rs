//! Presence list: the gateway itself, connected clients, and devices that report by `system-event`
//! (spec `gateway-protocol.md` §8.1).
//!
//! `beacon` reads the line such devices send, `registry` keeps the rows, `notes` selects the parts
//! of a report for the agent. [`Presence`] is the registry as the gateway shares it.

mod beacon;
mod notes;
mod registry;

use openclaw_protocol::params::system::{PresenceEntry, SystemEventParams};
use parking_lot::Mutex;

pub use beacon::Beacon;
pub use notes::note_of;
pub use registry::{PresenceRegistry, Report};

use crate::clock::now_ms;
use crate::connection::ConnectionInfo;

/// The presence list, shared.
#[derive(Debug)]
pub struct Presence(Mutex<PresenceRegistry>);

impl Presence {
    /// A list with the gateway's own row.
    pub fn new(own: PresenceEntry) -> Self {
        Self(Mutex::new(PresenceRegistry::new(own)))
    }

    /// The list, newest first: the result of `system-presence`.
    pub fn list(&self) -> Vec<PresenceEntry> {
        self.0.lock().list(now_ms())
    }

    pub(crate) fn report(&self, params: &SystemEventParams, text: &str) -> Report {
        self.0.lock().report(params, text, now_ms())
    }

    pub(crate) fn connected(&self, info: &ConnectionInfo) -> bool {
        self.0.lock().connected(info, now_ms())
    }

    pub(crate) fn disconnected(&self, info: &ConnectionInfo) -> bool {
        self.0.lock().disconnected(info, now_ms())
    }

    pub(crate) fn refresh_connected(&self) {
        self.0.lock().refresh_connected(now_ms());
    }
}
