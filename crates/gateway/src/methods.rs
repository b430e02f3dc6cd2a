//! The method handlers, one file a family, and the table that finds them by name.
//!
//! A handler is `async fn(&Family, Params) -> Result<Output, RequestFailure>` with the types of
//! [`openclaw_protocol::params`]; `Family` has the parts of the gateway that its family uses, and
//! no other. A handler that looks at the client, or answers in steps, is also given the
//! [`RequestContext`]. It maps params to calls of the crates below and their answers back, and
//! decides as little as it can. `failure` maps errors to the wire.

mod agent;
mod agent_delivery;
mod agents;
mod approvals;
mod channels;
mod chat;
mod config;
mod config_change;
mod default_model;
mod failure;
mod health;
mod heartbeat;
mod identity;
mod keys;
mod logs;
mod memory;
mod models;
mod send;
mod sessions;
mod skills;
mod status;
mod system;
mod undelivered;
mod usage;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_agent::skills::SkillBook;
use openclaw_channels::Platforms;
use openclaw_config::Environment;
use openclaw_dispatch::{Dispatch, SystemEvents};
use openclaw_models::Models;
use openclaw_models::quota::QuotaCache;
use openclaw_protocol::Payload;
use openclaw_protocol::params;
use openclaw_protocol::params::Call;
use openclaw_protocol::params::chat::ChatHistoryResult;
use openclaw_protocol::params::sessions::SessionsListResult;
use openclaw_runtime::memory::Memories;
use openclaw_sessions::SessionStore;
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::usage::UsageIndex;
use openclaw_tools::approvals::Approvals;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channels::ChannelManager;
use crate::channels::snapshot::AccountBoard;
use crate::control::GatewayControl;
use crate::current_settings::CurrentSettings;
use crate::fan_out::EventHub;
use crate::health::HealthMonitor;
use crate::heartbeat::Heartbeats;
use crate::logging::LogFile;
use crate::presence::Presence;
use crate::reload::Reload;
use crate::request::{HandlerResult, RequestContext};

/// Services of the gateway from which [`Methods::new`] gives each family its own. No handler sees them.
pub(crate) struct MethodServices {
    pub(crate) environment: Environment,
    pub(crate) state_dir: Arc<Path>,
    pub(crate) log_file: Option<LogFile>,
    pub(crate) settings: CurrentSettings,
    pub(crate) reload: Reload,
    pub(crate) control: GatewayControl,
    pub(crate) sessions: Arc<dyn SessionStore>,
    pub(crate) transcripts: Transcripts,
    pub(crate) usage: UsageIndex,
    pub(crate) models: Models,
    pub(crate) quotas: Arc<QuotaCache>,
    pub(crate) dispatch: Dispatch,
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) manager: Arc<ChannelManager>,
    pub(crate) accounts: Arc<AccountBoard>,
    pub(crate) skills: Arc<SkillBook>,
    pub(crate) memories: Memories,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) heartbeats: Arc<Heartbeats>,
    pub(crate) system_events: Arc<SystemEvents>,
    pub(crate) health: Arc<HealthMonitor>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) events: Arc<EventHub>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

/// The method families, each under the name of its module, with the parts of the gateway that it uses.
pub(crate) struct Methods {
    agent: agent::AgentMethods,
    agents: agents::RosterMethods,
    approvals: approvals::ApprovalMethods,
    channels: channels::ChannelMethods,
    chat: chat::ChatMethods,
    config: config::ConfigMethods,
    health: Arc<HealthMonitor>,
    heartbeat: heartbeat::HeartbeatMethods,
    identity: identity::IdentityMethods,
    logs: Option<LogFile>,
    memory: memory::MemoryMethods,
    models: models::ModelMethods,
    send: send::SendMethods,
    sessions: sessions::SessionMethods,
    skills: skills::SkillMethods,
    status: status::StatusMethods,
    system: system::SystemMethods,
    undelivered: undelivered::UndeliveredMethods,
    usage: usage::UsageMethods,
}

