//! Taking over what older versions left in the state directory, before anything of it is opened.

use openclaw_config::Config;
use openclaw_sessions::time::now_ms;

use crate::premises::old_state;

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
