//! The hooks of one run: none costs nothing but a look.

use std::sync::Arc;

use openclaw_protocol::message::{Block, Message, ToolCall, ToolResultMessage};
use serde_json::Value;

use super::bus::{HookBus, ResultOrigin};
use super::payload::{AfterCompaction, AfterToolCall, BeforeCompaction, HookContext};
use super::point::HookPoint;
use crate::gateway_result::is_written_by_gateway;

/// The hooks that a run tells and asks.
#[derive(Clone, Default)]
pub struct RunHooks(Option<Arc<BoundHooks>>);

struct BoundHooks {
    bus: HookBus,
    context: HookContext,
}

impl RunHooks {
    /// No hooks.
    pub fn none() -> Self {
        Self(None)
    }

    /// Creates the hooks of a run from a bus and the context of the run.
    pub fn new(bus: HookBus, context: HookContext) -> Self {
        Self(Some(Arc::new(BoundHooks { bus, context })))
    }

    /// The bus and the place, where there are hooks.
    pub fn get(&self) -> Option<(&HookBus, &HookContext)> {
        self.0.as_deref().map(|asked| (&asked.bus, &asked.context))
    }

    fn at(&self, point: HookPoint) -> Option<&BoundHooks> {
        self.0.as_deref().filter(|asked| asked.bus.asks(point))
    }

    /// Returns true if a handler may change or refuse calls.
    pub(crate) fn ask_before_tool_calls(&self) -> bool {
        self.at(HookPoint::BeforeToolCall).is_some()
    }

    /// The arguments a tool is called with, or why it is not.
    pub(crate) async fn before_tool_call(&self, call: &ToolCall, params: Value) -> Result<Value, String> {
        let Some(asked) = self.at(HookPoint::BeforeToolCall) else { return Ok(params) };
        let gate = asked.bus.before_tool_call(&call.name, params, &asked.of_call(call)).await;
        match gate.blocked {
            Some(reason) => Err(reason),
            None => Ok(gate.params),
        }
    }

    /// Returns the copy of the arguments that [`Self::after_tool_call`] needs, because the tool
    /// consumes them.
    pub(crate) fn kept_params(&self, params: &Value) -> Option<Value> {
        self.at(HookPoint::AfterToolCall).map(|_| params.clone())
    }

    /// Tells of a call. `params` are those of [`Self::kept_params`].
    pub(crate) fn after_tool_call(
        &self,
        call: &ToolCall,
        params: Option<Value>,
        result: &ToolResultMessage,
        ms: u64,
    ) {
        let (Some(asked), Some(params)) = (self.at(HookPoint::AfterToolCall), params) else { return };
        let error = failure_of(result);
        let payload = AfterToolCall {
            tool_name: &call.name,
            params: &params,
            result: error.is_none().then_some(result.content.as_slice()),
            error: error.as_deref(),
            duration_ms: ms,
        };
        asked.bus.tell(&payload, &asked.of_call(call));
    }

    /// Tells that a summary of the conversation is about to be made.
    pub(crate) fn before_compaction(&self, payload: &BeforeCompaction) {
        if let Some((bus, context)) = self.get() {
            bus.tell(payload, context);
        }
    }

    /// Tells that a summary has taken the place of messages.
    pub(crate) fn after_compaction(&self, payload: &AfterCompaction) {
        if let Some((bus, context)) = self.get() {
            bus.tell(payload, context);
        }
    }

    /// The message in place of a tool's result; `None` where that stays as it is.
    pub(crate) async fn persisted(&self, message: &Message) -> Option<Message> {
        let Message::ToolResult(result) = message else { return None };
        let asked = self.at(HookPoint::ToolResultPersist)?;
        let origin = if is_written_by_gateway(result) { ResultOrigin::Gateway } else { ResultOrigin::Tool };
        let context = HookContext {
            tool_name: Some(result.tool_name.clone()),
            tool_call_id: Some(result.tool_call_id.clone()),
            ..asked.context.clone()
        };
        asked.bus.tool_result_persist(message, origin, &context).await
    }
}

impl BoundHooks {
    fn of_call(&self, call: &ToolCall) -> HookContext {
        HookContext {
            tool_name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            ..self.context.clone()
        }
    }
}

/// Returns the error of a failed call, in the words for the model.
fn failure_of(result: &ToolResultMessage) -> Option<String> {
    let details = result.details.as_ref();
    let told = details.filter(|details| details.get("status").is_some_and(|status| status == "error"));
    if let Some(error) = told.and_then(|details| details.get("error")?.as_str()) {
        return Some(error.to_owned());
    }
    let text = result.content.iter().find_map(|block| match block {
        Block::Text(text) => Some(text.text.clone()),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    result.is_error.then(|| text.unwrap_or_default())
}
