//! Limits that a session puts on the rights of what is done in it.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::ResolvedAgent;
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::Rights;
use openclaw_journal::rights::settle::{self, Within};
use openclaw_protocol::AgentId;
use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::{SessionEntry, SessionKey};

use crate::rows::SessionRows;
use crate::sandbox;

/// Limits of sessions: by their keys and rows, and for sub-agents by what they were started with.
pub(crate) struct SessionRights {
    rows: Arc<SessionRows>,
    child_runs: Arc<ChildRuns>,
}

impl SessionRights {
    pub(crate) fn new(rows: Arc<SessionRows>, child_runs: Arc<ChildRuns>) -> Self {
        Self { rows, child_runs }
    }

    /// Settles the rights of a message's run.
    pub(crate) fn settled(
        &self,
        key: &SessionKey,
        request: &RunRequest,
        entry: Option<&SessionEntry>,
        settings: &Settings,
    ) -> Rights {
        let agent = request.agent_id.clone();
        let agent = agent.unwrap_or_else(|| key.agent_or(&settings.sessions.default_agent()));
        let unknown = SessionEntry::default();
        let (entry, started_with) = (entry.unwrap_or(&unknown), self.started_with(key));
        settle::settled(request.asked(), self.within(settings, (key, &agent), entry, started_with.as_ref()))
    }

    /// Returns the rights that a sub-agent was started with; `None` for all other sessions.
    pub(crate) fn started_with(&self, key: &SessionKey) -> Option<Rights> {
        self.child_runs.rights_of(key)
    }

    /// Returns the limits that a session puts on rights. `started_with` comes from
    /// [`started_with`](Self::started_with).
    pub(crate) fn within<'a>(
        &'a self,
        settings: &'a Settings,
        (key, agent): (&'a SessionKey, &'a AgentId),
        entry: &'a SessionEntry,
        started_with: Option<&'a Rights>,
    ) -> Within<'a> {
        Within { config: &settings.config, rules: self.rows.key_rules(), key, agent, entry, started_with }
    }

    /// Returns the directory that the files of a session's answers are in. Without `rights` those that
    /// the session has by itself count.
    pub(crate) fn files_of(
        &self,
        settings: &Settings,
        agent: &ResolvedAgent,
        key: &SessionKey,
        rights: Option<&Rights>,
    ) -> PathBuf {
        let rights = rights.cloned().or_else(|| self.started_with(key)).unwrap_or(Rights::ALL);
        let rights = settle::held(rights, (&settings.config, self.rows.key_rules()), (key, &agent.id));
        sandbox::files_of(settings, agent, key, &rights)
    }
}
