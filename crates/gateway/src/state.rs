//! Handle to a gateway for the program that runs it.

use std::sync::Arc;

use openclaw_dispatch::{Dispatch, Settings};
use openclaw_sessions::SessionStore;
use tokio::sync::watch;

use crate::current_settings::CurrentSettings;
use crate::fan_out::EventHub;
use crate::server::Served;

/// Parts of a gateway that the program around it reaches. Within the gateway each part is handed
/// what it uses; `start` puts them together.
pub struct GatewayState {
    pub(crate) settings: CurrentSettings,
    /// The rows of all sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Messages in, runs, replies.
    pub dispatch: Dispatch,
    /// Connected clients and their events.
    pub events: Arc<EventHub>,
    pub(crate) served: Arc<Served>,
}

impl GatewayState {
    /// Follows the settings in force.
    pub fn follow_settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.follow()
    }
}

impl std::fmt::Debug for GatewayState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayState").finish_non_exhaustive()
    }
}
