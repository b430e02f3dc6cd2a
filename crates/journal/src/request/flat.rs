//! Stored form of a request: one flat object. Versions before [`RequestSource`] wrote the same fields, so theirs are read without a migration.

use std::borrow::Cow;

use openclaw_channels::Address;
use openclaw_protocol::message::{Block, Provenance};
use openclaw_protocol::{AgentId, SessionKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Decisions, RunRequest};
use crate::api::Occasion;
use crate::beat::Beat;
use crate::caller::CallerRights;
use crate::child_run::ChildRun;
use crate::exchange::Exchange;
use crate::lineage::Lineage;
use crate::origin::MessageOrigin;
use crate::rights::Rights;
use crate::source::{
    AnnouncementSource, Announces, ClientSource, PlatformSource, ProgramSource, RequestKind, RequestSource,
    TalkSource, TaskSource,
};

/// A request as its column of the inbox has it. Fields may be added, none changes its meaning.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Flat<'a> {
    kind: RequestKind,
    text: Cow<'a, str>,
    #[serde(skip_serializing_if = "no_blocks")]
    images: Cow<'a, [Block]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_approve: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_administer: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session_key: Option<Cow<'a, SessionKey>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<Cow<'a, AgentId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_system_prompt: Option<Cow<'a, str>>,
    occasion: Occasion,
    #[serde(skip_serializing_if = "Option::is_none")]
    beat: Option<Cow<'a, Beat>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_patch: Option<Cow<'a, Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Cow<'a, MessageOrigin>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver_to: Option<Cow<'a, Address>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<Cow<'a, Provenance>>,
    #[serde(skip_serializing_if = "Lineage::is_new")]
    lineage: Lineage,
    #[serde(skip_serializing_if = "Option::is_none")]
    rights: Option<Cow<'a, Rights>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<Cow<'a, Exchange>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spawned: Option<Cow<'a, ChildRun>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    announces: Option<Announces>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: Option<Cow<'a, Decisions>>,
}

fn no_blocks(blocks: &[Block]) -> bool {
    blocks.is_empty()
}

impl Serialize for RunRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let source = &self.source;
        let client = source.client();
        let spawned = if let RequestSource::SubagentTask(task) = source { Some(&task.run) } else { None };
        let flat = Flat {
            kind: source.kind(),
            text: (&*self.text).into(),
            images: (&*self.images).into(),
            thinking: self.thinking.as_deref().map(Cow::from),
            timeout_ms: client.and_then(|client| client.timeout_ms),
            sender: source.name().map(Cow::from),
            may_approve: client.is_some_and(|client| client.rights.may_approve),
            may_administer: source.origin().is_none() && source.caller_rights().is_owner,
            parent_session_key: source.parent_session_key().map(Cow::Borrowed),
            agent_id: self.agent_id.as_ref().map(Cow::Borrowed),
            session_id: source.as_program().and_then(|program| program.session_id.as_deref()).map(Cow::from),
            timeout_seconds: self.timeout_seconds,
            lane: self.lane.as_deref().map(Cow::from),
            extra_system_prompt: self.extra_system_prompt.as_deref().map(Cow::from),
            occasion: source.occasion(),
            beat: source.beat().map(Cow::Borrowed),
            entry_patch: source.entry_patch().map(Cow::Borrowed),
            origin: source.origin().map(Cow::Borrowed),
            deliver_to: source.deliver_to().map(Cow::Borrowed),
            provenance: source.provenance().map(Cow::Borrowed),
            lineage: self.lineage,
            rights: self.rights.as_ref().map(Cow::Borrowed),
            exchange: source.exchange().map(Cow::Borrowed),
            spawned: spawned.map(Cow::Borrowed),
            announces: source.announces(),
            decided: self.decided.as_ref().map(Cow::Borrowed),
        };
        flat.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Flat::deserialize(deserializer)?.into_request())
    }
}

