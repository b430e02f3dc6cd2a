//! Opening a connection, proving who we are, calling methods.

use std::io;
use std::sync::Once;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use openclaw_config::clock::now_ms;
use openclaw_protocol::PROTOCOL_VERSION;
use openclaw_protocol::device::SigningPayload;
use openclaw_protocol::params::connect::{ConnectAuth, HelloAuth};
use secrecy::ExposeSecret as _;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::identity::{DeviceKeyPair, DeviceTokens};
use super::target::{GatewayTarget, Note};
use crate::context::CliContext;
use crate::output;

/// Time to wait for the challenge; older gateways send none (spec `gateway-protocol.md` §12).
const CHALLENGE_WAIT: Duration = Duration::from_millis(750);
/// Largest frame that is read, in bytes.
const MAX_FRAME: usize = 25 * 1024 * 1024;
/// Beginning of the error, in all versions, for a method that they do not have.
const UNKNOWN_METHOD: &str = "unknown method: ";
/// Beginning of the standard library's error for a name that can't be resolved; its kind does not
/// tell.
const LOOKUP_FAILED: &str = "failed to lookup address information";
const CLIENT_ID: &str = "cli";
const CLIENT_MODE: &str = "cli";
const ROLE: &str = "operator";
const SCOPES: [&str; 3] = ["operator.admin", "operator.approvals", "operator.pairing"];

/// Answer to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AwaitedResponse {
    /// The first.
    First,
    /// The one after the run: an acknowledgement (`status: "accepted"`) is passed over.
    Final,
}

/// An event that the gateway sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedEvent<'a> {
    /// Name of the event, such as `agent`.
    pub(crate) name: &'a str,
    /// Content of the event, as the protocol defines it for the name.
    pub(crate) payload: &'a Value,
}

/// Failures of a call. Callers tell apart whether the gateway may have accepted the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No process listens there.
    #[error("connect failed: {reason}")]
    Unreachable {
        /// Error text from the system.
        reason: String,
    },
    /// The name in the address can't be resolved.
    #[error("connect failed: {reason}")]
    UnknownHost {
        /// Error text from the system.
        reason: String,
    },
    /// The connection ended early.
    #[error("gateway closed ({code}): {}", if reason.is_empty() { "no close reason" } else { reason.as_str() })]
    Closed {
        /// Close code.
        code: u16,
        /// Close reason.
        reason: String,
    },
    /// The gateway did not let us in.
    #[error("{message}")]
    Refused {
        /// Error code.
        code: String,
        /// Error message.
        message: String,
    },
    /// The gateway answered with an error.
    #[error("{message}")]
    Answer {
        /// Error code.
        code: String,
        /// Error message.
        message: String,
        /// Error details.
        details: Option<Value>,
    },
    /// The gateway does not have the method: it is OpenClaw's, or older than this command.
    #[error("{UNKNOWN_METHOD}{method}")]
    UnknownMethod {
        /// Name of the method.
        method: String,
        /// Version that the gateway reports.
        version: Option<String>,
    },
    /// The key of this device could not be used.
    #[error("device identity: {source}")]
    Identity {
        /// Error from the system.
        #[from]
        source: io::Error,
    },
    /// The gateway speaks something else.
    #[error("not a gateway: {what}")]
    Protocol {
        /// Description of the unexpected part.
        what: String,
    },
    /// The config asks for a protection of the connection that is missing.
    #[error("{detail}")]
    Unprotected {
        /// Name of the missing protection.
        detail: String,
        /// Remedy, for people.
        remedy: &'static str,
    },
    /// The address is not valid.
    #[error("bad gateway URL: {reason}")]
    Url {
        /// Reason, for people.
        reason: String,
    },
}

/// The secret of one attempt to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectSecret {
    /// The token that the gateway issued to this device.
    Device,
    /// The shared one.
    Shared,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connection on which we are known.
#[derive(Debug)]
pub(crate) struct GatewayConnection {
    socket: Socket,
    next_id: u64,
    /// The gateway's greeting.
    pub(crate) hello: Value,
}

