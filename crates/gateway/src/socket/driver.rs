//! The task of one socket: handshake, then requests, with a writer beside it that sends the queued
//! frames.

use std::sync::Arc;
use std::time::Duration;

use bytes::Buf as _;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use openclaw_protocol::Payload;
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::event::ConnectChallenge;
use openclaw_protocol::frame::{Frame, Response};
use openclaw_protocol::params::connect::ClientMode;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as Side, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};

use super::SocketParts;
use super::batch::{Batch, WriteBatch};
use super::frame_gate::{FrameGate, Latch, Overstep};
use super::hello::hello;
use super::requests::Requests;
use crate::clock::now_ms;
use crate::connection::frame_budget::{FrameBytes, MAX_FRAME_BYTES, patience};
use crate::connection::outbound::{Outbound, OutboundStep};
use crate::connection::{ConnId, Connection, ConnectionInfo};
use crate::events::GatewayEvent;
use crate::fan_out::EventHub;
use crate::frame_text::FrameText;
use crate::handshake::client_address::{ClientAddress, Origination};
use crate::handshake::close::Closing;
use crate::handshake::machine::{Claim, ConnectAttempt, ConnectRefusal, judge};
use crate::handshake::settle::{AdmittedClient, Settlement, settle};
use crate::health::HealthMonitor;
use crate::pairing::{Announcement, Attempted, DeviceToken, PairingBook, PairingStoreError};
use crate::places::ConnectionPlace;

/// Time limit from the open socket to `hello-ok`.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which the first client waits for the first health snapshot.
const FIRST_HEALTH: Duration = Duration::from_millis(500);
/// Time that a client which is being closed has to read its queued messages.
const FLUSH_GRACE: Duration = Duration::from_secs(10);
/// Time that a client has to answer a close.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// Read buffer of a socket; the library's default of 128 KiB would dominate the memory of many clients.
const BUFFER_BYTES: usize = 8 * 1024;
/// Bytes that are written at once, and one frame more. Bytes that are about to be written can't
/// give way to newer frames any more.
const WRITTEN_AT_ONCE: usize = 32 * 1024;

type Io = TokioIo<Upgraded>;
/// Reading half as a WebSocket. Frames are written past it, because they would be copied into it.
type Socket = WebSocketStream<FrameGate<ReadHalf<Io>>>;

