//! Decisions about a message when it is accepted: its meaning to the gateway, its way of waiting,
//! and whether its session may send at all.

use std::sync::Arc;

use openclaw_agent::skills::{Occasion, SkillBook, Snapshot, Wanted};
use openclaw_journal::api::DispatchError;
use openclaw_journal::request::RunRequest;
use openclaw_models::reference::ModelNames;
use openclaw_protocol::AgentId;
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_sessions::{SessionEntry, SessionKey};

use crate::acceptance;
use crate::rows::SessionRows;
use crate::send_rules::SendRules;
use crate::session_rights::SessionRights;
use openclaw_commands::KnownNames;

/// Decisions about messages, by the settings, the session and the skills of the agent.
pub struct Decider {
    settings: LiveSettings,
    rows: Arc<SessionRows>,
    send_rules: Arc<SendRules>,
    rights: Arc<SessionRights>,
    skills: Arc<SkillBook>,
}

impl Decider {
    pub(crate) fn new(
        settings: LiveSettings,
        rows: Arc<SessionRows>,
        send_rules: Arc<SendRules>,
        rights: Arc<SessionRights>,
        skills: Arc<SkillBook>,
    ) -> Self {
        Self { settings, rows, send_rules, rights, skills }
    }

    /// Makes the decisions about a message, and tells if its session may send now. Reads the
    /// session's row, once: from now on the key is spelled as it is stored.
    pub async fn decide(
        &self,
        key: SessionKey,
        request: RunRequest,
    ) -> Result<(SessionKey, RunRequest, bool), DispatchError> {
        let found = self.rows.get(&key).await;
        let found = found.map_err(|error| DispatchError::Storage(error.to_string()))?;
        let (key, entry) = match found {
            Some(row) => (row.key, Some(row.entry)),
            None => (key.spelled_anew(), None),
        };
        let settings = self.settings.now();
        let may_send = self.send_rules.is_allowed(&key, entry.as_deref(), None);
        let skills = self.skills_called(&key, &request, entry.as_deref(), &settings).await;
        let skills = skills.as_deref().map(openclaw_commands::skill::commands).unwrap_or_default();
        let request = acceptance::decide(request, entry.as_deref(), &settings, skills);
        let rights = Some(self.rights.settled(&key, &request, entry.as_deref(), &settings));
        Ok((key, RunRequest { rights, ..request }, may_send))
    }

    /// A message found on disk, decided about: by the version that accepted it, or now.
    pub async fn decided(&self, session_key: &SessionKey, request: RunRequest) -> RunRequest {
        if request.decided.is_some() && request.rights.is_some() {
            return request;
        }
        let entry = self.rows.entry_or_none(session_key).await;
        let settings = self.settings.now();
        let request = match request.decided {
            Some(_) => request,
            None => {
                let skills = self.skills_called(session_key, &request, entry.as_deref(), &settings).await;
                let skills = skills.as_deref().map(openclaw_commands::skill::commands).unwrap_or_default();
                acceptance::decide(request, entry.as_deref(), &settings, skills)
            }
        };
        let rights = self.rights.settled(session_key, &request, entry.as_deref(), &settings);
        RunRequest { rights: Some(rights), ..request }
    }

    /// Reads words that are not accepted yet, by the names that things have for the agent that they are for.
    pub async fn read_words<T>(
        &self,
        key: &SessionKey,
        agent: &AgentId,
        text: &str,
        read: impl FnOnce(KnownNames<'_>) -> T,
    ) -> T {
        let settings = self.settings.now();
        let skills = match openclaw_commands::skill::may_be_one(text) {
            true => {
                let entry = self.rows.entry_or_none(key).await;
                Some(self.skills_of_agent(agent, entry.as_deref(), &settings).await)
            }
            false => None,
        };
        let skills = skills.as_deref().map(openclaw_commands::skill::commands).unwrap_or_default();
        let models = ModelNames::new(&settings.models.listed);
        let triggers = settings.sessions.section.triggers();
        read(KnownNames { models: &models, triggers: &triggers, skills })
    }

    /// Returns the skills of the agent that a message goes to, if it may call one.
    async fn skills_called(
        &self,
        key: &SessionKey,
        request: &RunRequest,
        entry: Option<&SessionEntry>,
        settings: &Settings,
    ) -> Option<Arc<Snapshot>> {
        if !acceptance::may_call_skill(request, settings) {
            return None;
        }
        let asked = request.agent_id.clone();
        let agent = asked.unwrap_or_else(|| key.agent_or(&settings.sessions.default_agent()));
        Some(self.skills_of_agent(&agent, entry, settings).await)
    }

    async fn skills_of_agent(
        &self,
        agent: &AgentId,
        entry: Option<&SessionEntry>,
        settings: &Settings,
    ) -> Arc<Snapshot> {
        let agent = settings.config.agent(agent);
        let wanted = Wanted { config: &settings.config, agent: &agent.id, workspace: &agent.workspace };
        let occasion = Occasion::GoesOn(entry.and_then(|entry| entry.skills_snapshot.as_ref()));
        self.skills.for_turn(wanted, occasion).await
    }
}
