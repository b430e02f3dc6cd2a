//! An accepted message with everything that is decided about it. The inbox stores it, and no later stage decides any of it again:
//! settings that change afterwards do not affect it.

use std::time::Duration;

use openclaw_agent::Expected;
use openclaw_channels::{Address, ConversationKind};
use openclaw_protocol::message::{Block, Provenance};
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_sessions::reset::authority::Authority;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{AgentMessage, ChatMessage, Occasion};
use crate::arrival::Arrivals;
use crate::beat::{Beat, BeatMessage};
use crate::child_run::ChildRun;
use crate::exchange::Exchange;
use crate::intent::Intent;
use crate::lineage::Lineage;
use crate::origin::Origin;
use crate::queue::QueueSettings;
use crate::rights::settle::Asked;
use crate::rights::{Maker, Rights};

/// The channel of messages over the gateway's own protocol.
pub const WEBCHAT: &str = "webchat";
/// Global lane of requests that name none.
pub const MAIN_LANE: &str = "main";

/// Name of the command that compacts a conversation.
pub const COMPACT: &str = "compact";

/// The method that brought a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// `chat.send`: a person at a client.
    #[default]
    Chat,
    /// `agent`: a program.
    Agent,
}

impl Kind {
    /// The `kind` column of the inbox.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Agent => "agent",
        }
    }
}

/// A request as it came, and the decisions about it. Stored as JSON in a column of the inbox: fields may be added, none changes its
/// meaning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Request {
    /// The method that brought it.
    pub kind: Kind,
    /// Text of the message.
    pub text: String,
    /// Images that came with it, and words in the place of attachments that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Block>,
    /// Thinking level for this message alone, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Deadline of a chat in milliseconds, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Name that the person's client gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// True if that client may decide on commands that wait for approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
    /// True if that client may change the gateway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_administer: bool,
    /// Session whose transcript a new thread begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_key: Option<SessionKey>,
    /// Agent that answers, if the session's key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Id of the transcript to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// A run's time limit, as it was sent; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The global lane, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Text that is added to the system prompt of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_system_prompt: Option<String>,
    /// Reason for the request.
    pub occasion: Occasion,
    /// Details of the heartbeat, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beat: Option<Beat>,
    /// Fields to be set in the session's row.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub entry_patch: Map<String, Value>,
    /// True if the gateway itself asks for memory to be saved. Never stored.
    #[serde(skip)]
    pub is_memory_flush: bool,
    /// Text for the agent if the message runs together with others that waited. Never stored: it is made from their requests.
    #[serde(skip)]
    pub gathered: Option<String>,
    /// Paths of pictures that those messages name. Never stored either.
    #[serde(skip)]
    pub gathered_pictures: Vec<String>,
    /// Events of chat platforms that it is made of. Not stored here; their outcome is.
    #[serde(skip)]
    pub arrivals: Arrivals,
    /// Maker of the button, if the press of a button says it. Not stored: `rights` already account for it.
    #[serde(skip)]
    pub button: Option<Maker>,
    /// Conversation and sender, if it was said on a chat platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
    /// Conversation that its answer is sent to, if a program asked for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_to: Option<Address>,
    /// Author, if that is not a person: another session, or the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Count of automatic steps that led to it since a person or the clock began.
    #[serde(skip_serializing_if = "Lineage::is_new")]
    pub lineage: Lineage,
    /// Rights of its run. Before it is accepted: the rights of the run that caused it, if one did. Absent in requests that an older
    /// version accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
    /// Conversation between two sessions that it is a step of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Box<Exchange>>,
    /// Start of the sub-agent, if it is a sub-agent's run. The task is `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawned: Option<Box<ChildRun>>,
    /// Form of the announcement, if it tells a session that a sub-agent has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announces: Option<Announces>,
    /// Decisions made at acceptance. Absent in requests that an older version accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decisions>,
}

/// Form in which a session is told that a sub-agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Announces {
    /// The text is posted as it is.
    Words,
    /// The agent summarises it in its own words.
    Summary,
}

