//! Error of a failed request (spec `gateway-protocol.md` §2.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

/// The class of a failure; clients decide by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The request is wrong as it stands: schema, unknown method, authentication, missing scope, semantics.
    InvalidRequest,
    /// The request may be right, but it could not be done.
    Unavailable,
    /// The device has to be paired first (handshake only).
    NotPaired,
    /// Declared, never sent by the core.
    NotLinked,
    /// Declared, never sent by the core.
    AgentTimeout,
    /// A code of a newer peer.
    #[serde(untagged)]
    Other(String),
}

impl ErrorCode {
    /// The code as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::Unavailable => "UNAVAILABLE",
            Self::NotPaired => "NOT_PAIRED",
            Self::NotLinked => "NOT_LINKED",
            Self::AgentTimeout => "AGENT_TIMEOUT",
            Self::Other(code) => code,
        }
    }
}

/// The `error` of a response.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct ErrorShape {
    /// The class of the failure.
    pub code: ErrorCode,
    /// For people; clients show it as it is.
    pub message: String,
    /// Machine-readable extra, such as `{"expectedProtocol":3}`.
    pub details: Option<Box<Value>>,
    /// Whether the same request may succeed later.
    pub retryable: Option<bool>,
    /// Earliest sensible retry, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ErrorShape {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retryable: None, retry_after_ms: None }
    }

    /// `INVALID_REQUEST` with this text.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// `UNAVAILABLE` with this text.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// `NOT_PAIRED` with this text.
    pub fn not_paired(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotPaired, message)
    }

    /// `INVALID_REQUEST unknown method: <name>`
    pub fn unknown_method(name: &str) -> Self {
        Self::invalid(format!("unknown method: {name}"))
    }

    /// `UNAVAILABLE not implemented: <name>`: a method of the table that this version leaves out of `features`.
    pub fn not_implemented(name: &str) -> Self {
        Self::unavailable(format!("not implemented: {name}"))
    }

    /// `INVALID_REQUEST invalid <method> params: <what>`
    pub fn invalid_params(method: &str, what: &str) -> Self {
        Self::invalid(format!("invalid {method} params: {what}"))
    }

    /// The same error with details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_leave_out_what_they_do_not_have() {
        let error = ErrorShape::invalid("protocol mismatch").with_details(json!({"expectedProtocol": 3}));
        let text =
            r#"{"code":"INVALID_REQUEST","message":"protocol mismatch","details":{"expectedProtocol":3}}"#;
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
        assert_eq!(serde_json::from_str::<ErrorShape>(text).unwrap(), error);
    }

    #[test]
    fn codes_are_spelled_the_same_on_the_wire_and_in_text() {
        for code in [
            ErrorCode::InvalidRequest,
            ErrorCode::Unavailable,
            ErrorCode::NotPaired,
            ErrorCode::NotLinked,
            ErrorCode::AgentTimeout,
            ErrorCode::Other("LATER".to_owned()),
        ] {
            let wire = serde_json::to_value(&code).unwrap();
            assert_eq!(wire, json!(code.as_str()));
            assert_eq!(serde_json::from_value::<ErrorCode>(wire).unwrap(), code);
        }
    }
}
