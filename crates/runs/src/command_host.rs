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
use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_tools::ExecSettings;

use crate::estimate::Estimator;
use crate::prepare::exec::CommandSetup;
use crate::replies::has_drafts;
use crate::run_host::HostLink;
use crate::secrets::KnownSecrets;
use crate::session_messages::SessionMessages;

/// Parts of runs that commands use.
pub(crate) struct RunsOfCommands {
    settings: LiveSettings,
    secrets: Arc<KnownSecrets>,
    commands: Arc<CommandSetup>,
    messages: Arc<SessionMessages>,
    estimator: Estimator,
    child_runs: Arc<ChildRuns>,
    host: Arc<HostLink>,
}

impl RunsOfCommands {
    pub(crate) fn new(
        settings: LiveSettings,
        secrets: Arc<KnownSecrets>,
        commands: Arc<CommandSetup>,
        messages: Arc<SessionMessages>,
        estimator: Estimator,
        child_runs: Arc<ChildRuns>,
        host: Arc<HostLink>,
    ) -> Self {
        Self { settings, secrets, commands, messages, estimator, child_runs, host }
    }
}

impl CommandHost for RunsOfCommands {
    fn redacted(&self, settings: &Arc<Settings>, text: &str) -> Result<String, String> {
        self.secrets.redacted_by(settings, text).map_err(|error| error.message)
    }

    fn exec_of_person(&self, context: &CommandContext<'_>) -> Result<ExecSettings, String> {
        self.commands.of_person(context).map_err(|error| error.message)
    }

    fn has_drafts(&self, origin: &MessageOrigin, agent: &AgentId) -> bool {
        has_drafts(&self.settings.now().config, origin, agent)
    }

    fn messages_of<'a>(&'a self, key: &'a SessionKey, limit: usize) -> BoxFuture<'a, Vec<Message>> {
        self.messages.messages_of(key, limit).boxed()
    }

    fn estimate<'a>(
        &'a self,
        context: &'a CommandContext<'_>,
    ) -> BoxFuture<'a, Result<SystemPromptReport, String>> {
        let CommandContext { settings, key, agent, entry, stop, .. } = *context;
        async move {
            self.estimator.estimate(settings, key, agent, entry, stop).await.map_err(|error| error.message)
        }
        .boxed()
    }

    fn subagents_of(&self, key: &SessionKey) -> Vec<ChildRun> {
        self.child_runs.of_requester(key)
    }

    fn subagents(&self) -> Option<Box<dyn SubagentControl>> {
        self.host.get()?.subagents()
    }
}
