//! Record of a run, made from its end.

use openclaw_agent::event::RunEnd;
use openclaw_agent::reply::{RunError, RunErrorKind};
use openclaw_agent::{Outcome, ReplyPayload, RunMeta};
use openclaw_journal::api::{AbortReason, RunOutcome, TIME_IS_UP};
use openclaw_journal::run_result::RunResult;
use openclaw_protocol::SessionId;
use openclaw_protocol::message::Usage;
use openclaw_runtime::global_lanes::RunWait;
use openclaw_runtime::session_model::profile_pin::{self, Keep};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::Json;

/// Returns the reason if the run ran out of time: its own limit, or the deadline of its message.
pub(super) fn time_is_up(ended: &mut Outcome, reason: Option<AbortReason>) -> Option<String> {
    let late = match ended.end {
        RunEnd::TimedOut => true,
        RunEnd::Aborted => reason == Some(AbortReason::Timeout),
        RunEnd::Completed | RunEnd::Failed(_) => false,
    };
    let deadline = || RunError { kind: RunErrorKind::Timeout, message: TIME_IS_UP.to_owned() };
    late.then(|| ended.meta.error.get_or_insert_with(deadline).message.clone())
}

/// Makes a run whose answer came too late end as its clients were told: stopped.
pub(super) fn stopped_as_told(ended: &mut Outcome) {
    if ended.end == RunEnd::Completed {
        ended.end = RunEnd::Aborted;
        ended.meta.aborted = true;
    }
}

/// Makes a run that was stopped at a message behind a whole answer end with that answer: to its own
/// message, and to the first `said_to` of those that were steered in. Returns the answer's text.
pub(super) fn end_with_answer(ended: &mut Outcome, said_to: usize) -> String {
    ended.end = RunEnd::Completed;
    ended.meta.aborted = false;
    ended.payloads.retain(|payload| payload.said_to <= said_to);
    ended.payloads.last().map(|payload| payload.text.clone()).unwrap_or_default()
}

/// Returns the outcome that is stored. `reason` names the source of a stop, if there was one.
pub(super) fn outcome(ended: &Outcome, reason: Option<AbortReason>) -> RunOutcome {
    let result = RunResult::of(ended);
    match &ended.end {
        RunEnd::Completed => RunOutcome::Ok { result },
        RunEnd::Failed(message) => RunOutcome::Error { message: message.clone(), result: Some(result) },
        RunEnd::TimedOut => aborted(AbortReason::Timeout, Some(result)),
        RunEnd::Aborted => aborted(reason.unwrap_or(AbortReason::Stop), Some(result)),
    }
}

/// An outcome for a run that was stopped.
pub(super) fn aborted(reason: AbortReason, result: Option<RunResult>) -> RunOutcome {
    RunOutcome::Aborted { reason: reason.as_str().to_owned(), result }
}

/// Figures that the session's row learns from a run (spec `models.md` §7: `totalTokens` is what the
/// last call had in context, not the sum over all calls).
pub(super) struct Figures {
    /// The transcript the run wrote; a row that has another one by now is left alone.
    pub(super) session_id: SessionId,
    pub(super) meta: RunMeta,
    /// Parts that the system prompt was made of.
    pub(super) report: Option<Json>,
    pub(super) last_usage: Option<Usage>,
    /// Tokens of the conversation, if it was compacted since.
    pub(super) tokens_after: Option<u64>,
    /// Tokens the model's window holds.
    pub(super) window: u64,
    pub(super) abort: Option<AbortReason>,
    /// Time at which somebody said something, in Unix milliseconds; `None` if nobody did.
    pub(super) said_at: Option<i64>,
    /// True for a heartbeat: it counts neither as a use of the session, nor as an answer to a
    /// person who stopped a run.
    pub(super) is_beat: bool,
    /// The credential profile the session goes on with.
    pub(super) pin: Keep,
    /// Skills that its row keeps, with which it goes on.
    pub(super) skills: Option<Json>,
    /// True for a sub-agent: its row has the tokens of all its runs, also of the one that words its result.
    pub(super) adds_up: bool,
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
            let before = |tokens: Option<u64>| tokens.filter(|_| self.adds_up).unwrap_or(0);
            entry.input_tokens = Some(before(entry.input_tokens).saturating_add(usage.input));
            entry.output_tokens = Some(before(entry.output_tokens).saturating_add(usage.output));
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

    /// True if a person stopped the run: only that is worth a note in the next turn.
    fn by_a_person(&self) -> bool {
        self.abort.is_some_and(AbortReason::is_by_a_person)
    }
}

/// The line about a compaction, of so many of the conversation.
pub(super) fn compacted(count: u64) -> String {
    format!("🧹 Auto-compaction complete (count {count}).")
}

/// Adds a note that the conversation was compacted, for chats that are told everything.
pub(super) fn mention_compactions(ended: &mut Outcome, entry: &SessionEntry) {
    let Some(compactions) = ended.meta.agent_meta.compaction_count else { return };
    let count = entry.compaction_count.unwrap_or(0) + compactions;
    let text = compacted(count);
    ended.payloads.insert(0, ReplyPayload { text, ..ReplyPayload::default() });
}

/// Adds a note that a conversation began, for chats that are told everything.
pub(super) fn mention_beginning(ended: &mut Outcome, id: &SessionId) {
    let text = format!("🧭 New session: {id}");
    ended.payloads.insert(0, ReplyPayload { text, ..ReplyPayload::default() });
}

/// Adds a note that the run waited for others, for chats that are told everything.
pub(super) fn mention_wait(ended: &mut Outcome, wait: RunWait, lane: &str) {
    let text = match wait {
        RunWait::Place(waited) => {
            format!("⏳ Waited {} s for a free place in lane {lane}.", waited.as_secs())
        }
        RunWait::Session(waited) => {
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

/// Returns the tokens of the window that one call's prompt filled; `None` if nothing was counted.
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
