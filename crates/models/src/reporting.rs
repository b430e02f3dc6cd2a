//! A model that tells the ledger how the profile it is called with does (spec `models.md` §8.5, §9.2).

use futures_util::StreamExt as _;
use openclaw_protocol::message::StopReason;
use tokio_util::sync::CancellationToken;

use crate::credentials::{Ledger, ProfileAccount};
use crate::request::ModelRequest;
use crate::stream::{FailureKind, Model, ModelEvent, ModelFacts, ModelStream};

/// Reports the outcome of calls for a profile.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    pub(crate) ledger: Ledger,
    pub(crate) account: ProfileAccount,
}

impl Reporter {
    pub(crate) fn failed(&self, kind: FailureKind) {
        self.ledger.failed(&self.account, kind);
    }

    fn hear(&self, event: &ModelEvent) {
        match event {
            ModelEvent::Done { failure: Some(failure), .. } => self.failed(failure.kind),
            ModelEvent::Done { message, failure: None } => match message.stop_reason {
                StopReason::Stop | StopReason::Length | StopReason::ToolUse => {
                    self.ledger.answered(&self.account)
                }
                // A call that we cut off has neither answered nor failed.
                StopReason::Aborted | StopReason::Error => {}
            },
            ModelEvent::Start
            | ModelEvent::Retry { .. }
            | ModelEvent::TextDelta { .. }
            | ModelEvent::ThinkingDelta { .. }
            | ModelEvent::ToolCallStart { .. } => {}
        }
    }
}

/// The model, reported on.
pub(crate) struct Reported<M> {
    pub(crate) model: M,
    pub(crate) reporter: Reporter,
}

impl<M: Model> Model for Reported<M> {
    fn facts(&self) -> ModelFacts<'_> {
        self.model.facts()
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ModelStream {
        let reporter = self.reporter.clone();
        Box::pin(self.model.stream(request, cancel).inspect(move |event| reporter.hear(event)))
    }
}
