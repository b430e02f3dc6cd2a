//! Session resets: the rule in force here, [`freshness`] by that rule, [`trigger`]s in messages, and
//! the notice to people (spec `sessions.md` §5.1–5.5).

pub mod freshness;
mod notice;
pub mod trigger;

use openclaw_config::settings::{ResetRule, Session};

pub use freshness::{is_fresh, last_daily_reset};
pub use notice::notice;
pub use openclaw_config::settings::ResetMode;
pub use trigger::{ResetRequest, find_trigger};

use crate::key::SessionKey;
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
pub fn policy(session: &Session, kind: ResetType, channel: Option<&str>) -> ResetPolicy {
    let hit = channel.and_then(|name| by_channel(session, name));
    let base = hit.or(session.reset);
    let by_type = if hit.is_some() { None } else { by_type(session, kind) };
    let legacy_idle =
        session.reset.is_none() && session.reset_by_type.is_none() && session.idle_minutes.is_some();
    let implied = if hit.is_none() && legacy_idle { ResetMode::Idle } else { ResetMode::Daily };
    let [by_type, base] = [by_type, base].map(Option::unwrap_or_default);
    let mode = by_type.mode.or(base.mode).unwrap_or(implied);
    let legacy = if hit.is_some() { None } else { session.idle_minutes };
    let idle = by_type.idle_minutes.or(base.idle_minutes).or(legacy).map(whole_minutes);
    ResetPolicy {
        mode,
        at_hour: by_type.at_hour.or(base.at_hour).map_or(DEFAULT_HOUR, |hour| hour.min(23).cast_signed()),
        idle_minutes: idle.or((mode == ResetMode::Idle).then_some(DEFAULT_IDLE_MINUTES)),
    }
}

fn by_channel(session: &Session, name: &str) -> Option<ResetRule> {
    let name = name.trim().to_lowercase();
    let mut rules = session.reset_by_channel.iter();
    rules.find(|(channel, _)| channel.trim().to_lowercase() == name).map(|(_, rule)| *rule)
}

fn by_type(session: &Session, kind: ResetType) -> Option<ResetRule> {
    let rules = session.reset_by_type?;
    match kind {
        ResetType::Direct => rules.direct(),
        ResetType::Group => rules.group,
        ResetType::Thread => rules.thread,
    }
}

/// A century at most, so that sums with it do not overflow.
fn whole_minutes(minutes: u64) -> i64 {
    const CENTURY: i64 = 52_560_000;
    i64::try_from(minutes).map_or(CENTURY, |minutes| minutes.clamp(1, CENTURY))
}

#[cfg(test)]
mod tests;
