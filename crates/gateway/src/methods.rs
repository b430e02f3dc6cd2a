//! The method handlers, one file a family, and the table that finds them by name.
//!
//! A handler is `async fn(RequestContext, Params) -> Result<Output, Failure>` with the types of
//! [`openclaw_protocol::params`]. It maps params to calls of the crates below and their answers
//! back, and decides as little as it can. `failure` maps errors to the wire.

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
mod models;
mod send;
mod sessions;
mod skills;
mod status;
mod system;
mod undelivered;
mod usage;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_protocol::Payload;
use openclaw_protocol::params;
use openclaw_protocol::params::Call;
use openclaw_protocol::params::chat::ChatHistoryResult;
use openclaw_protocol::params::sessions::SessionsListResult;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::request::{HandlerResult, RequestContext};

/// Answers one request. Role, scope and params have been checked; absent params arrive as `{}`.
pub(crate) type Handler = fn(RequestContext, Value) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

/// The handler of a method.
pub(crate) fn find(name: &str) -> Option<Handler> {
    HANDLERS.iter().find(|(own, _)| *own == name).map(|(_, handler)| *handler)
}

/// A row of the table: reads the params of a method, calls its function and serialises what it answers.
macro_rules! on {
    ($call:ty => $function:path) => {
        on!($call, <$call as Call>::Output => $function)
    };
    ($call:ty, $output:ty => $function:path) => {
        (<$call as Call>::NAME, |ctx, params| {
            Box::pin(async move {
                let params = <$call as Call>::decode(params)?;
                let answer: $output = $function(ctx, params).await?;
                Ok(Payload::of(&answer)?)
            })
        })
    };
}

/// All handlers. `connect` is not among them: it is only valid as the first request.
const HANDLERS: &[(&str, Handler)] = &[
    on!(params::health::Health => health::health),
    on!(params::status::Status => status::status),
    on!(params::heartbeat::LastHeartbeat => heartbeat::last),
    on!(params::heartbeat::SetHeartbeats => heartbeat::set),
    on!(params::heartbeat::Wake => heartbeat::wake),
    on!(params::system::SystemPresence => system::presence),
    on!(params::system::SystemEvent => system::event),
    on!(params::agent::Agent => agent::run),
    on!(params::agent::AgentWait => agent::wait),
    on!(params::agent::AgentIdentityGet => identity::get),
    on!(params::chat::ChatSend => chat::send),
    on!(params::chat::ChatHistory, ChatHistoryResult<Box<RawValue>> => chat::history),
    on!(params::chat::ChatAbort => chat::abort),
    on!(params::chat::ChatInject => chat::inject),
    on!(params::sessions::SessionsList, SessionsListResult<Arc<RawValue>> => sessions::list),
    on!(params::sessions::SessionsPreview => sessions::preview),
    on!(params::sessions::SessionsResolve => sessions::resolve),
    on!(params::sessions::SessionsPatch => sessions::patch),
    on!(params::sessions::SessionsReset => sessions::reset),
    on!(params::sessions::SessionsDelete => sessions::delete),
    on!(params::sessions::SessionsCompact => sessions::compact),
    on!(params::usage::UsageStatus => usage::status),
    on!(params::usage::UsageCost => usage::cost),
    on!(params::usage::SessionsUsage => usage::sessions),
    on!(params::usage::SessionsUsageTimeseries => usage::timeseries),
    on!(params::usage::SessionsUsageLogs => usage::logs),
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
    on!(params::approvals::ExecApprovalResolve => approvals::resolve),
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
    on!(params::channels::Send => send::send),
    on!(params::channels::Poll => send::poll),
    on!(params::channels::MessageAction => send::action),
    on!(params::channels::MessageFailed => undelivered::failed),
    on!(params::channels::MessageRetry => undelivered::retry),
    on!(params::channels::MessageDiscard => undelivered::discard),
];

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_protocol::method::METHODS;

    #[test]
    fn every_implemented_method_has_a_handler_and_no_other() {
        let mut expect: Vec<&str> = METHODS
            .iter()
            .filter(|row| row.implemented() && row.name != "connect")
            .map(|row| row.name)
            .collect();
        let mut names: Vec<&str> = HANDLERS.iter().map(|(name, _)| *name).collect();
        expect.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, expect);
    }
}
