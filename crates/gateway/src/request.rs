//! Input and output of method handlers.

pub(crate) mod order;

use std::sync::Arc;

use openclaw_dispatch::{Placed, Receipt};
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::frame::Response;
use openclaw_protocol::params::connect::ConnectParams;
use openclaw_protocol::{Payload, RunId};
use parking_lot::Mutex;
use tokio::task::JoinError;
use tokio_util::task::TaskTracker;

use crate::ack_pause;
use crate::connection::frame_budget::FrameBytes;
use crate::connection::{Connection, ConnectionInfo};
use crate::fan_out::EventHub;
use order::RequestTurn;

/// Outcome of a handler: the payload of the successful response, or the failure.
pub type HandlerResult = Result<Payload, RequestFailure>;

/// A failed request. `agent` and `chat.send` also say what there is.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestFailure {
    /// The `error` of the response.
    pub error: ErrorShape,
    /// The `payload` of the failed response.
    pub payload: Option<Payload>,
}

impl RequestFailure {
    /// A failure that also carries a payload.
    pub fn with_payload(error: ErrorShape, payload: Payload) -> Self {
        Self { error, payload: Some(payload) }
    }
}

impl From<ErrorShape> for RequestFailure {
    fn from(error: ErrorShape) -> Self {
        Self { error, payload: None }
    }
}

impl From<serde_json::Error> for RequestFailure {
    fn from(error: serde_json::Error) -> Self {
        ErrorShape::unavailable(format!("Error: {error}")).into()
    }
}

impl From<JoinError> for RequestFailure {
    fn from(error: JoinError) -> Self {
        ErrorShape::unavailable(format!("Error: {error}")).into()
    }
}

/// Authorised, validated request on its way through a handler. Dropped when its connection ends.
#[derive(Clone)]
pub struct RequestContext {
    connection: Arc<Connection>,
    request_id: Arc<str>,
    held: Arc<Mutex<RequestResources>>,
}

/// Resources that a request holds until it is answered.
#[derive(Default)]
struct RequestResources {
    receipt: Option<Receipt>,
    frame: Option<FrameBytes>,
    turn: Option<RequestTurn>,
}

impl RequestContext {
    pub(crate) fn new(connection: Arc<Connection>, request_id: &str, frame: Option<FrameBytes>) -> Self {
        let held = Arc::new(Mutex::new(RequestResources { receipt: None, frame, turn: None }));
        Self { connection, request_id: Arc::from(request_id), held }
    }

    /// Facts about the client that asks.
    pub fn connection(&self) -> &ConnectionInfo {
        self.connection.info()
    }

    /// Sends a successful response ahead of the final one: the `agent` acknowledgement. The request
    /// is kept elsewhere by then; its frame no longer counts.
    pub fn respond_early(&self, payload: &Payload) {
        self.connection.respond(Response::ok(&*self.request_id, payload.clone()));
        self.let_go_of_frame();
    }

    /// Gives back what the frame of the request holds.
    pub(crate) fn let_go_of_frame(&self) {
        self.held.lock().frame = None;
    }

    /// Registers the caller for the tool events of a run, if it has the cap `tool-events`.
    pub(crate) fn listen_to_tools(&self, events: &EventHub, run_id: &RunId) {
        if self.connection().has_cap(ConnectParams::TOOL_EVENTS) {
            events.listen_to_tools(run_id, self.connection().conn_id.clone());
        }
    }

    /// Keeps the request's turn among those of its connection until it has its place in its session, or is answered.
    pub(crate) fn hold_turn(&self, turn: RequestTurn) {
        self.held.lock().turn = Some(turn);
    }

    /// Waits for the outcome of a request that has its place in its session: the connection's next
    /// one may take its own.
    pub(crate) async fn outcome<T: Send + 'static>(&self, placed: Placed<T>) -> T {
        self.held.lock().turn = None;
        placed.outcome().await
    }

    /// Keeps the receipt of an accepted message until the response is queued: the run begins after it.
    pub(crate) fn hold(&self, receipt: Receipt) {
        self.held.lock().receipt = Some(receipt);
    }

    /// Sends the final response. A run that begins after it may be held back a moment, by one of
    /// the `tasks`.
    pub(crate) fn finish(&self, result: HandlerResult, tasks: &TaskTracker) {
        let response = match result {
            Ok(payload) => Response::ok(&*self.request_id, payload),
            Err(RequestFailure { error, payload }) => {
                Response { id: self.request_id.to_string(), ok: false, payload, error: Some(error) }
            }
        };
        self.connection.respond(response);
        let RequestResources { receipt, frame: _, turn: _ } = std::mem::take(&mut *self.held.lock());
        if let Some(receipt) = receipt {
            ack_pause::release(receipt, &self.connection().client, tasks);
        }
    }
}
