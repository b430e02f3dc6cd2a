//! From how a run ended to what is remembered of it.

use openclaw_agent::event::RunEnd;
use openclaw_agent::reply::{RunError, RunErrorKind};
use openclaw_agent::{Outcome, ReplyPayload, RunMeta};
use openclaw_protocol::SessionId;
use openclaw_protocol::message::Usage;
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::Json;

use crate::api::{AbortReason, RunOutcome};
use crate::global_lanes::Wait;
use crate::session_model::profile_pin::{self, Keep};

/// What people are told of a run that was stopped at the deadline its message came with.
pub(super) const DEADLINE: &str =
    "The run was stopped at its time limit. Ask for less at once, or allow more time.";

/// Why the run ran out of time, if it did: by its own limit, or by the deadline of its message.
pub(super) fn time_is_up(ended: &mut Outcome, reason: Option<AbortReason>) -> Option<String> {
    let late = match ended.end {
        RunEnd::TimedOut => true,
        RunEnd::Aborted => reason == Some(AbortReason::Timeout),
        RunEnd::Completed | RunEnd::Failed(_) => false,
    };
    let deadline = || RunError { kind: RunErrorKind::Timeout, message: DEADLINE.to_owned() };
    late.then(|| ended.meta.error.get_or_insert_with(deadline).message.clone())
}

/// The remembered outcome. `reason` is who stopped the run, if anybody did.
pub(super) fn outcome(ended: &Outcome, reason: Option<AbortReason>) -> RunOutcome {
    let result = ended.to_result();
    match &ended.end {
        RunEnd::Completed => RunOutcome::Ok { result },
        RunEnd::Failed(message) => RunOutcome::Error { message: message.clone(), result: Some(result) },
        RunEnd::TimedOut => aborted(AbortReason::Timeout, Some(result)),
        RunEnd::Aborted => aborted(reason.unwrap_or(AbortReason::Stop), Some(result)),
    }
}

/// An outcome for a run that was stopped.
pub(super) fn aborted(reason: AbortReason, result: Option<serde_json::Value>) -> RunOutcome {
    RunOutcome::Aborted { reason: reason.as_str().to_owned(), result }
}

/// What the session's row learns from a run (spec `models.md` §7: `totalTokens` is what the last call had in context, not
/// the sum over all calls).
pub(super) struct Figures {
    /// The transcript the run wrote; a row that has another one by now is left alone.
    pub(super) session_id: SessionId,
    pub(super) meta: RunMeta,
    /// What the system prompt was made of.
    pub(super) report: Option<Json>,
    pub(super) last_usage: Option<Usage>,
    /// Tokens of the conversation, where it was compacted since.
    pub(super) tokens_after: Option<u64>,
    /// Tokens the model's window holds.
    pub(super) window: u64,
    pub(super) abort: Option<AbortReason>,
    /// Unix milliseconds at which somebody said something; absent where nobody did.
    pub(super) said_at: Option<i64>,
    /// Whether the agent looked after its session by itself: that is no use of it, and no answer to whoever stopped a run.
    pub(super) is_beat: bool,
    /// The credential profile the session goes on with.
    pub(super) pin: Keep,
    /// What its row keeps of the skills it goes on with.
    pub(super) skills: Option<Json>,
}

impl Figures {
    /// Writes them into the row.
    pub(super) fn apply(&self, entry: &mut SessionEntry, now: i64) {
        if !self.is_beat {
            entry.touch(now);
            entry.aborted_last_run = Some(self.by_a_person());
        }
        // Neither does this time run backwards.
        entry.last_interaction_at = entry.last_interaction_at.max(self.said_at);
        entry.system_sent = Some(true);
        let agent = &self.meta.agent_meta;
        entry.model_provider = Some(agent.provider.as_str().into());
        entry.model = Some(agent.model.as_str().into());
        entry.context_tokens = Some(self.window);
        profile_pin::keep(entry, &self.pin);
        if entry.skills_snapshot != self.skills {
            entry.skills_snapshot.clone_from(&self.skills);
        }
        if let Some(usage) = agent.usage {
            entry.input_tokens = Some(usage.input);
            entry.output_tokens = Some(usage.output);
        }
        if let Some(total) = self.last_usage.and_then(|usage| context_fill(&usage, self.window)) {
            entry.total_tokens = Some(total);
        }
        if let Some(compactions) = agent.compaction_count {
            note_compactions(entry, compactions, self.tokens_after);
        }
        if let Some(report) = &self.report {
            entry.system_prompt_report = Some(report.clone());
        }
    }

    /// Only what a person stopped is worth a note in the next turn.
    fn by_a_person(&self) -> bool {
        self.abort.is_some_and(AbortReason::is_by_a_person)
    }
}

/// Tells who wants to know everything that the conversation was compacted.
pub(super) fn mention_compactions(ended: &mut Outcome, entry: &SessionEntry) {
    let Some(compactions) = ended.meta.agent_meta.compaction_count else { return };
    let count = entry.compaction_count.unwrap_or(0) + compactions;
    let text = format!("🧹 Auto-compaction complete (count {count}).");
    ended.payloads.insert(0, ReplyPayload { text, ..ReplyPayload::default() });
}

/// Tells who wants to know everything that a conversation began.
pub(super) fn mention_beginning(ended: &mut Outcome, id: &SessionId) {
    let text = format!("🧭 New session: {id}");
    ended.payloads.insert(0, ReplyPayload { text, ..ReplyPayload::default() });
}

/// Tells who wants to know everything that the run waited for others.
pub(super) fn mention_wait(ended: &mut Outcome, wait: Wait, lane: &str) {
    let text = match wait {
        Wait::Place(waited) => format!("⏳ Waited {} s for a free place in lane {lane}.", waited.as_secs()),
        Wait::Session(waited) => {
            format!("⏳ Waited {} s behind another run of this session.", waited.as_secs())
        }
    };
    ended.payloads.insert(0, ReplyPayload { text, ..ReplyPayload::default() });
}

/// Notes that a summary took the place of messages, so many times.
pub(super) fn note_compactions(entry: &mut SessionEntry, more: u64, tokens_after: Option<u64>) {
    entry.compaction_count = Some(entry.compaction_count.unwrap_or(0) + more);
    entry.total_tokens = tokens_after.or(entry.total_tokens);
}

/// How much of the window one call's prompt filled; `None` when nothing was counted.
fn context_fill(usage: &Usage, window: u64) -> Option<u64> {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    let filled = if prompt > 0 { prompt } else { usage.total_tokens };
    let capped = if window > 0 { filled.min(window) } else { filled };
    (capped > 0).then_some(capped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_filled_by_the_prompt_of_the_last_call() {
        let usage =
            |input, cache_read, total_tokens| Usage { input, cache_read, total_tokens, ..Usage::default() };
        let cases = [
            (usage(27, 2400, 2433), 200_000, Some(2427)),
            (usage(100, 0, 0), 0, Some(100)),
            (usage(0, 0, 5000), 4000, Some(4000)),
            (usage(0, 0, 0), 4000, None),
        ];
        for (usage, window, expected) in cases {
            assert_eq!(context_fill(&usage, window), expected, "{usage:?}");
        }
    }
}
