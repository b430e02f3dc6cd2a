//! Control of the gateway itself, by the methods `config.*` and `update.run` and by the tool
//! `gateway`: one way for both.
//!
//! [`config_text`] says what a written config comes to; this file writes it, and has the gateway start again where that is needed.

pub(crate) mod bell;
pub(crate) mod config_text;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::clock::now_ms;
use openclaw_config::write::{Actor, write};
use openclaw_config::{Loaded, load};
use openclaw_protocol::SessionKey;
use openclaw_protocol::params::config::{
    ConfigWritten, RestartKind, RestartSentinel, RestartStats, RestartStatus, ScheduledRestart,
    SentinelRoute, StoredSentinel, UpdateOutcome, UpdateRunResult,
};
use openclaw_sessions::SessionStore;
use openclaw_sessions::entry::delivery::of_entry;

use crate::reload::{Reload, applies_at_once, restarts_by_itself};
use crate::sentinel;
use bell::{BEFORE_RESTART, RestartBell};
use config_text::{ConfigChange, ConfigTextError};

/// Longest time until a restart that was asked for (spec `operations.md` §2.1).
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Number of attempts to plan a change anew because somebody else wrote the file meanwhile.
const TRIES: usize = 3;
const DOCTOR: &str = "Run: openclaw doctor --non-interactive";
/// Suffix that Linux adds to the path of a program whose file was replaced.
const REPLACED: &str = " (deleted)";
const NOT_REPLACED: &str =
    "the installed program is the one that runs: install a newer one over it, then run update.run again";

/// The gateway, as far as it is controlled.
#[derive(Clone)]
pub(crate) struct GatewayControl {
    pub(crate) reload: Reload,
    pub(crate) bell: RestartBell,
    sessions: Arc<dyn SessionStore>,
    state_dir: PathBuf,
}

/// Notice of a restart: the session to tell, the text, and the delay before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Notice {
    pub(crate) session: Option<SessionKey>,
    pub(crate) note: Option<String>,
    pub(crate) delay: Option<Duration>,
}

impl GatewayControl {
    pub(crate) fn new(reload: Reload, sessions: Arc<dyn SessionStore>, state_dir: PathBuf) -> Self {
        Self { reload, bell: RestartBell::default(), sessions, state_dir }
    }

