//! Tests the abilities of a model by asking it to use them.

use std::path::Path;
use std::time::Duration;

use openclaw_protocol::message::{Block, ImageBlock, Message, UserContent, UserMessage};
use serde_json::json;

use super::listing::sees;
use super::{Found, Tried};
use crate::credentials::AgentFlag;
use crate::model_spec::ModelSpec;
use crate::probe::{Probe, Probed};
use crate::request::{ModelRequest, ToolSpec};
use crate::select::Models;
use crate::settings::ModelSettings;
use openclaw_config::clock::now_ms;

/// Caps of the answers, in tokens: enough for a model that thinks before it acts.
const MOST_TOKENS: u32 = 256;
/// Image of a single grey pixel.
const PIXEL_PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

/// Tries tools, and images where the list says that it takes them.
pub(super) async fn try_one(
    models: &Models,
    settings: &ModelSettings,
    agent_dir: &Path,
    spec: &ModelSpec,
    model: &mut Found,
    deadline: Duration,
) {
    let mut spec = spec.clone();
    spec.images = sees(model.modality.as_deref());
    spec.context_window = model.context_length.or(spec.context_window);
    let ask = async |request: ModelRequest| {
        let (spec, agent) = (spec.clone(), AgentFlag::of_default(settings));
        let probe = Probe { agent_dir, agent, spec, profile: None, request, deadline };
        models.probe(settings, probe).await
    };
    model.tool = outcome(ask(tool_question()).await, |blocks| {
        let called = blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
        called.then_some(()).ok_or("No tool call returned")
    });
    if spec.images {
        model.image = outcome(ask(image_question()).await, |_| Ok(()));
    }
}

fn outcome(probed: Probed, check: impl Fn(&[Block]) -> Result<(), &'static str>) -> Tried {
    let latency_ms = Some(probed.latency_ms);
    let error = match probed.answer {
        Ok(message) => check(&message.content).err().map(str::to_owned),
        Err(error) => Some(error.message),
    };
    Tried { ok: error.is_none(), latency_ms, error, skipped: false }
}

fn tool_question() -> ModelRequest {
    let ping = ToolSpec {
        name: "ping".into(),
        description: "Return OK.".into(),
        parameters: json!({ "type": "object", "properties": {} }).into(),
    };
    let text = "Call the ping tool with {} and nothing else.";
    question(Message::User(UserMessage::text(text, now_ms())), vec![ping])
}

fn image_question() -> ModelRequest {
    let pixel =
        ImageBlock { data: PIXEL_PNG.to_owned(), mime_type: "image/png".to_owned(), ..ImageBlock::default() };
    let blocks = vec![Block::text("Reply with OK."), Block::Image(pixel)];
    let message =
        UserMessage { content: UserContent::Blocks(blocks), timestamp: now_ms(), ..UserMessage::default() };
    question(Message::User(message), Vec::new())
}

fn question(message: Message, tools: Vec<ToolSpec>) -> ModelRequest {
    ModelRequest {
        messages: vec![message.into()].into(),
        tools: tools.into(),
        max_tokens: Some(MOST_TOKENS),
        temperature: Some(0.0),
        ..ModelRequest::default()
    }
}
