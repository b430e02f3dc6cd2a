//! Compacts an open transcript: summarises what is to be left out and appends one line. Until that
//! line is there, the conversation is what it was.

use std::time::Duration;

use openclaw_protocol::SessionId;
use openclaw_protocol::message::Usage;
use openclaw_sessions::transcript::Compaction;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::plan::{CompactionPlan, Nothing, Range, Urgency, plan, shorten};
use super::summarise::{HistorySummary, Spent, Summariser, SummaryError};
use super::{Budget, CompactionSettings, wording};
use crate::event::RunEvent;
use crate::hooks::RunHooks;
use crate::hooks::payload::{AfterCompaction, BeforeCompaction};
use crate::run_model::RunModel;
use crate::stop::StopGuard;
use crate::tokens::context_tokens;
use crate::transcript::{Transcript, TranscriptError};

/// A compaction outside of a run takes no longer.
const TIME_LIMIT: Duration = Duration::from_secs(10 * 60);
/// Number of times an incomplete summary is requested again, each time with another credential or
/// model.
const ANOTHER: usize = 1;

/// Parameters of a compaction.
#[derive(Clone, Copy)]
pub struct Compacting<'a> {
    /// The session's transcript.
    pub session_id: &'a SessionId,
    /// Candidate models for the summaries in order of preference, never empty. The first is the
    /// model whose window counts.
    pub models: &'a [RunModel<'a>],
    /// Settings: how much is kept, and in how many parts the rest is summarised.
    pub settings: &'a CompactionSettings,
    /// Tokens of what comes besides the messages: the system prompt and the tools.
    pub fixed_tokens: u64,
    /// Topic on which the summary focuses.
    pub focus: Option<&'a str>,
    /// Hooks to call before and after.
    pub hooks: &'a RunHooks,
}

/// Result of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Compacted {
    /// The conversation was compacted.
    Done {
        /// Tokens before.
        before: u64,
        /// Tokens now, by estimate; absent where that says that there are more than before.
        after: Option<u64>,
        /// Usage of the calls for the summary.
        usage: Usage,
    },
    /// No compaction is needed or possible.
    Nothing(Nothing),
}

/// Reason why the conversation was not compacted.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The compaction was stopped.
    #[error("stopped")]
    Stopped,
    /// No candidate could summarise the messages. The text is for people.
    #[error("{0}")]
    Summary(String),
    /// The transcript can't be read or written.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
}

/// Compacts outside of a run, with its events: nothing is asked anew behind it.
///
/// # Errors
/// When the conversation is as it was.
pub async fn compact(
    compacting: Compacting<'_>,
    transcript: &mut dyn Transcript,
    cancel: CancellationToken,
    events: &mpsc::Sender<RunEvent>,
) -> Result<Compacted, CompactError> {
    let mut stop = StopGuard::new(cancel, Some(TIME_LIMIT));
    let plan = match compacting.plan(transcript, Urgency::CanWait).await? {
        Ok(plan) => plan,
        Err(nothing) => return Ok(Compacted::Nothing(nothing)),
    };
    // A missing listener is no reason to stop.
    let _ = events.send(RunEvent::CompactionStart).await;
    let compacted = compacting.carry_out(&plan, transcript, Urgency::CanWait, &mut stop).await;
    let _ = events.send(RunEvent::CompactionEnd { will_retry: false }).await;
    compacted
}

impl<'a> Compacting<'a> {
    /// Plans which messages are summarised.
    pub(crate) async fn plan(
        &self,
        transcript: &mut dyn Transcript,
        urgency: Urgency,
    ) -> Result<Result<CompactionPlan, Nothing>, TranscriptError> {
        Ok(plan(&Range::of(&transcript.view().await?), &self.budget(), urgency))
    }

    /// Plans which results are shortened if every message is kept.
    pub(crate) async fn plan_to_shorten(
        &self,
        transcript: &mut dyn Transcript,
    ) -> Result<Result<CompactionPlan, Nothing>, TranscriptError> {
        Ok(shorten(&Range::of(&transcript.view().await?), &self.budget()).ok_or(Nothing::TooSmall))
    }

