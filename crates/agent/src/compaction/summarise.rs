//! The calls of a summarising model (spec `agent-runtime.md` §10.3, §10.6).
//!
//! The number of calls is bounded by the size of the history: a part is requested once, once more
//! without its oversized messages, and each part is at least a seventh of the window.

use std::sync::Arc;

use futures_util::StreamExt;
use openclaw_config::settings::CompactionMode;
use openclaw_models::{
    CacheRetention, FailureKind, KeptRequest, ModelEvent, ModelFailure, ModelRequest, ThinkingLevel,
};
use openclaw_protocol::message::{Message, StopReason, Usage, UserMessage};
use openclaw_protocol::text_length::utf16_len;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::chunks::{by_max, dropped, is_oversized, largest, stages};
use super::conversation::serialise;
use super::plan::CompactionPlan;
use super::wording::{self, ROLE, TURN_PREFIX};
use super::{Budget, CompactionSettings};
use crate::run_model::RunModel;
use crate::text::tags::{TagRules, strip};
use crate::tokens::{message_tokens, tokens_of as tokens_of_chars};

/// Parts of the reserve that a summary, and that of a begun turn, may take.
const SUMMARY_SHARE: (u64, u64) = (4, 5);
const PREFIX_SHARE: (u64, u64) = (1, 2);
/// The part of the window that an answer may take however large the reserve is.
const ANSWER_SHARE: u64 = 4;
/// A text of more than so many windows by our estimate is not sent: no tokenizer makes it fit, and it may be of many megabytes.
const HOPELESS: u64 = 2;

/// Asks one model for summaries.
pub(super) struct Summariser<'a> {
    pub(super) model: &'a RunModel<'a>,
    pub(super) settings: &'a CompactionSettings,
    pub(super) budget: Budget,
    /// Topic on which the summary focuses.
    pub(super) focus: Option<&'a str>,
    pub(super) session_id: &'a str,
    pub(super) cancel: CancellationToken,
    /// Counts what its calls use.
    pub(super) spent: &'a Spent,
}

/// Total usage of the calls for one summary.
#[derive(Debug, Default)]
pub(super) struct Spent(Mutex<Usage>);

impl Spent {
    fn add(&self, usage: &Usage) {
        let mut sum = self.0.lock();
        sum.input += usage.input;
        sum.output += usage.output;
        sum.cache_read += usage.cache_read;
        sum.cache_write += usage.cache_write;
        sum.total_tokens += usage.total_tokens;
        sum.cost.input += usage.cost.input;
        sum.cost.output += usage.cost.output;
        sum.cost.cache_read += usage.cost.cache_read;
        sum.cost.cache_write += usage.cost.cache_write;
        sum.cost.total += usage.cost.total;
    }

    /// The sums.
    pub(super) fn sum(&self) -> Usage {
        *self.0.lock()
    }
}

/// Error of summarising.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SummaryError {
    /// The compaction was stopped.
    #[error("stopped")]
    Stopped,
    /// The model failed; what it said is for people.
    #[error("{0}")]
    Failed(String),
}

/// A summary, and whether it is worth its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HistorySummary {
    pub(super) text: String,
    /// True if a part of the summary could not be made.
    pub(super) is_lacking: bool,
}

type MessageSlice<'a> = &'a [Arc<Message>];

/// Request for one summary.
struct SummaryRequest {
    text: String,
    max_tokens: u64,
    thinking: ThinkingLevel,
}