impl GatewayConnection {
    /// Connects and introduces this device. A stored device token is tried first, then the shared secret.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing was asked of the gateway then.
    pub(crate) async fn open(context: &CliContext, target: &GatewayTarget) -> Result<Self, ConnectError> {
        if let Some(Note::Unprotected(unmet)) = &target.note {
            return Err(ConnectError::Unprotected { detail: unmet.detail(), remedy: unmet.remedy() });
        }
        let socket = dial(target).await?;
        // Made on first use, and not before there is a gateway to know it.
        let identity = DeviceKeyPair::load_or_create(context.paths())?;
        if let Some(why) = identity.unsaved() {
            tell_unsaved(why);
        }
        let mut tokens = DeviceTokens::load(context.paths(), identity.device_id());
        let has_stored = tokens.get(ROLE).is_some() && !target.explicit;
        if !has_stored {
            return Self::attempt(socket, target, &identity, &mut tokens, ConnectSecret::Shared).await;
        }
        match Self::attempt(socket, target, &identity, &mut tokens, ConnectSecret::Device).await {
            Err(ConnectError::Refused { .. })
                if target.secrets.token.is_some() || target.secrets.password.is_some() =>
            {
                // If the file can't be written, as on a full disk, the next command is refused once
                // more and goes on as this one does.
                let _ = tokens.forget(ROLE);
                Self::attempt(dial(target).await?, target, &identity, &mut tokens, ConnectSecret::Shared)
                    .await
            }
            other => other,
        }
    }

    async fn attempt(
        socket: Socket,
        target: &GatewayTarget,
        identity: &DeviceKeyPair,
        tokens: &mut DeviceTokens,
        secret: ConnectSecret,
    ) -> Result<Self, ConnectError> {
        let mut connection = Self { socket, next_id: 1, hello: Value::Null };
        let nonce = connection.challenge().await?;
        let token = match secret {
            ConnectSecret::Device => tokens.get(ROLE).map(str::to_owned),
            ConnectSecret::Shared => {
                target.secrets.token.as_ref().map(|token| token.expose_secret().to_owned())
            }
        };
        let params = connect_params(target, identity, token.as_deref(), nonce.as_deref());
        connection.hello = connection.call("connect", params, AwaitedResponse::First).await.map_err(
            |error| match error {
                ConnectError::Answer { code, message, .. } => ConnectError::Refused { code, message },
                other => other,
            },
        )?;
        connection.keep_device_token(tokens);
        Ok(connection)
    }

    /// The gateway gives the token with each greeting: where it can't be written, as on a full disk, the next command gets it again.
    fn keep_device_token(&self, tokens: &mut DeviceTokens) {
        if let Some(Ok(HelloAuth { device_token, role, scopes, .. })) =
            self.hello.get("auth").map(HelloAuth::deserialize)
        {
            let _ = tokens.store(role.as_str(), &device_token, &scopes);
        }
    }

    /// The nonce to sign, if one comes in time.
    async fn challenge(&mut self) -> Result<Option<String>, ConnectError> {
        let Ok(frame) = tokio::time::timeout(CHALLENGE_WAIT, self.frame()).await else { return Ok(None) };
        let frame = frame?;
        match frame.get("event").and_then(Value::as_str) {
            Some("connect.challenge") => {
                Ok(frame.pointer("/payload/nonce").and_then(Value::as_str).map(str::to_owned))
            }
            Some(_) | None => {
                Err(ConnectError::Protocol { what: "the first frame is no challenge".to_owned() })
            }
        }
    }

