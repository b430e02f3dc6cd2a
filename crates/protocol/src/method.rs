//! Table of the protocol's methods: who may call each, whether `hello-ok` names it, whether this
//! version has it (spec `gateway-protocol.md` §4, §6.0).

use schemars::SchemaGenerator;
use serde_json::Value;

use crate::access::Access;
use crate::error::ErrorShape;
use crate::json_schema::schema_in;
use crate::params::{self, Call, Strictness};
use crate::schema::Schema;

/// Row of [`METHODS`].
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Access that the caller needs.
    pub access: Access,
    /// Advertised or not: `hello-ok.features.methods` names an advertised method once it is
    /// implemented.
    pub listing: Listing,
    /// The weight of working on it.
    pub weight: Weight,
    /// The schemas of an implemented method; absent means this version answers `not implemented`.
    pub shape: Option<Shape>,
}

/// Tells methods that OpenClaw 2026.2.9 advertises from those that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Named in `hello-ok.features.methods`.
    Advertised,
    /// Works, but is not listed.
    Hidden,
}

/// The memory and work that a request takes, beside the bytes of its frame. A method is heavy unless its row says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A few KiB, also in its answer, however long it takes: any number may be worked on.
    Light,
    /// Perhaps megabytes: few are worked on at once.
    Heavy,
    /// Heavy, and reads all transcripts there are, which may take long: has a place of its own, so that other heavy
    /// requests do not wait for it.
    Counting,
}

/// Params and result of an implemented method.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Treatment of unknown params.
    pub strictness: Strictness,
    /// JSON Schema of the params.
    pub params: fn(&mut SchemaGenerator) -> Value,
    /// JSON Schema of the result.
    pub result: fn(&mut SchemaGenerator) -> Value,
    schema: fn() -> &'static Schema,
}

impl Method {
    /// True if this version has it.
    pub const fn implemented(&self) -> bool {
        self.shape.is_some()
    }

    const fn light(self) -> Self {
        Self { weight: Weight::Light, ..self }
    }

    const fn counting(self) -> Self {
        Self { weight: Weight::Counting, ..self }
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

/// Returns the access that the caller of a method needs. Unknown methods need admin, so that
/// without it their existence can't be told.
pub fn access(name: &str) -> Access {
    find(name).map_or(Access::Admin, |method| method.access)
}

/// Method names for `hello-ok.features.methods`, in the order clients know.
pub fn advertised() -> impl Iterator<Item = &'static str> {
    METHODS.iter().filter(|m| m.listing == Listing::Advertised && m.implemented()).map(|m| m.name)
}

const fn call<C: Call>(access: Access) -> Method {
    Method {
        name: C::NAME,
        access,
        listing: Listing::Advertised,
        weight: Weight::Heavy,
        shape: Some(shape::<C>()),
    }
}

const fn hidden<C: Call>(access: Access) -> Method {
    Method {
        name: C::NAME,
        access,
        listing: Listing::Hidden,
        weight: Weight::Heavy,
        shape: Some(shape::<C>()),
    }
}

const fn shape<C: Call>() -> Shape {
    Shape {
        strictness: C::STRICTNESS,
        params: schema_in::<C::Params>,
        result: schema_in::<C::Output>,
        schema: C::schema,
    }
}

const fn later(name: &'static str, access: Access) -> Method {
    Method { name, access, listing: Listing::Advertised, weight: Weight::Heavy, shape: None }
}

const fn later_hidden(name: &'static str, access: Access) -> Method {
    Method { name, access, listing: Listing::Hidden, weight: Weight::Heavy, shape: None }
}

use Access::{Admin, Approvals, Node, Pairing, Read, Write};

/// All methods; the advertised ones first, in the order of spec §6.0.
pub const METHODS: &[Method] = &[
    call::<params::health::Health>(Read).light(),
    call::<params::logs::LogsTail>(Read),
    call::<params::channels::ChannelsStatus>(Read).light(),
    call::<params::channels::ChannelsLogout>(Admin).light(),
    call::<params::status::Status>(Read),
    call::<params::usage::UsageStatus>(Read).light(),
    call::<params::usage::UsageCost>(Read).counting(),
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
    call::<params::approvals::ExecApprovalRequest>(Approvals).light(),
    call::<params::approvals::ExecApprovalResolve>(Approvals).light(),
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
    call::<params::skills::SkillsInstall>(Admin).light(),
    call::<params::skills::SkillsUpdate>(Admin),
    call::<params::config::UpdateRun>(Admin).light(),
    later("voicewake.get", Read),
    later("voicewake.set", Write),
    call::<params::sessions::SessionsList>(Read),
    call::<params::sessions::SessionsPreview>(Read),
    call::<params::sessions::SessionsPatch>(Admin).light(),
    call::<params::sessions::SessionsReset>(Admin).light(),
    call::<params::sessions::SessionsDelete>(Admin).light(),
    call::<params::sessions::SessionsCompact>(Admin).light(),
    call::<params::heartbeat::LastHeartbeat>(Read).light(),
    call::<params::heartbeat::SetHeartbeats>(Admin).light(),
    call::<params::heartbeat::Wake>(Write).light(),
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
    call::<params::system::SystemEvent>(Admin).light(),
    call::<params::channels::Send>(Write).light(),
    call::<params::agent::Agent>(Write).light(),
    call::<params::agent::AgentIdentityGet>(Read),
    call::<params::agent::AgentWait>(Write).light(),
    later("browser.request", Write),
    call::<params::chat::ChatHistory>(Read),
    call::<params::chat::ChatAbort>(Write).light(),
    call::<params::chat::ChatSend>(Write).light(),
    hidden::<params::connect::Connect>(Admin).light(),
    hidden::<params::chat::ChatInject>(Admin).light(),
    hidden::<params::sessions::SessionsResolve>(Admin),
    hidden::<params::channels::Poll>(Admin).light(),
    hidden::<params::channels::MessageAction>(Write).light(),
    hidden::<params::channels::MessageFailed>(Read),
    hidden::<params::channels::MessageRetry>(Write).light(),
    hidden::<params::channels::MessageDiscard>(Write).light(),
    hidden::<params::channels::ChannelsStart>(Admin).light(),
    hidden::<params::channels::ChannelsStop>(Admin).light(),
    hidden::<params::channels::Trace>(Read),
    hidden::<params::usage::SessionsUsage>(Admin).counting(),
    hidden::<params::usage::SessionsUsageTimeseries>(Admin),
    hidden::<params::usage::SessionsUsageLogs>(Admin),
    hidden::<params::memory::MemoryStatus>(Read).light(),
    hidden::<params::memory::MemoryIndex>(Admin).light(),
    hidden::<params::memory::MemorySearch>(Admin).light(),
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