impl Methods {
    /// Hands each family the services that it uses.
    pub(crate) fn new(services: &MethodServices) -> Self {
        // A family names the services that it uses; each of them is a handle.
        macro_rules! family {
            ($module:ident :: $family:ident { $($part:ident),+ }) => {
                $module::$family { $($part: services.$part.clone()),+ }
            };
        }
        Self {
            agent: family!(agent::AgentMethods { settings, sessions, platforms, dispatch, events }),
            agents: family!(agents::RosterMethods { settings, sessions, dispatch, reload }),
            approvals: family!(approvals::ApprovalMethods { settings, approvals, state_dir }),
            channels: family!(channels::ChannelMethods {
                settings,
                platforms,
                manager,
                accounts,
                dispatch,
                reload
            }),
            chat: family!(chat::ChatMethods { settings, sessions, transcripts, models, dispatch, events }),
            config: family!(config::ConfigMethods { environment, control, sessions }),
            health: Arc::clone(&services.health),
            heartbeat: family!(heartbeat::HeartbeatMethods { settings, heartbeats, system_events }),
            identity: family!(identity::IdentityMethods { settings, sessions }),
            logs: services.log_file.clone(),
            memory: family!(memory::MemoryMethods { settings, memories, tasks }),
            models: family!(models::ModelMethods { settings, models }),
            send: family!(send::SendMethods { settings, sessions, platforms, dispatch }),
            sessions: family!(sessions::SessionMethods { settings, sessions, transcripts, models, dispatch }),
            skills: family!(skills::SkillMethods { settings, skills, reload, tasks, stopping }),
            status: family!(status::StatusMethods {
                settings,
                sessions,
                models,
                health,
                accounts,
                system_events
            }),
            system: family!(system::SystemMethods { settings, presence, system_events, events }),
            undelivered: family!(undelivered::UndeliveredMethods { settings, platforms, dispatch }),
            usage: family!(usage::UsageMethods { settings, sessions, models, quotas, usage }),
        }
    }
}

/// Answers one request. Role, scope and params have been checked; absent params arrive as `{}`.
pub(crate) type Handler =
    fn(Arc<Methods>, RequestContext, Value) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

/// Row of [`HANDLERS`].
pub(crate) struct HandlerRow {
    name: &'static str,
    pub(crate) handler: Handler,
    /// True for a method that acts on a session: the requests of a connection begin in the order in
    /// which their frames were read, each when the one before has its place in its session.
    pub(crate) in_order: bool,
}

/// The row of a method.
pub(crate) fn find(name: &str) -> Option<&'static HandlerRow> {
    HANDLERS.iter().find(|row| row.name == name)
}

/// A row of the table: reads the params of a method, calls its function in the module of its family, and serialises what it answers. A
/// function that takes the request's context is written as `family::function(ctx)`, and one whose requests keep their order as
/// `family::function(ctx), in order`.
macro_rules! on {
    ($call:ty => $($function:tt)+) => {
        on!($call, <$call as Call>::Output => $($function)+)
    };
    ($call:ty, $output:ty => $family:ident $(:: $name:ident)+) => {
        on!(@row $call, $output, false, methods, _ctx, params, $family $(:: $name)+(&methods.$family, params))
    };
    ($call:ty, $output:ty => $family:ident $(:: $name:ident)+ (ctx)) => {
        on!(@row $call, $output, false, methods, ctx, params, $family $(:: $name)+(&methods.$family, ctx, params))
    };
    ($call:ty, $output:ty => $family:ident $(:: $name:ident)+ (ctx), in order) => {
        on!(@row $call, $output, true, methods, ctx, params, $family $(:: $name)+(&methods.$family, ctx, params))
    };
    (@row $call:ty, $output:ty, $in_order:expr, $methods:ident, $ctx:ident, $params:ident, $answer:expr) => {
        HandlerRow {
            name: <$call as Call>::NAME,
            handler: |$methods, $ctx, $params| {
                Box::pin(async move {
                    let $params = <$call as Call>::decode($params)?;
                    let answer: $output = $answer.await?;
                    Ok(Payload::of(&answer)?)
                })
            },
            in_order: $in_order,
        }
    };
}