    /// Calls a method and waits for its answer; events in between are passed over.
    ///
    /// # Errors
    /// [`ConnectError::Answer`] when the gateway answers with an error.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: Value,
        wait: AwaitedResponse,
    ) -> Result<Value, ConnectError> {
        self.call_hearing(method, params, wait, &mut |_| {}).await
    }

    /// Calls a method and waits for its answer; `hear` gets the events in between.
    ///
    /// # Errors
    /// As [`GatewayConnection::call`].
    pub(crate) async fn call_hearing(
        &mut self,
        method: &str,
        params: Value,
        wait: AwaitedResponse,
        hear: &mut (dyn FnMut(ReceivedEvent<'_>) + Send),
    ) -> Result<Value, ConnectError> {
        let id = self.next_id.to_string();
        self.next_id += 1;
        let request = json!({ "type": "req", "id": id, "method": method, "params": params });
        self.socket.send(Message::text(request.to_string())).await.map_err(lost)?;
        loop {
            let mut frame = self.frame().await?;
            let is_answer = frame.get("type").and_then(Value::as_str) == Some("res")
                && frame.get("id").and_then(Value::as_str) == Some(id.as_str());
            if !is_answer {
                if let (Some(name), Some(payload)) =
                    (frame.get("event").and_then(Value::as_str), frame.get("payload"))
                {
                    hear(ReceivedEvent { name, payload });
                }
                continue;
            }
            if frame.get("ok") != Some(&Value::Bool(true)) {
                let text = |key: &str, absent: &str| {
                    frame
                        .pointer(&format!("/error/{key}"))
                        .and_then(Value::as_str)
                        .unwrap_or(absent)
                        .to_owned()
                };
                let message = text("message", "unknown error");
                return Err(match message.strip_prefix(UNKNOWN_METHOD) {
                    Some(method) => {
                        ConnectError::UnknownMethod { method: method.to_owned(), version: self.version() }
                    }
                    None => ConnectError::Answer {
                        code: text("code", "UNKNOWN"),
                        message,
                        details: frame.pointer("/error/details").cloned(),
                    },
                });
            }
            let payload = frame.get_mut("payload").map(Value::take).unwrap_or_default();
            let is_acknowledgement = payload.get("status").and_then(Value::as_str) == Some("accepted");
            if wait == AwaitedResponse::First || !is_acknowledgement {
                return Ok(payload);
            }
        }
    }

    fn version(&self) -> Option<String> {
        self.hello.pointer("/server/version").and_then(Value::as_str).map(str::to_owned)
    }

    /// Says good-bye; whether it arrives does not matter.
    pub(crate) async fn close(mut self) {
        let _ = self.socket.close(None).await;
    }

    async fn frame(&mut self) -> Result<Value, ConnectError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(&text).map_err(|error| ConnectError::Protocol {
                        what: format!("a frame that is not JSON ({error})"),
                    });
                }
                Some(Ok(Message::Close(close))) => {
                    let (code, reason) = close.map_or((1005, String::new()), |close| {
                        (u16::from(close.code), close.reason.to_string())
                    });
                    return Err(ConnectError::Closed { code, reason });
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return Err(lost(error)),
                None => return Err(ConnectError::Closed { code: 1006, reason: String::new() }),
            }
        }
    }
}

/// Told once, however often a command connects.
fn tell_unsaved(why: &io::Error) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        output::error_line(&format!(
            "The key of this device could not be stored ({why}): one that is used for this command only stands in for it."
        ));
    });
}

async fn dial(target: &GatewayTarget) -> Result<Socket, ConnectError> {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
    let opened = connect_async_with_config(target.url.as_str(), Some(config), false).await;
    opened.map(|(socket, _)| socket).map_err(open_error)
}

fn connect_params(
    target: &GatewayTarget,
    identity: &DeviceKeyPair,
    token: Option<&str>,
    nonce: Option<&str>,
) -> Value {
    let scopes = SCOPES.map(str::to_owned);
    let signed_at_ms = u64::try_from(now_ms()).unwrap_or_default();
    let proof = identity.proof(&SigningPayload {
        device_id: identity.device_id(),
        client_id: CLIENT_ID,
        client_mode: CLIENT_MODE,
        role: ROLE,
        scopes: &scopes,
        signed_at_ms,
        token,
        nonce,
    });
    let password = target.secrets.password.as_ref().map(|password| password.expose_secret().to_owned());
    let auth = ConnectAuth { token: token.map(str::to_owned), password };
    let mut params = json!({
        "minProtocol": PROTOCOL_VERSION,
        "maxProtocol": PROTOCOL_VERSION,
        "client": {
            "id": CLIENT_ID,
            "version": env!("CARGO_PKG_VERSION"),
            "platform": std::env::consts::OS,
            "mode": CLIENT_MODE,
        },
        "role": ROLE,
        "scopes": scopes,
        "caps": [],
        "device": proof,
    });
    if let (false, Some(params)) = (auth == ConnectAuth::default(), params.as_object_mut()) {
        params.insert("auth".to_owned(), json!(auth));
    }
    params
}

fn open_error(error: WsError) -> ConnectError {
    match error {
        WsError::Io(error) => {
            let reason = error.to_string();
            if reason.starts_with(LOOKUP_FAILED) {
                ConnectError::UnknownHost { reason }
            } else {
                ConnectError::Unreachable { reason }
            }
        }
        WsError::Url(error) => ConnectError::Url { reason: error.to_string() },
        WsError::Http(response) => ConnectError::Protocol {
            what: format!("HTTP {} instead of a WebSocket", response.status().as_u16()),
        },
        WsError::ConnectionClosed | WsError::AlreadyClosed => {
            ConnectError::Closed { code: 1006, reason: String::new() }
        }
        other => ConnectError::Unreachable { reason: other.to_string() },
    }
}

fn lost(error: WsError) -> ConnectError {
    match error {
        WsError::Capacity(error) => ConnectError::Protocol { what: error.to_string() },
        WsError::Utf8(what) => ConnectError::Protocol { what },
        _ => ConnectError::Closed { code: 1006, reason: String::new() },
    }
}
