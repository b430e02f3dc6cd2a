//! Messages to chat platforms, for the tools of one run: their place depends on the conversation in
//! which the run was asked for.

use openclaw_agent::host::{HostError, HostFuture, MessageCall, MessagesHost};
use serde_json::Value;

use super::ToolHost;
use openclaw_runtime::messages::{MessageError, perform_for_run};

impl MessagesHost for ToolHost {
    fn act<'a>(&'a self, call: MessageCall<'a>) -> HostFuture<'a, Value> {
        Box::pin(async move {
            perform_for_run(&*self.tools().actions, &self.run.turn, call).await.map_err(|error| match error {
                MessageError::Invalid(text) => HostError::Refused(text),
                MessageError::Failed(text) => HostError::Unavailable(text),
                MessageError::Stopped => HostError::Aborted,
            })
        })
    }
}