    /// Makes a summary take the place of what a plan leaves out.
    pub(crate) async fn carry_out(
        &self,
        plan: &CompactionPlan,
        transcript: &mut dyn Transcript,
        urgency: Urgency,
        stop: &mut StopGuard,
    ) -> Result<Compacted, CompactError> {
        let before = context_tokens(transcript.context(), self.fixed_tokens);
        if plan.leaves_out_nothing() {
            let summary =
                plan.previous_summary.clone().unwrap_or_else(|| wording::NOTHING_LEFT_OUT.to_owned());
            let after = self.append(transcript, plan, plan.entry(summary, before), before).await?;
            return Ok(Compacted::Done { before, after, usage: Usage::default() });
        }
        let message_count = transcript.context().len();
        self.hooks.before_compaction(&BeforeCompaction { message_count, token_count: Some(before) });
        let spent = Spent::default();
        let summary = self.summary(plan, before, urgency, &spent, stop).await?;
        let usage = spent.sum();
        let entry = self.with_usage(plan.entry(summary, before), &usage);
        let after = self.append(transcript, plan, entry, before).await?;
        self.hooks.after_compaction(&AfterCompaction {
            message_count: transcript.context().len(),
            token_count: after,
            compacted_count: plan.summarised().count(),
        });
        Ok(Compacted::Done { before, after, usage })
    }

    /// Notes what the summary has cost, where it is known, for the reports about the session's usage.
    fn with_usage(&self, mut entry: Compaction, usage: &Usage) -> Compaction {
        let known = (*usage != Usage::default()).then(|| serde_json::to_value(usage).ok()).flatten();
        if let (Some(Value::Object(mut usage)), Some(model)) = (known, self.models.first())
            && let Some(Value::Object(details)) = &mut entry.details
        {
            usage.insert("provider".to_owned(), model.model.provider().into());
            usage.insert("model".to_owned(), model.model.id().into());
            details.insert(Compaction::USAGE.to_owned(), usage.into());
        }
        entry
    }

    fn budget(&self) -> Budget {
        Budget::new(self.settings, self.models.first().map_or(0, |model| model.model.context_window()))
    }

    async fn append(
        &self,
        transcript: &mut dyn Transcript,
        plan: &CompactionPlan,
        entry: Compaction,
        before: u64,
    ) -> Result<Option<u64>, CompactError> {
        transcript.compact(entry).await?;
        let after =
            Some(context_tokens(transcript.context(), self.fixed_tokens)).filter(|after| *after <= before);
        tracing::info!(
            before,
            after,
            summarised = plan.history.len() + plan.prefix.len(),
            kept_tokens = plan.kept_tokens,
            results_up_to = plan.results_up_to,
            "compacted the conversation"
        );
        Ok(after)
    }

    /// The summary with all that belongs to it.
    async fn summary(
        &self,
        plan: &CompactionPlan,
        before: u64,
        urgency: Urgency,
        spent: &Spent,
        stop: &mut StopGuard,
    ) -> Result<String, CompactError> {
        let mut found: Option<Result<HistorySummary, String>> = None;
        for model in self.askable() {
            let summariser = Summariser {
                model,
                settings: self.settings,
                budget: Budget::new(self.settings, model.model.context_window()),
                focus: self.focus,
                session_id: self.session_id.as_str(),
                cancel: stop.token().clone(),
                spent,
            };
            let made = stop.guard(summariser.summarise(plan, before)).await;
            match made {
                _ if stop.cause().is_some() => return Err(CompactError::Stopped),
                None | Some(Err(SummaryError::Stopped)) => return Err(CompactError::Stopped),
                Some(Ok(summary)) if !summary.is_lacking => return Ok(self.whole(plan, &summary.text)),
                Some(Ok(summary)) => found = Some(Ok(summary)),
                Some(Err(SummaryError::Failed(why))) => {
                    tracing::warn!(model = model.model.id(), %why, "a conversation could not be summarised");
                    found.get_or_insert(Err(why));
                }
            }
        }
        match (found, urgency) {
            (Some(Ok(summary)), Urgency::Overflow { .. }) => Ok(self.whole(plan, &summary.text)),
            (Some(Err(_)) | None, Urgency::Overflow { .. }) if self.is_safeguarded() => {
                Ok(self.whole(plan, wording::UNAVAILABLE))
            }
            (Some(Err(why)), _) => Err(CompactError::Summary(why)),
            (Some(Ok(_)) | None, _) => {
                Err(CompactError::Summary("Summarization failed: no model could make the summary".to_owned()))
            }
        }
    }

    /// The first model, and one that does not share its credential, or is another one.
    fn askable(&self) -> impl Iterator<Item = &RunModel<'a>> {
        let first = self.models.first();
        let called = |model: &RunModel<'a>| (model.credential, model.model.id(), model.model.provider());
        let is_other = move |model: &&RunModel<'a>| first.map(called) != Some(called(model));
        first.into_iter().chain(self.models.iter().skip(1).filter(is_other).take(ANOTHER))
    }

    fn is_safeguarded(&self) -> bool {
        self.settings.mode == openclaw_config::settings::CompactionMode::Safeguard
    }

    fn whole(&self, plan: &CompactionPlan, summary: &str) -> String {
        format!("{summary}{}", plan.appendix(self.is_safeguarded()))
    }
}
