//! Source of an accepted message: what started it, with the facts that only messages of that source have.
//!
//! Each variant of [`RequestSource`] is one way in. A new way (a scheduled job, a webhook, a node) is a new variant: the compiler then names every
//! place that has to decide about it.

use openclaw_channels::Address;
use openclaw_protocol::SessionKey;
use openclaw_protocol::message::Provenance;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::Occasion;
use crate::beat::Beat;
use crate::caller::CallerRights;
use crate::child_run::ChildRun;
use crate::exchange::Exchange;
use crate::origin::MessageOrigin;
use crate::rights::Maker;

/// The method that brought a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestKind {
    /// `chat.send`: a person at a client.
    #[default]
    Chat,
    /// `agent`: a program.
    Agent,
}

impl RequestKind {
    /// The `kind` column of the inbox.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Agent => "agent",
        }
    }
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

/// The thing that started a message.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestSource {
    /// `chat.send`: a person at a client of the gateway's own protocol.
    Client(ClientSource),
    /// `agent`: a program, or the command line.
    Program(Box<ProgramSource>),
    /// A message of a chat platform.
    Platform(Box<PlatformSource>),
    /// A heartbeat of the gateway.
    Heartbeat(Box<Beat>),
    /// The gateway asks the agent to save its memory before a compaction. Never stored.
    MemoryFlush,
    /// The task of a sub-agent.
    SubagentTask(Box<TaskSource>),
    /// Words to a sub-agent that runs already, or has ended: from its parent's session, or the question for its announcement.
    SubagentMessage(Provenance),
    /// The news that a sub-agent has ended, for the session that started it.
    Announcement(Box<AnnouncementSource>),
    /// A step of a talk between two sessions.
    Talk(Box<TalkSource>),
}

/// Facts of a message from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSource {
    /// Name that the client gives itself.
    pub name: Option<String>,
    /// Rights of the client.
    pub rights: CallerRights,
    /// Session whose transcript a new thread begins with.
    pub parent_session_key: Option<SessionKey>,
    /// Deadline in milliseconds, as it was sent.
    pub timeout_ms: Option<u64>,
}

/// Facts of an `agent` request.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSource {
    /// Id of the transcript to continue.
    pub session_id: Option<String>,
    /// Reason for the request.
    pub occasion: Occasion,
    /// Conversation that the answer is sent to.
    pub deliver_to: Option<Address>,
    /// Rights of the program: those of an owner for a client that may change the gateway, or a file of
    /// the owner.
    pub rights: CallerRights,
    /// Fields to be set in the session's row.
    pub entry_patch: Map<String, Value>,
}

/// A client without a name or scopes.
impl Default for ClientSource {
    fn default() -> Self {
        let rights = CallerRights::of_client(false, false);
        Self { name: None, rights, parent_session_key: None, timeout_ms: None }
    }
}

/// A program without scopes.
impl Default for ProgramSource {
    fn default() -> Self {
        Self {
            session_id: None,
            occasion: Occasion::default(),
            deliver_to: None,
            rights: CallerRights::of_client(false, false),
            entry_patch: Map::new(),
        }
    }
}

/// Facts of a message from a chat platform.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformSource {
    /// Conversation and sender.
    pub origin: Box<MessageOrigin>,
    /// Name of the sender.
    pub name: Option<String>,
    /// Session whose transcript a new thread begins with.
    pub parent_session_key: Option<SessionKey>,
    /// Maker of the button, if the press of a button says it. Not stored: the rights of the request already account for it.
    pub button: Option<Maker>,
}

/// Facts of a sub-agent's task, which is the text of its message.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSource {
    /// Start of the sub-agent.
    pub run: ChildRun,
    /// Session that started it.
    pub provenance: Option<Provenance>,
    /// Fields to be set in the sub-agent's row.
    pub entry_patch: Map<String, Value>,
}

/// Facts of the news that a sub-agent has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnouncementSource {
    /// Form of the announcement.
    pub form: Announces,
    /// Session of the sub-agent.
    pub provenance: Option<Provenance>,
    /// Conversation that the answer is sent to.
    pub deliver_to: Option<Address>,
}

/// Facts of a step of a talk between two sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct TalkSource {
    /// The talk so far.
    pub exchange: Exchange,
    /// Session that says the step.
    pub provenance: Option<Provenance>,
    /// Conversation that the last word is sent to.
    pub deliver_to: Option<Address>,
}

impl Default for RequestSource {
    fn default() -> Self {
        Self::Client(ClientSource::default())
    }
}

impl RequestSource {
    /// Returns a program that names nothing but its text.
    pub fn program() -> Self {
        Self::Program(Box::default())
    }

    /// Returns a sender on a chat platform.
    pub fn platform(origin: MessageOrigin) -> Self {
        let origin = Box::new(origin);
        Self::Platform(Box::new(PlatformSource {
            origin,
            name: None,
            parent_session_key: None,
            button: None,
        }))
    }

    /// Returns the method that brought the message, or would have.
    pub fn kind(&self) -> RequestKind {
        match self {
            Self::Client(_) | Self::Platform(_) => RequestKind::Chat,
            Self::Program(_)
            | Self::Heartbeat(_)
            | Self::MemoryFlush
            | Self::SubagentTask(_)
            | Self::SubagentMessage(_)
            | Self::Announcement(_)
            | Self::Talk(_) => RequestKind::Agent,
        }
    }

