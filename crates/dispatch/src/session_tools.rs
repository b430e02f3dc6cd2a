//! The tools by which agents look at other sessions and talk to them (spec `sessions.md` §8), one
//! file each: [`list`], [`history`] (with [`sanitise`]), [`send`], [`status`], [`agents`].
//!
//! A talk between sessions goes on after the first answer: [`openclaw_journal::exchange`] decides about the next
//! step, [`follow`] makes it durable before that step counts as done, [`announce_target`] finds the
//! place of the last word. [`crate::waits`] keeps sessions from waiting for each other in a circle.
//! [`invoke`] is the door for clients (`POST /tools/invoke`). Access rights are decided in
//! `openclaw_sessions::access`.

mod agents;
mod announce_target;
pub(crate) mod follow;
mod history;
pub(crate) mod invoke;
mod list;
mod sanitise;
mod send;
mod status;

use std::sync::Arc;

use openclaw_agent::host::HostError;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::SessionToolsVisibility;
use openclaw_journal::lineage::Lineage;
use openclaw_journal::rights::Rights;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::access::{Denied, Reference, Sight, TalkPolicy, Unseen, Viewer};
use openclaw_sessions::store::{Hidden, Query, Rows};
use openclaw_sessions::{KeyRules, Row, SessionKey};
use serde_json::{Value, json};

use crate::parts::{DispatchFamilies, SessionToolParts};
use openclaw_runs::lent::LanePlace;
use openclaw_runtime::messages::turn::MessageTurn;

/// Caller of a session tool: the run of a session, or a client in its name.
pub(crate) struct ToolCaller<'a> {
    pub(crate) parts: &'a Arc<DispatchFamilies>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) agent: &'a ResolvedAgent,
    pub(crate) viewer: Viewer,
    /// The channel on which that was asked for, if it is known.
    pub(crate) channel: Option<String>,
    /// The run.
    pub(crate) turn: &'a MessageTurn,
    /// Count of automatic steps that led to the run since a person or the clock began.
    pub(crate) lineage: Lineage,
    /// Rights of the run.
    pub(crate) rights: &'a Rights,
    /// Place that it lends while it waits; `None` if no session stands still meanwhile.
    pub(crate) place: Option<&'a LanePlace>,
}

/// Purpose of looking at a session: it changes the words in which an agent is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
    Look,
}

impl Purpose {
    /// OpenClaw's words.
    fn refusal(self, denied: Denied) -> &'static str {
        match (self, denied) {
            (Self::Read, Denied::Disabled) => {
                "Agent-to-agent history is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent access."
            }
            (Self::Read, Denied::NotAllowed) => "Agent-to-agent history denied by tools.agentToAgent.allow.",
            (Self::Write, Denied::Disabled) => {
                "Agent-to-agent messaging is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent sends."
            }
            (Self::Write, Denied::NotAllowed) => {
                "Agent-to-agent messaging denied by tools.agentToAgent.allow."
            }
            (Self::Look, Denied::Disabled) => {
                "Agent-to-agent status is disabled. Set tools.agentToAgent.enabled=true to allow cross-agent access."
            }
            (Self::Look, Denied::NotAllowed) => {
                "Agent-to-agent session status denied by tools.agentToAgent.allow."
            }
        }
    }
}

/// A session that may be looked at.
struct VisibleSession {
    key: SessionKey,
    /// Row of the session, if there is one yet.
    row: Option<Row>,
}

/// Reason for which a session is not looked at. The model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionDenied {
    /// No session of this name, or not exactly one.
    Missing(String),
    /// The session may not be looked at.
    Forbidden(String),
}

impl SessionDenied {
    fn status(&self) -> &'static str {
        match self {
            Self::Missing(_) => "error",
            Self::Forbidden(_) => "forbidden",
        }
    }

    fn into_text(self) -> String {
        match self {
            Self::Missing(text) | Self::Forbidden(text) => text,
        }
    }

    /// The whole answer.
    fn into_answer(self) -> Value {
        json!({"status": self.status(), "error": self.into_text()})
    }
}

/// Reason for which nothing is told.
enum Trouble {
    Refused(SessionDenied),
    Host(HostError),
}

impl From<SessionDenied> for Trouble {
    fn from(refusal: SessionDenied) -> Self {
        Self::Refused(refusal)
    }
}

impl From<HostError> for Trouble {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// Returns the sessions that a session may see, depending on whether its runs are held in a
/// sandbox.
pub(crate) fn sight(
    settings: &Settings,
    agent: &ResolvedAgent,
    key: &SessionKey,
    is_sandboxed: bool,
) -> Sight {
    let config = &settings.config;
    let own = config.agent_entry(&agent.id).and_then(|entry| entry.sandbox.session_tools_visibility);
    let chosen = own.or(config.agents.defaults.sandbox.session_tools_visibility).unwrap_or_default();
    match chosen {
        SessionToolsVisibility::Spawned if is_sandboxed && !key.is_subagent() => Sight::OwnChildren,
        SessionToolsVisibility::Spawned | SessionToolsVisibility::All => Sight::Full,
    }
}

/// Error for a store that can't be read.
fn unreadable(error: impl std::fmt::Display) -> HostError {
    HostError::Unavailable(error.to_string())
}

impl ToolCaller<'_> {
    fn family(&self) -> &SessionToolParts {
        &self.parts.session_tools
    }

