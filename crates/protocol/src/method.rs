//! Every method of the protocol, as data: who may call it, whether `hello-ok` names it, whether this version has it
//! (spec `gateway-protocol.md` §4, §6.0).

use schemars::SchemaGenerator;
use serde_json::Value;

use crate::access::Access;
use crate::error::ErrorShape;
use crate::params::{self, Call};
use crate::schema::Schema;

/// One row of [`METHODS`].
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Whether `hello-ok.features.methods` names it once it is implemented.
    pub listing: Listing,
    /// The schemas of an implemented method; absent means this version answers `not implemented`.
    pub shape: Option<Shape>,
}

/// Whether OpenClaw 2026.2.9 advertises a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// In `hello-ok.features.methods`.
    Advertised,
    /// Works, but is not listed.
    Hidden,
}

/// How a method treats params it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Params must match the schema; unknown keys are refused.
    Strict,
    /// Unknown keys and values of wrong types are ignored.
    Loose,
}

/// Params and result of an implemented method.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How params are read.
    pub strictness: Strictness,
    /// JSON Schema of the params.
    pub params: fn(&mut SchemaGenerator) -> Value,
    /// JSON Schema of the result.
    pub result: fn(&mut SchemaGenerator) -> Value,
    schema: fn() -> &'static Schema,
}

impl Method {
    /// Whether this version has it.
    pub const fn implemented(&self) -> bool {
        self.shape.is_some()
    }

    /// Checks params against the schema; an absent value reads as `{}`.
    ///
    /// # Errors
    /// `invalid <method> params: …` with every violation.
    pub fn check(&self, value: &Value) -> Result<(), ErrorShape> {
        let Some(shape) = self.shape.filter(|s| s.strictness == Strictness::Strict) else { return Ok(()) };
        let violations = (shape.schema)().validate(value);
        if violations.is_empty() {
            Ok(())
        } else {
            Err(ErrorShape::invalid_params(self.name, &violations.text()))
        }
    }
}

/// The row of a method.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// What `hello-ok.features.methods` names, in the order clients know.
pub fn advertised() -> impl Iterator<Item = &'static str> {
    METHODS.iter().filter(|m| m.listing == Listing::Advertised && m.implemented()).map(|m| m.name)
}

const fn call<C: Call>(access: Access) -> Method {
    Method { name: C::NAME, access, listing: Listing::Advertised, shape: Some(shape::<C>()) }
}

const fn hidden<C: Call>(access: Access) -> Method {
    Method { name: C::NAME, access, listing: Listing::Hidden, shape: Some(shape::<C>()) }
}

const fn shape<C: Call>() -> Shape {
    Shape {
        strictness: C::STRICTNESS,
        params: crate::export::schema_in::<C::Params>,
        result: crate::export::schema_in::<C::Output>,
        schema: C::schema,
    }
}

const fn later(name: &'static str, access: Access) -> Method {
    Method { name, access, listing: Listing::Advertised, shape: None }
}

const fn later_hidden(name: &'static str, access: Access) -> Method {
    Method { name, access, listing: Listing::Hidden, shape: None }
}

use Access::{Admin, Approvals, Node, Pairing, Read, Write};

