//! An accepted message with everything that is decided about it. The inbox stores it, and no later stage decides any of it again:
//! settings that change afterwards do not affect it.

use std::time::Duration;

use openclaw_agent::Expected;
use openclaw_channels::Address;
pub use openclaw_config::registry::WEBCHAT;
use openclaw_protocol::AgentId;
use openclaw_protocol::message::Block;
use serde::{Deserialize, Serialize};

use crate::api::{AgentMessage, ChatMessage, Occasion};
use crate::arrival::Arrivals;
use crate::beat::BeatMessage;
use crate::caller::{Caller, CallerIdentity};
use crate::intent::Intent;
use crate::lineage::Lineage;
use crate::queue::QueueSettings;
use crate::rights::Rights;
use crate::rights::settle::RightsFacts;
use crate::source::{Announces, ClientSource, ProgramSource, RequestKind, RequestSource};

mod flat;

/// Global lane of requests that name none.
pub const MAIN_LANE: &str = "main";

/// Name of the command that compacts a conversation.
pub const COMPACT: &str = "compact";

/// A request as it came, and the decisions about it. Stored as one flat object of JSON in a column of the inbox.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRequest {
    /// The thing that started it, with the facts that only such messages have.
    pub source: RequestSource,
    /// Text of the message.
    pub text: String,
    /// Images that came with it, and words in the place of attachments that are left out.
    pub images: Vec<Block>,
    /// Thinking level for this message alone, as it was sent.
    pub thinking: Option<String>,
    /// Agent that answers, if the session's key does not name one.
    pub agent_id: Option<AgentId>,
    /// A run's time limit, as it was sent; 0 is none.
    pub timeout_seconds: Option<u64>,
    /// The global lane, as it was sent.
    pub lane: Option<String>,
    /// Text that is added to the system prompt of its run.
    pub extra_system_prompt: Option<String>,
    /// Text for the agent if the message runs together with others that waited. Never stored: it is made from their requests.
    pub gathered: Option<Gathered>,
    /// Events of chat platforms that it is made of. Not stored here; their outcome is.
    pub arrivals: Arrivals,
    /// Count of automatic steps that led to it since a person or the clock began.
    pub lineage: Lineage,
    /// Rights of its run. Before it is accepted: the rights of the run that caused it, if one did. Absent in requests that an older
    /// version accepted.
    pub rights: Option<Rights>,
    /// Decisions made at acceptance. Absent in requests that an older version accepted.
    pub decided: Option<Decisions>,
}

/// Words of several messages that run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// Text for the agent.
    pub text: String,
    /// Paths of the pictures that the messages name.
    pub pictures: Vec<String>,
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

