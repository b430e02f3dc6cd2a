//! Accepting TCP connections and serving HTTP on them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use super::front::Front;
use super::http::{TcpEndpoints, respond};
use super::watched::Watched;
use crate::places::{Activity, ConnectionPlace};

/// Time that a client has to send the head of a request, the first or a later one on the same
/// connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a client may take nothing of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between checks of [`WRITE_TIMEOUT`].
const LOOK: Duration = Duration::from_secs(5);
/// Pause after the system refused to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Largest request head, the one of Node.
const HEAD_BYTES: usize = 16 * 1024;

/// Accepts until the gateway stops.
pub(crate) async fn run(listener: TcpListener, front: Arc<Front>) {
    loop {
        let accepted = tokio::select! { biased;
            () = front.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let place = front.places.enter(peer.ip());
                front.tasks.spawn(serve(stream, peer, place, Arc::clone(&front)));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // Most likely there are no files left.
                front.places.evict_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves a connection until it ends, becomes a WebSocket, takes nothing, or has to make room.
async fn serve(stream: TcpStream, peer: SocketAddr, place: ConnectionPlace, front: Arc<Front>) {
    // Small frames must not wait for each other; without it answers are merely slower.
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let io = Watched::new(stream, Arc::clone(place.activity()));
    let lost = place.lost();
    let ended = tokio::select! { biased;
        () = lost.cancelled() => return tracing::debug!(%peer, "connection ended: another one needed its place"),
        () = stalled(place.activity()) => return tracing::debug!(%peer, "connection ended: it takes nothing"),
        ended = serve_http(io, TcpEndpoints { peer, local }, &front) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

/// Resolves when the client has taken nothing of its answer for too long.
async fn stalled(activity: &Activity) {
    while !activity.is_stalled(WRITE_TIMEOUT) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Speaks HTTP until the client is done or the gateway stops.
pub(crate) async fn serve_http<S>(io: S, caller: TcpEndpoints, front: &Arc<Front>) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service_front = Arc::clone(front);
    let service = service_fn(move |request| {
        let front = Arc::clone(&service_front);
        async move { Ok::<_, Infallible>(respond(request, caller, &front).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => ended,
        () = front.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::origin::PageRules;
    use crate::places::{ConnectionLimits, PlaceLimits};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const CALLER: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

    fn front() -> Arc<Front> {
        let some = ConnectionLimits { per_address: 1, remote: 1, all: 1 };
        let limits = PlaceLimits { connections: some, handshakes: some };
        Arc::new(Front::new(PageRules::default(), limits))
    }

    /// Simulates a client that has asked so many times at once; returns the gateway's side, with as
    /// much room for its answers as for its requests.
    async fn asked(
        front: &Arc<Front>,
        times: usize,
    ) -> (DuplexStream, ConnectionPlace, Watched<DuplexStream>) {
        let requests = REQUEST.repeat(times);
        let (mut theirs, ours) = duplex(requests.len().max(4_096));
        let place = front.places.enter(CALLER.0.into());
        let watched = Watched::new(ours, Arc::clone(place.activity()));
        theirs.write_all(&requests).await.unwrap();
        (theirs, place, watched)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_more_is_asked_ends() {
        let front = front();
        let (mut theirs, place, ours) = asked(&front, 1).await;
        let caller = TcpEndpoints { peer: CALLER.into(), local: CALLER.into() };
        let mut answer = Vec::new();
        let (_, read) = tokio::join!(serve_http(ours, caller, &front), theirs.read_to_end(&mut answer));
        read.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
        assert!(!place.activity().is_stalled(Duration::ZERO), "it took its answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_takes_nothing_of_its_answer_ends() {
        let front = front();
        let (_theirs, place, ours) = asked(&front, 1_000).await;
        let caller = TcpEndpoints { peer: CALLER.into(), local: CALLER.into() };
        let began = tokio::time::Instant::now();
        tokio::select! {
            ended = serve_http(ours, caller, &front) => panic!("{ended:?} before it stalled"),
            () = stalled(place.activity()) => {}
        }
        assert!(began.elapsed() >= WRITE_TIMEOUT && began.elapsed() <= WRITE_TIMEOUT + LOOK);
    }
}
