//! Request of a run to a model, independent of any provider.

use std::borrow::Cow;
use std::sync::Arc;

use openclaw_protocol::message::Message;

use crate::cache_retention::CacheRetention;
use crate::kept_request::KeptRequest;
use crate::thinking::ThinkingLevel;
use crate::tool_schema::ToolSchema;

/// Request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The system prompt, whole.
    pub system: Arc<str>,
    /// The context, oldest first, as the transcript has it: a [`Model`](crate::Model) makes it fit for itself (see
    /// [`history`](crate::history)).
    pub messages: Arc<Vec<Arc<Message>>>,
    /// Tools in the order they are offered.
    pub tools: Arc<[ToolSpec]>,
    /// Requested thinking level; clamped to what the model can do.
    pub thinking: ThinkingLevel,
    /// Output cap in tokens; absent takes `min(model.maxTokens, 32000)`.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Prompt caching.
    pub cache: CacheRetention,
    /// Session id of ours: cache key and session header where a provider has one.
    pub session_id: Option<String>,
    /// Previous request in the same conversation.
    pub kept: KeptRequest,
}

/// A tool as offered to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Name, exact.
    pub name: Cow<'static, str>,
    /// Description of the tool for the model.
    pub description: Cow<'static, str>,
    /// JSON Schema of the arguments: an object schema.
    pub parameters: ToolSchema,
}

#[cfg(test)]
impl ModelRequest {
    /// Returns the request as a client with this rule of ids makes it fit for a model.
    pub(crate) fn prepared_for(
        &self,
        spec: &crate::model_spec::ModelSpec,
        ids: crate::history::IdRule,
    ) -> Self {
        let messages = crate::history::prepare(self.messages.to_vec(), &spec.history_rules(ids));
        Self { messages: messages.into(), ..self.clone() }
    }
}