impl RunRequest {
    /// Returns the caller of the request.
    pub fn caller(&self) -> Caller<'_> {
        let identity = match &self.source {
            RequestSource::Platform(platform) => return platform.origin.caller(),
            RequestSource::Client(_) => CallerIdentity::Client,
            _ if self.is_interaction() => CallerIdentity::Program,
            _ => CallerIdentity::Gateway,
        };
        Caller { identity, rights: self.source.caller_rights() }
    }

    /// Returns the facts that the rights of its run depend on.
    pub fn asked(&self) -> RightsFacts<'_> {
        let button = match &self.source {
            RequestSource::Platform(platform) => platform.button.as_ref(),
            _ => None,
        };
        RightsFacts { carried: self.rights.as_ref(), caller: self.caller(), button }
    }

    /// True if the owner says it.
    pub fn is_owners(&self) -> bool {
        self.rights.as_ref().is_some_and(Rights::are_owners)
    }

    /// True if a program asked over `agent` and reads the answer itself, as `openclaw agent` does. None of its words are commands.
    pub fn is_programs(&self) -> bool {
        matches!(&self.source, RequestSource::Program(program) if program.deliver_to.is_none())
            && self.is_interaction()
    }

    /// Returns the conversation that its answer goes to, if that is one of a chat platform.
    pub fn conversation(&self) -> Option<&Address> {
        self.source.origin().map(|origin| &origin.address).or(self.source.deliver_to())
    }

    /// Returns the channel that it was said on, or that an announcement goes to.
    pub fn channel(&self) -> &str {
        let announced = self.source.deliver_to().filter(|_| self.is_announcement());
        let address = self.source.origin().map(|origin| &origin.address).or(announced);
        address.map_or(WEBCHAT, |address| &address.channel)
    }

    /// Returns the sender's id on the platform, or the name that a client gives itself.
    pub fn sender_id(&self) -> Option<&str> {
        self.source.origin().map(|origin| origin.sender.id.as_str()).or(self.source.name())
    }

    /// True if it tells an agent that a sub-agent has ended. Such messages wait like those of people.
    pub fn is_announcement(&self) -> bool {
        self.source.announces() == Some(Announces::Summary)
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
        Some(self.source.origin()?.command_text.trim())
    }

    /// True if the words are not the sender's own, such as a forwarded message.
    pub fn is_forwarded(&self) -> bool {
        self.source.origin().is_some_and(|origin| origin.is_forwarded)
    }

    /// True if a person says it: it is a `chat.send` or a message of a chat platform, rather than an `agent` request.
    pub fn is_chat(&self) -> bool {
        self.source.kind() == RequestKind::Chat
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
        let gathered = self.gathered.as_ref().map(|gathered| gathered.text.as_str());
        gathered.or_else(|| self.to_gateway().words()).unwrap_or(&self.text)
    }

    /// Returns the paths of pictures that the typed text names. Paths in other text do not count: quoted or forwarded messages, what was
    /// said in the group meanwhile, attached files (which are shown already), and messages of the gateway or another session.
    pub fn named_pictures(&self) -> Vec<String> {
        match (&self.gathered, &self.source) {
            (Some(gathered), _) => gathered.pictures.clone(),
            (None, RequestSource::Platform(_) | RequestSource::Client(_) | RequestSource::Program(_)) => {
                let is_own = !self.is_forwarded() && self.unnamed() != Some("");
                if is_own { openclaw_tools::named_pictures(self.words()) } else { Vec::new() }
            }
            (
                None,
                RequestSource::Heartbeat(_)
                | RequestSource::MemoryFlush
                | RequestSource::SubagentTask(_)
                | RequestSource::SubagentMessage(_)
                | RequestSource::Announcement(_)
                | RequestSource::Talk(_),
            ) => Vec::new(),
        }
    }

    /// Wall time of the run; `None` is unlimited.
    pub fn run_time(&self) -> Option<Duration> {
        self.decided.as_ref()?.time_limit.map(Duration::from_secs)
    }

    /// True if it shares no context with the messages before it.
    pub fn is_isolated(&self) -> bool {
        self.source.occasion() == Occasion::Isolated
    }

    /// True if somebody says it, rather than the gateway by itself, so that it counts as use of the session.
    pub fn is_interaction(&self) -> bool {
        match self.source.occasion() {
            Occasion::Request | Occasion::Command => true,
            Occasion::Heartbeat | Occasion::Isolated => false,
        }
    }

    /// Returns the kind of answer that is expected: words if somebody waits for them. Requests of the gateway itself, and messages between
    /// sessions, may well end in silence.
    pub fn expected(&self) -> Expected {
        match &self.source {
            RequestSource::Client(_) | RequestSource::SubagentTask(_) => Expected::Words,
            RequestSource::Platform(platform) if platform.origin.is_direct() => Expected::Words,
            RequestSource::Platform(_) => Expected::WordsOrSilence,
            RequestSource::Program(_) if self.is_interaction() => Expected::Words,
            RequestSource::Program(_)
            | RequestSource::Heartbeat(_)
            | RequestSource::MemoryFlush
            | RequestSource::SubagentMessage(_)
            | RequestSource::Announcement(_)
            | RequestSource::Talk(_) => Expected::Anything,
        }
    }

    /// Returns its approximate size in bytes.
    pub fn weight(&self) -> usize {
        let words = [&self.thinking, &self.lane, &self.extra_system_prompt];
        let words: usize = words.into_iter().flatten().map(String::len).sum();
        let images: usize = self.images.iter().map(image_bytes).sum();
        self.text.len() + words + images + self.source.weight()
    }
}

fn image_bytes(block: &Block) -> usize {
    match block {
        Block::Image(image) => image.data.len(),
        Block::Text(told) => told.text.len(),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => 0,
    }
}

impl From<ChatMessage> for RunRequest {
    fn from(message: ChatMessage) -> Self {
        Self {
            source: RequestSource::Client(ClientSource {
                name: message.sender,
                rights: message.rights,
                parent_session_key: message.parent_session_key,
                timeout_ms: message.timeout_ms,
            }),
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            ..Self::default()
        }
    }
}

impl From<AgentMessage> for RunRequest {
    fn from(message: AgentMessage) -> Self {
        Self {
            source: RequestSource::Program(Box::new(ProgramSource {
                session_id: message.session_id,
                occasion: message.occasion,
                deliver_to: message.deliver_to,
                rights: message.rights,
                entry_patch: message.entry_patch,
            })),
            agent_id: Some(message.agent_id),
            text: message.text,
            images: message.images,
            thinking: message.thinking,
            timeout_seconds: message.timeout_seconds,
            lane: message.lane,
            extra_system_prompt: message.extra_system_prompt,
            ..Self::default()
        }
    }
}

impl From<BeatMessage> for RunRequest {
    fn from(message: BeatMessage) -> Self {
        Self {
            source: RequestSource::Heartbeat(Box::new(message.beat)),
            agent_id: Some(message.agent_id),
            text: message.text,
            ..Self::default()
        }
    }
}
