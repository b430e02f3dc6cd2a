//! Heartbeats: periodic turns in which an agent looks after its session by itself (spec `agent-runtime.md` §11).
//!
//! [`schedule`] decides whose turn it is, [`active_hours`] and [`checklist`] whether a beat is worth making, [`target`] where its
//! answer goes, [`verdict`] what becomes of the answer: all of them pure. [`runner`] waits and keeps the schedule, [`beat`] makes
//! one beat: a message that is accepted into its session's lane like any other.

mod active_hours;
mod beat;
mod checklist;
mod reason;
mod runner;
mod schedule;
mod target;
mod verdict;

use std::sync::Arc;

use openclaw_channels::Platforms;
use openclaw_dispatch::{Dispatch, SystemEvents};
use openclaw_protocol::AgentId;
use openclaw_protocol::params::heartbeat::HeartbeatEvent;
use openclaw_sessions::SessionStore;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use crate::current_settings::CurrentSettings;
use crate::fan_out::EventHub;

pub(crate) use reason::HeartbeatReason;
pub(crate) use runner::run;

/// Wishes for a beat that may wait for the runner. A wish that finds no room is dropped: there is a
/// beat to come.
const WISHES: usize = 64;

/// A wish for a beat now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeartbeatRequest {
    /// Reason for the beat.
    pub(crate) reason: HeartbeatReason,
    /// Agent that is to beat; `None` for every agent that has heartbeats.
    pub(crate) agent: Option<AgentId>,
}

/// Parts of the gateway that beats are made with.
pub(crate) struct BeatParts {
    pub(crate) heartbeats: Arc<Heartbeats>,
    pub(crate) settings: CurrentSettings,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) system_events: Arc<SystemEvents>,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) dispatch: Dispatch,
    pub(crate) events: Arc<EventHub>,
}

/// The handle to heartbeats: what others ask of them and learn of them.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    wishes: mpsc::Sender<HeartbeatRequest>,
    waiting: Mutex<Option<mpsc::Receiver<HeartbeatRequest>>>,
    enabled: watch::Sender<bool>,
    last: Mutex<Option<Arc<HeartbeatEvent>>>,
}

impl Default for Heartbeats {
    fn default() -> Self {
        let (wishes, waiting) = mpsc::channel(WISHES);
        Self {
            wishes,
            waiting: Mutex::new(Some(waiting)),
            enabled: watch::Sender::new(true),
            last: Mutex::default(),
        }
    }
}

impl Heartbeats {
    /// Asks for a beat soon; further wishes in the next moments become the same beat.
    pub(crate) fn wish(&self, wish: HeartbeatRequest) {
        if let Err(error) = self.wishes.try_send(wish) {
            tracing::debug!(%error, "a wish for a heartbeat is dropped");
        }
    }

    /// Switches all heartbeats on or off, for as long as this process lives.
    pub(crate) fn set_enabled(&self, enabled: bool) {
        self.enabled.send_replace(enabled);
    }

    /// The last event, `None` before the first.
    pub(crate) fn last(&self) -> Option<HeartbeatEvent> {
        self.last.lock().as_deref().cloned()
    }

    fn note(&self, event: HeartbeatEvent) {
        *self.last.lock() = Some(Arc::new(event));
    }
}