/// Decisions made when a message is accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decisions {
    /// Text behind the reset trigger; `None` if the message does not begin with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// Meaning of the message to the gateway, such as a command or a prompt.
    #[serde(default, skip_serializing_if = "Intent::is_prompt")]
    pub intent: Intent,
    /// Queue mode and limits while another run of its session is active.
    #[serde(default, alias = "queueMode")]
    pub queue: QueueSettings,
    /// Wall time of its run in seconds; absent is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<u64>,
}

impl Request {
    /// Returns the sender's authority to give commands. Every client of the gateway's own protocol has it.
    pub fn authority(&self) -> Authority {
        self.origin.as_ref().map_or(Authority::Granted, |origin| origin.authority())
    }

    /// Returns the facts that the rights of its run depend on.
    pub fn asked(&self) -> Asked<'_> {
        Asked {
            carried: self.rights.as_ref(),
            speaker: self.origin.as_deref().map(Origin::speaker),
            button: self.button.as_ref(),
            may_administer: self.may_administer,
            by_person: self.is_persons(),
            by_anybody: self.is_interaction(),
        }
    }

    /// True if the owner says it.
    pub fn is_owners(&self) -> bool {
        self.rights.as_ref().is_some_and(Rights::are_owners)
    }

    /// True if a person says it, at a client or on a chat platform.
    pub fn is_persons(&self) -> bool {
        self.origin.is_some() || self.is_chat()
    }

    /// True if a program asked over `agent` and reads the answer itself, as `openclaw agent` does. None of its words are commands.
    pub fn is_programs(&self) -> bool {
        let is_asked = self.expected() == Expected::Words && self.spawned.is_none();
        is_asked && !self.is_chat() && self.conversation().is_none()
    }

    /// True if its sender may change how commands are guarded. On chat platforms everybody who may give commands may.
    pub fn may_set_guards(&self) -> bool {
        self.origin.is_some() || self.may_approve || self.may_administer
    }

    /// Returns the conversation that its answer goes to, if that is one of a chat platform.
    pub fn conversation(&self) -> Option<&Address> {
        self.origin.as_ref().map(|origin| &origin.address).or(self.deliver_to.as_ref())
    }

    /// Returns the channel that it was said on, or that an announcement goes to.
    pub fn channel(&self) -> &str {
        let announced = self.deliver_to.as_ref().filter(|_| self.is_announcement());
        let address = self.origin.as_ref().map(|origin| &origin.address).or(announced);
        address.map_or(WEBCHAT, |address| &address.channel)
    }

    /// Returns the sender's id on the platform, or the name that a client gives itself.
    pub fn sender_id(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| origin.sender.id.as_str()).or(self.sender.as_deref())
    }

    /// True if it tells an agent that a sub-agent has ended. Such messages wait like those of people.
    pub fn is_announcement(&self) -> bool {
        self.announces == Some(Announces::Summary)
    }

    /// Returns the text that commands are read from: without mentions if it is a command, else as it came. Empty if nothing was typed: the
    /// text of a poll, a contact or a file name is no command.
    pub fn command_text(&self) -> &str {
        match self.unnamed() {
            Some(typed) if typed.is_empty() || typed.starts_with(['/', '!']) => typed,
            Some(_) | None => &self.text,
        }
    }

    /// Returns the text typed on a chat platform, without mentions; `None` if it was not said on one.
    pub fn unnamed(&self) -> Option<&str> {
        Some(self.origin.as_ref()?.command_text.trim())
    }

    /// True if the words are not the sender's own, such as a forwarded message.
    pub fn is_forwarded(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.is_forwarded)
    }

    /// True if it is a `chat.send` or a message of a chat platform, rather than an `agent` request.
    pub fn is_chat(&self) -> bool {
        self.kind == Kind::Chat
    }

    /// Returns the text behind the reset trigger; `None` if the message does not begin with one.
    pub fn behind_reset(&self) -> Option<&str> {
        self.decided.as_ref()?.reset.as_deref()
    }

    /// Returns the meaning of the message to the gateway, such as a command or a prompt.
    pub fn to_gateway(&self) -> &Intent {
        self.decided.as_ref().map_or(&Intent::Prompt, |decided| &decided.intent)
    }

    /// True if it asks for a compaction.
    pub fn compacts(&self) -> bool {
        matches!(self.to_gateway(), Intent::Command { name, .. } if name == COMPACT)
    }

    /// Returns the part of the text that is meant for the agent.
    pub fn words(&self) -> &str {
        self.gathered.as_deref().or_else(|| self.to_gateway().words()).unwrap_or(&self.text)
    }

    /// Returns the paths of pictures that the typed text names. Paths in other text do not count: quoted or forwarded messages, what was
    /// said in the group meanwhile, attached files (which are shown already), and messages of the gateway or another session.
    pub fn named_pictures(&self) -> Vec<String> {
        let is_own = !self.is_forwarded() && self.unnamed() != Some("");
        let is_typed = is_own && self.provenance.is_none() && self.beat.is_none() && !self.is_memory_flush;
        match self.gathered {
            Some(_) => self.gathered_pictures.clone(),
            None if is_typed && self.announces.is_none() => openclaw_tools::named_pictures(self.words()),
            None => Vec::new(),
        }
    }

    /// Wall time of the run; `None` is unlimited.
    pub fn run_time(&self) -> Option<Duration> {
        self.decided.as_ref()?.time_limit.map(Duration::from_secs)
    }

    /// True if it shares no context with the messages before it.
    pub fn is_isolated(&self) -> bool {
        self.occasion == Occasion::Isolated
    }

    /// True if somebody says it, rather than the gateway by itself, so that it counts as use of the session.
    pub fn is_interaction(&self) -> bool {
        match self.occasion {
            Occasion::Request | Occasion::Command => true,
            Occasion::Heartbeat | Occasion::Isolated => false,
        }
    }

    /// Returns the kind of answer that is expected: words if somebody waits for them. Requests of the gateway itself, and messages between
    /// sessions, may well end in silence.
    pub fn expected(&self) -> Expected {
        let is_by_person = self.provenance.is_none() && self.exchange.is_none() && self.announces.is_none();
        let is_of_group =
            self.origin.as_ref().is_some_and(|origin| origin.conversation.kind != ConversationKind::Direct);
        match self.spawned.is_some() || is_by_person && self.is_interaction() {
            false => Expected::Anything,
            true if is_of_group => Expected::WordsOrSilence,
            true => Expected::Words,
        }
    }

    /// Returns its approximate size in bytes.
    pub fn weight(&self) -> usize {
        let words = [&self.thinking, &self.sender, &self.session_id, &self.lane, &self.extra_system_prompt];
        let words = words.into_iter().flatten().map(String::len);
        let patch = self.entry_patch.values().filter_map(Value::as_str).map(str::len);
        let framed = self.origin.iter().map(|origin| origin.weight());
        let talked = self.exchange.iter().map(|exchange| exchange.weight());
        self.text.len()
            + words
                .chain(framed)
                .chain(talked)
                .chain(patch)
                .chain(self.images.iter().map(image_bytes))
                .sum::<usize>()
    }
}

