//! What is said to the gateway itself while a run is under way (spec `queue.md`: commands come before the queue). It is done
//! at once, one after the other, and told; its answer goes into the transcript where the run leaves room for it. All of it is
//! done before the next run begins, so that this one goes by what was said.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use crate::api::RunRecord;
use crate::job::Job;
use crate::runner::Runner;
use crate::runner::command::{self, Answer};
use crate::runner::inject::{self, Injection, RunTranscript};

/// The messages to the gateway that are not closed yet.
#[derive(Default)]
pub(super) struct Asides {
    /// Not begun.
    waiting: VecDeque<Job>,
    /// One is being done: the others wait for it.
    doing: bool,
    tasks: JoinSet<Option<AsideStep>>,
}

/// How far a message to the gateway has come.
#[derive(Debug)]
pub(super) enum AsideStep {
    /// It is done; this is the answer.
    Answered { job: Job, answer: Answer },
    /// Its answer is stored.
    Closed(RunRecord),
    /// It can't be done beside the run.
    Deferred(Job),
}

impl Asides {
    pub(super) fn push(&mut self, job: Job) {
        self.waiting.push_back(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.tasks.is_empty()
    }

    /// Writes a `chat.inject` into the transcript of the run under way.
    pub(super) fn inject(&mut self, runner: &Arc<Runner>, injection: Injection, run: RunTranscript) {
        let runner = Arc::clone(runner);
        self.tasks.spawn(async move {
            inject::work(&runner, injection, Some(run)).await;
            None
        });
    }

    /// The next step of any of them. Never when there is none; may be dropped while it waits.
    pub(super) async fn next(&mut self, runner: &Arc<Runner>) -> AsideStep {
        match self.drained(runner).await {
            Some(step) => step,
            None => std::future::pending().await,
        }
    }

    /// The same, or nothing when all are closed or left for the next start.
    pub(super) async fn drained(&mut self, runner: &Arc<Runner>) -> Option<AsideStep> {
        loop {
            if !self.doing
                && let Some(job) = self.waiting.pop_front()
            {
                self.doing = true;
                self.tasks.spawn(answer(Arc::clone(runner), job));
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
                AsideStep::Answered { .. } | AsideStep::Deferred(_) => self.doing = false,
                AsideStep::Closed(_) => {}
            }
            return Some(step);
        }
    }

    /// Stores an answer that was told.
    pub(super) fn close(
        &mut self,
        runner: &Arc<Runner>,
        job: Job,
        answer: Answer,
        run: Option<RunTranscript>,
    ) {
        let runner = Arc::clone(runner);
        self.tasks.spawn(async move {
            let closing = AssertUnwindSafe(command::close(&runner, &job.row, &answer, run)).catch_unwind();
            match closing.await {
                Ok(record) => record.map(AsideStep::Closed),
                // In its turn it panics again, and that ends it.
                Err(_) => Some(AsideStep::Deferred(Job { end_announced: true, ..job })),
            }
        });
    }
}

async fn answer(runner: Arc<Runner>, job: Job) -> Option<AsideStep> {
    job.gate.cancelled().await;
    let doing = async {
        let row = runner.load(&job.row).await.ok()?;
        command::answer_aside(&runner, &row).await
    };
    let doing = AssertUnwindSafe(doing).catch_unwind();
    let answer = tokio::select! { biased;
        () = runner.shared.kill.cancelled() => return None,
        answer = doing => answer,
    };
    Some(match answer {
        Ok(Some(answer)) => AsideStep::Answered { job, answer },
        // In its turn it panics again, and that ends it.
        Ok(None) | Err(_) => AsideStep::Deferred(job),
    })
}