/// Drives a socket from its upgrade to its end.
pub(crate) async fn drive(
    upgraded: Upgraded,
    origination: Origination,
    place: ConnectionPlace,
    parts: Arc<SocketParts>,
) {
    let (reading, mut io) = tokio::io::split(TokioIo::new(upgraded));
    let (gate, latch) = FrameGate::closed(reading);
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_frame_size(Some(MAX_FRAME_BYTES))
        .max_message_size(Some(MAX_FRAME_BYTES));
    let mut socket = WebSocketStream::from_raw_socket(gate, Side::Server, Some(config)).await;
    let outbound = Arc::new(Outbound::default());
    let admitted = Mutex::new(None);
    let reader = SocketReader {
        socket: &mut socket,
        origination,
        latch,
        outbound: Arc::clone(&outbound),
        parts: Arc::clone(&parts),
    };
    let lost = place.lost();
    let evicted = async {
        lost.cancelled().await;
        if admitted.lock().is_some() {
            // The client was admitted at the last moment.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! { biased;
        // At once and without a word: whoever fills the places would only be owed more of them.
        () = evicted => return,
        () = run_both(reader.run(place, &admitted), write(&mut io, &outbound), &outbound) => {}
    }
    outbound.hang_up(Closing::policy("gone"));
    let connection = admitted.lock().take();
    if let Some(connection) = connection {
        leave(&parts, &connection);
    }
    linger(socket.into_inner().into_inner().unsplit(io)).await;
}

/// Ends a socket so that the client can still read the close: what it has sent beyond that is read and thrown away,
/// because a system that closes a socket with unread bytes resets it.
async fn linger(mut io: Io) {
    let ending = async {
        io.shutdown().await?;
        tokio::io::copy(&mut io.take(2 * MAX_FRAME_BYTES as u64), &mut tokio::io::sink()).await
    };
    // An error means that the client is gone, a timeout that it won't go: either way this was the end.
    let _ = timeout(CLOSE_GRACE, ending).await;
}

/// Future that finished first.
enum DriverExit {
    Reading,
    Writing,
    Patience,
}

/// Reads and writes until one of them is done, then lets the other finish what the close needs. Each is polled only when it has
/// something to do: to look for what may be read costs more than to send a word.
async fn run_both(
    reading: impl Future<Output = ()> + Send,
    writing: impl Future<Output = ()> + Send,
    outbound: &Outbound,
) {
    let patience = async {
        outbound.closing().await;
        sleep(FLUSH_GRACE).await;
    };
    let mut halves = FuturesUnordered::new();
    halves.push(reading.map(|()| DriverExit::Reading).boxed());
    halves.push(writing.map(|()| DriverExit::Writing).boxed());
    halves.push(patience.map(|()| DriverExit::Patience).boxed());
    match halves.next().await {
        // The client is gone or about to be, no matter if it got everything.
        Some(DriverExit::Reading) if outbound.is_closing() => {}
        // The close is sent, or nothing can be sent any more: wait for the client's answer, not for long.
        Some(DriverExit::Writing) => {}
        Some(DriverExit::Reading | DriverExit::Patience) | None => return,
    }
    let _ = timeout(CLOSE_GRACE, halves.next()).await;
}

/// Sends queued frames, as many as wait at once; ends after a close or when nothing can be sent any
/// more.
async fn write(io: &mut WriteHalf<Io>, outbound: &Outbound) {
    let mut batch = Batch::default();
    let mut unsent = 0;
    loop {
        let next = match unsent {
            _ if batch.is_empty() => outbound.next().await,
            0..=WRITTEN_AT_ONCE => outbound.take(),
            _ => OutboundStep::Wait,
        };
        match next {
            OutboundStep::Write(frame) => {
                unsent += frame.bytes;
                batch.text(frame.text);
            }
            OutboundStep::Pong(data) => batch.pong(&data),
            OutboundStep::Close(closing) => {
                batch.close(&closing);
                // The client may have gone; there is nobody to tell.
                let _ = io.write_all_buf(batch.parts()).await;
                return;
            }
            OutboundStep::Wait => {
                if write_in_time(io, batch.parts(), outbound).await.is_err() {
                    return;
                }
                batch = Batch::default();
                outbound.written(std::mem::take(&mut unsent));
            }
        }
    }
}

/// Writes a batch. A client that does not take it over the slowest line that is waited for is cut off
/// if more answers wait behind it than one may leave unread.
async fn write_in_time(
    io: &mut WriteHalf<Io>,
    batch: &mut WriteBatch,
    outbound: &Outbound,
) -> std::io::Result<()> {
    loop {
        let bytes = u32::try_from(batch.remaining()).unwrap_or(u32::MAX);
        match timeout(patience(bytes), io.write_all_buf(batch)).await {
            Ok(written) => return written,
            Err(_) if outbound.owes_answers() => outbound.close(Closing::policy("slow consumer")),
            Err(_) => {}
        }
    }
}

/// The reading half of a socket.
struct SocketReader<'a> {
    socket: &'a mut Socket,
    origination: Origination,
    latch: Latch,
    outbound: Arc<Outbound>,
    parts: Arc<SocketParts>,
}

