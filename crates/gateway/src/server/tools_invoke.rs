//! `POST /tools/invoke`: one call of a tool, for programs (spec `gateway-protocol.md` §10.3).

use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt as _;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use openclaw_dispatch::{CallerChannel, InvokeError, Invoked, ToolInvocation};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Served;
use super::http::{TcpEndpoints, json_response, text_response};
use crate::entrance::Entrance;
use crate::handshake::client_address::{ClientAddress, Origination};
use crate::handshake::origin;
use crate::handshake::{Credentials, authorize};
use openclaw_protocol::mend::mend;
use openclaw_sessions::time::now_ms;

/// URL path of the endpoint.
pub(super) const PATH: &str = "/tools/invoke";
/// Bytes that a request may have.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// Headers in which a client says where it speaks.
const CHANNEL: &str = "x-openclaw-message-channel";
const ACCOUNT: &str = "x-openclaw-account-id";
/// Time that a client has to send the request's body.
const SENDING: Duration = Duration::from_secs(30);

/// Answer to a call that was made. It may be large, and is written as it is.
#[derive(Serialize)]
struct InvokeResponse<'a> {
    ok: bool,
    result: &'a Invoked,
}

/// Answers.
pub(super) async fn respond(
    request: Request<Incoming>,
    caller: TcpEndpoints,
    served: &Served,
) -> Response<Body> {
    if *request.method() != Method::POST {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    if let Err(refusal) = admit(request.headers(), caller, &served.entrance) {
        return *refusal;
    }
    let invocation = match read(request).await {
        Ok(invocation) => invocation,
        Err(refusal) => return *refusal,
    };
    // A client that goes away ends the call, and so does the end of the gateway.
    let cancel = served.stopping.child_token();
    let _guard = cancel.clone().drop_guard();
    match served.dispatch.invoke_tool(invocation, &cancel).await {
        Ok(made) => json_response(StatusCode::OK, &InvokeResponse { ok: true, result: &made }),
        Err(error @ InvokeError::Unavailable(_)) => {
            refused(StatusCode::NOT_FOUND, "not_found", &error.to_string())
        }
        Err(InvokeError::Session(why)) => invalid(StatusCode::BAD_REQUEST, &why),
        Err(error @ InvokeError::Failed(_)) => {
            refused(StatusCode::BAD_REQUEST, "tool_error", &error.to_string())
        }
    }
}

/// Succeeds if the client knows the shared secret (the token or the password) as its bearer, is no strange page, and
/// asks without a proxy: behind one the secret lets nobody in without a device, and a request has
/// none. Guessing is slowed down.
fn admit(headers: &HeaderMap, caller: TcpEndpoints, entrance: &Entrance) -> Result<(), Box<Response<Body>>> {
    let origination = Origination::of(headers, caller.peer, caller.local);
    let door = entrance.door_for(&origination);
    if origination.origin.is_some() && !door.admits_origin(&origination) {
        return Err(Box::new(refused(StatusCode::FORBIDDEN, "forbidden", origin::REFUSAL)));
    }
    let client = ClientAddress::of(&origination, &door.addresses).ip;
    let now = now_ms();
    let mut throttle = entrance.guesses();
    if let Some(wait) = throttle.locked_for(client, now) {
        return Err(Box::new(locked(wait)));
    }
    let given = bearer(headers).map(Credentials::bearer).unwrap_or_default();
    match authorize(&door.secret, given) {
        Ok(()) => {
            throttle.succeeded(client);
            if client.is_forwarded {
                let message = "not through a proxy: the shared secret alone lets nobody in there; ask the gateway directly";
                return Err(Box::new(refused(StatusCode::FORBIDDEN, "forbidden", message)));
            }
            Ok(())
        }
        Err(failure) => {
            if failure.is_guess() {
                throttle.failed(client, now);
            }
            let told = json!({"error": {"message": "Unauthorized", "type": "unauthorized"}});
            Err(Box::new(json_response(StatusCode::UNAUTHORIZED, &told)))
        }
    }
}

fn locked(wait_ms: i64) -> Response<Body> {
    let message = "too many wrong secrets from this address; try again later";
    let told = json!({"error": {"message": message, "type": "rate_limited"}});
    let mut response = json_response(StatusCode::TOO_MANY_REQUESTS, &told);
    let seconds = u64::try_from(wait_ms).unwrap_or_default().div_ceil(1_000);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// The bearer of a request, whatever the case of the scheme.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, secret) = value.split_once(char::is_whitespace)?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

/// Channel and account that a client claims to speak for.
fn caller_of(headers: &HeaderMap) -> CallerChannel {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    CallerChannel::new(text(CHANNEL), text(ACCOUNT))
}

async fn read(request: Request<Incoming>) -> Result<ToolInvocation, Box<Response<Body>>> {
    let told = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if told.is_some_and(|length: u64| length > MOST_BYTES as u64) {
        return Err(Box::new(too_large()));
    }
    let caller = caller_of(request.headers());
    let body = tokio::time::timeout(SENDING, received(request.into_body())).await;
    let body = body.unwrap_or_else(|_| {
        Err(Box::new(invalid(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time")))
    })?;
    let bad = |message: &str| Box::new(invalid(StatusCode::BAD_REQUEST, message));
    let body: Value = match body.trim_ascii() {
        [] => Value::Object(Map::new()),
        text => serde_json::from_slice(text)
            // As JavaScript writes it, with half a character where a text was cut within one.
            .or_else(|error| serde_json::from_str(&mend(text)).map_err(|_| error))
            .map_err(|error| bad(&format!("request body is not valid JSON: {error}")))?,
    };
    let invocation = invocation(&body).map_err(bad)?;
    Ok(ToolInvocation { caller, ..invocation })
}

async fn received(body: Incoming) -> Result<Vec<u8>, Box<Response<Body>>> {
    let (mut chunks, mut bytes) = (Body::new(body).into_data_stream(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| {
            Box::new(invalid(StatusCode::BAD_REQUEST, "the request body did not arrive whole"))
        })?;
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(Box::new(too_large()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Tool call that a request's body asks for. Fields of a wrong type count as absent, as in OpenClaw
/// 2026.2.9; arguments are the tool's to judge.
fn invocation(body: &Value) -> Result<ToolInvocation, &'static str> {
    let word = |name: &str| {
        let text = body.get(name).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let tool = word("tool").ok_or("tools.invoke requires body.tool")?;
    let args = body.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
    let (action, session_key) = (word("action"), word("sessionKey"));
    Ok(ToolInvocation { tool, action, args, session_key, ..ToolInvocation::default() })
}

fn too_large() -> Response<Body> {
    invalid(StatusCode::PAYLOAD_TOO_LARGE, "request body is larger than 2 MiB")
}

/// The request itself is wrong.
fn invalid(status: StatusCode, message: &str) -> Response<Body> {
    json_response(status, &json!({"error": {"message": message, "type": "invalid_request_error"}}))
}

/// The tool is not there, or failed.
fn refused(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    json_response(status, &json!({"ok": false, "error": {"type": kind, "message": message}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_bearer_has_any_case() {
        let rows = [
            ("Bearer x", Some("x")),
            ("bearer  x ", Some("x")),
            ("BEARER x", Some("x")),
            ("Basic x", None),
            ("Bearer", None),
            ("Bearer ", None),
            ("", None),
        ];
        for (value, expect) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            assert_eq!(bearer(&headers), expect, "{value:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn only_a_tool_is_needed() {
        for body in [json!({}), json!({"tool": " "}), json!({"tool": 5}), json!([]), json!(null), json!("x")]
        {
            assert_eq!(invocation(&body), Err("tools.invoke requires body.tool"), "{body}");
        }
        let odd = json!({"tool": " cron ", "action": 5, "args": [1], "sessionKey": null, "dryRun": true});
        let expect = ToolInvocation { tool: "cron".to_owned(), ..ToolInvocation::default() };
        assert_eq!(invocation(&odd), Ok(expect));
    }
}
