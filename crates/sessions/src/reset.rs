//! When a conversation starts anew: the rule in force here, [`freshness`] by it, [`trigger`]s, [`authority`] to use them,
//! and what is said of it (spec `sessions.md` §5.1–5.5).

pub mod authority;
pub mod freshness;
mod notice;
pub mod trigger;

use serde::{Deserialize, Serialize};

pub use freshness::{is_fresh, last_daily_reset};
pub use notice::notice;
pub use trigger::{ResetRequest, find_trigger};

use crate::key::SessionKey;
use crate::settings::ByName;

/// `session.reset`, `resetByType`, `resetByChannel` and the legacy `idleMinutes`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResetSettings {
    /// `session.reset`
    pub reset: Option<ResetRule>,
    /// `session.resetByType`
    pub reset_by_type: Option<ResetByType>,
    /// `session.resetByChannel`
    pub reset_by_channel: ByName<ResetRule>,
    /// `session.idleMinutes`
    pub idle_minutes: Option<f64>,
}

/// One reset rule as configured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResetRule {
    /// Daily or idle.
    pub mode: Option<ResetMode>,
    /// Hour of the host's local day.
    pub at_hour: Option<f64>,
    /// Minutes without a message.
    pub idle_minutes: Option<f64>,
}

/// `session.resetByType`
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResetByType {
    /// Direct chats.
    pub direct: Option<ResetRule>,
    /// Old name of `direct`.
    pub dm: Option<ResetRule>,
    /// Groups and rooms.
    pub group: Option<ResetRule>,
    /// Threads and topics.
    pub thread: Option<ResetRule>,
}

/// How a conversation goes stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetMode {
    /// At an hour of the day.
    Daily,
    /// After some minutes of silence.
    Idle,
}

/// Kinds of conversations that rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetType {
    /// A direct chat.
    Direct,
    /// A group or room.
    Group,
    /// A thread or topic.
    Thread,
}

impl ResetType {
    /// The kind of a conversation, from its key and what the inbound context says.
    pub fn of(key: &SessionKey, context_is_thread: bool, context_is_group: bool) -> Self {
        if context_is_thread || key.is_thread() {
            Self::Thread
        } else if context_is_group || key.is_group() {
            Self::Group
        } else {
            Self::Direct
        }
    }
}

/// The rule in force for one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetPolicy {
    /// Daily or idle.
    pub mode: ResetMode,
    /// Hour of the host's local day, 0 to 23; used with [`ResetMode::Daily`].
    pub at_hour: i8,
    /// Minutes of silence; may hold beside the daily hour.
    pub idle_minutes: Option<i64>,
}

const DEFAULT_HOUR: i8 = 4;
const DEFAULT_IDLE_MINUTES: i64 = 60;

/// The rule for a conversation of a kind on a channel.
pub fn policy(settings: &ResetSettings, kind: ResetType, channel: Option<&str>) -> ResetPolicy {
    let hit = channel.and_then(|name| by_channel(settings, name));
    let base = hit.copied().or(settings.reset);
    let by_type = if hit.is_some() { None } else { by_type(settings, kind) };
    let pick = |field: fn(&ResetRule) -> Option<f64>| {
        by_type.as_ref().and_then(field).or(base.as_ref().and_then(field))
    };
    let legacy_idle =
        settings.reset.is_none() && settings.reset_by_type.is_none() && settings.idle_minutes.is_some();
    let implied = if hit.is_none() && legacy_idle { ResetMode::Idle } else { ResetMode::Daily };
    let mode = by_type.and_then(|rule| rule.mode).or(base.and_then(|rule| rule.mode)).unwrap_or(implied);
    let legacy = if hit.is_some() { None } else { settings.idle_minutes };
    let idle = pick(|rule| rule.idle_minutes).or(legacy).map(whole_minutes);
    let idle = idle.or((mode == ResetMode::Idle).then_some(DEFAULT_IDLE_MINUTES));
    ResetPolicy {
        mode,
        at_hour: pick(|rule| rule.at_hour).map_or(DEFAULT_HOUR, whole_hour),
        idle_minutes: idle,
    }
}

fn by_channel<'a>(settings: &'a ResetSettings, name: &str) -> Option<&'a ResetRule> {
    let name = name.trim().to_lowercase();
    settings
        .reset_by_channel
        .iter()
        .find(|(channel, _)| channel.trim().to_lowercase() == name)
        .map(|(_, rule)| rule)
}

fn by_type(settings: &ResetSettings, kind: ResetType) -> Option<ResetRule> {
    let rules = settings.reset_by_type?;
    match kind {
        ResetType::Direct => rules.direct.or(rules.dm),
        ResetType::Group => rules.group,
        ResetType::Thread => rules.thread,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to a range that fits")]
fn whole_hour(hour: f64) -> i8 {
    if hour.is_finite() { hour.floor().clamp(0.0, 23.0) as i8 } else { DEFAULT_HOUR }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to a range that fits")]
fn whole_minutes(minutes: f64) -> i64 {
    const CENTURY: f64 = 52_560_000.0;
    if minutes.is_finite() { minutes.floor().clamp(1.0, CENTURY) as i64 } else { DEFAULT_IDLE_MINUTES }
}

#[cfg(test)]
mod tests;
