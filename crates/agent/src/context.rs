//! Chooses how much of a branch is sent to a model. The adaptation to each provider is done by
//! [`openclaw_models::history`].

use std::num::NonZeroU32;
use std::sync::Arc;

use openclaw_protocol::message::{Message, Provenance, ProvenanceKind};

/// Text that a compaction summary begins with when it is shown to the model (spec `sessions.md`
/// §4.5).
const SUMMARY_START: &str =
    "The conversation history before this point was compacted into the following summary:";

/// The turn under way, whose `own` user messages end the branch, and the `limit` user turns before it, whole (spec `agent-runtime.md`
/// §9.5, decision 59). A compaction summary at the start is kept and not counted.
pub(crate) fn bounded(
    messages: &Arc<Vec<Arc<Message>>>,
    limit: Option<NonZeroU32>,
    own: usize,
) -> Arc<Vec<Arc<Message>>> {
    let Some(limit) = limit else { return Arc::clone(messages) };
    let summary = usize::from(messages.first().is_some_and(|first| is_summary(first)));
    let limit = limit.get() as usize;
    let turns = messages.iter().enumerate().skip(summary).rev();
    let mut starts = turns.filter_map(|(at, message)| is_said(message).then_some(at));
    let Some(start) = starts.nth((limit + own).saturating_sub(1)) else { return Arc::clone(messages) };
    let (summary, turns) = (messages.iter().take(summary), messages.iter().skip(start));
    Arc::new(summary.chain(turns).cloned().collect())
}

/// True for what somebody says to the agent; what the gateway asks by itself, such as to save memory, is no user turn.
fn is_said(message: &Message) -> bool {
    let is_gateways = |from: &Provenance| from.kind == ProvenanceKind::InternalSystem;
    matches!(message, Message::User(user) if !user.provenance.as_ref().is_some_and(is_gateways))
}

pub(crate) fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(user) if user.content.to_text().starts_with(SUMMARY_START))
}

#[cfg(test)]
mod tests;
