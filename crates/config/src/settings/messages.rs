//! `messages.*` and `commands`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `messages`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Messages {
    /// Put before inbound text.
    pub message_prefix: Option<String>,
    /// Put before replies.
    pub response_prefix: Option<String>,
    /// Behaviour in groups.
    pub group_chat: GroupChat,
    /// What happens to messages during a run.
    pub queue: Queue,
    /// Gathering of quick successions.
    pub inbound: Inbound,
    /// Emoji put on a message when work begins.
    pub ack_reaction: Option<String>,
    /// Which messages get it.
    pub ack_reaction_scope: Option<String>,
    /// Whether it is taken away after the reply.
    pub remove_ack_after_reply: bool,
}

/// `groupChat`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupChat {
    /// Regular expressions that count as a mention.
    pub mention_patterns: Option<Vec<String>>,
    /// Messages of context; default 50, 0 is none.
    pub history_limit: Option<u64>,
}

/// `messages.queue`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Queue {
    /// Mode; default `collect`.
    pub mode: Option<QueueMode>,
    /// Mode by channel.
    pub by_channel: BTreeMap<String, QueueMode>,
    /// Quiet time before queued messages run, in milliseconds; default 1,000.
    pub debounce_ms: Option<u64>,
    /// The same by channel.
    pub debounce_ms_by_channel: BTreeMap<String, u64>,
    /// Longest queue; default 20.
    pub cap: Option<u64>,
    /// What overflow does; default `summarize`.
    pub drop: Option<QueueDrop>,
}

/// A queue mode (spec `queue.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// Into the current run.
    Steer,
    /// One turn each afterwards.
    Followup,
    /// One turn for all afterwards.
    Collect,
    /// Into the run and again afterwards.
    #[serde(alias = "steer+backlog")]
    SteerBacklog,
    /// Older name of `steer`.
    Queue,
    /// Stops the run.
    Interrupt,
}

/// `messages.queue.drop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueDrop {
    /// The oldest goes.
    Old,
    /// The newest goes.
    New,
    /// The oldest goes and is mentioned in a summary.
    Summarize,
}

/// `messages.inbound`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Inbound {
    /// Milliseconds; default 0.
    pub debounce_ms: Option<u64>,
    /// The same by channel.
    pub by_channel: BTreeMap<String, u64>,
}

/// `commands`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Commands {
    /// Commands in message text; default true.
    pub text: Option<bool>,
    /// `!` runs a shell command.
    pub bash: bool,
    /// `/config`.
    pub config: bool,
    /// `/debug`.
    pub debug: bool,
    /// `/restart` and restarts asked for by tools.
    pub restart: bool,
    /// Whether commands need an authorised sender; default true.
    pub use_access_groups: Option<bool>,
}
