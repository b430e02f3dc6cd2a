//! The three frame kinds (spec `gateway-protocol.md` §2).

mod inbound;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use crate::error::ErrorShape;

pub use inbound::{Envelope, Inbound, parse_inbound};

/// The protocol version this contract describes.
pub const PROTOCOL_VERSION: u32 = 3;

/// Any frame. `P` is the payload: a [`Value`] when read, any `Serialize` (also a raw, already serialised one) when written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Frame<P = Value> {
    /// Client to gateway.
    #[serde(rename = "req")]
    Request(Request),
    /// Gateway to client, to one request.
    #[serde(rename = "res")]
    Response(Response<P>),
    /// Gateway to client, unasked.
    #[serde(rename = "event")]
    Event(Event<P>),
}

/// `{type:"req", id, method, params?}`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Opaque; the answer carries it. Its uniqueness is the client's business.
    pub id: String,
    /// Name of the method.
    pub method: String,
    /// Absent reads as `{}`.
    pub params: Option<Value>,
}

/// `{type:"res", id, ok, payload?, error?}`. A failed one may carry both payload and error.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct Response<P = Value> {
    /// Id of the request.
    pub id: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// The result; absent is not the same as `null`.
    #[serde(default, deserialize_with = "present")]
    pub payload: Option<P>,
    /// Why it failed.
    pub error: Option<ErrorShape>,
}

impl<P> Response<P> {
    /// A success.
    pub fn ok(id: impl Into<String>, payload: P) -> Self {
        Self { id: id.into(), ok: true, payload: Some(payload), error: None }
    }

    /// A failure without payload.
    pub fn failed(id: impl Into<String>, error: ErrorShape) -> Self {
        Self { id: id.into(), ok: false, payload: None, error: Some(error) }
    }
}

/// `{type:"event", event, payload?, seq?, stateVersion?}`
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>"))]
pub struct Event<P = Value> {
    /// Name of the event.
    pub event: String,
    /// What happened.
    #[serde(default, deserialize_with = "present")]
    pub payload: Option<P>,
    /// Number of the frame on this connection; targeted frames have none.
    pub seq: Option<u64>,
    /// Only on `presence` and `health`.
    pub state_version: Option<StateVersion>,
}

impl<P> Event<P> {
    /// A targeted event: without number and state version.
    pub fn targeted(event: impl Into<String>, payload: P) -> Self {
        Self { event: event.into(), payload: Some(payload), seq: None, state_version: None }
    }
}

/// How often presence and health have changed since the gateway started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StateVersion {
    /// Of the presence list.
    pub presence: u64,
    /// Of the health snapshot.
    pub health: u64,
}

/// Reads a key that is there, so that `null` is told from absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_keys_stay_absent_and_null_stays_null() {
        let rows = [
            r#"{"type":"req","id":"1","method":"health"}"#,
            r#"{"type":"res","id":"1","ok":true,"payload":null}"#,
            r#"{"type":"res","id":"1","ok":true}"#,
            r#"{"type":"res","id":"1","ok":false,"payload":{"runId":"r"},"error":{"code":"UNAVAILABLE","message":"x"}}"#,
            r#"{"type":"event","event":"tick","payload":{"ts":1},"seq":3}"#,
            r#"{"type":"event","event":"presence","payload":{},"seq":3,"stateVersion":{"presence":1,"health":2}}"#,
        ];
        for text in rows {
            let frame: Frame = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        }
    }

    #[test]
    fn a_raw_payload_is_written_as_it_is() {
        let raw = serde_json::value::RawValue::from_string(r#"{"ts" : 1}"#.to_owned()).unwrap();
        let frame = Frame::Event(Event {
            event: "tick".into(),
            payload: Some(&raw),
            seq: Some(1),
            state_version: None,
        });
        let text = serde_json::to_string(&frame).unwrap();
        assert_eq!(text, r#"{"type":"event","event":"tick","payload":{"ts" : 1},"seq":1}"#);
    }
}
