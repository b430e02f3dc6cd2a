//! `restart-sentinel.json`: the notice to a session after a restart (spec `operations.md` §2.3).
//! The request for the restart stores it; the next start tells it, once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Address, Platforms};
use openclaw_config::clock::now_ms;
use openclaw_config::private_file::{self, Durability};
use openclaw_config::{normalize_account_id, shared_place};
use openclaw_dispatch::api::{AgentMessage, Occasion};
use openclaw_dispatch::caller::CallerRights;
use openclaw_dispatch::{Dispatch, DispatchError, SystemEvents};
use openclaw_protocol::params::config::RestartSentinel;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::SessionStore;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::current_settings::CurrentSettings;

const NAME: &str = "restart-sentinel.json";
const VERSION: u32 = 1;
/// Delay from the start to the report of a restart: channels come up meanwhile (spec
/// `operations.md` §1.1).
const AFTER_START: Duration = Duration::from_millis(750);

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct SentinelFile {
    version: u32,
    payload: RestartSentinel,
}

/// Keeps it for the next start, in place of an earlier one.
pub(crate) fn store(state_dir: &Path, payload: RestartSentinel) -> io::Result<PathBuf> {
    let path = state_dir.join(NAME);
    let mut text = serde_json::to_string_pretty(&SentinelFile { version: VERSION, payload })?;
    text.push('\n');
    private_file::replace(&path, text.as_bytes(), Durability::Synced)?;
    Ok(path)
}

/// Sentinel kept in the file; a file that can't be read counts as none.
fn read(path: &Path) -> Option<RestartSentinel> {
    let text = match shared_place::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "what was to be told after the restart can't be read");
            return None;
        }
    };
    match serde_json::from_str::<SentinelFile>(&text) {
        Ok(stored) if stored.version == VERSION => Some(stored.payload),
        Ok(stored) => {
            tracing::warn!(
                version = stored.version,
                "restart-sentinel.json is of another version and not told"
            );
            None
        }
        Err(error) => {
            tracing::warn!(%error, "restart-sentinel.json is damaged and not told");
            None
        }
    }
}

/// Restart sentinel that the last process left to be reported. Asked for before anybody can ask
/// this one for a restart, which leaves something as well.
pub(crate) async fn left(state_dir: &Path) -> Option<RestartSentinel> {
    let path = state_dir.join(NAME);
    let found = tokio::task::spawn_blocking(move || {
        let found = read(&path);
        if found.is_none() {
            remove(&path);
        }
        found
    });
    found.await.ok().flatten()
}

/// Parts of the gateway by which a session is told of a restart.
pub(crate) struct SentinelParts {
    pub(crate) state_dir: Arc<Path>,
    pub(crate) settings: CurrentSettings,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) system_events: Arc<SystemEvents>,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) dispatch: Dispatch,
}

/// Tells it, once the gateway is up.
pub(crate) async fn tell(parts: SentinelParts, left: RestartSentinel, stopping: CancellationToken) {
    tokio::select! { biased;
        () = stopping.cancelled() => {}
        () = async {
            tokio::time::sleep(AFTER_START).await;
            if say(&parts, &left).await {
                let path = parts.state_dir.join(NAME);
                // Without an answer the process ends, and the next one tells it.
                let _ = tokio::task::spawn_blocking(move || forget(&path, &left)).await;
            }
        } => {}
    }
}

/// Takes it away, unless a restart that was asked for meanwhile has put its own there.
fn forget(path: &Path, told: &RestartSentinel) {
    if read(path).as_ref() == Some(told) {
        remove(path);
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "it will be told again after the next start");
    }
}