impl SocketReader<'_> {
    async fn run(mut self, place: ConnectionPlace, admitted: &Mutex<Option<Arc<Connection>>>) {
        let (stopping, parts) = (Closing::stopping(), Arc::clone(&self.parts));
        let greeted = tokio::select! { biased;
            () = parts.stopping.cancelled() => return self.outbound.close(stopping),
            greeted = timeout(HANDSHAKE_TIMEOUT, self.handshake()) => greeted,
        };
        match greeted {
            Ok(Some(connection)) => {
                drop(place);
                *admitted.lock() = Some(Arc::clone(&connection));
                let info = connection.info();
                self.latch.admit(self.parts.frame_budget.allowance(info.role, &info.scopes));
                self.requests(connection).await;
            }
            Ok(None) => {}
            Err(_) => {
                tracing::info!(peer = %self.origination.peer, "handshake timeout");
                self.outbound.close(Closing::policy("handshake timeout"));
            }
        }
        self.until_closed().await;
    }

    /// Reads on so that the client's answer to a close is seen; what else it says is not heard.
    async fn until_closed(&mut self) {
        while let Some(Ok(_)) = self.socket.next().await {}
    }

    /// The next text of the client; `None` at its end, or when it broke the rules and is being closed.
    async fn next_text(&mut self) -> Option<Utf8Bytes> {
        loop {
            match self.socket.next().await? {
                // Bytes that are not UTF-8 are no JSON either, and neither is the empty text.
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                    return Some(message.into_text().unwrap_or_default());
                }
                Ok(Message::Ping(data)) => self.outbound.pinged(data),
                Ok(Message::Close(said)) => self.outbound.hang_up(closing_answer(said)),
                Ok(Message::Pong(_) | Message::Frame(_)) => {}
                Err(error) => {
                    self.broken(&error);
                    return None;
                }
            }
        }
    }

    fn broken(&self, error: &WsError) {
        let overstep = match error {
            WsError::Io(io) => io.get_ref().and_then(|inner| inner.downcast_ref::<Overstep>()),
            _ => None,
        };
        match (overstep, error) {
            (Some(Overstep::TooBig(_)), _) | (None, WsError::Capacity(_)) => {
                self.outbound.close(Closing::too_big());
            }
            (Some(slow @ Overstep::TooSlow), _) => self.outbound.close(Closing::policy(&slow.to_string())),
            (None, WsError::Utf8(_)) => self.outbound.close(Closing::policy("invalid request frame")),
            (None, _) => {}
        }
        tracing::debug!(peer = %self.origination.peer, %error, "socket ended");
    }

    /// Runs the handshake from the challenge to `hello-ok`; `None` when the client stays outside.
    async fn handshake(&mut self) -> Option<Arc<Connection>> {
        let nonce = uuid::Uuid::new_v4().to_string();
        let challenge = ConnectChallenge { nonce: nonce.clone(), ts: now_ms() };
        let frame = Frame::Event(openclaw_protocol::frame::Event::targeted("connect.challenge", challenge));
        self.outbound.respond(FrameText::whole(serde_json::to_string(&frame).unwrap_or_default()));
        let text = self.next_text().await?;
        match self.decide(&nonce, &text).await {
            Ok((claim, entry)) => {
                first_health(&self.parts.health).await;
                Some(self.enter(claim, entry))
            }
            Err(refusal) => {
                self.refuse(*refusal);
                None
            }
        }
    }

    async fn decide(
        &mut self,
        nonce: &str,
        text: &str,
    ) -> Result<(Claim, AdmittedClient), Box<ConnectRefusal>> {
        let door = self.parts.entrance.door_for(&self.origination);
        let address = ClientAddress::of(&self.origination, &door.addresses);
        let now = now_ms();
        let locked_for = self.parts.entrance.guesses().locked_for(address.ip, now);
        let attempt = ConnectAttempt { origination: &self.origination, address, nonce, locked_for, now };
        let outcome = match judge(&door, &attempt, text) {
            Ok(claim) => self.settle(claim).await,
            Err(refusal) => Err(refusal),
        };
        let mut throttle = self.parts.entrance.guesses();
        match &outcome {
            Ok(_) => throttle.succeeded(address.ip),
            Err(refusal) if refusal.is_guess => throttle.failed(address.ip, now),
            Err(_) => {}
        }
        outcome
    }

    async fn settle(&mut self, claim: Claim) -> Result<(Claim, AdmittedClient), Box<ConnectRefusal>> {
        let mut mint = || uuid::Uuid::new_v4().to_string();
        let settlement = if claim.device.verified().is_none() {
            settle(&claim, &mut PairingBook::default(), now_ms(), &mut mint)
        } else {
            let asked = claim.clone();
            let settled =
                self.parts.devices.attempt(move |book| settle(&asked, book, now_ms(), &mut mint)).await;
            let unavailable = |error: PairingStoreError| {
                tracing::error!(%error, "pairing failed");
                ConnectRefusal::answered(&claim.request_id, ErrorShape::unavailable(error.to_string()))
            };
            match settled.map_err(unavailable)? {
                Attempted { value, unwritten: None } => value,
                Attempted { value, unwritten: Some(error) } => {
                    tracing::warn!(%error, "what is known of a device that connects is not kept");
                    value.unkept().ok_or_else(|| unavailable(error))?
                }
            }
        };
        let Settlement { outcome, announcement } = settlement;
        if let Some(announcement) = announcement {
            announce(&self.parts.events, announcement);
        }
        outcome.map(|entry| (claim, entry))
    }

    fn refuse(&self, refusal: ConnectRefusal) {
        tracing::info!(peer = %self.origination.peer, code = refusal.closing.code, reason = %refusal.closing.reason, "connect refused");
        if let Some(response) = refusal.response {
            self.outbound.respond(FrameText::response(response));
        }
        self.outbound.close(refusal.closing);
    }

    /// Lets a client in: presence, `hello-ok`, events.
    fn enter(&self, claim: Claim, entry: AdmittedClient) -> Arc<Connection> {
        let AdmittedClient { scopes, token } = entry;
        let request_id = claim.request_id.clone();
        let info = connection_info(claim, scopes);
        let parts = &self.parts;
        let (client, mode, role) = (info.client.id.as_str(), info.client.mode.as_str(), info.role.as_str());
        let presence = info.presence_names().into_iter().next();
        if is_own_command(&info) {
            tracing::debug!(conn = %info.conn_id, client, mode, role, presence, "connected");
        } else {
            tracing::info!(conn = %info.conn_id, client, mode, role, presence, "connected");
        }
        let is_shown = parts.presence.connected(&info);
        if is_shown {
            parts.events.presence_changed();
        }
        let connection = Arc::new(Connection::new(info, Arc::clone(&self.outbound)));
        parts.events.admit(&connection, || self.greet(&connection, &request_id, token.as_ref()));
        if is_shown {
            parts.presence.tell_soon();
        }
        parts.health.refresh_later();
        connection
    }

    fn greet(&self, connection: &Connection, request_id: &str, token: Option<&DeviceToken>) {
        connection.greeted_with(self.parts.events.state_version().presence);
        // The answer always has a JSON form.
        if let Ok(payload) = Payload::of(&hello(&self.parts, connection.info(), token)) {
            connection.respond(Response::ok(request_id, payload));
        }
    }

    /// Takes requests until the socket ends or is to be closed. A client that doesn't read its answers is not heard
    /// until it does.
    async fn requests(&mut self, connection: Arc<Connection>) {
        let info = connection.info();
        self.outbound.share_room(self.parts.work_budget.share(info.role, &info.scopes).small_answers());
        let requests = Requests::new(Arc::clone(&self.parts), connection);
        let outbound = Arc::clone(&self.outbound);
        loop {
            let next = async {
                outbound.has_room().await;
                let slot = requests.slot().await?;
                let (text, held) = self.next_message().await?;
                Some((slot, text, held))
            };
            let next = tokio::select! { biased;
                () = outbound.closing() => return,
                next = next => next,
            };
            let Some((slot, text, held)) = next else { return };
            requests.take(slot, text, held).await;
        }
    }

    /// The next text of the client and what it holds of the budget.
    async fn next_message(&mut self) -> Option<(Utf8Bytes, Option<FrameBytes>)> {
        let text = self.next_text().await?;
        Some((text, self.latch.take_held()))
    }
}

