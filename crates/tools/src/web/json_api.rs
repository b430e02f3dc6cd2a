//! Asking a service that answers JSON: search providers, Firecrawl.

use std::time::Duration;

use openclaw_models::net::{Headers, Http, NetError};
use serde_json::Value;

/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 5 * 1024 * 1024;
/// Characters of an error answer that are told.
const MAX_DETAIL: usize = 1000;

/// A question to a service.
pub(crate) struct JsonCall {
    /// Where it is asked.
    pub(crate) url: String,
    /// Header names and values; the values are never shown.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// What is posted; `None` asks for a document.
    pub(crate) body: Option<Value>,
    /// How long the whole answer may take.
    pub(crate) timeout: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonApiError {
    /// The service refused. Its words come from outside.
    #[error("({status}): {detail}")]
    Status {
        /// What it answered.
        status: u16,
        /// Its words, cut.
        detail: String,
    },
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered something else.
    #[error("the answer is not JSON")]
    NotJson,
    /// The network, or a setting.
    #[error("{0}")]
    Net(#[from] NetError),
}

/// Asks, and waits for the whole answer.
pub(crate) async fn ask(http: &Http, call: JsonCall) -> Result<Value, JsonApiError> {
    let timeout = call.timeout;
    tokio::time::timeout(timeout, answer(http, call)).await.map_err(|_| JsonApiError::TimedOut(timeout))?
}

async fn answer(http: &Http, call: JsonCall) -> Result<Value, JsonApiError> {
    let mut headers = Headers::default();
    headers.set("accept", "application/json")?;
    for (name, value) in &call.headers {
        headers.set(name, value)?;
    }
    let incoming = match &call.body {
        None => http.get(&call.url, headers).await?,
        Some(body) => {
            headers.set("content-type", "application/json")?;
            http.post_json(&call.url, headers, body.to_string()).await?
        }
    };
    if !(200..300).contains(&incoming.status) {
        let status = incoming.status;
        let detail = incoming.error_body().await.trim().chars().take(MAX_DETAIL).collect();
        return Err(JsonApiError::Status { status, detail });
    }
    let bytes = incoming.whole(MAX_ANSWER).await?;
    serde_json::from_slice(&bytes).map_err(|_| JsonApiError::NotJson)
}
