//! Accepting TCP connections and serving HTTP on them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::server::front::Front;
use crate::server::http::{Caller, respond};

/// How long a client may take to send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// TCP connections served at once, WebSockets not counted once they are open.
const HTTP_CONNECTIONS: usize = 2_048;
/// Pause after the system refused to accept (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Largest request head.
const HEAD_BYTES: usize = 64 * 1024;

/// Accepts until the gateway stops.
pub(crate) async fn run(listener: TcpListener, front: Arc<Front>) {
    let places = Arc::new(Semaphore::new(HTTP_CONNECTIONS));
    loop {
        let accepted = tokio::select! { biased;
            () = front.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Over the limit the connection is dropped at once: waiting would only fill the system's queue.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let served = Arc::clone(&front);
        front.tasks.spawn(async move {
            serve(stream, peer, served).await;
            drop(place);
        });
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, front: Arc<Front>) {
    // Small frames must not wait for each other; without it answers are merely slower.
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let caller = Caller { peer, local };
    let service_front = Arc::clone(&front);
    let service = service_fn(move |request| {
        let front = Arc::clone(&service_front);
        async move { Ok::<_, Infallible>(respond(request, caller, &front).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = front.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}
