//! Facts that checks of the state directory and the move of old state go by, as the config has them.

use openclaw_config::Config;
use openclaw_sessions::checkup::Premises;
use openclaw_sessions::legacy_state::OldState;
use openclaw_sessions::time::now_ms;
use openclaw_sessions::{Layout, SessionSettings};

/// Old state to look for under this config, and the layout it moves into.
pub(crate) fn old_state(config: &Config) -> OldState {
    let paths = config.paths();
    let rules = SessionSettings::from(config).key_rules();
    OldState {
        layout: Layout::new(paths.state_dir(), paths.home(), config.session.store.as_deref()),
        agent_dir: config.agent(&rules.default_agent).agent_dir,
        agents: config.agent_ids(),
        credentials_dir: paths.credentials_dir().to_path_buf(),
        rules,
    }
}

/// Input for a checkup of the state directory, for a gateway that runs or for a command.
pub fn premises(config: &Config) -> Premises {
    let paths = config.paths();
    Premises {
        state: old_state(config),
        home: paths.home().to_path_buf(),
        config_path: paths.config_path().to_path_buf(),
        agent_dirs: config.agent_ids().iter().map(|agent| config.agent(agent).agent_dir).collect(),
        is_running: true,
        is_configured: true,
        archive_orphans: false,
        now: now_ms(),
    }
}