    fn rules(&self) -> &KeyRules {
        self.family().rows.key_rules()
    }

    fn talk(&self) -> TalkPolicy<'_> {
        let policy = &self.settings.config.tools.agent_to_agent;
        TalkPolicy { enabled: policy.enabled, allow: &policy.allow }
    }

    /// Returns the caller with the sessions that it may see for a purpose. Any caller may write to other sessions, whose runs then have no
    /// more rights than it has. To see what was said there, or their state, the caller must be the owner or act on the owner's behalf.
    fn viewer_for(&self, purpose: Purpose) -> Viewer {
        let is_kept_out = purpose != Purpose::Write && !self.rights.see_other_sessions();
        match is_kept_out {
            true => Viewer { sight: Sight::OwnChildren, ..self.viewer.clone() },
            false => self.viewer.clone(),
        }
    }

    /// Returns the key as it is shown to the caller.
    fn shown(&self, key: &SessionKey) -> String {
        self.viewer.shown(key, self.rules()).to_owned()
    }

    fn hidden(&self, text: &str) -> SessionDenied {
        SessionDenied::Forbidden(match self.viewer.sight {
            Sight::OwnChildren => format!("Session not visible from this sandboxed agent session: {text}"),
            Sight::Full => {
                format!("Session not visible to a run that others than the owner asked for: {text}")
            }
        })
    }

    /// Finds a session by its key or the id of its transcript, if it may be looked at for that.
    async fn find(&self, text: &str, purpose: Purpose) -> Result<VisibleSession, Trouble> {
        let text = text.trim();
        let found = match self.resolve(text).await {
            // Whoever is in a sandbox does not learn what there is outside.
            Err(Trouble::Refused(_)) if self.viewer_for(purpose).sight == Sight::OwnChildren => {
                return Err(self.hidden(text).into());
            }
            found => found?,
        };
        self.admit(text, &found, purpose)?;
        Ok(found)
    }

    /// Checks that a session may be looked at for that purpose.
    fn admit(&self, text: &str, found: &VisibleSession, purpose: Purpose) -> Result<(), SessionDenied> {
        let entry = found.row.as_ref().map(|row| row.entry.as_ref());
        // The caller's own session is always its own, unless a sandbox hides it.
        let viewer = match found.key == self.viewer.key {
            true => self.viewer.clone(),
            false => self.viewer_for(purpose),
        };
        viewer.check(&found.key, entry, self.rules(), self.talk()).map_err(|unseen| match unseen {
            Unseen::Hidden => self.hidden(text),
            Unseen::Foreign(denied) => SessionDenied::Forbidden(purpose.refusal(denied).to_owned()),
        })
    }

    async fn row(&self, key: &SessionKey) -> Result<Option<Row>, HostError> {
        self.family().store.get(key).await.map_err(unreadable)
    }

    async fn found(&self, key: SessionKey) -> Result<VisibleSession, HostError> {
        let row = self.row(&key).await?;
        Ok(VisibleSession { key: row.as_ref().map_or(key, |row| row.key.clone()), row })
    }

    async fn resolve(&self, text: &str) -> Result<VisibleSession, Trouble> {
        let read = Reference::read(text, &self.viewer.agent, self.rules());
        let key = match read.map_err(|error| SessionDenied::Missing(error.to_string()))? {
            Reference::Key(key) => return Ok(self.found(key).await?),
            Reference::KeyOrId(key) => key,
        };
        // A name without an agent may also be one of the default agent's.
        for key in [Some(key), self.rules().canonical(text).ok()].into_iter().flatten() {
            if let Some(row) = self.row(&key).await? {
                return Ok(VisibleSession { key: row.key.clone(), row: Some(row) });
            }
        }
        self.by_id(text).await
    }

    async fn by_id(&self, id: &str) -> Result<VisibleSession, Trouble> {
        const MOST: usize = 20;
        let hidden = Hidden { cron_runs: true, ..Hidden::default() };
        let query = Query { session_id: Some(id.to_owned()), hidden, ..Query::newest(MOST) };
        let mut rows = self.family().store.select(Rows::All, &query).await.map_err(unreadable)?.rows;
        match (rows.pop(), rows.as_slice()) {
            (None, _) => Err(SessionDenied::Missing(format!("No session found: {id}")).into()),
            (Some(row), []) => Ok(VisibleSession { key: row.key.clone(), row: Some(row) }),
            (Some(last), others) => {
                let keys: Vec<&str> = others.iter().chain([&last]).map(|row| row.key.spelled()).collect();
                let keys = keys.join(", ");
                let text = format!("Multiple sessions found for sessionId: {id} ({keys})");
                Err(SessionDenied::Missing(text).into())
            }
        }
    }
}

/// Returns the answer that tells the model of the trouble; an error if it can't be told as an
/// answer.
fn told(trouble: Trouble) -> Result<Value, HostError> {
    match trouble {
        Trouble::Refused(refusal) => Ok(refusal.into_answer()),
        Trouble::Host(error) => Err(error),
    }
}
