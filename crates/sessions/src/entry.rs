//! Row of the session store (spec `sessions.md` §3.2).

pub mod delivery;
pub mod group_name;
pub mod inbound;
mod model;
pub(crate) mod names;
pub mod origin;
mod reset;
mod text;

use std::collections::BTreeMap;

use openclaw_protocol::{PeerKind, SessionId};

use crate::ordered::{ordered_object, text_enum};

pub use openclaw_protocol::params::sessions::{GroupActivation, SendPolicy};

pub use delivery::{DeliveryContext, ThreadId};
pub use inbound::InboundFacts;
pub use model::ModelName;
pub use origin::Origin;
pub use reset::ResetKind;
pub use text::Json;
pub(crate) use text::{ROW_FIELD_DEPTH, laid_out};

text_enum! {
    /// Kinds of chats.
    pub enum ChatType {
        /// Conversation with one person.
        Direct => "direct" | "dm",
        /// A group.
        Group => "group",
        /// A room.
        Channel => "channel",
    }
}

impl From<PeerKind> for ChatType {
    fn from(kind: PeerKind) -> Self {
        match kind {
            PeerKind::Direct => Self::Direct,
            PeerKind::Group => Self::Group,
            PeerKind::Channel => Self::Channel,
        }
    }
}

text_enum! {
    /// `verboseLevel`
    pub enum VerboseLevel {
        /// Tool calls are shown.
        On => "on",
        /// Tool calls with their results.
        Full => "full",
        /// Tool calls are not shown.
        Off => "off",
    }
}

text_enum! {
    /// `reasoningLevel`; absent is off.
    pub enum ReasoningLevel {
        /// Sent as a message of its own.
        On => "on",
        /// Streamed.
        Stream => "stream",
    }
}

text_enum! {
    /// `elevatedLevel`
    pub enum ElevatedLevel {
        /// Commands run on the host after approval as configured.
        On => "on",
        /// Commands stay in the sandbox; stored, not deleted.
        Off => "off",
        /// Commands run outside the sandbox, each after approval.
        Ask => "ask",
        /// Commands run outside the sandbox without approval.
        Full => "full",
    }
}

text_enum! {
    /// `ttsAuto`
    pub enum TtsAuto {
        /// Speech for every reply.
        Always => "always",
        /// Replies to voice messages.
        Inbound => "inbound",
        /// Tagged replies.
        Tagged => "tagged",
        /// No speech.
        Off => "off",
    }
}

text_enum! {
    /// `responseUsage`: the usage footer. `on` is the old name of `tokens`.
    pub enum ResponseUsage {
        /// Explicitly none.
        Off => "off",
        /// Token counts.
        Tokens => "tokens" | "on",
        /// Counts and cost.
        Full => "full",
    }
}

text_enum! {
    /// `authProfileOverrideSource`
    pub enum AuthProfileSource {
        /// Chosen by failover.
        Auto => "auto",
        /// Chosen by a person.
        User => "user",
    }
}