/// All methods; the advertised ones first, in the order of spec §6.0.
pub const METHODS: &[Method] = &[
    call::<params::health::Health>(Read),
    call::<params::logs::LogsTail>(Read),
    call::<params::channels::ChannelsStatus>(Read),
    call::<params::channels::ChannelsLogout>(Admin),
    call::<params::status::Status>(Read),
    call::<params::usage::UsageStatus>(Read),
    call::<params::usage::UsageCost>(Read),
    later("tts.status", Read),
    later("tts.providers", Read),
    later("tts.enable", Write),
    later("tts.disable", Write),
    later("tts.convert", Write),
    later("tts.setProvider", Write),
    call::<params::config::ConfigGet>(Admin),
    call::<params::config::ConfigSet>(Admin),
    call::<params::config::ConfigApply>(Admin),
    call::<params::config::ConfigPatch>(Admin),
    call::<params::config::ConfigSchema>(Admin),
    call::<params::approvals::ExecApprovalsGet>(Admin),
    call::<params::approvals::ExecApprovalsSet>(Admin),
    later("exec.approvals.node.get", Admin),
    later("exec.approvals.node.set", Admin),
    call::<params::approvals::ExecApprovalRequest>(Approvals),
    call::<params::approvals::ExecApprovalResolve>(Approvals),
    later("wizard.start", Admin),
    later("wizard.next", Admin),
    later("wizard.cancel", Admin),
    later("wizard.status", Admin),
    later("talk.mode", Write),
    call::<params::models::ModelsList>(Read),
    call::<params::agents::AgentsList>(Read),
    call::<params::agents::AgentsCreate>(Admin),
    call::<params::agents::AgentsUpdate>(Admin),
    call::<params::agents::AgentsDelete>(Admin),
    call::<params::agents::AgentsFilesList>(Admin),
    call::<params::agents::AgentsFilesGet>(Admin),
    call::<params::agents::AgentsFilesSet>(Admin),
    call::<params::skills::SkillsStatus>(Read),
    call::<params::skills::SkillsBins>(Node),
    call::<params::skills::SkillsInstall>(Admin),
    call::<params::skills::SkillsUpdate>(Admin),
    call::<params::config::UpdateRun>(Admin),
    later("voicewake.get", Read),
    later("voicewake.set", Write),
    call::<params::sessions::SessionsList>(Read),
    call::<params::sessions::SessionsPreview>(Read),
    call::<params::sessions::SessionsPatch>(Admin),
    call::<params::sessions::SessionsReset>(Admin),
    call::<params::sessions::SessionsDelete>(Admin),
    call::<params::sessions::SessionsCompact>(Admin),
    call::<params::heartbeat::LastHeartbeat>(Read),
    call::<params::heartbeat::SetHeartbeats>(Admin),
    call::<params::heartbeat::Wake>(Write),
    later("node.pair.request", Pairing),
    later("node.pair.list", Pairing),
    later("node.pair.approve", Pairing),
    later("node.pair.reject", Pairing),
    later("node.pair.verify", Pairing),
    later("device.pair.list", Pairing),
    later("device.pair.approve", Pairing),
    later("device.pair.reject", Pairing),
    later("device.token.rotate", Pairing),
    later("device.token.revoke", Pairing),
    later("node.rename", Pairing),
    later("node.list", Read),
    later("node.describe", Read),
    later("node.invoke", Write),
    later("node.invoke.result", Node),
    later("node.event", Node),
    later("cron.list", Read),
    later("cron.status", Read),
    later("cron.add", Admin),
    later("cron.update", Admin),
    later("cron.remove", Admin),
    later("cron.run", Admin),
    later("cron.runs", Read),
    call::<params::system::SystemPresence>(Read),
    call::<params::system::SystemEvent>(Admin),
    call::<params::channels::Send>(Write),
    call::<params::agent::Agent>(Write),
    call::<params::agent::AgentIdentityGet>(Read),
    call::<params::agent::AgentWait>(Write),
    later("browser.request", Write),
    call::<params::chat::ChatHistory>(Read),
    call::<params::chat::ChatAbort>(Write),
    call::<params::chat::ChatSend>(Write),
    hidden::<params::connect::Connect>(Admin),
    hidden::<params::chat::ChatInject>(Admin),
    hidden::<params::sessions::SessionsResolve>(Admin),
    hidden::<params::channels::Poll>(Admin),
    hidden::<params::channels::MessageAction>(Write),
    hidden::<params::channels::MessageFailed>(Read),
    hidden::<params::channels::MessageRetry>(Write),
    hidden::<params::channels::MessageDiscard>(Write),
    hidden::<params::channels::ChannelsStart>(Admin),
    hidden::<params::channels::ChannelsStop>(Admin),
    hidden::<params::channels::Trace>(Read),
    hidden::<params::usage::SessionsUsage>(Admin),
    hidden::<params::usage::SessionsUsageTimeseries>(Admin),
    hidden::<params::usage::SessionsUsageLogs>(Admin),
    later_hidden("web.login.start", Admin),
    later_hidden("web.login.wait", Admin),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = METHODS.iter().map(|m| m.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    /// The recorded `hello-ok` lists every advertised method; ours is the same list without what is still missing.
    #[test]
    fn the_advertised_list_keeps_the_recorded_order() {
        let golden = include_str!("../../../tests/golden/gw-connect-ok.jsonl");
        let hello: Value = serde_json::from_str(golden.lines().nth(2).unwrap()).unwrap();
        let recorded: Vec<&str> = hello["frame"]["payload"]["features"]["methods"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_str().unwrap())
            .collect();
        let listed: Vec<&str> =
            METHODS.iter().filter(|m| m.listing == Listing::Advertised).map(|m| m.name).collect();
        assert_eq!(listed, recorded);
        let advertised: Vec<&str> = advertised().collect();
        let expect: Vec<&str> =
            recorded.into_iter().filter(|name| find(name).unwrap().implemented()).collect();
        assert_eq!(advertised, expect);
    }
}
