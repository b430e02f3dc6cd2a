//! One connection of a command to the gateway: challenge, `connect` with a signed device, requests.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw_protocol::device::{SigningPayload, signing_payload};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::identity::Identity;
use crate::context::now_ms;

/// OpenClaw's clients accept frames up to this size (spec `gateway-protocol.md` §12).
const MAX_INBOUND: usize = 25 * 1024 * 1024;

/// How long a client waits for the challenge before it signs without a nonce (§12).
const CHALLENGE_WAIT: Duration = Duration::from_millis(750);

const ROLE: &str = "operator";

/// Scopes the command line asks for (§12).
const SCOPES: &[&str] = &["operator.admin", "operator.approvals", "operator.pairing"];

/// Where to connect and with what.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// `ws://` or `wss://` address.
    pub(crate) url: String,
    /// Shared token.
    pub(crate) token: Option<String>,
    /// Shared password.
    pub(crate) password: Option<String>,
}

/// Who connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// `client.id`
    pub(crate) id: &'static str,
    /// `client.mode`
    pub(crate) mode: &'static str,
}

impl Caller {
    /// An ordinary command.
    pub(crate) const CLI: Self = Self { id: "cli", mode: "cli" };
    /// `gateway probe`.
    pub(crate) const PROBE: Self = Self { id: "openclaw-probe", mode: "probe" };
}

/// Why a gateway did not answer as asked.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens there, or the connection broke. The text is OpenClaw's; scripts match it.
    #[error("gateway closed ({code} {hint}): {}", if reason.is_empty() { "no close reason" } else { reason })]
    Closed {
        /// WebSocket close code.
        code: u16,
        /// What the code means.
        hint: &'static str,
        /// The gateway's words.
        reason: String,
    },
    /// Nothing came in time.
    #[error("gateway timeout after {0}ms")]
    Timeout(u128),
    /// The gateway answered with an error.
    #[error("{message}")]
    Refused {
        /// The error's message.
        message: String,
        /// The whole error.
        error: Value,
        /// The payload of the failed response, where there was one.
        payload: Option<Value>,
    },
}

impl ClientError {
    fn closed(code: u16, reason: impl Into<String>) -> Self {
        const ABNORMAL: u16 = 1006;
        let hint = match code {
            1000 => "normal closure",
            1008 => "policy violation",
            1012 => "service restart",
            ABNORMAL => "abnormal closure (no close frame)",
            _ => "closed",
        };
        Self::Closed { code, hint, reason: reason.into() }
    }

    fn broken() -> Self {
        Self::closed(1006, "")
    }

