//! The backend of ChatGPT for Codex (spec `models.md` §4.4): the Responses protocol with headers and a body of its own.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::effort;
use super::failure::{Backend, error_words, plan_limit};
use super::items::items;
use super::request::{add_cache, add_include, add_reasoning, tool};
use super::stream::ResponsesDecoder;
use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::{Json, object};
use crate::model_spec::ModelSpec;
use crate::net::Headers;
use crate::provider_key::ProviderKey;
use crate::request::ModelRequest;
use crate::stream::{FailureKind, ModelFailure};
use crate::wire::{Decoder, ErrorAnswer, OutgoingCall, Protocol, RequestHead, add_headers};

/// The claim of the access token that holds the account.
const CLAIM: &str = "https://api.openai.com/auth";
/// Our name in requests.
const ORIGINATOR: &str = "openclaw";
/// Texts, without what parts their words, of a trouble that may be over in a moment, whatever the status.
const PASSING: &[&str] =
    &["ratelimit", "overloaded", "serviceunavailable", "upstreamconnect", "connectionrefused"];

/// The protocol.
#[derive(Debug)]
pub(crate) struct Codex;

impl Protocol for Codex {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Responses
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        let OutgoingCall { spec, key, request, .. } = *call;
        let mut headers = Headers::posting("text/event-stream");
        headers.set("openai-beta", "responses=experimental")?;
        headers.set("originator", ORIGINATOR)?;
        if let Some(session) = request.session_id.as_deref().filter(|id| !id.is_empty()) {
            headers.set("session_id", session)?;
        }
        if let Some(key) = key {
            headers.bearer(key.expose())?;
            headers.set("chatgpt-account-id", &account_id(key)?)?;
        }
        add_headers(&mut headers, &spec.headers)?;
        Ok(RequestHead { url: url(&spec.base_url), headers })
    }

    fn body<'a>(
        &self,
        spec: &'a ModelSpec,
        request: &'a ModelRequest,
        conversation: &RequestConversation<'a>,
    ) -> Json<'a> {
        body(spec, request, conversation)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder::new(Backend::Codex))
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        error_words(error, body)
    }

    fn refusal(&self, answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
        let error = answer.error.unwrap_or(&Value::Null);
        plan_limit(Backend::Codex, error, Some(answer.status), answer.now).or_else(|| passing(answer))
    }

    /// 1, 2 and 4 seconds.
    fn first_wait(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn url(base: &str) -> String {
    if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        format!("{base}/responses")
    } else {
        format!("{base}/codex/responses")
    }
}

fn body<'a>(
    spec: &'a ModelSpec,
    request: &'a ModelRequest,
    conversation: &RequestConversation<'a>,
) -> Json<'a> {
    let mut body = object! {
        "model": spec.id(),
        "store": false,
        // The backend does nothing else.
        "stream": true,
        "instructions": &*request.system,
        "input": conversation.messages(|some, first| items(spec, some, first)),
        "text": object! {"verbosity": "medium"},
    };
    add_include(&mut body);
    add_cache(&mut body, spec, request);
    body.put("tool_choice", "auto");
    body.put("parallel_tool_calls", true);
    body.put_some("temperature", request.temperature.filter(|_| !spec.reasoning));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|offered| tool(offered, Value::Null.into()));
        body.put("tools", Json::from_iter(tools));
    }
    add_reasoning(&mut body, effort::effort(spec, request.thinking));
    body
}

/// The account an access token was made for. The token is the provider's to check; only its content is read here.
fn account_id(key: &ProviderKey) -> Result<String, ModelFailure> {
    claimed_account(key.expose()).or_else(|| key.part("accountId").map(str::to_owned)).ok_or_else(|| {
        ModelFailure::new(FailureKind::Auth, "the OpenAI Codex login names no ChatGPT account; log in again with \
                      `openclaw models auth login --provider openai-codex`, or use provider openai with an API key")
    })
}

fn claimed_account(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    let account = payload.get(CLAIM)?.get("chatgpt_account_id")?.as_str()?;
    (!account.is_empty()).then(|| account.to_owned())
}

/// A refusal whose words say that it may be over in a moment.
fn passing(answer: &ErrorAnswer<'_>) -> Option<ModelFailure> {
    let squeezed: String =
        answer.body.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    PASSING.iter().any(|text| squeezed.contains(text)).then(|| ModelFailure {
        kind: FailureKind::Transient,
        status: Some(answer.status),
        retry_after: None,
        message: format!(
            "{} {}",
            answer.status,
            answer.error.map_or_else(|| answer.body.to_owned(), |error| error_words(error, answer.body))
        ),
    })
}

#[cfg(test)]
mod tests;