    /// Returns the client; `None` for every other source.
    pub fn client(&self) -> Option<&ClientSource> {
        if let Self::Client(client) = self { Some(client) } else { None }
    }

    /// Returns the program; `None` for every other source.
    pub fn as_program(&self) -> Option<&ProgramSource> {
        if let Self::Program(program) = self { Some(program) } else { None }
    }

    /// Returns the conversation and sender, if it was said on a chat platform.
    pub fn origin(&self) -> Option<&MessageOrigin> {
        if let Self::Platform(platform) = self { Some(&platform.origin) } else { None }
    }

    /// Returns the settings of the heartbeat, if it is one.
    pub fn beat(&self) -> Option<&Beat> {
        if let Self::Heartbeat(beat) = self { Some(beat) } else { None }
    }

    /// Returns the talk between two sessions that it is a step of.
    pub fn exchange(&self) -> Option<&Exchange> {
        if let Self::Talk(talk) = self { Some(&talk.exchange) } else { None }
    }

    /// Returns the form of the announcement, if it tells a session that a sub-agent has ended.
    pub fn announces(&self) -> Option<Announces> {
        if let Self::Announcement(announcement) = self { Some(announcement.form) } else { None }
    }

    /// Returns the name of its sender, as a client or a platform gives it.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Client(client) => client.name.as_deref(),
            Self::Platform(platform) => platform.name.as_deref(),
            _ => None,
        }
    }

    /// Returns the session whose transcript a new thread begins with.
    pub fn parent_session_key(&self) -> Option<&SessionKey> {
        match self {
            Self::Client(client) => client.parent_session_key.as_ref(),
            Self::Platform(platform) => platform.parent_session_key.as_ref(),
            _ => None,
        }
    }

    /// Returns the rights of the caller; none where the gateway itself asks.
    pub fn caller_rights(&self) -> CallerRights {
        match self {
            Self::Client(client) => client.rights,
            Self::Program(program) => program.rights,
            Self::Platform(platform) => platform.origin.rights,
            Self::Heartbeat(_)
            | Self::MemoryFlush
            | Self::SubagentTask(_)
            | Self::SubagentMessage(_)
            | Self::Announcement(_)
            | Self::Talk(_) => CallerRights::default(),
        }
    }

    /// Returns the reason for the request.
    pub fn occasion(&self) -> Occasion {
        match self {
            Self::Program(program) => program.occasion,
            Self::Heartbeat(_) | Self::MemoryFlush => Occasion::Heartbeat,
            Self::Client(_)
            | Self::Platform(_)
            | Self::SubagentTask(_)
            | Self::SubagentMessage(_)
            | Self::Announcement(_)
            | Self::Talk(_) => Occasion::Request,
        }
    }

    /// Returns the author, if that is not a person but another session.
    pub fn provenance(&self) -> Option<&Provenance> {
        match self {
            Self::SubagentTask(task) => task.provenance.as_ref(),
            Self::SubagentMessage(provenance) => Some(provenance),
            Self::Announcement(announcement) => announcement.provenance.as_ref(),
            Self::Talk(talk) => talk.provenance.as_ref(),
            Self::Client(_)
            | Self::Program(_)
            | Self::Platform(_)
            | Self::Heartbeat(_)
            | Self::MemoryFlush => None,
        }
    }

    /// Returns the conversation that the answer is sent to, if that is not the one it was said in.
    pub fn deliver_to(&self) -> Option<&Address> {
        match self {
            Self::Program(program) => program.deliver_to.as_ref(),
            Self::Announcement(announcement) => announcement.deliver_to.as_ref(),
            Self::Talk(talk) => talk.deliver_to.as_ref(),
            _ => None,
        }
    }

    /// Returns the fields to be set in the session's row; `None` if there are none.
    pub fn entry_patch(&self) -> Option<&Map<String, Value>> {
        let patch = match self {
            Self::Program(program) => &program.entry_patch,
            Self::SubagentTask(task) => &task.entry_patch,
            _ => return None,
        };
        Some(patch).filter(|patch| !patch.is_empty())
    }

    /// Makes it a message of the conversation in which several messages that run together are answered.
    pub fn said_at(&mut self, origin: Box<MessageOrigin>) {
        match self {
            Self::Platform(platform) => platform.origin = origin,
            _ => {
                let (name, parent_session_key) =
                    (self.name().map(str::to_owned), self.parent_session_key().cloned());
                let platform = PlatformSource { origin, name, parent_session_key, button: None };
                *self = Self::Platform(Box::new(platform));
            }
        }
    }

    /// Returns its approximate size in bytes.
    pub fn weight(&self) -> usize {
        let patch = self.entry_patch().into_iter().flat_map(Map::values);
        let patch: usize = patch.filter_map(Value::as_str).map(str::len).sum();
        let named = self.name().map_or(0, str::len)
            + self.as_program().and_then(|program| program.session_id.as_deref()).map_or(0, str::len);
        let framed = self.origin().map_or(0, MessageOrigin::weight);
        let talked = self.exchange().map_or(0, Exchange::weight);
        patch + named + framed + talked
    }
}