    /// Writes a config and has it taken, by a restart where that is needed.
    pub(crate) async fn change(
        &self,
        change: ConfigChange,
        actor: Actor,
        notice: Notice,
    ) -> Result<ConfigWritten, ConfigTextError> {
        let (environment, planned) = (self.reload.environment().clone(), change.clone());
        let written = tokio::task::spawn_blocking(move || -> Result<_, ConfigTextError> {
            let mut left = if planned.base_hash.is_some() { 1 } else { TRIES };
            loop {
                let before = load(&environment);
                let next = planned.next(&before)?;
                left -= 1;
                match write(&before, &next, actor) {
                    Ok(_) => return Ok((before, load(&environment))),
                    Err(error) if left > 0 && config_text::is_conflict(&error) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        });
        let (before, after) = written.await.map_err(|_| ConfigTextError::Interrupted)??;
        self.reload.now().await;
        let (restart, sentinel) = self.after_change(&before, &after, change.method(), notice).await;
        let shown = after.snapshot.redacted();
        Ok(ConfigWritten { ok: true, path: shown.path, config: shown.config, restart, sentinel })
    }

    /// The restart that a change needs, and the notice after it. A change that is in force already
    /// needs none (decision 29). After `config.set` it comes as after an edit of the file in
    /// OpenClaw 2026.2.9: the answer says nothing of it.
    async fn after_change(
        &self,
        before: &Loaded,
        after: &Loaded,
        method: config_text::Method,
        notice: Notice,
    ) -> (Option<ScheduledRestart>, Option<StoredSentinel>) {
        if method == config_text::Method::Set {
            if restarts_by_itself(before, after) {
                self.schedule(Some(method.name().to_owned()), notice.delay);
            }
            return (None, None);
        }
        if applies_at_once(before, after) {
            return (None, None);
        }
        let stats = RestartStats {
            mode: Some(method.name().to_owned()),
            root: Some(after.paths.config_path().display().to_string()),
            reason: None,
        };
        let sentinel = self.store_sentinel(RestartKind::ConfigApply, &notice, stats).await;
        (Some(self.schedule(Some(method.name().to_owned()), notice.delay)), sentinel)
    }

    /// Starts again in a while, and tells the session then.
    pub(crate) async fn restart(&self, reason: Option<String>, notice: Notice) -> ScheduledRestart {
        let stats =
            RestartStats { mode: Some("gateway.restart".to_owned()), root: None, reason: reason.clone() };
        let told = Notice { note: notice.note.clone().or_else(|| reason.clone()), ..notice };
        self.store_sentinel(RestartKind::Restart, &told, stats).await;
        self.schedule(reason, told.delay)
    }

    /// Starts again with the program that was installed over the one that runs. Does nothing if
    /// none was installed (KB-12).
    pub(crate) async fn update(&self, notice: Notice) -> UpdateRunResult {
        let program = std::env::current_exe().ok().map(|path| path.display().to_string());
        let replaced = program.as_deref().and_then(|path| path.strip_suffix(REPLACED));
        let is_new = replaced.is_some_and(|path| std::path::Path::new(path).is_file());
        let root = replaced.map(str::to_owned).or_else(|| program.clone());
        let outcome = |status, reason: Option<&str>| UpdateOutcome {
            status,
            mode: "binary".to_owned(),
            root: root.clone(),
            reason: reason.map(str::to_owned),
            steps: Vec::new(),
            duration_ms: 0,
        };
        if !is_new {
            let result = outcome(RestartStatus::Skipped, Some(NOT_REPLACED));
            return UpdateRunResult { ok: true, result, restart: None, sentinel: None };
        }
        let stats = RestartStats { mode: Some("binary".to_owned()), root: root.clone(), reason: None };
        let sentinel = self.store_sentinel(RestartKind::Update, &notice, stats).await;
        let restart = Some(self.schedule(Some("update.run".to_owned()), notice.delay));
        UpdateRunResult { ok: true, result: outcome(RestartStatus::Ok, None), restart, sentinel }
    }

    fn schedule(&self, reason: Option<String>, delay: Option<Duration>) -> ScheduledRestart {
        let delay = delay.unwrap_or(BEFORE_RESTART).min(MAX_DELAY);
        tracing::info!(?delay, reason = reason.as_deref().unwrap_or("none"), "a restart was asked for");
        self.bell.ring_in(delay);
        ScheduledRestart {
            ok: true,
            pid: std::process::id(),
            signal: "SIGUSR1".to_owned(),
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            reason,
            mode: "emit".to_owned(),
        }
    }

    /// Stores the notice that the session gets at the next start. Without it the restart comes all
    /// the same.
    async fn store_sentinel(
        &self,
        kind: RestartKind,
        notice: &Notice,
        stats: RestartStats,
    ) -> Option<StoredSentinel> {
        let (route, thread) = self.route_of(notice.session.as_ref()).await;
        let payload = RestartSentinel {
            kind,
            status: RestartStatus::Ok,
            ts: now_ms(),
            session_key: notice.session.as_ref().map(ToString::to_string),
            delivery_context: route,
            thread_id: thread,
            message: notice.note.clone(),
            doctor_hint: Some(DOCTOR.to_owned()),
            stats: Some(stats),
        };
        let (dir, told) = (self.state_dir.clone(), payload.clone());
        let stored = tokio::task::spawn_blocking(move || sentinel::store(&dir, told)).await;
        match stored.map_err(std::io::Error::other).and_then(|stored| stored) {
            Ok(path) => Some(StoredSentinel { path: path.display().to_string(), payload }),
            Err(error) => {
                tracing::warn!(%error, "nobody will be told of the restart");
                None
            }
        }
    }

    /// Route and thread of the chat in which a session is talked to.
    async fn route_of(&self, session: Option<&SessionKey>) -> (Option<SentinelRoute>, Option<String>) {
        let Some(key) = session else { return (None, None) };
        let row = self.sessions.get(key).await.ok().flatten();
        let Some(route) = row.and_then(|row| of_entry(&row.entry)) else { return (None, None) };
        let text = |value: &Option<Box<str>>| value.as_deref().map(str::to_owned);
        let thread = route.thread_id.as_ref().map(ToString::to_string);
        let route = SentinelRoute {
            channel: text(&route.channel),
            to: text(&route.to),
            account_id: text(&route.account_id),
        };
        (Some(route), thread)
    }
}
