//! The gateway as chat commands see it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_agent::prompt::SystemPromptReport;
use openclaw_commands::{CommandHost, Context, SubagentControl};
use openclaw_journal::api::{DispatchError, Waited};
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::origin::Origin;
use openclaw_journal::request::Request;
use openclaw_protocol::message::Message;
use openclaw_protocol::{AgentId, RunId, SessionKey};
use openclaw_runtime::setup::Settings;
use openclaw_tools::ExecSettings;

use crate::handle::Dispatch;
use crate::runner::Runner;

impl CommandHost for Runner {
    fn redacted(&self, settings: &Arc<Settings>, text: &str) -> Result<String, String> {
        Self::redacted(self, settings, text).map_err(|error| error.message)
    }

    fn exec_of_person(&self, context: &Context<'_>) -> Result<ExecSettings, String> {
        Self::exec_of_person(self, context).map_err(|error| error.message)
    }

    fn has_drafts(&self, origin: &Origin, agent: &AgentId) -> bool {
        Self::has_drafts(self, origin, agent)
    }

    fn messages_of<'a>(&'a self, key: &'a SessionKey, limit: usize) -> BoxFuture<'a, Vec<Message>> {
        Self::messages_of(self, key, limit).boxed()
    }

    fn estimate<'a>(&'a self, context: &'a Context<'_>) -> BoxFuture<'a, Result<SystemPromptReport, String>> {
        let Context { settings, key, agent, entry, stop, .. } = *context;
        async move { Self::estimate(self, settings, key, agent, entry, stop).await.map_err(|error| error.message) }
            .boxed()
    }

    fn subagents_of(&self, key: &SessionKey) -> Vec<ChildRun> {
        self.subagents.runs.of_requester(key)
    }

    fn subagents(&self) -> Option<Box<dyn SubagentControl>> {
        Some(Box::new(self.dispatch()?))
    }
}

impl SubagentControl for Dispatch {
    fn stop_all<'a>(&'a self, requester: &'a SessionKey) -> BoxFuture<'a, usize> {
        self.stop_subagents(requester).boxed()
    }

    fn stop<'a>(&'a self, run: &'a ChildRun) -> BoxFuture<'a, bool> {
        self.stop_subagent(run).boxed()
    }

    fn send<'a>(
        &'a self,
        run_id: RunId,
        key: &'a SessionKey,
        request: Request,
    ) -> BoxFuture<'a, Result<(), DispatchError>> {
        async move { self.accept(run_id, key.clone(), request).await.outcome().await.map(drop) }.boxed()
    }

    fn wait<'a>(&'a self, run_id: &'a RunId, patience: Duration) -> BoxFuture<'a, Waited> {
        Self::wait(self, run_id, patience).boxed()
    }
}
