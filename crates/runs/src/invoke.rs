//! A tool that a client calls in the name of a session, without a model and outside of runs. Tools that work on files and commands are not
//! offered: they belong to a run and its workspace.

use std::sync::Arc;

use openclaw_agent::tool::ToolFacts;
use openclaw_agent::{DirectCall, ToolError};
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::lineage::Lineage;
use openclaw_journal::rights::{groups, settle};
use openclaw_protocol::message::{Block, ToolCall};
use openclaw_sessions::SessionKey;
use openclaw_tools::CATALOGUE;
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::prepare::RunOrigin;
use super::session::RunSession;
use crate::calling_run::{CallerChannel, CallingRun};
use crate::deliver::Routes;
use crate::direct_calls::DirectCalls;
use crate::not_begun::NotBegun;
use crate::rows::SessionRows;
use crate::session_rights::SessionRights;
use openclaw_commands::{CommandServices, CommandSession};
use openclaw_runtime::messages::turn::{Bound, MessageTurn};
use openclaw_runtime::setup::LiveSettings;
use openclaw_sessions::transcript::Transcripts;

/// Call of a tool by a client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolInvocation {
    /// The tool.
    pub tool: String,
    /// Action, for tools that can do several things.
    pub action: Option<String>,
    /// Arguments of the tool.
    pub args: Map<String, Value>,
    /// The session in whose name it is called; absent is the main session.
    pub session_key: Option<String>,
    /// Channel and account that the client says it calls from.
    pub caller: CallerChannel,
}

/// Result of a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invoked {
    /// Texts and images.
    pub content: Vec<Block>,
    /// Result for programs.
    pub details: Option<Value>,
}

/// Reasons for which a tool gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// The tool does not exist, or the session may not have it.
    #[error("Tool not available: {0}")]
    Unavailable(String),
    /// The session's key is invalid.
    #[error("{0}")]
    Session(String),
    /// The tool failed, with this text of its own.
    #[error("{0}")]
    Failed(String),
}

/// The groups of tools that work on files and commands.
const OF_RUNS: [&str; 2] = ["group:fs", "group:runtime"];
/// Number of events of a call that may wait; nobody listens to them.
const EVENTS: usize = 16;

/// True if a client may call it at all.
fn is_offered(facts: &ToolFacts) -> bool {
    !facts.groups.iter().any(|group| OF_RUNS.contains(group))
}

/// Parts for calling tools for clients.
pub struct ToolInvocations {
    settings: LiveSettings,
    rows: Arc<SessionRows>,
    services: Arc<CommandServices>,
    rights: Arc<SessionRights>,
    routes: Arc<Routes>,
    transcripts: Transcripts,
    direct: Arc<DirectCalls>,
}

impl ToolInvocations {
    pub(crate) fn new(
        settings: LiveSettings,
        rows: Arc<SessionRows>,
        services: Arc<CommandServices>,
        rights: Arc<SessionRights>,
        routes: Arc<Routes>,
        transcripts: Transcripts,
        direct: Arc<DirectCalls>,
    ) -> Self {
        Self { settings, rows, services, rights, routes, transcripts, direct }
    }

    /// Calls a tool in the name of a session.
    pub async fn invoke(
        &self,
        key: SessionKey,
        invocation: ToolInvocation,
        cancel: &CancellationToken,
    ) -> Result<Invoked, InvokeError> {
        let name = CATALOGUE.canonical_name(&invocation.tool);
        let unavailable = || InvokeError::Unavailable(invocation.tool.trim().to_owned());
        if !CATALOGUE.facts().any(|facts| facts.name == name && is_offered(facts)) {
            return Err(unavailable());
        }
        let not_begun = |error: NotBegun| InvokeError::Failed(error.message);
        let settings = self.settings.now();
        let equipment = self.direct.equipment();
        let agent = settings.config.agent(&self.rows.key_rules().agent_of(&key));
        let row = self.rows.get(&key).await.map_err(|error| InvokeError::Failed(error.to_string()))?;
        let (key, entry) = row.map_or_else(|| (key, Arc::default()), |row| (row.key, row.entry));
        let asked = InboxRow::unsaid(&key, self.direct.now_ms());
        let of_session = CommandSession { settings: &settings, key: &key, agent: &agent, entry: &entry };
        let context = self.services.context(of_session, &asked, cancel);
        let (model, _) = context.current(&context.choices().await).await;
        let caller = invocation.caller;
        let tools = groups::of_client(
            &settings.config,
            &key,
            &entry,
            (caller.channel.as_deref(), caller.account.as_deref()),
        );
        let started_with = self.rights.started_with(&key);
        let within = self.rights.within(&settings, (&key, &agent.id), &entry, started_with.as_ref());
        let rights = settle::of_owner(tools, within);
        let session =
            RunSession::of_row(&self.transcripts, &key, &agent, &entry, rights).map_err(not_begun)?;
        let skills = equipment.skills_of(&session, &settings).await;
        let shield = equipment.shield(&settings, Vec::new()).map_err(not_begun)?;
        let route = self.routes.route_of(&key).await.and_then(|route| caller.bound_to(route));
        let from = RunOrigin { at: route.as_ref(), ..RunOrigin::default() };
        let model = (model.provider.as_str(), model.model.as_str());
        let tools = equipment.tools(&session, &settings, model, (&shield, &skills, None), from);
        let Some(spec) = tools.specs().iter().find(|spec| spec.name == name) else {
            return Err(unavailable());
        };
        let mut args = invocation.args;
        let takes_action = spec.parameters.pointer("/properties/action").is_some();
        if let Some(action) = invocation.action.filter(|_| takes_action && !args.contains_key("action")) {
            args.insert("action".to_owned(), action.into());
        }
        let run_id = asked.run_id.clone();
        let hooks = self.direct.hooks_of(&settings, &session, route.as_ref());
        let bound = route.map(|address| Bound { address, message_id: None });
        let host = self.direct.host_of(CallingRun {
            turn: MessageTurn::new(run_id.clone(), key.clone(), bound, false, session.rights.clone()),
            rights: session.rights.clone(),
            agent: agent.clone(),
            origin: None,
            by_person: true,
            lineage: Lineage::default(),
            place: None,
            caller,
        });
        let call = ToolCall {
            id: format!("http-{run_id}"),
            name,
            arguments: Value::Object(args),
            ..ToolCall::default()
        };
        let (events, unheard) = mpsc::channel(EVENTS);
        drop(unheard);
        let direct = DirectCall {
            tools: &tools,
            redactor: &shield.redactor,
            hooks: &hooks,
            host: &host,
            workspace: &session.agent.workspace,
            cancel,
            events: &events,
        };
        let made = Box::pin(direct.result(&call, || self.direct.now_ms())).await;
        match made {
            Ok(result) => Ok(Invoked { content: result.content, details: result.details }),
            Err(ToolError::Unknown(_)) => Err(unavailable()),
            Err(error) => Err(InvokeError::Failed(error.to_string())),
        }
    }
}
