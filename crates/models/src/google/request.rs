//! The request of `streamGenerateContent`.

use secrecy::{ExposeSecret, SecretString};

use super::contents::{content, contents};
use super::thinking;
use crate::conversation::RequestConversation;
use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::net::{Headers, NetError};
use crate::request::{ModelRequest, ToolSpec};
use crate::wire::{RequestHead, add_headers};

/// Returns the address and the headers of a request.
pub(super) fn head(
    spec: &ModelSpec,
    key: Option<&SecretString>,
    request: &ModelRequest,
) -> Result<RequestHead, NetError> {
    let mut headers = Headers::posting("*/*");
    if let Some(key) = key.map(ExposeSecret::expose_secret) {
        headers.set("x-goog-api-key", key)?;
        if spec.auth_header {
            headers.bearer(key)?;
        }
    }
    add_headers(&mut headers, &spec.headers)?;
    Ok(RequestHead { url: url(spec, request), headers })
}

fn url(spec: &ModelSpec, request: &ModelRequest) -> String {
    let folder = if spec.id().starts_with("models/") || spec.id().starts_with("tunedModels/") {
        ""
    } else {
        "models/"
    };
    format!("{}/{folder}{}:{}", spec.base_url, spec.id(), method(spec, request))
}

/// Returns the method that is called on a model.
pub(super) fn method(spec: &ModelSpec, request: &ModelRequest) -> &'static str {
    if spec.streaming || request.tools.is_empty() {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    }
}

/// The body of either method.
pub(super) fn body<'a>(
    spec: &'a ModelSpec,
    request: &'a ModelRequest,
    conversation: &RequestConversation<'a>,
) -> Json<'a> {
    let mut body = object! {"contents": conversation.messages(|some, first| contents(spec, some, first))};
    if !request.system.trim().is_empty() {
        body.put("systemInstruction", content("user", vec![object! {"text": &*request.system}]));
    }
    body.put("generationConfig", generation(spec, request));
    if !request.tools.is_empty() {
        let declarations: Json<'_> = request.tools.iter().map(tool).collect();
        body.put("tools", [object! {"functionDeclarations": declarations}]);
    }
    body
}

fn generation(spec: &ModelSpec, request: &ModelRequest) -> Json<'static> {
    let (max, thinks) = thinking::plan(spec, request.thinking, spec.output_cap(request.max_tokens));
    let mut config = object! {};
    config.put_some("temperature", request.temperature);
    config.put("maxOutputTokens", max);
    config.put_some("thinkingConfig", thinks);
    config
}

fn tool(tool: &ToolSpec) -> Json<'_> {
    let schema = &*tool.parameters.sent().whole;
    object! {"name": &*tool.name, "description": &*tool.description, "parametersJsonSchema": schema}
}

#[cfg(test)]
mod tests;
