//! The requests of an authenticated connection: checked, then each on its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use openclaw_protocol::Payload;
use openclaw_protocol::access;
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::frame::{Envelope, Inbound, Response, parse_inbound};
use openclaw_protocol::mend::{has_lone_surrogate, mend};
use openclaw_protocol::method::{self, Method, Weight};
use openclaw_protocol::params::Call as _;
use openclaw_protocol::params::connect::Connect;
use openclaw_protocol::text_length::utf16_head;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::SocketParts;
use super::work_budget::{Share, is_large};
use crate::connection::frame_budget::{FrameBytes, SMALL, patience};
use crate::connection::{Connection, ConnectionInfo};
use crate::handshake::close::Closing;
use crate::methods::{self, HandlerRow};
use crate::request::order::RequestOrder;
use crate::request::{HandlerResult, RequestContext, RequestFailure};

/// Requests of one connection that are worked on at once; further ones wait in the socket.
const CONCURRENT: usize = 256;
/// Requests of one connection that are not light and have begun, or whose answers the client has not read. The rest wait, so that other
/// connections do not wait behind them.
const CONCURRENT_HEAVY: usize = 2;
/// Time for which a request may go on after its client has gone.
const ORPHAN_GRACE: Duration = Duration::from_secs(10);

/// Takes the requests of one connection.
pub(super) struct Requests {
    parts: Arc<SocketParts>,
    connection: Arc<Connection>,
    slots: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    share: Share,
    order: RequestOrder,
}

/// Request found in a frame.
enum ParsedRequest {
    /// A method that this version has.
    Call(MethodCall),
    /// A mistake to be answered.
    Mistake {
        id: String,
        /// Empty when it names none.
        method: String,
        error: ErrorShape,
    },
    /// Frame that can't be answered.
    Nothing,
}

/// A request that may be worked on.
struct MethodCall {
    id: String,
    method: &'static Method,
    row: &'static HandlerRow,
    params: Value,
}

impl Requests {
    pub(super) fn new(parts: Arc<SocketParts>, connection: Arc<Connection>) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        let (slots, heavy) = (semaphore(CONCURRENT), semaphore(CONCURRENT_HEAVY));
        let info = connection.info();
        let share = parts.work_budget.share(info.role, &info.scopes);
        Self { parts, connection, slots, heavy, share, order: RequestOrder::default() }
    }

    /// Waits until one more request may be worked on.
    pub(super) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    /// Answers a frame, or starts its handler. `held` is what the frame holds of the budget of large ones.
    pub(super) async fn take(&self, slot: OwnedSemaphorePermit, text: Utf8Bytes, held: Option<FrameBytes>) {
        match self.read(text).await {
            ParsedRequest::Call(call) => self.start(call, slot, held),
            ParsedRequest::Mistake { id, method, error } => {
                note_refusal(self.connection.info(), &method, &error);
                self.connection.respond(Response::failed(id, error));
            }
            ParsedRequest::Nothing => {
                tracing::debug!(conn = %self.connection.info().conn_id, "frame that is not JSON")
            }
        }
    }

    /// Reads a frame; a large one is read where it holds nobody up.
    async fn read(&self, text: Utf8Bytes) -> ParsedRequest {
        if text.len() <= SMALL as usize {
            return read(self.connection.info(), &text);
        }
        let connection = Arc::clone(&self.connection);
        let reading = tokio::task::spawn_blocking(move || read(connection.info(), &text));
        // The pool refuses only when the process ends.
        reading.await.unwrap_or(ParsedRequest::Nothing)
    }

    fn start(&self, call: MethodCall, slot: OwnedSemaphorePermit, held: Option<FrameBytes>) {
        let MethodCall { id, method, row, params } = call;
        let connection = Arc::clone(&self.connection);
        let context = RequestContext::new(Arc::clone(&connection), &id, held);
        let (methods, tasks) = (Arc::clone(&self.parts.methods), self.parts.tasks.clone());
        let span = tracing::info_span!("conn", id = %connection.info().conn_id, method = method.name);
        let (heavy, share) = (Arc::clone(&self.heavy), self.share.clone());
        let turn = row.in_order.then(|| self.order.turn());
        let work = async move {
            let _slot = slot;
            let begun = match method.weight {
                Weight::Light => None,
                weight => tokio::select! { biased;
                    () = connection.closing() => return,
                    begun = begin(heavy, &share, weight) => Some(begun),
                },
            };
            if let Some(mut turn) = turn {
                turn.comes().await;
                context.hold_turn(turn);
            }
            let orphaned = async {
                connection.closing().await;
                tokio::time::sleep(ORPHAN_GRACE).await;
            };
            tokio::select! {
                result = AssertUnwindSafe((row.handler)(methods, context.clone(), params)).catch_unwind() => {
                    let result = result.unwrap_or_else(|_| {
                        tracing::error!("the handler panicked");
                        Err(ErrorShape::unavailable("Error: internal error").into())
                    });
                    if let Err(failure) = &result {
                        note_refusal(connection.info(), method.name, &failure.error);
                    }
                    answer(&context, &connection, &share, &tasks, result, begun).await;
                }
                () = orphaned => tracing::debug!("given up: the client has gone"),
            }
        };
        self.parts.tasks.spawn(work.instrument(span));
    }
}

