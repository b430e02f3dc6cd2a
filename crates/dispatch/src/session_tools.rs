//! The tools by which agents look at other sessions and talk to them (spec `sessions.md` §8), one file each: [`list`], [`history`] (with
//! [`sanitise`]), [`send`], [`status`], [`agents`].
//!
//! What one session says to another goes on after its answer: [`exchange`] decides what follows a step, [`follow`] makes it durable before
//! that step counts as done, [`announce_target`] says where the last word goes. [`waits`] keeps sessions from waiting for each other in a
//! circle. [`invoke`] is the door for clients (`POST /tools/invoke`). Who may see what is decided in `openclaw_sessions::access`.

mod agents;
mod announce_target;
pub(crate) mod exchange;
pub(crate) mod follow;
mod history;
pub(crate) mod invoke;
mod list;
mod sanitise;
mod send;
mod status;
pub(crate) mod waits;

use std::sync::Arc;

use openclaw_agent::host::HostError;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::SessionToolsVisibility;
use openclaw_sessions::access::{Denied, Reference, Sight, TalkPolicy, Unseen, Viewer};
use openclaw_sessions::store::{Hidden, Query, Rows};
use openclaw_sessions::{KeyRules, Row, SessionKey};
use serde_json::{Value, json};

use crate::lineage::Lineage;
use crate::messages::turn::MessageTurn;
use crate::runner::Runner;
use crate::runner::lent::LanePlace;
use crate::setup::Settings;

/// Who asks: the run of a session, or a client in its name.
pub(crate) struct Caller<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) settings: Arc<Settings>,
    pub(crate) agent: &'a ResolvedAgent,
    pub(crate) viewer: Viewer,
    /// The channel on which that was asked for, if it is known.
    pub(crate) channel: Option<String>,
    /// The run.
    pub(crate) turn: &'a MessageTurn,
    /// What the run follows from that no person said.
    pub(crate) lineage: Lineage,
    /// The place that it lends while it waits; `None` if no session stands still meanwhile.
    pub(crate) place: Option<&'a LanePlace>,
}

/// What is wanted of a session: it changes the words in which an agent is refused.
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
struct Found {
    key: SessionKey,
    /// There need not be one yet.
    row: Option<Row>,
}

/// Why a session is not looked at. The model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// There is none, or not exactly one.
    Missing(String),
    /// It may not be looked at.
    Forbidden(String),
}

impl Refusal {
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

/// Why nothing is told.
enum Trouble {
    Refused(Refusal),
    Host(HostError),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<HostError> for Trouble {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// How much a session sees whose runs are held in a sandbox, or are not.
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

/// Where the store can't be read.
fn unreadable(error: impl std::fmt::Display) -> HostError {
    HostError::Unavailable(error.to_string())
}

impl Caller<'_> {
    fn rules(&self) -> &KeyRules {
        self.runner.key_rules()
    }

    fn talk(&self) -> TalkPolicy<'_> {
        let policy = &self.settings.config.tools.agent_to_agent;
        TalkPolicy { enabled: policy.enabled, allow: &policy.allow }
    }

    /// The key as it is shown to who asks.
    fn shown(&self, key: &SessionKey) -> String {
        self.viewer.shown(key, self.rules()).to_owned()
    }

    fn hidden(text: &str) -> Refusal {
        Refusal::Forbidden(format!("Session not visible from this sandboxed agent session: {text}"))
    }

    /// Finds a session by its key or the id of its transcript, if it may be looked at for that.
    async fn find(&self, text: &str, purpose: Purpose) -> Result<Found, Trouble> {
        let text = text.trim();
        let found = match self.resolve(text).await {
            // Whoever is in a sandbox does not learn what there is outside.
            Err(Trouble::Refused(_)) if self.viewer.sight == Sight::OwnChildren => {
                return Err(Self::hidden(text).into());
            }
            found => found?,
        };
        self.admit(text, &found, purpose)?;
        Ok(found)
    }

    /// Whether a session may be looked at for that.
    fn admit(&self, text: &str, found: &Found, purpose: Purpose) -> Result<(), Refusal> {
        let entry = found.row.as_ref().map(|row| row.entry.as_ref());
        self.viewer.check(&found.key, entry, self.rules(), self.talk()).map_err(|unseen| match unseen {
            Unseen::Hidden => Self::hidden(text),
            Unseen::Foreign(denied) => Refusal::Forbidden(purpose.refusal(denied).to_owned()),
        })
    }

    async fn row(&self, key: &SessionKey) -> Result<Option<Row>, HostError> {
        self.runner.deps.store.get(key).await.map_err(unreadable)
    }

    async fn resolve(&self, text: &str) -> Result<Found, Trouble> {
        let read = Reference::read(text, &self.viewer.agent, self.rules());
        let key = match read.map_err(|error| Refusal::Missing(error.to_string()))? {
            Reference::Key(key) => return Ok(Found { row: self.row(&key).await?, key }),
            Reference::KeyOrId(key) => key,
        };
        // A name without an agent may also be one of the default agent's.
        for key in [Some(key), self.rules().canonical(text).ok()].into_iter().flatten() {
            if let Some(row) = self.row(&key).await? {
                return Ok(Found { key: row.key.clone(), row: Some(row) });
            }
        }
        self.by_id(text).await
    }

    async fn by_id(&self, id: &str) -> Result<Found, Trouble> {
        const MOST: usize = 20;
        let hidden = Hidden { cron_runs: true, ..Hidden::default() };
        let query = Query { session_id: Some(id.to_owned()), hidden, ..Query::newest(MOST) };
        let mut rows = self.runner.deps.store.select(Rows::All, &query).await.map_err(unreadable)?.rows;
        match (rows.pop(), rows.as_slice()) {
            (None, _) => Err(Refusal::Missing(format!("No session found: {id}")).into()),
            (Some(row), []) => Ok(Found { key: row.key.clone(), row: Some(row) }),
            (Some(last), others) => {
                let keys: Vec<&str> = others.iter().chain([&last]).map(|row| row.key.as_str()).collect();
                let keys = keys.join(", ");
                let text = format!("Multiple sessions found for sessionId: {id} ({keys})");
                Err(Refusal::Missing(text).into())
            }
        }
    }
}

/// What the model is told instead, where that is an answer.
fn told(trouble: Trouble) -> Result<Value, HostError> {
    match trouble {
        Trouble::Refused(refusal) => Ok(refusal.into_answer()),
        Trouble::Host(error) => Err(error),
    }
}