/// Says it where its session is talked in, or else leaves it for the session's next turn. `false`: the gateway stops, and the next one
/// says it.
async fn say(parts: &SentinelParts, payload: &RestartSentinel) -> bool {
    let text = format!("GatewayRestart:\n{}", serde_json::to_string_pretty(payload).unwrap_or_default());
    let rules = parts.sessions.rules();
    let named = payload.session_key.as_deref().and_then(|key| rules.canonical(key).ok());
    let key = named.unwrap_or_else(|| parts.settings.main_session_key());
    let Some(address) = address(parts, payload) else {
        parts.system_events.enqueue(&key, &text, None, now_ms());
        return true;
    };
    let message = AgentMessage {
        // The same for the same file: a start that was cut short does not say it twice.
        run_id: RunId::new(format!("restart-sentinel-{}", payload.ts)),
        agent_id: rules.agent_of(&key),
        session_key: key.clone(),
        session_id: None,
        text: text.clone(),
        images: Vec::new(),
        thinking: None,
        timeout_seconds: None,
        lane: None,
        extra_system_prompt: None,
        occasion: Occasion::Request,
        deliver_to: Some(address),
        rights: CallerRights::of_client(false, false),
        entry_patch: serde_json::Map::new(),
    };
    match parts.dispatch.agent(message).await.outcome().await {
        // No caller waits for an acknowledgement.
        Ok(receipt) => drop(receipt),
        Err(DispatchError::ShuttingDown) => return false,
        Err(error) => leave(parts, &key, &text, &error),
    }
    true
}

fn leave(parts: &SentinelParts, key: &SessionKey, text: &str, error: &DispatchError) {
    tracing::warn!(session = %key, %error, "what is told after the restart waits for the session's next turn");
    parts.system_events.enqueue(key, text, None, now_ms());
}

/// The conversation of a chat platform that it is said in, where that platform is used here.
fn address(parts: &SentinelParts, payload: &RestartSentinel) -> Option<Address> {
    let route = payload.delivery_context.as_ref()?;
    let (config, platforms) = (parts.settings.config(), &parts.platforms);
    let id = route.channel.as_deref()?;
    let channel = platforms.channel(id)?;
    let named = route.account_id.as_deref().map(normalize_account_id);
    let account = named.or_else(|| platforms.sending_account(&config, id))?;
    platforms.account(&config, id, &account)?;
    let target = channel.target(route.to.as_deref()?).ok()?;
    let thread = payload.thread_id.clone().or(target.thread);
    Some(Address { channel: id.to_owned(), account, target: target.id, thread })
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::params::config::{RestartKind, RestartStatus};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_has_the_form_of_the_reference_and_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let payload = RestartSentinel {
            kind: RestartKind::ConfigApply,
            status: RestartStatus::Ok,
            ts: 5,
            session_key: Some("agent:main:main".to_owned()),
            delivery_context: None,
            thread_id: None,
            message: None,
            doctor_hint: None,
            stats: None,
        };
        let path = store(dir.path(), payload.clone()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expect = json!({"version": 1, "payload": {"kind": "config-apply", "status": "ok", "ts": 5,
            "sessionKey": "agent:main:main", "message": null}});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expect);
        assert_eq!(read(&path), Some(payload));
        for damaged in ["", "{", r#"{"version": 2, "payload": {"kind": "restart", "status": "ok", "ts": 1}}"#]
        {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path), None, "{damaged}");
        }
        assert_eq!(read(&dir.path().join("none")), None);
    }

    #[tokio::test]
    async fn what_this_process_leaves_is_not_taken_for_what_the_last_one_left() {
        let dir = tempfile::tempdir().unwrap();
        let payload = |ts: i64| RestartSentinel {
            kind: RestartKind::Restart,
            status: RestartStatus::Ok,
            ts,
            session_key: None,
            delivery_context: None,
            thread_id: None,
            message: None,
            doctor_hint: None,
            stats: None,
        };
        assert_eq!(left(dir.path()).await, None);
        let path = store(dir.path(), payload(5)).unwrap();
        let first = left(dir.path()).await.unwrap();
        store(dir.path(), payload(6)).unwrap();
        forget(&path, &first);
        assert_eq!(read(&path), Some(payload(6)));
        forget(&path, &payload(6));
        assert!(!path.exists());
        std::fs::write(&path, "{").unwrap();
        assert_eq!(left(dir.path()).await, None);
        assert!(!path.exists(), "it would be complained of at each start");
    }
}