/// All handlers. `connect` is not among them: it is only valid as the first request.
const HANDLERS: &[HandlerRow] = &[
    on!(params::health::Health => health::health),
    on!(params::status::Status => status::status),
    on!(params::heartbeat::LastHeartbeat => heartbeat::last),
    on!(params::heartbeat::SetHeartbeats => heartbeat::set),
    on!(params::heartbeat::Wake => heartbeat::wake),
    on!(params::system::SystemPresence => system::presence),
    on!(params::system::SystemEvent => system::event),
    on!(params::agent::Agent => agent::run(ctx), in order),
    on!(params::agent::AgentWait => agent::wait),
    on!(params::agent::AgentIdentityGet => identity::get),
    on!(params::chat::ChatSend => chat::send(ctx), in order),
    on!(params::chat::ChatHistory, ChatHistoryResult<Box<RawValue>> => chat::history),
    on!(params::chat::ChatAbort => chat::abort(ctx), in order),
    on!(params::chat::ChatInject => chat::inject(ctx), in order),
    on!(params::sessions::SessionsList, SessionsListResult<Arc<RawValue>> => sessions::list),
    on!(params::sessions::SessionsPreview => sessions::preview),
    on!(params::sessions::SessionsResolve => sessions::resolve),
    on!(params::sessions::SessionsPatch => sessions::patch(ctx), in order),
    on!(params::sessions::SessionsReset => sessions::reset(ctx), in order),
    on!(params::sessions::SessionsDelete => sessions::delete(ctx), in order),
    on!(params::sessions::SessionsCompact => sessions::compact(ctx), in order),
    on!(params::usage::UsageStatus => usage::status),
    on!(params::usage::UsageCost => usage::cost),
    on!(params::usage::SessionsUsage => usage::sessions),
    on!(params::usage::SessionsUsageTimeseries => usage::timeseries),
    on!(params::usage::SessionsUsageLogs => usage::logs),
    on!(params::memory::MemoryStatus => memory::status(ctx)),
    on!(params::memory::MemoryIndex => memory::index),
    on!(params::memory::MemorySearch => memory::search),
    on!(params::models::ModelsList => models::list),
    on!(params::agents::AgentsList => agents::list),
    on!(params::agents::AgentsCreate => agents::roster::create),
    on!(params::agents::AgentsUpdate => agents::roster::update),
    on!(params::agents::AgentsDelete => agents::roster::delete),
    on!(params::agents::AgentsFilesList => agents::files::list),
    on!(params::agents::AgentsFilesGet => agents::files::get),
    on!(params::agents::AgentsFilesSet => agents::files::set),
    on!(params::skills::SkillsStatus => skills::status),
    on!(params::skills::SkillsBins => skills::bins),
    on!(params::skills::SkillsInstall => skills::install),
    on!(params::skills::SkillsUpdate => skills::update),
    on!(params::config::ConfigGet => config::get),
    on!(params::approvals::ExecApprovalsGet => approvals::get),
    on!(params::approvals::ExecApprovalsSet => approvals::set),
    on!(params::approvals::ExecApprovalRequest => approvals::request),
    on!(params::approvals::ExecApprovalResolve => approvals::resolve(ctx)),
    on!(params::config::ConfigSchema => config::schema),
    on!(params::config::ConfigSet => config::set),
    on!(params::config::ConfigApply => config::apply),
    on!(params::config::ConfigPatch => config::patch),
    on!(params::config::UpdateRun => config::update),
    on!(params::logs::LogsTail => logs::tail),
    on!(params::channels::ChannelsStatus => channels::status),
    on!(params::channels::ChannelsLogout => channels::logout),
    on!(params::channels::ChannelsStart => channels::start),
    on!(params::channels::ChannelsStop => channels::stop),
    on!(params::channels::Trace => channels::trace),
    on!(params::channels::Send => send::send(ctx)),
    on!(params::channels::Poll => send::poll),
    on!(params::channels::MessageAction => send::action(ctx)),
    on!(params::channels::MessageFailed => undelivered::failed),
    on!(params::channels::MessageRetry => undelivered::retry),
    on!(params::channels::MessageDiscard => undelivered::discard),
];

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_protocol::method::{self, METHODS, Method, Weight};

    #[test]
    fn every_implemented_method_has_a_handler_and_no_other() {
        let mut expect: Vec<&str> = METHODS
            .iter()
            .filter(|row| row.implemented() && row.name != "connect")
            .map(|row| row.name)
            .collect();
        let mut names: Vec<&str> = HANDLERS.iter().map(|row| row.name).collect();
        expect.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, expect);
    }
    #[test]
    fn what_takes_turns_exists_and_waits_for_no_place_meanwhile() {
        for HandlerRow { name, .. } in HANDLERS.iter().filter(|row| row.in_order) {
            let is_light = |method: &Method| method.implemented() && method.weight == Weight::Light;
            assert!(method::find(name).is_some_and(is_light), "{name}");
        }
    }
}