    /// Whether nobody answered at all, as against answering with an error.
    pub(crate) fn is_unreachable(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// An open, accepted connection.
pub(crate) struct Connection {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_id: u64,
    /// The `hello-ok` payload.
    pub(crate) hello: Value,
}

impl Connection {
    /// Connects within `patience`. A device token this machine was given before is tried first; when the gateway
    /// refuses it and there is a shared secret, the token is forgotten and the shared secret used.
    ///
    /// # Errors
    /// When the gateway cannot be reached or refuses.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        caller: Caller,
        identity: &Identity,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let deadline = Instant::now() + patience;
        let stored = identity.token(ROLE).filter(|_| endpoint.password.is_none() && endpoint.token.is_none());
        let token = endpoint.token.clone().or(stored);
        let outcome = Self::attempt(endpoint, token.as_deref(), caller, identity, deadline, patience).await;
        if let Err(ClientError::Refused { .. }) = &outcome
            && endpoint.token.is_none()
            && token.is_some()
        {
            // The stored token is worthless now; failing to forget it only repeats this refusal.
            let _ = identity.forget(ROLE);
        }
        outcome
    }

    async fn attempt(
        endpoint: &Endpoint,
        token: Option<&str>,
        caller: Caller,
        identity: &Identity,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_INBOUND)).max_frame_size(Some(MAX_INBOUND));
        let opened = timeout_at(deadline, connect_async_with_config(&endpoint.url, Some(config), true))
            .await
            .map_err(|_| ClientError::Timeout(patience.as_millis()))?;
        let (socket, _) = opened.map_err(|_| ClientError::broken())?;
        let mut connection = Self { socket, next_id: 1, hello: Value::Null };
        let nonce = connection.challenge().await?;
        let params = connect_params(endpoint, token, caller, identity, nonce.as_deref());
        let hello = connection.request_by("connect", params, deadline, patience).await?;
        connection.remember(&hello, identity);
        connection.hello = hello;
        Ok(connection)
    }

    /// Sends a request and returns the payload of its answer.
    ///
    /// # Errors
    /// When it fails, nothing comes in time or the connection breaks.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, ClientError> {
        self.request_by(method, params, Instant::now() + patience, patience).await
    }

    async fn request_by(
        &mut self,
        method: &str,
        params: Value,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Value, ClientError> {
        let id = self.send(method, params).await?;
        self.answer(&id, Answer::First, deadline, patience).await
    }

    /// Sends a request that is acknowledged first (`agent`) and returns the payload of the final answer.
    ///
    /// # Errors
    /// When it fails, nothing comes in time or the connection breaks.
    pub(crate) async fn request_final(
        &mut self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, ClientError> {
        let id = self.send(method, params).await?;
        self.answer(&id, Answer::Final, Instant::now() + patience, patience).await
    }

    async fn send(&mut self, method: &str, params: Value) -> Result<String, ClientError> {
        let id = self.next_id.to_string();
        self.next_id += 1;
        let frame = json!({"type": "req", "id": id, "method": method, "params": params});
        self.socket.send(Message::text(frame.to_string())).await.map_err(|_| ClientError::broken())?;
        Ok(id)
    }

    async fn answer(
        &mut self,
        id: &str,
        wanted: Answer,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Value, ClientError> {
        loop {
            let frame = timeout_at(deadline, self.frame())
                .await
                .map_err(|_| ClientError::Timeout(patience.as_millis()))??;
            let answers = text(&frame, "/type") == "res" && text(&frame, "/id") == id;
            let acknowledges = wanted == Answer::Final && text(&frame, "/payload/status") == "accepted";
            if answers && !acknowledges {
                return outcome(frame);
            }
        }
    }

    /// The nonce, or nothing when no challenge comes soon.
    async fn challenge(&mut self) -> Result<Option<String>, ClientError> {
        match timeout_at(Instant::now() + CHALLENGE_WAIT, self.frame()).await {
            Ok(frame) => {
                let nonce = text(&frame?, "/payload/nonce").to_owned();
                Ok((!nonce.is_empty()).then_some(nonce))
            }
            Err(_) => Ok(None),
        }
    }

    async fn frame(&mut self) -> Result<Value, ClientError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(frame) = serde_json::from_str(&text) {
                        return Ok(frame);
                    }
                }
                Some(Ok(Message::Close(Some(close)))) => {
                    return Err(ClientError::closed(close.code.into(), close.reason.as_str()));
                }
                Some(Ok(Message::Close(None)) | Err(_)) | None => return Err(ClientError::broken()),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            }
        }
    }

    fn remember(&self, hello: &Value, identity: &Identity) {
        let token = text(hello, "/auth/deviceToken");
        if token.is_empty() {
            return;
        }
        let scopes: Vec<String> = hello
            .pointer("/auth/scopes")
            .and_then(|scopes| serde_json::from_value(scopes.clone()).ok())
            .unwrap_or_default();
        // Without the file the next command pairs again, silently: nothing is lost.
        let _ = identity.remember(ROLE, token, &scopes, now_ms());
    }

    /// Closes the connection properly.
    pub(crate) async fn close(mut self) {
        // The answer is here already; a connection that breaks while closing changes nothing.
        let _ = self.socket.close(None).await;
    }
}

/// Which response ends a request.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    First,
    Final,
}

fn outcome(mut frame: Value) -> Result<Value, ClientError> {
    let payload = frame.get_mut("payload").map(Value::take);
    if frame.get("ok") == Some(&Value::Bool(true)) {
        return Ok(payload.unwrap_or(Value::Null));
    }
    let error = frame.get_mut("error").map(Value::take).unwrap_or_default();
    Err(ClientError::Refused { message: text(&error, "/message").to_owned(), error, payload })
}

fn connect_params(
    endpoint: &Endpoint,
    token: Option<&str>,
    caller: Caller,
    identity: &Identity,
    nonce: Option<&str>,
) -> Value {
    let scopes: Vec<String> = SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
    let signed_at = now_ms();
    let signature = identity.sign(&signing_payload(&SigningPayload {
        device_id: identity.device_id(),
        client_id: caller.id,
        client_mode: caller.mode,
        role: ROLE,
        scopes: &scopes,
        signed_at_ms: u64::try_from(signed_at).unwrap_or_default(),
        token,
        nonce,
    }));
    let mut device = json!({
        "id": identity.device_id(),
        "publicKey": identity.public_key(),
        "signature": signature,
        "signedAt": signed_at,
    });
    let mut auth = json!({});
    for (object, key, value) in [
        (&mut device, "nonce", nonce),
        (&mut auth, "token", token),
        (&mut auth, "password", endpoint.password.as_deref()),
    ] {
        if let (Some(fields), Some(value)) = (object.as_object_mut(), value) {
            fields.insert(key.to_owned(), json!(value));
        }
    }
    json!({
        "minProtocol": openclaw_protocol::PROTOCOL_VERSION,
        "maxProtocol": openclaw_protocol::PROTOCOL_VERSION,
        "client": {
            "id": caller.id,
            "version": env!("CARGO_PKG_VERSION"),
            "platform": std::env::consts::OS,
            "mode": caller.mode,
        },
        "role": ROLE,
        "scopes": scopes,
        "device": device,
        "auth": auth,
    })
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
