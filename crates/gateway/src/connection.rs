//! Connections of authenticated clients: the known facts of each, its send queue, and the limits on
//! its messages. [`crate::socket`] drives the socket of one.

pub(crate) mod frame_budget;
mod info;
pub(crate) mod outbound;

use std::sync::{Arc, OnceLock};

use openclaw_protocol::frame::Response;
use openclaw_protocol::{ErrorShape, Payload};

pub use info::{ConnId, ConnectionInfo};
pub use outbound::{HARD_BYTES, Pushed, SLOW_BYTES};

use crate::events::EncodedEvent;
use crate::frame_text::FrameText;
use crate::handshake::close::Closing;
use frame_budget::MAX_FRAME_BYTES;
use outbound::Outbound;

/// An authenticated connection: what events and handlers need of it.
#[derive(Debug)]
pub struct Connection {
    info: ConnectionInfo,
    outbound: Arc<Outbound>,
    /// The version of the presence list in its `hello-ok`.
    greeted: OnceLock<u64>,
}

impl Connection {
    pub(crate) fn new(info: ConnectionInfo, outbound: Arc<Outbound>) -> Self {
        Self { info, outbound, greeted: OnceLock::new() }
    }

    /// Facts about the connected client.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// Notes which version of the presence list the client was given first.
    pub(crate) fn greeted_with(&self, presence: u64) {
        // Set only once: a client is greeted once.
        let _ = self.greeted.set(presence);
    }

    /// True if the client got this version of the presence list, or a newer one, in its `hello-ok`.
    pub(crate) fn knows_presence(&self, version: u64) -> bool {
        self.greeted.get().is_some_and(|greeted| *greeted >= version)
    }

    /// Queues a response; one that fits in no frame is replaced by an error that says so. Clients
    /// end the connection at a bigger frame, and nobody would know why.
    pub(crate) fn respond(&self, response: Response<Payload>) {
        let id = response.id.clone();
        let text = FrameText::response(response);
        if text.len() <= MAX_FRAME_BYTES {
            return self.outbound.respond(text);
        }
        tracing::warn!(conn = %self.info.conn_id, bytes = text.len(), "an answer is too big to be sent");
        self.outbound.respond(FrameText::response(Response::failed(id, too_big(text.len()))));
    }

    /// Queues a numbered event.
    pub(crate) fn broadcast(&self, event: &Arc<EncodedEvent>) -> Pushed {
        self.outbound.broadcast(event)
    }

    /// Queues an event without number.
    pub(crate) fn target(&self, event: &Arc<EncodedEvent>) -> Pushed {
        self.outbound.target(event)
    }

    /// Closes the connection after the queued frames.
    pub fn close(&self, closing: Closing) {
        self.outbound.close(closing);
    }

    /// Resolves when the connection is to be closed; handlers that wait for long stop then.
    pub async fn closing(&self) {
        self.outbound.closing().await;
    }
}

fn too_big(bytes: usize) -> ErrorShape {
    const MIB: usize = 1024 * 1024;
    let (has, most) = (bytes.div_ceil(MIB), MAX_FRAME_BYTES / MIB);
    ErrorShape::invalid(format!(
        "the answer has {has} MiB, a frame has {most} MiB at most; ask for less, for instance with a limit"
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn an_answer_that_no_frame_holds_becomes_an_error() {
        let outbound = Arc::new(Outbound::default());
        let connection = Connection::new(connection(Role::Operator, &[]), Arc::clone(&outbound));
        connection.respond(Response::ok("r1", Payload::of(&"x".repeat(MAX_FRAME_BYTES)).unwrap()));
        connection.respond(Response::ok("r2", Payload::of("small").unwrap()));
        let sent = || match outbound.take() {
            outbound::OutboundStep::Write(frame) => frame.text.to_string(),
            other => panic!("{other:?}"),
        };
        let (first, second) = (sent(), sent());
        assert!(
            first.len() < 300 && first.contains("\"r1\"") && first.contains("INVALID_REQUEST"),
            "{first}"
        );
        assert!(first.contains("the answer has 26 MiB, a frame has 25 MiB at most"), "{first}");
        assert!(second.contains("small"), "the connection lives: {second}");
    }

    use openclaw_protocol::access::Role;
    use openclaw_protocol::params::NonEmpty;
    use openclaw_protocol::params::connect::{ClientDescription, ClientId, ClientMode};

    /// A client for tests.
    pub(crate) fn client(id: ClientId, mode: ClientMode) -> ClientDescription {
        ClientDescription {
            id,
            display_name: None,
            version: NonEmpty("1.0.0".to_owned()),
            platform: NonEmpty("linux".to_owned()),
            device_family: None,
            model_identifier: None,
            mode,
            instance_id: None,
        }
    }

    /// A connection for tests.
    pub(crate) fn connection(role: Role, scopes: &[&str]) -> ConnectionInfo {
        ConnectionInfo {
            conn_id: ConnId::random(),
            role,
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            client: client(ClientId::Test, ClientMode::Test),
            caps: Vec::new(),
            device_id: None,
            remote_ip: None,
            is_local: true,
            connected_at_ms: 0,
        }
    }

    pub(crate) fn with_caps(mut info: ConnectionInfo, caps: &[&str]) -> ConnectionInfo {
        info.caps = caps.iter().map(|cap| (*cap).to_owned()).collect();
        info
    }
}
