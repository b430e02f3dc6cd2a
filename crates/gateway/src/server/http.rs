//! HTTP beside the WebSocket (spec `gateway-protocol.md` §10): health for supervisors, [`tools_invoke`] for programs, and the web UI.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::json;

use crate::handshake::client_address::{self, Origination};
use crate::handshake::origin::PageRules;
use crate::host::own_addresses;
use crate::server::front::Front;
use crate::server::{Served, not_there, tools_invoke, web_ui};
use crate::socket::{driver, upgrade};

/// Error for a page that addresses the gateway by a strange name.
const STRANGE_HOST: &str = "host not allowed (use the gateway's own name or address, or list the page's origin in gateway.controlUi.allowedOrigins)";

/// Both ends of a TCP connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpEndpoints {
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// Our own address.
    pub(crate) local: SocketAddr,
}

/// Answers one request.
pub(crate) async fn respond(
    mut request: Request<Incoming>,
    caller: TcpEndpoints,
    front: &Front,
) -> Response<Body> {
    let is_upgrade = upgrade::is_requested(&request);
    if !is_upgrade && let Some(refusal) = strange_host(request.headers(), &front.pages) {
        return refusal;
    }
    match request.uri().path() {
        "/healthz" | "/health" if !is_upgrade => {
            let live = || json_response(StatusCode::OK, &json!({"ok": true, "status": "live"}));
            read_only(&request).unwrap_or_else(live)
        }
        "/readyz" if !is_upgrade => read_only(&request).unwrap_or_else(|| ready(front)),
        _ => match front.wait().await {
            None => text_response(StatusCode::SERVICE_UNAVAILABLE, "gateway is stopping"),
            Some(served) if is_upgrade => open_socket(&mut request, caller, front, served),
            Some(served) if request.uri().path() == tools_invoke::PATH => {
                Box::pin(tools_invoke::respond(request, caller, served)).await
            }
            Some(served) => match not_there::respond(request.uri().path()) {
                Some(refusal) => refusal,
                None => {
                    Box::pin(web_ui::respond(request.method(), request.uri(), &served.settings.config()))
                        .await
                }
            },
        },
    }
}

fn open_socket(
    request: &mut Request<Incoming>,
    caller: TcpEndpoints,
    front: &Front,
    served: &Served,
) -> Response<Body> {
    if served.stopping.is_cancelled() {
        return text_response(StatusCode::SERVICE_UNAVAILABLE, "gateway is stopping");
    }
    let headers = request.headers();
    let origination = Origination::of(headers, caller.peer, caller.local);
    let upgrade::Upgrade { socket, response } = match upgrade::accept(request) {
        Ok(upgrade) => upgrade,
        Err(refusal) => return *refusal,
    };
    let place = front.handshakes.enter(caller.peer.ip());
    let sockets = Arc::clone(&served.sockets);
    served.tasks.spawn(async move {
        match socket.await {
            Ok(upgraded) => driver::drive(upgraded, origination, place, sockets).await,
            Err(error) => tracing::debug!(peer = %caller.peer, %error, "upgrade failed"),
        }
    });
    response
}

/// Ready is who takes work: from when the gateway is put together until it stops, or lets its runs end before a restart. A memory
/// whose index can't be written makes it degraded, and no less ready.
fn ready(front: &Front) -> Response<Body> {
    let holds_runs = front.served().is_some_and(|served| served.dispatch.holds_runs());
    let draining = holds_runs || front.stopping.is_cancelled();
    let ready = front.served().is_some() && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let is_failing = front.served().is_some_and(|served| served.memories.is_failing());
    let degraded: &[&str] = if is_failing { &["memory index failing"] } else { &[] };
    json_response(
        status,
        &json!({"ready": ready, "draining": draining, "degraded": degraded, "channels": {}}),
    )
}

/// The refusal of a page that addresses the gateway by a name that is not ours. For pages that want
/// a socket the handshake decides, in words that the page shows.
fn strange_host(headers: &HeaderMap, pages: &PageRules) -> Option<Response<Body>> {
    let origin = client_address::origin(headers)?;
    let is_admitted = pages.admits_host(origin, client_address::host(headers), &own_addresses());
    (!is_admitted).then(|| text_response(StatusCode::FORBIDDEN, STRANGE_HOST))
}

/// The refusal of a request that wants more than to read.
fn read_only<B>(request: &Request<B>) -> Option<Response<Body>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    (!is_read).then(|| {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        response
    })
}

/// A JSON answer.
pub(super) fn json_response(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    // Nothing that is told has keys that are no texts.
    let text = serde_json::to_string(value).unwrap_or_default();
    typed(status, "application/json; charset=utf-8", text.into())
}

/// A plain text answer.
pub(super) fn text_response(status: StatusCode, text: &'static str) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", text.into())
}

/// An answer of a media type.
pub(super) fn typed(status: StatusCode, media_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Ok(value) = HeaderValue::from_str(media_type) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}