fn closing_answer(said: Option<CloseFrame>) -> Closing {
    match said {
        Some(frame) => Closing::answer(Some(frame.code.into()), &frame.reason),
        None => Closing::answer(None, ""),
    }
}

fn connection_info(claim: Claim, scopes: Vec<String>) -> ConnectionInfo {
    ConnectionInfo {
        conn_id: ConnId::random(),
        role: claim.role,
        scopes,
        device_id: claim.device.verified().map(|device| device.id.clone()),
        client: claim.client,
        caps: claim.caps,
        remote_ip: claim.address.remote_ip(),
        is_local: claim.address.is_local,
        connected_at_ms: now_ms(),
    }
}

/// Makes the first health snapshot for a client that comes as soon as the gateway listens. A
/// snapshot that takes long is not waited for.
async fn first_health(health: &HealthMonitor) {
    if health.last().is_none() {
        drop(timeout(FIRST_HEALTH, health.look()).await);
    }
}

fn announce(events: &EventHub, announcement: Announcement) {
    let (name, payload) = match announcement {
        Announcement::Requested(pending) => ("device.pair.requested", Payload::of(&pending)),
        Announcement::Approved { request_id, device_id, ts } => {
            tracing::info!(device = %device_id, "device paired: it is on this host");
            let payload = serde_json::json!({
                "requestId": request_id, "deviceId": device_id, "decision": "approved", "ts": ts,
            });
            ("device.pair.resolved", Ok(Payload::from(payload)))
        }
    };
    if let Ok(payload) = payload {
        events.publish(GatewayEvent::named(name, payload));
    }
}

/// True for a command of this host's own command line: it connects only for a moment, and the
/// person who typed it knows.
fn is_own_command(info: &ConnectionInfo) -> bool {
    info.is_local && matches!(info.client.mode, ClientMode::Cli | ClientMode::Probe)
}

fn leave(parts: &SocketParts, connection: &Connection) {
    let info = connection.info();
    parts.events.remove(&info.conn_id);
    if is_own_command(info) {
        tracing::debug!(conn = %info.conn_id, "disconnected");
    } else {
        tracing::info!(conn = %info.conn_id, "disconnected");
    }
    if parts.presence.disconnected(info) {
        parts.events.presence_changed();
        parts.presence.tell_soon();
    }
}
