//! The requests of an authenticated connection: checked, then each on its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use openclaw_protocol::access;
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::frame::{Inbound, Request, Response, parse_inbound};
use openclaw_protocol::method::{self, Method};
use openclaw_protocol::params::Call;
use openclaw_protocol::params::connect::Connect;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tracing::Instrument;

use super::Connection;
use crate::methods::{self, Handler};
use crate::request::RequestContext;
use crate::state::GatewayState;

/// Requests of one connection that are worked on at once; further ones wait in the socket.
const CONCURRENT: usize = 256;
/// Methods whose answers may be megabytes.
const HEAVY: [&str; 6] =
    ["chat.history", "config.get", "config.schema", "logs.tail", "sessions.list", "sessions.preview"];
/// Of which one connection has this many worked on at once: an answer that is not made yet takes no memory.
const CONCURRENT_HEAVY: usize = 4;
/// Frames over this size are read on a blocking thread, in bytes.
const BIG_FRAME: usize = 128 * 1024;
/// How long a request may go on after its client has gone.
const ORPHAN_GRACE: Duration = Duration::from_secs(10);

/// Takes the requests of one connection.
pub(super) struct Requests {
    state: Arc<GatewayState>,
    connection: Arc<Connection>,
    slots: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
}

/// What a frame asks for.
enum Asked {
    /// A method that this version has.
    Call(Handler, Request),
    /// A mistake to be answered.
    Mistake(String, ErrorShape),
    /// Nothing that could be answered.
    Nothing,
}

impl Requests {
    pub(super) fn new(state: Arc<GatewayState>, connection: Arc<Connection>) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { state, connection, slots: semaphore(CONCURRENT), heavy: semaphore(CONCURRENT_HEAVY) }
    }

    /// Answers a frame, or starts its handler. Waits when too many are under way.
    pub(super) async fn take(&self, text: Utf8Bytes) {
        match self.read(parse(text).await) {
            Asked::Call(handler, request) => {
                // The semaphore is never closed.
                let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
                self.start(handler, request, slot);
            }
            Asked::Mistake(id, error) => self.connection.respond(Response::<Value>::failed(id, error)),
            Asked::Nothing => {
                tracing::debug!(conn = %self.connection.info().conn_id, "frame that is not JSON")
            }
        }
    }

    fn read(&self, inbound: Inbound) -> Asked {
        let request = match inbound {
            Inbound::Request(request) => request,
            Inbound::Invalid { id, error } => return Asked::Mistake(id, error),
            Inbound::NotJson => return Asked::Nothing,
        };
        match self.check(&request) {
            Ok(handler) => Asked::Call(handler, request),
            Err(error) => Asked::Mistake(request.id, error),
        }
    }

    /// Role and scope come before everything else, so that nobody learns which methods exist.
    fn check(&self, request: &Request) -> Result<Handler, ErrorShape> {
        if request.method == Connect::NAME {
            return Err(ErrorShape::invalid("connect is only valid as the first request"));
        }
        let info = self.connection.info();
        access::authorize(info.role, &info.scopes, &request.method)?;
        let method =
            method::find(&request.method).ok_or_else(|| ErrorShape::unknown_method(&request.method))?;
        let missing = || ErrorShape::not_implemented(&request.method);
        let handler = methods::find(&request.method).filter(|_| method.implemented()).ok_or_else(missing)?;
        check_params(method, request.params.as_ref())?;
        Ok(handler)
    }

    fn start(&self, handler: Handler, request: Request, slot: OwnedSemaphorePermit) {
        let context = RequestContext::new(Arc::clone(&self.state), Arc::clone(&self.connection), &request.id);
        let span =
            tracing::info_span!("conn", id = %self.connection.info().conn_id, method = %request.method);
        let params = request.params.unwrap_or_else(|| Value::Object(Map::new()));
        let connection = Arc::clone(&self.connection);
        let heavy = HEAVY.contains(&request.method.as_str()).then(|| Arc::clone(&self.heavy));
        let work = async move {
            let _slot = slot;
            let _turn = match heavy {
                // The semaphore is never closed.
                Some(heavy) => tokio::select! { biased;
                    () = connection.closing() => return,
                    turn = heavy.acquire_owned() => turn.ok(),
                },
                None => None,
            };
            let orphaned = async {
                connection.closing().await;
                tokio::time::sleep(ORPHAN_GRACE).await;
            };
            tokio::select! {
                result = AssertUnwindSafe(handler(context.clone(), params)).catch_unwind() => {
                    context.finish(result.unwrap_or_else(|_| {
                        tracing::error!("the handler panicked");
                        Err(ErrorShape::unavailable("Error: internal error").into())
                    }));
                }
                () = orphaned => tracing::debug!("given up: the client has gone"),
            }
        };
        self.state.tasks.spawn(work.instrument(span));
    }
}

/// Reads a frame; a big one where it holds nobody up.
async fn parse(text: Utf8Bytes) -> Inbound {
    if text.len() <= BIG_FRAME {
        return parse_inbound(&text);
    }
    // The pool refuses only when the process ends.
    tokio::task::spawn_blocking(move || parse_inbound(&text)).await.unwrap_or(Inbound::NotJson)
}

fn check_params(method: &Method, params: Option<&Value>) -> Result<(), ErrorShape> {
    match params {
        Some(params) => method.check(params),
        None => method.check(&Value::Object(Map::new())),
    }
}
