//! Upkeep of the state directory while the gateway runs: file permissions for the owner alone, and
//! `session.maintenance` at start, once a day, and when its settings change.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Config;
use openclaw_config::settings::MaintenanceMode;
use openclaw_dispatch::{Dispatch, Settings};
use openclaw_sessions::checkup::keep_private;
use openclaw_sessions::maintenance::{self, DiskBudget, Maintenance, Mode, Policy};
use openclaw_sessions::{SessionKey, SessionStore};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::current_settings::CurrentSettings;
use crate::premises::premises;

/// Interval between rounds of maintenance.
const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// Parts of the gateway that upkeep works on.
pub(crate) struct UpkeepParts {
    pub(crate) settings: CurrentSettings,
    pub(crate) sessions: Arc<dyn SessionStore>,
    /// Keeps the files of sessions and transcripts in order.
    pub(crate) maintenance: Maintenance,
    pub(crate) dispatch: Dispatch,
}

/// Works until the gateway stops. Runs that were recovered are known by the time this begins.
pub(crate) async fn run(parts: UpkeepParts, stopping: CancellationToken) {
    let UpkeepParts { settings, sessions, maintenance, dispatch } = parts;
    make_private(&settings.config()).await;
    let busy = dispatch.clone();
    let is_busy = Arc::new(move |key: &SessionKey| !busy.active_runs(key).is_empty());
    let work = maintenance.work(sessions, settings.config().agent_ids(), is_busy);
    let round = |policy: Policy| {
        let work = work.clone();
        async move {
            if let Err(error) = maintenance::run(&work, &policy, now_ms()).await {
                tracing::error!(%error, "session maintenance failed, it is tried again tomorrow");
            }
        }
    };
    tokio::join!(rounds(settings.follow(), &stopping, round), sweeps(&dispatch, &stopping));
}

/// Once a day: what was sent and is remembered by no delivery any more. The first time was at start.
async fn sweeps(dispatch: &Dispatch, stopping: &CancellationToken) {
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = sleep(PERIOD) => {}
        }
        dispatch.sweep_files().await;
    }
}

/// A round now, every [`PERIOD`], and whenever the policy is another one; none without a policy.
async fn rounds<F: Future<Output = ()>>(
    mut settings: watch::Receiver<Arc<Settings>>,
    stopping: &CancellationToken,
    round: impl Fn(Policy) -> F,
) {
    loop {
        let policy = policy_of(&settings.borrow_and_update().config);
        if let Some(policy) = policy.clone() {
            tokio::select! { biased;
                () = stopping.cancelled() => return,
                () = round(policy) => {}
            }
        }
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = changed(&mut settings, policy.as_ref()) => {}
            () = sleep(PERIOD) => {}
        }
    }
}

/// Waits until the settings in force say something else.
async fn changed(settings: &mut watch::Receiver<Arc<Settings>>, policy: Option<&Policy>) {
    loop {
        if settings.changed().await.is_err() {
            return std::future::pending().await;
        }
        if policy_of(&settings.borrow_and_update().config).as_ref() != policy {
            return;
        }
    }
}

/// `session.maintenance` as maintenance wants it; nothing when it is not configured.
fn policy_of(config: &Config) -> Option<Policy> {
    let block = config.session.maintenance?;
    Some(Policy {
        mode: match block.mode {
            MaintenanceMode::Warn => Mode::Warn,
            MaintenanceMode::Enforce => Mode::Enforce,
        },
        prune_after_ms: block.prune_after_ms(),
        max_entries: block.max_entries(),
        rotate_bytes: block.rotate_bytes(),
        archive_retention_ms: block.archive_retention_ms(),
        disk: block
            .max_disk_bytes()
            .map(|most| DiskBudget { most, target: block.high_water_bytes().unwrap_or(most) }),
    })
}

/// Takes from others what they may do with state files (spec `operations.md` §8.5).
async fn make_private(config: &Config) {
    let premises = premises(config);
    let done = tokio::task::spawn_blocking(move || keep_private(&premises)).await;
    match done {
        Ok(Ok(0)) => {}
        Ok(Ok(count)) => tracing::info!(count, "state files and directories are for their owner alone now"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot set the modes of all state files; run `openclaw doctor`")
        }
        Err(error) => tracing::warn!(%error, "setting the modes of state files was interrupted"),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tokio::task::yield_now;

    use super::*;

    fn settings(maintenance: &Value) -> Arc<Settings> {
        let document = json!({"session": {"maintenance": maintenance}});
        let document = if document["session"]["maintenance"].is_null() { json!({}) } else { document };
        let environment = Environment::new([("HOME", "/home/user")], "/");
        let config = Config::from_json5(&document.to_string(), &environment).unwrap();
        Arc::new(Settings::from(config))
    }

    #[test]
    fn the_policy_is_what_the_config_says() {
        assert_eq!(policy_of(&settings(&Value::Null).config), None);
        let block = json!({"mode": "enforce", "pruneAfter": "2d", "maxEntries": 9, "maxDiskBytes": "1kb"});
        let expect = Policy {
            mode: Mode::Enforce,
            prune_after_ms: Some(2 * 86_400_000),
            max_entries: 9,
            rotate_bytes: Some(10 << 20),
            archive_retention_ms: Some(2 * 86_400_000),
            disk: Some(DiskBudget { most: 1024, target: 816 }),
        };
        assert_eq!(policy_of(&settings(&block).config), Some(expect));
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_are_made_at_start_daily_and_when_the_policy_changes() {
        let (sender, receiver) = watch::channel(settings(&Value::Null));
        let stopping = CancellationToken::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let stop = stopping.clone();
        let task = tokio::spawn(async move {
            let round = move |policy: Policy| {
                noted.lock().push(policy.max_entries);
                std::future::ready(())
            };
            rounds(receiver, &stop, round).await;
        });
        let settle = || async {
            for _ in 0..10 {
                yield_now().await;
            }
        };
        settle().await;
        assert_eq!(*seen.lock(), [0; 0], "nothing is configured");
        sender.send_replace(settings(&json!({"maxEntries": 1})));
        settle().await;
        sender.send_replace(settings(&json!({"maxEntries": 1})));
        settle().await;
        assert_eq!(*seen.lock(), [1], "the same policy is no change");
        tokio::time::advance(PERIOD).await;
        settle().await;
        sender.send_replace(settings(&json!({"maxEntries": 2})));
        settle().await;
        sender.send_replace(settings(&Value::Null));
        settle().await;
        tokio::time::advance(PERIOD * 2).await;
        settle().await;
        assert_eq!(*seen.lock(), [1, 1, 2]);
        stopping.cancel();
        task.await.unwrap();
    }
}
