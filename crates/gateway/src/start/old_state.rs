//! Taking over what older versions left in the state directory, before anything of it is opened.

use openclaw_config::Config;
use openclaw_sessions::checkup::Premises;
use openclaw_sessions::legacy_state::OldState;
use openclaw_sessions::time::now_ms;
use openclaw_sessions::{Layout, SessionSettings};

/// Old state to look for under this config, and the layout it moves into.
fn old_state(config: &Config) -> OldState {
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

/// Moves it. A remnant that can't be moved stays where it is, is reported, and is tried again at
/// the next start: a gateway without some old sessions is better than none.
pub(super) async fn migrate(config: &Config) {
    let old = old_state(config);
    let done = tokio::task::spawn_blocking(move || old.migrate(now_ms())).await;
    match done {
        Ok(Ok(migrated)) => {
            for change in &migrated.changes {
                tracing::info!("state of an older version: {change}");
            }
            if let Some(backup) = migrated.backup {
                tracing::info!(backup = %backup.display(), "the state as it was is kept; manifest.jsonl in it says what was where");
            }
        }
        Ok(Err(error)) => {
            tracing::error!(
                "state of an older version: {error}; run `openclaw doctor --fix` with the gateway stopped"
            );
        }
        Err(error) => tracing::error!(%error, "taking over the state of an older version was interrupted"),
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