ordered_object! {
    /// Conversation bucket: its current transcript, settings, counters and delivery route. Every
    /// field may be absent; [`crate::store::SessionStore::update`] mints `sessionId` and
    /// `updatedAt` where they are. The order is that in which OpenClaw 2026.2.9 writes a row of its
    /// own.
    pub struct SessionEntry : Field {
        /// Current transcript.
        session_id: SessionId => "sessionId",
        /// Last activity, Unix milliseconds; drives freshness and sorting.
        updated_at: i64 => "updatedAt",
        /// True once the material of the first turn was sent.
        system_sent: bool => "systemSent",
        /// True if the last run was aborted; the next turn gets a hint.
        aborted_last_run: bool => "abortedLastRun",
        /// `minimal` to `xhigh`; absent takes the default.
        thinking_level: Box<str> => "thinkingLevel",
        /// Tool visibility.
        verbose_level: VerboseLevel => "verboseLevel",
        /// Reasoning visibility.
        reasoning_level: ReasoningLevel => "reasoningLevel",
        /// Text to speech.
        tts_auto: TtsAuto => "ttsAuto",
        /// Usage footer.
        response_usage: ResponseUsage => "responseUsage",
        /// `/model` override: model.
        model_override: Box<str> => "modelOverride",
        /// `/model` override: provider.
        provider_override: Box<str> => "providerOverride",
        /// Permission to send in this session; absent inherits the configuration.
        send_policy: SendPolicy => "sendPolicy",
        /// Queue mode, see the queue's own names.
        queue_mode: Box<str> => "queueMode",
        /// Queue debounce in milliseconds.
        queue_debounce_ms: u64 => "queueDebounceMs",
        /// Queue length.
        queue_cap: u64 => "queueCap",
        /// Drop policy of a full queue.
        queue_drop: Box<str> => "queueDrop",
        /// Name in lists.
        display_name: Box<str> => "displayName",
        /// Kind of chat.
        chat_type: ChatType => "chatType",
        /// Channel of a group.
        channel: Box<str> => "channel",
        /// Group id.
        group_id: Box<str> => "groupId",
        /// Group subject.
        subject: Box<str> => "subject",
        /// Room name.
        group_channel: Box<str> => "groupChannel",
        /// Server or workspace.
        space: Box<str> => "space",
        /// Route for replies.
        delivery_context: Box<DeliveryContext> => "deliveryContext",
        /// The same, field by field.
        last_channel: Box<str> => "lastChannel",
        /// Target.
        last_to: Box<str> => "lastTo",
        /// Account.
        last_account_id: Box<str> => "lastAccountId",
        /// Thread.
        last_thread_id: ThreadId => "lastThreadId",
        /// Source of the conversation.
        origin: Box<Origin> => "origin",
        /// Explicit transcript file.
        session_file: Box<str> => "sessionFile",
        /// Compactions of this transcript.
        compaction_count: u64 => "compactionCount",
        /// `compactionCount` when memory was last flushed.
        memory_flush_compaction_count: u64 => "memoryFlushCompactionCount",
        /// Time of the last memory flush, Unix milliseconds.
        memory_flush_at: i64 => "memoryFlushAt",
        /// Frozen skills prompt, as the agent wrote it.
        skills_snapshot: Json => "skillsSnapshot",
        /// Prompt tokens of the last run.
        input_tokens: u64 => "inputTokens",
        /// Completion tokens of the last run.
        output_tokens: u64 => "outputTokens",
        /// Prompt size of the last call of the last run: what of the context window is in use.
        total_tokens: u64 => "totalTokens",
        /// Provider actually used.
        model_provider: Box<str> => "modelProvider",
        /// Model actually used.
        model: Box<str> => "model",
        /// Context window of the model, in tokens.
        context_tokens: u64 => "contextTokens",
        /// Source of `/context`.
        system_prompt_report: Json => "systemPromptReport",
        /// Session ids of external CLI backends.
        cli_session_ids: Box<BTreeMap<String, String>> => "cliSessionIds",
        /// The same, before there were several.
        claude_cli_session_id: Box<str> => "claudeCliSessionId",
        /// Key of the session that spawned this one; never changes.
        spawned_by: Box<str> => "spawnedBy",
        /// Elevated execution.
        elevated_level: ElevatedLevel => "elevatedLevel",
        /// `/exec` override: `sandbox`, `gateway` or `node`.
        exec_host: Box<str> => "execHost",
        /// `/exec` override: `deny`, `allowlist` or `full`.
        exec_security: Box<str> => "execSecurity",
        /// `/exec` override: `off`, `on-miss` or `always`.
        exec_ask: Box<str> => "execAsk",
        /// `/exec` override: node id.
        exec_node: Box<str> => "execNode",
        /// Sticky auth profile.
        auth_profile_override: Box<str> => "authProfileOverride",
        /// Origin of the auth profile choice: a person or the product.
        auth_profile_override_source: AuthProfileSource => "authProfileOverrideSource",
        /// `compactionCount` when it was chosen.
        auth_profile_override_compaction_count: u64 => "authProfileOverrideCompactionCount",
        /// Activation mode of a group: the messages that are answered.
        group_activation: GroupActivation => "groupActivation",
        /// True if the group intro is due again. For OpenClaw, which gives it with the first turn
        /// alone; here every turn has it.
        group_activation_needs_system_intro: bool => "groupActivationNeedsSystemIntro",
        /// Addressable name, at most 64 characters, unique in a store.
        label: Box<str> => "label",
        /// Last heartbeat text, to tell repetitions.
        last_heartbeat_text: Box<str> => "lastHeartbeatText",
        /// Time at which it was sent, Unix milliseconds.
        last_heartbeat_sent_at: i64 => "lastHeartbeatSentAt",
        /// Time at which a person or channel last said something, Unix milliseconds. Ours:
        /// heartbeats leave it alone, so that they do not keep an idle session alive (spec
        /// `sessions.md` §5.2).
        last_interaction_at: i64 => "lastInteractionAt",
        /// `updatedAt` as it was written together with `lastInteractionAt`. Ours: where `updatedAt` is another one, a program
        /// that does not know the field has used the session since.
        last_interaction_known_at: i64 => "lastInteractionKnownAt",
    }
}

