//! Sends one request to a provider and returns the answer as a document.

use std::time::Duration;

use serde_json::Value;

use super::access::{QuotaCredential, TOKEN_EXPIRED, Wants};
use crate::net::{Headers, Http, Incoming, JSON, NetError, redact};

/// Time limit for a provider.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// Characters of a provider's own words that are shown.
const SHOWN: usize = 200;
/// Bytes of an answer that are read. Quotas are small; lists of models with theirs are not.
const MAX_ANSWER: usize = 1024 * 1024;

/// A question. The credential is added when it is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuotaQuestion {
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, String)>,
    /// A document to post; without one the question is a GET.
    pub(super) body: Option<Value>,
}

impl QuotaQuestion {
    /// Asks for a document with a bearer token.
    pub(super) fn get(url: String, access: &QuotaCredential) -> Self {
        Self { url, headers: vec![("authorization", format!("Bearer {}", access.expose()))], body: None }
    }

    /// Builds a request that posts a document.
    pub(super) fn post(url: String, access: &QuotaCredential, body: Value) -> Self {
        Self { body: Some(body), ..Self::get(url, access) }
    }

    /// Returns the same request with another header.
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// Asks; what goes wrong is told in few words and without the credential.
pub(super) async fn ask(
    http: &Http,
    question: &QuotaQuestion,
    access: &QuotaCredential,
    wants: Wants,
) -> Result<Value, String> {
    let asked = async {
        let incoming = send(http, question).await.map_err(|error| error.to_string())?;
        answer(incoming, wants).await
    };
    match tokio::time::timeout(DEADLINE, asked).await {
        Ok(answer) => answer.map_err(|error| redact(&error, Some(access.expose()))),
        Err(_) => Err("Timeout".to_owned()),
    }
}

async fn send(http: &Http, question: &QuotaQuestion) -> Result<Incoming, NetError> {
    let mut headers = if question.body.is_some() { Headers::posting(JSON) } else { Headers::accepting(JSON) };
    for (name, value) in &question.headers {
        headers.set(name, value)?;
    }
    match &question.body {
        None => http.get(&question.url, headers).await,
        Some(body) => http.post_json(&question.url, headers, body.to_string().into_bytes()).await,
    }
}

async fn answer(incoming: Incoming, wants: Wants) -> Result<Value, String> {
    let status = incoming.status;
    if !(200..300).contains(&status) {
        return Err(refusal(status, &incoming.error_body().await, wants));
    }
    let body = incoming.whole(MAX_ANSWER).await.map_err(|error| error.to_string())?;
    match serde_json::from_slice(&body) {
        Ok(Value::Object(document)) => Ok(Value::Object(document)),
        Ok(_) | Err(_) => Err("Invalid JSON".to_owned()),
    }
}

/// Returns the meaning of an error status for the person.
fn refusal(status: u16, body: &str, wants: Wants) -> String {
    if status == 401 && wants == Wants::Login {
        return TOKEN_EXPIRED.to_owned();
    }
    let document: Value = serde_json::from_str(body).unwrap_or_default();
    let words = ["/error/message", "/message", "/msg"].iter().find_map(|at| document.pointer(at)?.as_str());
    let words = words.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status}: {}", words.chars().take(SHOWN).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_providers_words() {
        let rows = [
            (401, "{}", Wants::Login, "Token expired"),
            (401, "{}", Wants::Key, "HTTP 401"),
            (
                403,
                r#"{"error":{"message":"needs the\n scope user:profile"}}"#,
                Wants::Login,
                "HTTP 403: needs the scope user:profile",
            ),
            (500, "<html>", Wants::Key, "HTTP 500"),
            (429, r#"{"msg":"slow down"}"#, Wants::Key, "HTTP 429: slow down"),
        ];
        for (status, body, wants, expect) in rows {
            assert_eq!(refusal(status, body, wants), expect);
        }
    }
}
