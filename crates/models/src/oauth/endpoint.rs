//! Request to a login server: sends a form or a request for a document, receives a JSON object.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::net::{Headers, Http, Incoming, JSON, NetError, redact};

/// Time limit for the answer of a server. Shorter than the time for which a store may stay locked.
pub const DEADLINE: Duration = Duration::from_secs(15);
/// Characters of a server's own words that are shown.
const SHOWN: usize = 300;

/// Error of a request to a login server. The texts hold no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The server could not be reached; try again.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The server took too long; try again.
    #[error("the login server did not answer within {} s", DEADLINE.as_secs())]
    Slow,
    /// The presented code or token is used up, revoked or expired: a person must log in again.
    #[error("the login is no longer valid (invalid_grant{0})")]
    InvalidGrant(String),
    /// The server said no.
    #[error("the login server answered {status}: {words}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// `error` of the answer, such as `authorization_pending`.
        code: String,
        /// The server's words.
        words: String,
    },
    /// The answer is none; something is between us and the server.
    #[error("the login server sent garbage: {0}")]
    Garbage(String),
}

/// Posts a form. Values are taken out of what the server says about it.
///
/// # Errors
/// See [`EndpointError`].
pub async fn post_form(
    http: &Http,
    url: &str,
    fields: &[(&str, &str)],
) -> Result<Map<String, Value>, EndpointError> {
    let form =
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes();
    let mut headers = Headers::accepting(JSON);
    headers.set("content-type", "application/x-www-form-urlencoded")?;
    let asked = async { read(http.post_json(url, headers, form).await?, fields).await };
    tokio::time::timeout(DEADLINE, asked).await.map_err(|_| EndpointError::Slow)?
}

/// Asks for a document with a bearer token.
///
/// # Errors
/// See [`EndpointError`].
pub async fn get(http: &Http, url: &str, token: &str) -> Result<Map<String, Value>, EndpointError> {
    let mut headers = Headers::accepting(JSON);
    headers.bearer(token)?;
    let asked = async { read(http.get(url, headers).await?, &[("token", token)]).await };
    tokio::time::timeout(DEADLINE, asked).await.map_err(|_| EndpointError::Slow)?
}

async fn read(incoming: Incoming, sent: &[(&str, &str)]) -> Result<Map<String, Value>, EndpointError> {
    let status = incoming.status;
    let body = incoming.error_body().await;
    let hide = |text: &str| {
        let secret = sent.iter().filter(|(name, _)| !matches!(*name, "grant_type" | "client_id" | "scope"));
        let clean = secret.fold(text.to_owned(), |text, (_, value)| redact(&text, Some(value)));
        clean.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect::<String>()
    };
    let document = match serde_json::from_str(&body) {
        Ok(Value::Object(document)) => Some(document),
        Ok(_) | Err(_) => None,
    };
    let is_ok = (200..300).contains(&status);
    let Some(document) = document else {
        // A body that is not JSON may still hold a credential: none of it is shown.
        let what = if body.trim_start().starts_with('<') { "a web page" } else { "no JSON" };
        return Err(if is_ok {
            EndpointError::Garbage(format!("{what} under status {status}"))
        } else {
            EndpointError::Refused { status, code: String::new(), words: what.to_owned() }
        });
    };
    let code = error_code(&document);
    if is_ok && code.is_empty() {
        return Ok(document);
    }
    let words = hide(&error_words(&document));
    if code == "invalid_grant" {
        let words = if words.is_empty() || words == code { String::new() } else { format!(": {words}") };
        return Err(EndpointError::InvalidGrant(words));
    }
    let words = if words.is_empty() { hide(&code) } else { words };
    Err(EndpointError::Refused { status, code, words })
}

fn error_code(document: &Map<String, Value>) -> String {
    let error = document.get("error");
    let nested = error.and_then(|error| error.get("code")).and_then(Value::as_str);
    error.and_then(Value::as_str).or(nested).unwrap_or_default().to_owned()
}

fn error_words(document: &Map<String, Value>) -> String {
    let nested = document.get("error").and_then(|error| error.get("message"));
    let found = document.get("error_description").or(nested).or_else(|| document.get("message"));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}