impl SessionEntry {
    /// A row for a new conversation.
    pub fn new(session_id: SessionId, now: i64) -> Self {
        Self { session_id: Some(session_id), updated_at: Some(now), ..Self::default() }
    }

    /// Last activity, 0 where unknown.
    pub fn updated_at_ms(&self) -> i64 {
        self.updated_at.unwrap_or(0)
    }

    /// Time at which somebody last used the session, Unix milliseconds; heartbeats do not count, as
    /// far as they are known.
    pub fn last_used_at(&self) -> Option<i64> {
        let is_known = self.last_interaction_known_at == self.updated_at;
        self.last_interaction_at.filter(|_| is_known).or(self.updated_at)
    }

    /// Marks activity; time never runs backwards (spec `sessions.md` §3.3).
    pub fn touch(&mut self, now: i64) {
        self.updated_at = Some(self.updated_at_ms().max(now));
    }

    /// Performs the changes of a patch object: named fields are set, `null` removes (spec `sessions.md` §3.3). `sessionId`
    /// stays unless the patch names one, `updatedAt` only grows.
    pub fn merge(&mut self, patch: &serde_json::Map<String, serde_json::Value>, now: i64) {
        for (name, value) in patch {
            match value {
                serde_json::Value::Null if name != "sessionId" && name != "updatedAt" => {
                    self.clear_field(name)
                }
                serde_json::Value::Null => {}
                value if name == "updatedAt" => self.touch(value.as_i64().unwrap_or(now)),
                value => self.set_field(name, value.clone()),
            }
        }
        if self.session_id.is_none() {
            self.session_id = Some(new_session_id());
        }
        self.touch(now);
        self.normalize();
    }

    /// Old field names (spec `sessions.md` §3.2). Done on every read.
    pub fn rename_legacy_fields(&mut self) {
        for (old, new) in [("provider", "channel"), ("lastProvider", "lastChannel"), ("room", "groupChannel")]
        {
            if let Some(value) = self.extra.get(old).filter(|value| value.is_string()).cloned() {
                if !self.has_text(new) {
                    self.set_field(new, value);
                }
                self.extra.shift_remove(old);
            } else if old == "room" {
                self.extra.shift_remove(old);
            }
        }
    }

    /// Brings delivery context and last route into agreement and drops untyped remains. Done before every write.
    pub fn normalize(&mut self) {
        delivery::normalize(self);
        self.tidy();
    }

    /// The model override, where one is set.
    pub fn model_override_ref(&self) -> Option<(Option<&str>, &str)> {
        let model = self.model_override.as_deref().map(str::trim).filter(|m| !m.is_empty())?;
        let provider = self.provider_override.as_deref().map(str::trim).filter(|p| !p.is_empty());
        Some((provider, model))
    }

    fn has_text(&self, name: &str) -> bool {
        match name {
            "channel" => self.channel.is_some(),
            "lastChannel" => self.last_channel.is_some(),
            "groupChannel" => self.group_channel.is_some(),
            _ => false,
        }
    }
}

/// A new transcript id.
pub fn new_session_id() -> SessionId {
    SessionId::new(crate::ids::uuid().to_string())
}

#[cfg(test)]
mod tests;
