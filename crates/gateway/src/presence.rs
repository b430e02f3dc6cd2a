//! Presence list: the gateway itself, connected clients, and devices that report by `system-event`
//! (spec `gateway-protocol.md` §8.1).
//!
//! `beacon` reads the line such devices send, `registry` keeps the rows, `notes` selects the parts
//! of a report for the agent. [`Presence`] is the registry as the gateway shares it.

mod beacon;
mod notes;
mod registry;

use openclaw_protocol::Payload;
use openclaw_protocol::event::PresenceEvent;
use openclaw_protocol::params::system::{PresenceEntry, SystemEventParams};
use parking_lot::Mutex;
use tokio::sync::Notify;

pub use beacon::Beacon;
pub use notes::note_of;
pub use registry::{PresenceChange, PresenceRegistry};

use crate::clock::now_ms;
use crate::connection::ConnectionInfo;
use crate::events::GatewayEvent;
use crate::fan_out::EventHub;

/// The presence list, shared.
#[derive(Debug)]
pub struct Presence {
    registry: Mutex<PresenceRegistry>,
    /// Rung when clients are to be told of a change.
    news: Notify,
}

impl Presence {
    /// A list with the gateway's own row.
    pub fn new(own: PresenceEntry) -> Self {
        Self { registry: Mutex::new(PresenceRegistry::new(own)), news: Notify::new() }
    }

    /// The list, newest first: the result of `system-presence`.
    pub fn list(&self) -> Vec<PresenceEntry> {
        self.registry.lock().list(now_ms())
    }

    pub(crate) fn report(&self, params: &SystemEventParams, text: &str) -> PresenceChange {
        self.registry.lock().report(params, text, now_ms())
    }

    pub(crate) fn connected(&self, info: &ConnectionInfo) -> bool {
        self.registry.lock().connected(info, now_ms())
    }

    pub(crate) fn disconnected(&self, info: &ConnectionInfo) -> bool {
        self.registry.lock().disconnected(info, now_ms())
    }

    /// Has clients told of a change soon; see [`crate::ticker`].
    pub(crate) fn tell_soon(&self) {
        self.news.notify_one();
    }

    /// Completes when clients are to be told of a change.
    pub(crate) async fn changed(&self) {
        self.news.notified().await;
    }

    /// Tells everyone who is here.
    pub(crate) fn broadcast(&self, events: &EventHub) {
        if let Ok(payload) = Payload::of(&PresenceEvent { presence: self.list() }) {
            events.publish_presence(GatewayEvent::named("presence", payload));
        }
    }

    pub(crate) fn refresh_connected(&self) {
        self.registry.lock().refresh_connected(now_ms());
    }
}
