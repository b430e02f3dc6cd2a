//! What there is to decide about a message when it is accepted: what it is to the gateway, how it waits, and whether its session may
//! send at all.

use std::sync::Arc;

use openclaw_agent::skills::{Occasion, SkillBook, Snapshot, Wanted};
use openclaw_models::reference::ModelNames;
use openclaw_protocol::AgentId;
use openclaw_sessions::entry::SendPolicy;
use openclaw_sessions::send_policy::{self, SendSubject};
use openclaw_sessions::{SessionEntry, SessionKey};

use super::Runner;
use crate::api::DispatchError;
use crate::commands::{self, Names};
use crate::request::Request;
use crate::setup::Settings;

impl Runner {
    /// Whether the session may send to a channel.
    pub(crate) async fn may_deliver(&self, key: &SessionKey, channel: &str) -> Result<bool, DispatchError> {
        let entry = self.entry(key).await.map_err(|error| DispatchError::Storage(error.to_string()))?;
        Ok(self.is_allowed(key, entry.as_deref(), Some(channel)))
    }

    fn is_allowed(&self, key: &SessionKey, entry: Option<&SessionEntry>, channel: Option<&str>) -> bool {
        let settings = self.settings();
        let subject = SendSubject { key, entry, channel, chat_type: None };
        send_policy::resolve(settings.sessions.section.send_policy.as_ref(), &subject) == SendPolicy::Allow
    }

    /// Decides what there is to decide about a message, and whether its session may send now. Reads the session's row, once.
    pub(crate) async fn decide(
        &self,
        key: &SessionKey,
        request: Request,
    ) -> Result<(Request, bool), DispatchError> {
        let entry = self.entry(key).await.map_err(|error| DispatchError::Storage(error.to_string()))?;
        let settings = self.settings();
        let may_send = self.is_allowed(key, entry.as_deref(), None);
        let skills = self.skills_called(key, &request, entry.as_deref(), &settings).await;
        let skills = skills.as_deref().map(commands::skill::commands).unwrap_or_default();
        Ok((request.decide(entry.as_deref(), &settings, skills), may_send))
    }

    /// A message found on disk, decided about: by the version that accepted it, or now.
    pub(crate) async fn decided(&self, session_key: &SessionKey, request: Request) -> Request {
        if request.decided.is_some() {
            return request;
        }
        let entry = self.entry_or_none(session_key).await;
        let settings = self.settings();
        let skills = self.skills_called(session_key, &request, entry.as_deref(), &settings).await;
        let skills = skills.as_deref().map(commands::skill::commands).unwrap_or_default();
        request.decide(entry.as_deref(), &settings, skills)
    }

    /// The skills of all agents.
    pub(crate) fn skills(&self) -> &SkillBook {
        &self.deps.skills
    }

    /// Reads words that are not accepted yet, by the names that things have for the agent that they are for.
    pub(crate) async fn read_words<T>(
        &self,
        key: &SessionKey,
        agent: &AgentId,
        text: &str,
        read: impl FnOnce(Names<'_>) -> T,
    ) -> T {
        let settings = self.settings();
        let skills = match commands::skill::may_be_one(text) {
            true => {
                let entry = self.entry_or_none(key).await;
                Some(self.skills_of_agent(agent, entry.as_deref(), &settings).await)
            }
            false => None,
        };
        let skills = skills.as_deref().map(commands::skill::commands).unwrap_or_default();
        let models = ModelNames::new(&settings.models.listed);
        let triggers = settings.sessions.section.triggers();
        read(Names { models: &models, triggers: &triggers, skills })
    }

    /// The skills of the agent that a message goes to, where it may call one.
    async fn skills_called(
        &self,
        key: &SessionKey,
        request: &Request,
        entry: Option<&SessionEntry>,
        settings: &Settings,
    ) -> Option<Arc<Snapshot>> {
        if !request.may_call_skill(settings) {
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
        self.deps.skills.for_turn(wanted, occasion).await
    }
}
