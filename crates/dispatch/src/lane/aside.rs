//! Work beside the run under way (spec `queue.md`: commands come before the queue). Commands and
//! settings are done at once, one after the other; the answer of a command is told, and goes into
//! the transcript where the run leaves room for it. All of this is done before the next run begins,
//! so that the next run goes by it.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use openclaw_journal::api::RunRecord;
use openclaw_journal::job::Job;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::change::{ChangeKind, SessionChange};
use openclaw_runs::command::{AsideAnswers, GatewayAnswer, GatewayCommands};
use openclaw_runs::inject::{RunBeside, RunTranscript};
use openclaw_runs::session::MessageConversations;
use openclaw_runs::stored_messages::StoredMessages;

/// One piece of work beside a run.
pub(super) enum Aside {
    /// A message to the gateway.
    Message(Job),
    /// A change of somebody else's.
    Change(SessionChange),
}

/// Work beside the run that is not over yet.
#[derive(Default)]
pub(super) struct Asides {
    /// Work that has not begun.
    waiting: VecDeque<(Aside, Option<RunBeside>)>,
    /// True if one is being done: the others wait for it.
    doing: bool,
    /// Cancelled once something waits for those that are being done or are not begun.
    overtaken: CancellationToken,
    /// Cancelled once the words that came last are written, or given up.
    words: Option<CancellationToken>,
    tasks: JoinSet<Option<AsideStep>>,
}

/// Progress of a message to the gateway.
#[derive(Debug)]
pub(super) enum AsideStep {
    /// Done, with this answer.
    Answered { job: Job, answer: GatewayAnswer },
    /// The answer is stored.
    Closed(RunRecord),
    /// The message can't be done beside the run.
    Deferred(Job),
    /// The settings are changed.
    Changed,
}

/// Parts for messages and changes beside a run.
pub(crate) struct AsideParts {
    pub(crate) messages: Arc<StoredMessages>,
    pub(crate) conversations: Arc<MessageConversations>,
    pub(crate) answers: Arc<AsideAnswers>,
    pub(crate) commands: Arc<GatewayCommands>,
    /// Cancelled when runs stop where they are.
    pub(crate) kill: CancellationToken,
}

impl Asides {
    pub(super) fn push(&mut self, aside: Aside, run: Option<RunBeside>) {
        if self.is_empty() {
            self.overtaken = CancellationToken::new();
        } else {
            self.overtake();
        }
        match aside {
            // A tool call may keep them waiting: the others go on. Among themselves they keep their order.
            Aside::Change(change) if change.kind == ChangeKind::Words => {
                let before = self.words.take().filter(|before| !before.is_cancelled());
                let done = CancellationToken::new();
                self.words = Some(done.clone());
                let done = done.drop_guard();
                self.tasks.spawn(async move {
                    if let Some(before) = before {
                        before.cancelled().await;
                    }
                    change.begin(run).cancelled().await;
                    drop(done);
                    None
                });
            }
            aside @ (Aside::Message(_) | Aside::Change(_)) => self.waiting.push_back((aside, run)),
        }
    }

    /// Tells them that something waits for them, so that none of them waits longer than it has to.
    pub(super) fn overtake(&self) {
        self.overtaken.cancel();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.tasks.is_empty()
    }

    /// Returns the next step of any of them. Never returns if there is none; may be dropped while
    /// it waits.
    pub(super) async fn next(&mut self, parts: &Arc<AsideParts>) -> AsideStep {
        match self.drained(parts).await {
            Some(step) => step,
            None => std::future::pending().await,
        }
    }

    /// Returns the next step, or `None` when all are closed or left for the next start.
    pub(super) async fn drained(&mut self, parts: &Arc<AsideParts>) -> Option<AsideStep> {
        loop {
            if !self.doing
                && let Some((aside, run)) = self.waiting.pop_front()
            {
                self.doing = true;
                self.tasks.spawn(perform(Arc::clone(parts), aside, run, self.overtaken.clone()));
            }
            let step = match self.tasks.join_next().await? {
                Ok(Some(step)) => step,
                // Words are injected; or the gateway goes down, and the next start does it again.
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(%error, "an answer could not be stored");
                    continue;
                }
            };
            match &step {
                AsideStep::Answered { .. } | AsideStep::Deferred(_) | AsideStep::Changed => {
                    self.doing = false
                }
                AsideStep::Closed(_) => {}
            }
            return Some(step);
        }
    }

    /// Stores an answer that was told.
    pub(super) fn close(
        &mut self,
        parts: &Arc<AsideParts>,
        job: Job,
        answer: GatewayAnswer,
        run: Option<RunTranscript>,
    ) {
        let parts = Arc::clone(parts);
        self.tasks.spawn(async move {
            let closing = AssertUnwindSafe(parts.commands.close(&job.row, &answer, run)).catch_unwind();
            match closing.await {
                Ok(record) => record.map(AsideStep::Closed),
                // In its turn it panics again, and that ends it.
                Err(_) => Some(AsideStep::Deferred(Job { end_announced: true, ..job })),
            }
        });
    }
}

async fn perform(
    parts: Arc<AsideParts>,
    aside: Aside,
    run: Option<RunBeside>,
    overtaken: CancellationToken,
) -> Option<AsideStep> {
    match aside {
        Aside::Message(job) => answer(parts, job, run, &overtaken).await,
        Aside::Change(change) => {
            change.begin(run).cancelled().await;
            Some(AsideStep::Changed)
        }
    }
}

async fn answer(
    parts: Arc<AsideParts>,
    job: Job,
    run: Option<RunBeside>,
    overtaken: &CancellationToken,
) -> Option<AsideStep> {
    job.gate.cancelled().await;
    let doing = async {
        // A run that begins the conversation comes before its answer.
        if let Some(run) = run
            && !parts.conversations.is_in_current(&run.row).await
        {
            return None;
        }
        let row = parts.messages.load(&job.row).await.ok()?;
        parts.answers.answer_aside(&row, overtaken).await
    };
    let doing = AssertUnwindSafe(doing).catch_unwind();
    let answer = tokio::select! { biased;
        () = parts.kill.cancelled() => return None,
        answer = doing => answer,
    };
    Some(match answer {
        Ok(Some(answer)) => AsideStep::Answered { job, answer },
        // In its turn it panics again, and that ends it.
        Ok(None) | Err(_) => AsideStep::Deferred(job),
    })
}
