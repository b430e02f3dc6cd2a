//! The gateway as chat commands see it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_agent::prompt::SystemPromptReport;
use openclaw_commands::{CommandContext, CommandHost, SubagentControl};
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::origin::MessageOrigin;
use openclaw_protocol::message::Message;
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_runtime::setup::Settings;
use openclaw_tools::ExecSettings;

use crate::runner::Runner;

impl CommandHost for Runner {
    fn redacted(&self, settings: &Arc<Settings>, text: &str) -> Result<String, String> {
        Self::redacted(self, settings, text).map_err(|error| error.message)
    }

    fn exec_of_person(&self, context: &CommandContext<'_>) -> Result<ExecSettings, String> {
        Self::exec_of_person(self, context).map_err(|error| error.message)
    }

    fn has_drafts(&self, origin: &MessageOrigin, agent: &AgentId) -> bool {
        Self::has_drafts(self, origin, agent)
    }

    fn messages_of<'a>(&'a self, key: &'a SessionKey, limit: usize) -> BoxFuture<'a, Vec<Message>> {
        Self::messages_of(self, key, limit).boxed()
    }

    fn estimate<'a>(
        &'a self,
        context: &'a CommandContext<'_>,
    ) -> BoxFuture<'a, Result<SystemPromptReport, String>> {
        let CommandContext { settings, key, agent, entry, stop, .. } = *context;
        async move { Self::estimate(self, settings, key, agent, entry, stop).await.map_err(|error| error.message) }
            .boxed()
    }

    fn subagents_of(&self, key: &SessionKey) -> Vec<ChildRun> {
        self.child_runs.of_requester(key)
    }

    fn subagents(&self) -> Option<Box<dyn SubagentControl>> {
        self.host()?.subagents()
    }
}
