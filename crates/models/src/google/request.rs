//! The request of `streamGenerateContent`.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::contents::contents;
use super::thinking;
use crate::catalog::ModelSpec;
use crate::net::{Headers, NetError};
use crate::request::{ModelRequest, ToolSpec};
use crate::tool_id::IdRule;
use crate::wire::{WireRequest, add_headers};
use crate::{history, tool_schema};

/// Builds the request.
pub(super) fn build(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    request: &ModelRequest,
) -> Result<WireRequest, NetError> {
    let mut headers = plain_headers()?;
    if let Some(key) = key.map(ExposeSecret::expose_secret) {
        headers.set("x-goog-api-key", key)?;
        if spec.auth_header {
            headers.set("authorization", &format!("Bearer {key}"))?;
        }
    }
    add_headers(&mut headers, &spec.headers)?;
    Ok(WireRequest { url: url(spec, request), headers, body: body(spec, request).to_string().into_bytes() })
}

/// The headers of every request.
pub(super) fn plain_headers() -> Result<Headers, NetError> {
    let mut headers = Headers::default();
    headers.set("accept", "*/*")?;
    headers.set("content-type", "application/json")?;
    Ok(headers)
}

fn url(spec: &ModelSpec, request: &ModelRequest) -> String {
    let folder = if spec.id().starts_with("models/") || spec.id().starts_with("tunedModels/") {
        ""
    } else {
        "models/"
    };
    format!("{}/{folder}{}:{}", spec.base_url, spec.id(), method(spec, request))
}

/// What is called of a model.
pub(super) fn method(spec: &ModelSpec, request: &ModelRequest) -> &'static str {
    if spec.streaming || request.tools.is_empty() {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    }
}

pub(super) fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let history = history::for_model(&request.messages, spec, IdRule::Anthropic);
    let mut body = Map::new();
    body.insert("contents".to_owned(), Value::Array(contents(spec, &history)));
    if !request.system.trim().is_empty() {
        let system = json!({"parts": [{"text": request.system}], "role": "user"});
        body.insert("systemInstruction".to_owned(), system);
    }
    body.insert("generationConfig".to_owned(), generation(spec, request));
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations}]));
    }
    Value::Object(body)
}

fn generation(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let (max, thinks) = thinking::plan(spec, request.thinking, spec.output_cap(request.max_tokens));
    let mut config = Map::new();
    if let Some(temperature) = request.temperature {
        config.insert("temperature".to_owned(), json!(temperature));
    }
    config.insert("maxOutputTokens".to_owned(), json!(max));
    if let Some(thinks) = thinks {
        config.insert("thinkingConfig".to_owned(), thinks);
    }
    Value::Object(config)
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description,
        "parametersJsonSchema": tool_schema::normalise(&tool.parameters)})
}

#[cfg(test)]
mod tests;