/// Permits that a request holds unless it is light.
struct Begun {
    /// Permit among the requests of its connection.
    _own: Option<OwnedSemaphorePermit>,
    /// Permit among all requests that are worked on.
    _place: Option<OwnedSemaphorePermit>,
}

/// Waits for both permits, first for that of its connection, so that a client with many requests
/// delays only itself.
async fn begin(own: Arc<Semaphore>, share: &Share, weight: Weight) -> Begun {
    // The semaphore is never closed.
    let own = own.acquire_owned().await.ok();
    Begun { _own: own, _place: share.begin(weight).await }
}

/// Sends the outcome. A large one waits until there is room for its bytes, and is given up together with the connection if the client
/// does not read it.
async fn answer(
    context: &RequestContext,
    connection: &Connection,
    share: &Share,
    tasks: &TaskTracker,
    mut result: HandlerResult,
    begun: Option<Begun>,
) {
    let Some(large) = payload_of(&mut result).filter(|payload| is_large(payload)) else {
        return context.finish(result, tasks);
    };
    context.let_go_of_frame();
    let sent = tokio::select! { biased;
        () = connection.closing() => return,
        sent = share.hold(large) => sent,
    };
    let bytes = sent.bytes;
    context.finish(result, tasks);
    let _own = begun.map(|Begun { _own, _place }| _own);
    tokio::select! { biased;
        () = connection.closing() => {}
        () = sent.given_back() => {}
        () = tokio::time::sleep(patience(bytes)) => connection.close(Closing::policy("slow consumer")),
    }
}

fn payload_of(result: &mut HandlerResult) -> Option<&mut Payload> {
    match result {
        Ok(payload) | Err(RequestFailure { payload: Some(payload), .. }) => Some(payload),
        Err(_) => None,
    }
}

fn read(info: &ConnectionInfo, text: &str) -> ParsedRequest {
    // `JSON.stringify` writes half a character where a text was cut within one.
    let mended = has_lone_surrogate(text).then(|| mend(text.as_bytes()));
    let request = match parse_inbound(mended.as_deref().unwrap_or(text)) {
        Inbound::Request(request) => request,
        Inbound::Invalid { id, error } => return ParsedRequest::Mistake { id, method: String::new(), error },
        Inbound::NotJson => return ParsedRequest::Nothing,
    };
    match check(info, &request) {
        Ok((method, row, params)) => ParsedRequest::Call(MethodCall { id: request.id, method, row, params }),
        Err(error) => ParsedRequest::Mistake { id: request.id, method: request.method, error },
    }
}

/// Role and scope come before everything else, so that nobody learns which methods exist, nor has params read for which
/// it may not ask.
fn check(
    info: &ConnectionInfo,
    request: &Envelope<'_>,
) -> Result<(&'static Method, &'static HandlerRow, Value), ErrorShape> {
    if request.method == Connect::NAME {
        return Err(ErrorShape::invalid("connect is only valid as the first request"));
    }
    access::authorize(info.role, &info.scopes, method::access(&request.method))?;
    let method = method::find(&request.method).ok_or_else(|| ErrorShape::unknown_method(&request.method))?;
    let missing = || ErrorShape::not_implemented(&request.method);
    let row = methods::find(&request.method).filter(|_| method.implemented()).ok_or_else(missing)?;
    let params = request.params()?;
    method.check(&params)?;
    Ok((method, row, params))
}

/// Characters of a text of the client's choosing that the log keeps.
const MOST_LOGGED: usize = 200;

/// Leaves a line for a refused request, at the level of OpenClaw 2026.2.9. Neither params nor answers are in it.
fn note_refusal(info: &ConnectionInfo, method: &str, error: &ErrorShape) {
    tracing::info!(
        method = utf16_head(method, MOST_LOGGED),
        code = error.code.as_str(),
        error = utf16_head(&error.message, MOST_LOGGED),
        conn = %info.conn_id,
        client = info.client.id.as_str(),
        "request refused",
    );
}
