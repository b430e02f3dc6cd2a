//! The settings in force: read by whoever works by them, replaced as a whole when the config changes.

use std::sync::Arc;

use openclaw_config::Config;
use openclaw_dispatch::Settings;
use openclaw_protocol::params::connect::SessionDefaults;
use openclaw_sessions::SessionKey;
use tokio::sync::watch;

/// Handle to the settings in force. All clones have the same.
#[derive(Clone)]
pub(crate) struct CurrentSettings(watch::Sender<Arc<Settings>>);

impl CurrentSettings {
    /// Begins with these settings.
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self(watch::Sender::new(settings))
    }

    /// The settings in force.
    pub(crate) fn get(&self) -> Arc<Settings> {
        Arc::clone(&self.0.borrow())
    }

    /// The config in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.borrow().config)
    }

    /// Follows the settings in force.
    pub(crate) fn follow(&self) -> watch::Receiver<Arc<Settings>> {
        self.0.subscribe()
    }

    /// Puts these settings in force.
    pub(crate) fn replace(&self, settings: Settings) {
        self.0.send_replace(Arc::new(settings));
    }

    /// Canonical key of the default agent's main session; `global` when everybody shares one.
    pub(crate) fn main_session_key(&self) -> SessionKey {
        let rules = self.get().sessions.key_rules();
        rules.main(&rules.default_agent)
    }

    /// `snapshot.sessionDefaults` of `hello-ok`.
    pub(crate) fn session_defaults(&self) -> SessionDefaults {
        let settings = self.get();
        SessionDefaults {
            default_agent_id: settings.sessions.default_agent().to_string(),
            main_key: settings.sessions.key_rules().main_key,
            main_session_key: self.main_session_key().as_str().to_owned(),
            scope: settings.sessions.section.scope.as_str().to_owned(),
        }
    }
}
