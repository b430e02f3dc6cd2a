//! Queue settings of messages that wait during a run of their session (spec `queue.md` §2): mode,
//! debounce, cap and drop policy. [`prompt`] writes the text that an agent reads of those that are
//! run together.

pub mod prompt;

use std::time::Duration;

use openclaw_config::settings::{Queue, QueueDrop, QueueMode};
use openclaw_sessions::SessionEntry;
use serde::{Deserialize, Serialize};

use crate::api::RunOutcome;

/// Quiet time before queued messages run, in milliseconds (spec `queue.md` §2).
const DEBOUNCE_MS: u64 = 1_000;
/// Longest queue (spec `queue.md` §2).
const CAP: u64 = 20;

/// Request of `/queue`; each part may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueWish {
    /// The queue mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<QueueMode>,
    /// Pause in milliseconds before collected messages run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce_ms: Option<u64>,
    /// Largest number of messages that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
    /// Message that makes room when too many wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<QueueDrop>,
}

impl QueueWish {
    /// Reads the settings in a session's row.
    fn of_session(entry: &SessionEntry) -> Self {
        Self {
            mode: entry.queue_mode.as_deref().and_then(|mode| QueueMode::parse(mode).ok()),
            debounce_ms: entry.queue_debounce_ms,
            cap: entry.queue_cap,
            drop: entry.queue_drop.as_deref().and_then(QueueDrop::parse),
        }
    }
}

/// Settings of a message's wait. Decided when it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "StoredSettings")]
pub struct QueueSettings {
    /// The queue mode.
    pub mode: QueueMode,
    /// Quiet time before waiting messages are run, in milliseconds.
    pub debounce_ms: u64,
    /// Number of messages that may wait; at least one.
    pub cap: u64,
    /// Policy on overflow.
    pub drop: QueueDrop,
}

/// Forms in which versions have stored the settings.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredSettings {
    #[serde(rename_all = "camelCase")]
    Whole {
        mode: QueueMode,
        debounce_ms: u64,
        cap: u64,
        drop: QueueDrop,
    },
    ModeAlone(QueueMode),
}

impl From<StoredSettings> for QueueSettings {
    fn from(stored: StoredSettings) -> Self {
        match stored {
            StoredSettings::Whole { mode, debounce_ms, cap, drop } => Self { mode, debounce_ms, cap, drop },
            StoredSettings::ModeAlone(mode) => Self::with(mode),
        }
    }
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self::with(QueueMode::default())
    }
}

/// Rule by which a message that waited gets no run of its own. People find the names in the trace
/// of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// The queue was full, and this message was the oldest.
    Old,
    /// The queue was full when it came.
    New,
    /// The queue was full, this message was the oldest, and the agent is told of it in a line.
    Summarized,
    /// The queue was full, this message was the oldest, and an earlier run has read and answered
    /// it.
    Read,
    /// The same message waits already.
    Duplicate,
}

impl DropRule {
    /// Name of the rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Old => "queue-cap-old",
            Self::New => "queue-cap-new",
            Self::Summarized => "queue-cap-summarized",
            Self::Read => "queue-cap-read",
            Self::Duplicate => "queue-duplicate",
        }
    }

    /// True if nothing of the message was used: sent again, it counts as new, also under the same
    /// key.
    pub fn may_be_sent_again(self) -> bool {
        match self {
            Self::Old | Self::New | Self::Summarized => true,
            Self::Read | Self::Duplicate => false,
        }
    }

    /// Text told to the sender of the message.
    pub fn told(self) -> String {
        let why = match self {
            Self::Old => "newer ones came, and too many were waiting. Send it again if it still matters",
            Self::New => "too many are waiting already. Send it again later",
            Self::Summarized => {
                "newer ones came, and too many were waiting. The agent is told its first words in a summary"
            }
            Self::Read => "an earlier run has read it, newer ones came, and too many were waiting",
            Self::Duplicate => "the same message is waiting already",
        };
        format!("This message was dropped ({}): {why}.", self.as_str())
    }

    /// The end of the message's run.
    pub fn outcome(self) -> RunOutcome {
        RunOutcome::Error { message: self.told(), result: None }
    }
}

impl QueueSettings {
    /// The defaults with another mode.
    pub fn with(mode: QueueMode) -> Self {
        Self { mode, debounce_ms: DEBOUNCE_MS, cap: CAP, drop: QueueDrop::default() }
    }

    /// Quiet time before waiting messages are run.
    pub fn debounce(self) -> Duration {
        Duration::from_millis(self.debounce_ms)
    }

    /// Number of messages that may wait.
    pub fn room(self) -> usize {
        usize::try_from(self.cap).unwrap_or(usize::MAX).max(1)
    }

    /// Resolves each setting: the message's own, else the session's, else the channel's, else the
    /// configured one.
    pub fn of(wish: QueueWish, own: Option<&SessionEntry>, queue: &Queue, channel: &str) -> Self {
        let own = own.map(QueueWish::of_session).unwrap_or_default();
        let debounce_ms = wish.debounce_ms.or(own.debounce_ms).or_else(|| queue.debounce_on(channel));
        Self {
            mode: wish.mode.or(own.mode).unwrap_or_else(|| queue.mode_on(channel)),
            debounce_ms: debounce_ms.unwrap_or(DEBOUNCE_MS),
            cap: wish.cap.or(own.cap).or(queue.cap).unwrap_or(CAP).max(1),
            drop: wish.drop.or(own.drop).or(queue.drop).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::Config;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_older_versions_stored_is_read() {
        let read = |stored: Value| serde_json::from_value::<QueueSettings>(stored).unwrap();
        assert_eq!(read(json!("steer")), QueueSettings::with(QueueMode::Steer));
        let whole =
            QueueSettings { mode: QueueMode::Interrupt, debounce_ms: 0, cap: 3, drop: QueueDrop::Old };
        assert_eq!(read(serde_json::to_value(whole).unwrap()), whole);
    }

    /// Spec `queue.md` §2.
    #[test]
    fn the_nearest_setting_wins() {
        let own = |row: Value| serde_json::from_value::<SessionEntry>(row).unwrap();
        let by_channel = json!({"mode": "collect", "byChannel": {"discord": "steer"}, "debounceMs": 500,
            "debounceMsByChannel": {"discord": 50}, "cap": 5, "drop": "old"});
        let interrupt = QueueWish { mode: Some(QueueMode::Interrupt), cap: Some(3), ..QueueWish::default() };
        let rows = [
            (
                json!({}),
                json!({}),
                QueueWish::default(),
                (QueueMode::Collect, 1000, 20, QueueDrop::Summarize),
            ),
            (by_channel, json!({}), QueueWish::default(), (QueueMode::Steer, 50, 5, QueueDrop::Old)),
            (
                json!({"mode": "followup"}),
                json!({"queueMode": "queue", "queueCap": 2, "queueDrop": "newest", "queueDebounceMs": 9}),
                QueueWish::default(),
                (QueueMode::Steer, 9, 2, QueueDrop::New),
            ),
            (
                json!({}),
                json!({"queueMode": "collect"}),
                interrupt,
                (QueueMode::Interrupt, 1000, 3, QueueDrop::Summarize),
            ),
        ];
        for (queue, row, wish, (mode, debounce_ms, cap, drop)) in rows {
            let config: Config = serde_json::from_value(json!({"messages": {"queue": queue}})).unwrap();
            let found = QueueSettings::of(wish, Some(&own(row)), &config.messages.queue, "Discord ");
            assert_eq!(found, QueueSettings { mode, debounce_ms, cap, drop });
        }
    }
}
