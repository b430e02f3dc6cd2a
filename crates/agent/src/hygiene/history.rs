//! How much history a direct chat sends (spec `agent-runtime.md` §9.5).

use std::num::NonZeroU32;

use openclaw_protocol::message::Message;

/// How a compaction summary begins when it is shown to the model (spec `sessions.md` §4.5).
pub const SUMMARY_START: &str =
    "The conversation history before this point was compacted into the following summary:";

/// Keeps the last `limit` user turns whole. A compaction summary at the start is kept and not counted.
pub fn keep_last_turns(mut messages: Vec<Message>, limit: NonZeroU32) -> Vec<Message> {
    let summary = usize::from(messages.first().is_some_and(is_summary));
    let limit = limit.get() as usize;
    let turns: Vec<usize> = messages
        .iter()
        .enumerate()
        .skip(summary)
        .filter_map(|(at, message)| matches!(message, Message::User(_)).then_some(at))
        .collect();
    let Some(start) = turns.len().checked_sub(limit).and_then(|at| turns.get(at)) else { return messages };
    messages.drain(summary..*start);
    messages
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.content.to_text().starts_with(SUMMARY_START))
}

/// The channel and peer of a direct chat's session key, thread and topic suffixes aside: what
/// `channels.<channel>.dms.<peer>.historyLimit` and `channels.<channel>.dmHistoryLimit` are looked up with. `None` for
/// every other kind of session.
pub fn direct_peer(session_key: &str) -> Option<(&str, &str)> {
    let rest = match session_key.strip_prefix("agent:") {
        Some(tail) => tail.split_once(':')?.1,
        None => session_key,
    };
    let (channel, tail) = rest.split_once(':')?;
    let (kind, peer) = tail.split_once(':')?;
    if channel.is_empty() || !(kind.eq_ignore_ascii_case("dm") || kind.eq_ignore_ascii_case("direct")) {
        return None;
    }
    let peer = [":thread:", ":topic:"]
        .iter()
        .find_map(|mark| peer.rfind(mark).and_then(|at| peer.get(..at)))
        .unwrap_or(peer);
    (!peer.is_empty()).then_some((channel, peer))
}

/// The limit in effect: the peer's own when it is set (zero or less turns it off), else the channel's.
pub fn effective_limit(peer_limit: Option<i64>, channel_limit: Option<i64>) -> Option<NonZeroU32> {
    let value = peer_limit.or(channel_limit)?;
    u32::try_from(value).ok().and_then(NonZeroU32::new)
}
