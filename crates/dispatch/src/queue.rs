//! How messages wait during a run of their session (spec `queue.md` §2): mode, debounce, cap and drop policy.

use openclaw_config::settings::{Queue, QueueDrop, QueueMode};
use openclaw_sessions::SessionEntry;
use serde::{Deserialize, Serialize};

/// Quiet time before queued messages run, in milliseconds (spec `queue.md` §2).
const DEBOUNCE_MS: u64 = 1_000;
/// Longest queue (spec `queue.md` §2).
const CAP: u64 = 20;

/// What `/queue` asks for; each part may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct QueueWish {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<QueueMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) debounce_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cap: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drop: Option<QueueDrop>,
}

impl QueueWish {
    /// What a session's row has.
    fn of_session(entry: &SessionEntry) -> Self {
        Self {
            mode: entry.queue_mode.as_deref().and_then(|mode| QueueMode::parse(mode).ok()),
            debounce_ms: entry.queue_debounce_ms,
            cap: entry.queue_cap,
            drop: entry.queue_drop.as_deref().and_then(QueueDrop::parse),
        }
    }
}

/// How a message waits. Decided when it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueSettings {
    pub(crate) mode: QueueMode,
    /// Quiet time before what waits is run, in milliseconds.
    pub(crate) debounce_ms: u64,
    /// How many messages may wait; at least one.
    pub(crate) cap: u64,
    /// What overflow does.
    pub(crate) drop: QueueDrop,
}

impl QueueSettings {
    /// Each setting of the message itself, else of its session, else of its channel, else of the configuration.
    pub(crate) fn of(wish: QueueWish, own: Option<&SessionEntry>, queue: &Queue, channel: &str) -> Self {
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
