//! `messages.*` and `commands`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `messages`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageSettings {
    /// Put before replies.
    pub response_prefix: Option<String>,
    /// Behaviour in groups.
    pub group_chat: GroupChat,
    /// Handling of messages that arrive during a run.
    pub queue: Queue,
    /// Gathering of quick successions.
    pub inbound: InboundSettings,
    /// Emoji put on a message when work begins.
    pub ack_reaction: Option<String>,
    /// Messages that get it.
    pub ack_reaction_scope: Option<String>,
    /// True if it is taken away after the reply.
    pub remove_ack_after_reply: bool,
    /// Hosts of this machine or its network that files of answers may be fetched from all the same
    /// (ours), as `host` or `host:port`.
    pub media_allow_hosts: Vec<String>,
}

/// `groupChat`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupChat {
    /// Regular expressions that count as a mention.
    pub mention_patterns: Option<Vec<String>>,
    /// Messages of context; default 50, 0 turns it off.
    pub history_limit: Option<u64>,
}

/// `messages.queue`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Queue {
    /// Mode; see [`Queue::mode_on`].
    pub mode: Option<QueueMode>,
    /// Mode by channel.
    pub by_channel: BTreeMap<String, QueueMode>,
    /// Quiet time before queued messages run, in milliseconds; default 1,000.
    pub debounce_ms: Option<u64>,
    /// The same by channel.
    pub debounce_ms_by_channel: BTreeMap<String, u64>,
    /// Longest queue; default 20.
    pub cap: Option<u64>,
    /// Drop policy for overflow; default `summarize`.
    pub drop: Option<QueueDrop>,
}

/// Treatment of a message that arrives during a run (spec `queue.md` §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", rename_all = "kebab-case")]
pub enum QueueMode {
    /// Wait, and be merged with others that wait where their route is the same. WebChat messages have no deliverable
    /// route and are never merged (spec `queue.md` §4.2), so that for them this is [`QueueMode::Followup`].
    #[default]
    Collect,
    /// Wait for a run of its own.
    Followup,
    /// Go into the run under way. A message the run did not take becomes a follow-up.
    Steer,
    /// Go into the run under way, and wait for a run of its own besides, which asks it once more.
    SteerBacklog,
    /// Stop what is under way and take its place.
    Interrupt,
}

/// A text that names no [`QueueMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown queue mode \"{0}\"")]
pub struct UnknownQueueMode(String);

impl QueueMode {
    /// Name of the mode as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Followup => "followup",
            Self::Steer => "steer",
            Self::SteerBacklog => "steer-backlog",
            Self::Interrupt => "interrupt",
        }
    }

    /// Reads a stored or configured mode, synonyms included.
    ///
    /// # Errors
    /// [`UnknownQueueMode`] for anything else.
    pub fn parse(text: &str) -> Result<Self, UnknownQueueMode> {
        match text.trim().to_lowercase().as_str() {
            "collect" | "coalesce" => Ok(Self::Collect),
            "followup" | "followups" | "follow-up" | "follow-ups" => Ok(Self::Followup),
            "steer" | "steering" | "queue" | "queued" => Ok(Self::Steer),
            "steer-backlog" | "steer+backlog" | "steer_backlog" => Ok(Self::SteerBacklog),
            "interrupt" | "interrupts" | "abort" => Ok(Self::Interrupt),
            _ => Err(UnknownQueueMode(text.to_owned())),
        }
    }
}

impl TryFrom<String> for QueueMode {
    type Error = UnknownQueueMode;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl Queue {
    /// The mode on a channel.
    pub fn mode_on(&self, channel: &str) -> QueueMode {
        self.by_channel.get(&name_of(channel)).copied().or(self.mode).unwrap_or_default()
    }

    /// Quiet time on a channel, in milliseconds, where it is configured.
    pub fn debounce_on(&self, channel: &str) -> Option<u64> {
        self.debounce_ms_by_channel.get(&name_of(channel)).copied().or(self.debounce_ms)
    }
}

fn name_of(channel: &str) -> String {
    channel.trim().to_lowercase()
}

/// Drop policy of a full queue (spec `queue.md` §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueDrop {
    /// The oldest message.
    Old,
    /// The newest message.
    New,
    /// The oldest message, which the next run is told of in a line.
    #[default]
    Summarize,
}

impl QueueDrop {
    /// Reads a stored or written policy, synonyms included; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_lowercase().as_str() {
            "old" | "oldest" => Some(Self::Old),
            "new" | "newest" => Some(Self::New),
            "summarize" | "summary" => Some(Self::Summarize),
            _ => None,
        }
    }

    /// Name of the policy as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
            Self::Summarize => "summarize",
        }
    }
}

/// `messages.inbound`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InboundSettings {
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
    /// Milliseconds for which `/bash` waits for its command; default 2000, at most 30000.
    pub bash_foreground_ms: Option<u64>,
    /// `/config`.
    pub config: bool,
    /// `/debug`.
    pub debug: bool,
    /// `/restart`, SIGUSR1, and restarts asked for by tools.
    pub restart: bool,
    /// True if commands need an authorised sender; default true.
    pub use_access_groups: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synonym_of_the_reference_is_read() {
        let cases = [
            ("collect", Some(QueueMode::Collect)),
            ("coalesce", Some(QueueMode::Collect)),
            (" FollowUps ", Some(QueueMode::Followup)),
            ("follow-ups", Some(QueueMode::Followup)),
            ("queue", Some(QueueMode::Steer)),
            ("queued", Some(QueueMode::Steer)),
            ("steering", Some(QueueMode::Steer)),
            ("steer+backlog", Some(QueueMode::SteerBacklog)),
            ("steer_backlog", Some(QueueMode::SteerBacklog)),
            ("interrupts", Some(QueueMode::Interrupt)),
            ("abort", Some(QueueMode::Interrupt)),
            ("bogus", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(QueueMode::parse(text).ok(), expected, "{text}");
        }
    }
}