fn image_bytes(block: &Block) -> usize {
    match block {
        Block::Image(image) => image.data.len(),
        Block::Text(told) => told.text.len(),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    }
}

impl From<ChatMessage> for Request {
    fn from(message: ChatMessage) -> Self {
        Self {
            kind: Kind::Chat,
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_ms: message.timeout_ms,
            sender: message.sender,
            may_approve: message.may_approve,
            may_administer: message.may_administer,
            parent_session_key: message.parent_session_key,
            ..Self::default()
        }
    }
}

impl From<AgentMessage> for Request {
    fn from(message: AgentMessage) -> Self {
        Self {
            kind: Kind::Agent,
            agent_id: Some(message.agent_id),
            session_id: message.session_id,
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_seconds: message.timeout_seconds,
            lane: message.lane,
            extra_system_prompt: message.extra_system_prompt,
            occasion: message.occasion,
            deliver_to: message.deliver_to,
            may_administer: message.may_administer,
            entry_patch: message.entry_patch,
            ..Self::default()
        }
    }
}

impl From<BeatMessage> for Request {
    fn from(message: BeatMessage) -> Self {
        Self {
            kind: Kind::Agent,
            agent_id: Some(message.agent_id),
            text: message.text,
            occasion: Occasion::Heartbeat,
            beat: Some(message.beat),
            ..Self::default()
        }
    }
}