impl Summariser<'_> {
    /// The whole summary of what a plan leaves out, without what is added to it.
    pub(super) async fn summarise(
        &self,
        plan: &CompactionPlan,
        tokens_before: u64,
    ) -> Result<HistorySummary, SummaryError> {
        match self.settings.mode {
            CompactionMode::Default => self.plain(plan).await,
            CompactionMode::Safeguard => self.safeguarded(plan, tokens_before).await,
        }
    }

    /// Summarises everything in one call; the begun turn is summarised in parallel.
    async fn plain(&self, plan: &CompactionPlan) -> Result<HistorySummary, SummaryError> {
        let previous = plan.previous_summary.as_deref();
        let history = async {
            if plan.history.is_empty() {
                return Ok(previous.map(str::to_owned));
            }
            let text = wording::ask(&serialise(&plan.history), previous, self.focus);
            self.ask(self.question(text)).await.map(Some)
        };
        let prefix = async {
            if plan.prefix.is_empty() {
                return Ok(None);
            }
            let text = wording::ask_for_prefix(&serialise(&plan.prefix));
            let (max_tokens, thinking) = (self.answer_tokens(PREFIX_SHARE), ThinkingLevel::Off);
            self.ask(SummaryRequest { text, max_tokens, thinking }).await.map(Some)
        };
        let (history, prefix) = tokio::join!(history, prefix);
        let named = |error: SummaryError, what: &str| match error {
            SummaryError::Stopped => SummaryError::Stopped,
            SummaryError::Failed(text) => SummaryError::Failed(format!("{what} failed: {text}")),
        };
        let history = history.map_err(|error| named(error, "Summarization"))?;
        let prefix = prefix.map_err(|error| named(error, "Turn prefix summarization"))?;
        let text = wording::with_turn(history.as_deref(), prefix.as_deref());
        Ok(HistorySummary { text, is_lacking: false })
    }

    /// Summarises in parts, so that each fits. A part that can't be made leaves the summary
    /// incomplete instead of failing it.
    async fn safeguarded(
        &self,
        plan: &CompactionPlan,
        tokens_before: u64,
    ) -> Result<HistorySummary, SummaryError> {
        let mut previous = plan.previous_summary.clone();
        let mut is_lacking = false;
        let dropped = self.dropped(plan, tokens_before);
        let (oldest, rest) = plan.history.split_at_checked(dropped).unwrap_or((&[], &plan.history));
        if !oldest.is_empty() {
            let made = self.in_stages(oldest, previous.as_deref(), self.focus.map(str::to_owned)).await?;
            is_lacking |= made.is_lacking;
            previous = Some(made.text);
        }
        let history = if rest.is_empty() {
            previous
        } else {
            let made = self.in_stages(rest, previous.as_deref(), self.focus.map(str::to_owned)).await?;
            is_lacking |= made.is_lacking;
            Some(made.text)
        };
        let prefix = if plan.prefix.is_empty() {
            None
        } else {
            let made = self.in_stages(&plan.prefix, None, Some(TURN_PREFIX.to_owned())).await?;
            is_lacking |= made.is_lacking;
            Some(made.text)
        };
        let text = wording::with_turn(history.as_deref(), prefix.as_deref());
        Ok(HistorySummary { text, is_lacking })
    }

    /// Returns how many of the oldest messages are summarised before the others, if those take more
    /// than their share of the window beside the new ones.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a window"
    )]
    fn dropped(&self, plan: &CompactionPlan, tokens_before: u64) -> usize {
        let share = self.budget.window as f64 * self.settings.history_share;
        let tokens = tokens_of(&plan.history);
        let old: u64 = tokens.iter().sum::<u64>() + tokens_of(&plan.prefix).iter().sum::<u64>();
        let new = tokens_before.saturating_sub(old);
        if new as f64 <= share * super::chunks::SAFETY_MARGIN {
            return 0;
        }
        let may_begin =
            |at: usize| !matches!(plan.history.get(at).map(Arc::as_ref), Some(Message::ToolResult(_)));
        dropped(&tokens, share as u64, may_begin)
    }

    /// Summarises messages; if there are many, summarises their parts first and merges the results.
    async fn in_stages(
        &self,
        messages: MessageSlice<'_>,
        previous: Option<&str>,
        focus: Option<String>,
    ) -> Result<HistorySummary, SummaryError> {
        let parts = stages(&tokens_of(messages), self.budget.window);
        if parts.len() < 2 {
            return self.guarded(messages, previous, focus.as_deref()).await;
        }
        let mut partial = Vec::new();
        let mut is_lacking = false;
        for part in parts {
            let made = self.guarded(messages.get(part).unwrap_or_default(), None, focus.as_deref()).await?;
            is_lacking |= made.is_lacking;
            partial.push(Arc::new(Message::User(UserMessage::text(made.text, 0))));
        }
        let merging = wording::merging(focus.as_deref());
        let mut merged = self.guarded(&partial, previous, Some(&merging)).await?;
        merged.is_lacking |= is_lacking;
        Ok(merged)
    }

    /// A summary whatever happens: without what is too long where the model fails, and of nothing where it fails again.
    async fn guarded(
        &self,
        messages: MessageSlice<'_>,
        previous: Option<&str>,
        focus: Option<&str>,
    ) -> Result<HistorySummary, SummaryError> {
        let why = match self.one_by_one(messages, previous, focus).await {
            Ok(text) => return Ok(HistorySummary { text, is_lacking: false }),
            Err(SummaryError::Stopped) => return Err(SummaryError::Stopped),
            Err(SummaryError::Failed(why)) => why,
        };
        let is_large = |message: &&Arc<Message>| is_oversized(message_tokens(message), self.budget.window);
        let (large, small): (Vec<_>, Vec<_>) = messages.iter().partition(is_large);
        tracing::warn!(%why, messages = messages.len(), oversized = large.len(), "a summary failed");
        if !large.is_empty() && !small.is_empty() {
            let small: Vec<Arc<Message>> = small.into_iter().cloned().collect();
            match self.one_by_one(&small, previous, focus).await {
                Ok(text) => {
                    let notes =
                        large.iter().map(|message| wording::omitted(role(message), message_tokens(message)));
                    let notes: Vec<String> = notes.collect();
                    return Ok(HistorySummary {
                        text: format!("{text}\n\n{}", notes.join("\n")),
                        is_lacking: false,
                    });
                }
                Err(SummaryError::Stopped) => return Err(SummaryError::Stopped),
                Err(SummaryError::Failed(why)) => {
                    tracing::warn!(%why, "a summary failed without the long messages")
                }
            }
        }
        let nothing = wording::too_large(messages.len(), large.len());
        let text = previous.map_or(nothing.clone(), |previous| format!("{previous}\n\n{nothing}"));
        Ok(HistorySummary { text, is_lacking: true })
    }

    /// Chunk by chunk, each with the summary of those before.
    async fn one_by_one(
        &self,
        messages: MessageSlice<'_>,
        previous: Option<&str>,
        focus: Option<&str>,
    ) -> Result<String, SummaryError> {
        let tokens = tokens_of(messages);
        let mut summary = previous.map(str::to_owned);
        for chunk in by_max(&tokens, largest(&tokens, self.budget.window)) {
            let conversation = serialise(messages.get(chunk).unwrap_or_default());
            if conversation.is_empty() {
                continue;
            }
            let text = wording::ask(&conversation, summary.as_deref(), focus);
            summary = Some(self.ask(self.question(text)).await?);
        }
        Ok(summary.unwrap_or_else(|| "No prior history.".to_owned()))
    }

    fn question(&self, text: String) -> SummaryRequest {
        SummaryRequest { text, max_tokens: self.answer_tokens(SUMMARY_SHARE), thinking: ThinkingLevel::High }
    }

    fn answer_tokens(&self, (part, of): (u64, u64)) -> u64 {
        let wanted = self.budget.reserve * part / of;
        wanted.min(self.budget.window / ANSWER_SHARE).min(self.model.model.facts().max_tokens).max(1)
    }

    /// Makes one call: without tools and without prompt caching, because the same request is not
    /// made again.
    async fn ask(&self, question: SummaryRequest) -> Result<String, SummaryError> {
        let SummaryRequest { text, max_tokens, thinking } = question;
        let tokens = tokens_of_chars(utf16_len(&text));
        if tokens > self.budget.window.saturating_mul(HOPELESS) {
            let window = self.budget.window;
            return Err(SummaryError::Failed(format!(
                "the text takes about {tokens} tokens, the model's context window holds {window}"
            )));
        }
        let reasons = self.model.model.reasons();
        let request = ModelRequest {
            system: ROLE.into(),
            messages: Arc::new(vec![Arc::new(Message::User(UserMessage::text(text, 0)))]),
            thinking: if reasons { thinking } else { ThinkingLevel::Off },
            max_tokens: Some(u32::try_from(max_tokens).unwrap_or(u32::MAX)),
            cache: CacheRetention::None,
            session_id: Some(self.session_id.to_owned()),
            kept: KeptRequest::default(),
            ..ModelRequest::default()
        };
        let mut stream = self.model.model.stream(request, self.cancel.clone());
        let mut ended = None;
        while let Some(event) = stream.next().await {
            if let ModelEvent::Done { message, failure } = event {
                ended = Some((message, failure));
                break;
            }
        }
        if self.cancel.is_cancelled() {
            return Err(SummaryError::Stopped);
        }
        let broken_off = || ModelFailure::new(FailureKind::Transient, "the model's answer broke off");
        let (message, failure) = ended.ok_or_else(|| SummaryError::Failed(broken_off().message))?;
        self.spent.add(&message.usage);
        if let Some(failure) = failure {
            return Err(SummaryError::Failed(failure.message));
        }
        if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
            return Err(SummaryError::Failed(message.error_message.unwrap_or_else(|| broken_off().message)));
        }
        let text = strip(&message.text(), TagRules { final_only: false, complete: true }).visible;
        match text.trim() {
            "" => Err(SummaryError::Failed("the model's summary is empty".to_owned())),
            text => Ok(text.to_owned()),
        }
    }
}

fn tokens_of(messages: MessageSlice<'_>) -> Vec<u64> {
    messages.iter().map(|message| message_tokens(message)).collect()
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "toolResult",
    }
}
