//! The gateway as the tools of one run see it: what goes to chat platforms depends on where the run was asked for.

use std::sync::Arc;

use openclaw_agent::host::{Host, HostError, HostFuture, MessageCall, MessagesHost, SessionsHost};
use serde_json::Value;

use crate::messages::turn::MessageTurn;
use crate::messages::{MessageError, perform_for_run};
use crate::runner::Runner;

/// For one run.
pub(crate) struct RunHost {
    runner: Arc<Runner>,
    turn: Arc<MessageTurn>,
}

impl RunHost {
    pub(crate) fn new(runner: Arc<Runner>, turn: Arc<MessageTurn>) -> Self {
        Self { runner, turn }
    }
}

impl Host for RunHost {
    fn sessions(&self) -> &dyn SessionsHost {
        self.runner.tool_host.sessions()
    }

    fn messages(&self) -> Option<&dyn MessagesHost> {
        Some(self)
    }
}

impl MessagesHost for RunHost {
    fn act<'a>(&'a self, call: MessageCall<'a>) -> HostFuture<'a, Value> {
        Box::pin(async move {
            perform_for_run(&self.runner, &self.turn, call).await.map_err(|error| match error {
                MessageError::Invalid(text) => HostError::Refused(text),
                MessageError::Failed(text) => HostError::Unavailable(text),
                MessageError::Stopped => HostError::Aborted,
            })
        })
    }
}