impl Flat<'_> {
    fn into_request(mut self) -> RunRequest {
        let source = self.take_source();
        RunRequest {
            source,
            text: self.text.into_owned(),
            images: self.images.into_owned(),
            thinking: self.thinking.map(Cow::into_owned),
            agent_id: self.agent_id.map(Cow::into_owned),
            timeout_seconds: self.timeout_seconds,
            lane: self.lane.map(Cow::into_owned),
            extra_system_prompt: self.extra_system_prompt.map(Cow::into_owned),
            lineage: self.lineage,
            rights: self.rights.map(Cow::into_owned),
            decided: self.decided.map(Cow::into_owned),
            ..RunRequest::default()
        }
    }

    /// Tells the source by the fields that only it has.
    fn take_source(&mut self) -> RequestSource {
        let provenance = self.provenance.take().map(Cow::into_owned);
        let deliver_to = self.deliver_to.take().map(Cow::into_owned);
        let name = self.sender.take().map(Cow::into_owned);
        let parent_session_key = self.parent_session_key.take().map(Cow::into_owned);
        let entry_patch = self.entry_patch.take().map(Cow::into_owned).unwrap_or_default();
        if let Some(run) = self.spawned.take() {
            let run = run.into_owned();
            return RequestSource::SubagentTask(Box::new(TaskSource { run, provenance, entry_patch }));
        }
        if let Some(exchange) = self.exchange.take() {
            let exchange = exchange.into_owned();
            return RequestSource::Talk(Box::new(TalkSource { exchange, provenance, deliver_to }));
        }
        if let Some(form) = self.announces {
            return RequestSource::Announcement(Box::new(AnnouncementSource {
                form,
                provenance,
                deliver_to,
            }));
        }
        if let Some(beat) = self.beat.take() {
            return RequestSource::Heartbeat(Box::new(beat.into_owned()));
        }
        if let Some(origin) = self.origin.take() {
            let origin = Box::new(origin.into_owned());
            return RequestSource::Platform(Box::new(PlatformSource {
                origin,
                name,
                parent_session_key,
                button: None,
            }));
        }
        let Self { may_approve, may_administer, timeout_ms, occasion, .. } = *self;
        let rights = CallerRights::of_client(may_approve, may_administer);
        match (self.kind, provenance) {
            (RequestKind::Chat, _) => {
                RequestSource::Client(ClientSource { name, rights, parent_session_key, timeout_ms })
            }
            (RequestKind::Agent, Some(provenance)) => RequestSource::SubagentMessage(provenance),
            (RequestKind::Agent, None) => RequestSource::Program(Box::new(ProgramSource {
                session_id: self.session_id.take().map(Cow::into_owned),
                occasion,
                deliver_to,
                rights,
                entry_patch,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Requests as versions before [`RequestSource`] stored them, with the source that each is read as.
    fn recorded() -> Vec<(&'static str, Value)> {
        let by = json!({"kind": "inter_session", "sourceSessionKey": "agent:main:main", "sourceTool": "sessions_spawn"});
        let party = |key: &str| json!({"key": key, "agent": "main"});
        vec![
            ("Client", json!({"kind": "chat", "text": "hi", "occasion": "request"})),
            (
                "Client",
                json!({"kind": "chat", "text": "hi", "thinking": "high", "timeoutMs": 7, "sender": "phone",
                    "mayApprove": true, "mayAdminister": true, "parentSessionKey": "agent:main:main",
                    "occasion": "request", "images": [{"type": "text", "text": "[a file]"}],
                    "decided": {"timeLimit": 600, "reset": "hi"}}),
            ),
            ("Program", json!({"kind": "agent", "text": "do", "agentId": "main", "occasion": "isolated"})),
            (
                "Program",
                json!({"kind": "agent", "text": "do", "agentId": "main", "sessionId": "s", "timeoutSeconds": 0,
                    "lane": "nested", "extraSystemPrompt": "Be brief.", "occasion": "command", "mayAdminister": true,
                    "entryPatch": {"label": "x"}, "deliverTo": {"channel": "telegram", "account": "default", "target": "5"}}),
            ),
            (
                "Platform",
                json!({"kind": "chat", "text": "hi", "sender": "Ann", "agentId": "main", "occasion": "request",
                    "parentSessionKey": "agent:main:main", "extraSystemPrompt": "A group.",
                    "origin": {"address": {"channel": "telegram", "account": "default", "target": "5"},
                        "conversation": {"kind": "direct"}, "sender": {"id": "5"}, "messageId": "9", "mayCommand": true,
                        "isOwner": true, "commandText": "hi", "frame": {"before": "[Telegram] "}}}),
            ),
            (
                "Heartbeat",
                json!({"kind": "agent", "text": "look", "agentId": "main", "occasion": "heartbeat",
                    "beat": {"reason": "interval", "purpose": "check", "ackMaxChars": 300, "chat": "alerts"}}),
            ),
            (
                "SubagentTask",
                json!({"kind": "agent", "text": "count", "agentId": "main", "lane": "subagent", "occasion": "request",
                    "extraSystemPrompt": "You help.", "entryPatch": {"spawnedBy": "agent:main:main"}, "provenance": by,
                    "lineage": {"messages": 1, "children": 0}, "spawned": {"runId": "r", "childSessionKey": "agent:main:subagent:1",
                        "requesterSessionKey": "agent:main:main", "requesterDisplayKey": "main", "task": "",
                        "cleanup": "keep", "createdAt": 1}}),
            ),
            (
                "SubagentMessage",
                json!({"kind": "agent", "text": "and now?", "agentId": "main", "lane": "subagent",
                    "occasion": "request", "timeoutSeconds": 60, "provenance": by}),
            ),
            (
                "Announcement",
                json!({"kind": "agent", "text": "done", "occasion": "request", "announces": "summary", "provenance": by,
                    "deliverTo": {"channel": "telegram", "account": "default", "target": "5"}}),
            ),
            (
                "Talk",
                json!({"kind": "agent", "text": "well?", "agentId": "main", "lane": "nested", "occasion": "request",
                    "extraSystemPrompt": "A talk.", "provenance": by,
                    "exchange": {"id": "r", "requester": party("agent:main:main"), "target": party("agent:work:main"),
                        "targetShown": "work", "asked": "well?", "maxTurns": 2, "step": {"turn": 1}}}),
            ),
        ]
    }

    #[test]
    fn requests_of_older_versions_are_read_and_written_as_they_were() {
        for (source, stored) in recorded() {
            let request: RunRequest = serde_json::from_value(stored.clone()).unwrap();
            let named = format!("{:?}", request.source);
            assert!(named.starts_with(source), "{named} for {stored}");
            let written = serde_json::to_value(&request).unwrap();
            let again: RunRequest = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(again, request, "{stored}");
            for (field, value) in stored.as_object().unwrap() {
                if !matches!(field.as_str(), "origin" | "decided" | "spawned") {
                    assert_eq!(&written[field], value, "{field} of {source}");
                }
                assert!(!written[field].is_null(), "{field} of {source} is lost");
            }
            let flags = |origin: &Value| -> Vec<String> {
                let flags =
                    origin.as_object().into_iter().flatten().filter(|(_, value)| **value == json!(true));
                flags.map(|(flag, _)| flag.clone()).collect()
            };
            let mut expect = flags(&stored["origin"]);
            let mut found = flags(&written["origin"]);
            expect.sort();
            found.sort();
            assert_eq!(found, expect, "rights and other flags of {stored}");
            if let RequestSource::Platform(platform) = &request.source {
                let rights = platform.origin.rights;
                assert_eq!((rights.may_command, rights.is_owner, rights.is_let_in), (true, true, false));
            }
        }
    }
}
