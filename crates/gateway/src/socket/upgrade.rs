//! The HTTP side of a WebSocket: recognising the upgrade request and answering it (RFC 6455 §4.2).

use axum::body::Body;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// A request to become a WebSocket, answered.
pub(crate) struct Upgrade {
    /// Resolves once the answer is sent.
    pub(crate) socket: OnUpgrade,
    /// The `101` answer.
    pub(crate) response: Response<Body>,
}

/// True if the request asks for a WebSocket; any path will do.
pub(crate) fn is_requested<B>(request: &Request<B>) -> bool {
    has_token(request.headers(), &CONNECTION, "upgrade")
        && has_token(request.headers(), &UPGRADE, "websocket")
}

/// Answers an upgrade request.
///
/// # Errors
/// The answer to a request that is no proper WebSocket handshake.
pub(crate) fn accept<B>(request: &mut Request<B>) -> Result<Upgrade, Box<Response<Body>>> {
    let refuse = |status| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        Box::new(response)
    };
    if request.method() != Method::GET {
        return Err(refuse(StatusCode::METHOD_NOT_ALLOWED));
    }
    if !has_token(request.headers(), &SEC_WEBSOCKET_VERSION, "13") {
        return Err(refuse(StatusCode::UPGRADE_REQUIRED));
    }
    let key = request.headers().get(SEC_WEBSOCKET_KEY).ok_or_else(|| refuse(StatusCode::BAD_REQUEST))?;
    let accept = derive_accept_key(key.as_bytes());
    let socket =
        request.extensions_mut().remove::<OnUpgrade>().ok_or_else(|| refuse(StatusCode::BAD_REQUEST))?;
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty())
        .map_err(|_| refuse(StatusCode::BAD_REQUEST))?;
    Ok(Upgrade { socket, response })
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let lists = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|item| item.trim().eq_ignore_ascii_case(token))
}
