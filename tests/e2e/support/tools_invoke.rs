//! Calls of tools by HTTP.

use openclaw_testkit::TOKEN;
use serde_json::Value;

use crate::support::http::request_at;

/// A call by a client that knows the token.
pub(crate) async fn invoke(port: u16, body: &Value) -> (u16, Value) {
    invoke_from(port, "", body).await
}

/// The same with more headers, in which it says where it speaks.
pub(crate) async fn invoke_from(port: u16, headers: &str, body: &Value) -> (u16, Value) {
    let headers = format!("{}{headers}", bearer());
    let (status, _, answer) = request(port, "POST", &headers, body.to_string().as_bytes()).await;
    (status, serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

/// Makes a request; returns the status, the headers, and the body.
pub(crate) async fn request(port: u16, method: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
    request_at(port, &format!("{method} /tools/invoke"), headers, body).await
}

pub(crate) fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}
