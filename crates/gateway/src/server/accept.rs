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
use super::http::{Caller, respond};
use super::places::{Activity, Place};
use super::watched::Watched;

/// How long a client may take to send the head of a request, the first or one that follows on the same connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take nothing of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often that is looked at.
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
async fn serve(stream: TcpStream, peer: SocketAddr, place: Place, front: Arc<Front>) {
    // Small frames must not wait for each other; without it answers are merely slower.
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let io = Watched::new(stream, Arc::clone(place.activity()));
    let lost = place.lost();
    let ended = tokio::select! { biased;
        () = lost.cancelled() => return tracing::debug!(%peer, "connection ended: another one needed its place"),
        () = stalled(place.activity()) => return tracing::debug!(%peer, "connection ended: it takes nothing"),
        ended = serve_http(io, Caller { peer, local }, &front) => ended,
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
pub(crate) async fn serve_http<S>(io: S, caller: Caller, front: &Arc<Front>) -> hyper::Result<()>
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
