//! The same server behind TLS, where a client can choose HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{ClientPeer, ModelServer, app};

/// Second, TLS address of a [`ModelServer`]. It closes when dropped.
#[derive(Debug)]
pub struct OverTls {
    /// `https://127.0.0.1:<port>/v1`
    pub v1: String,
    /// The certificate, in PEM: whoever is to call must be told to trust it.
    pub certificate: String,
    task: tokio::task::JoinHandle<()>,
}

impl ModelServer {
    /// Opens a door with TLS, a certificate of its own, and HTTP/2 for those that ask.
    ///
    /// # Panics
    /// When no port or no certificate can be had: the test can't run.
    #[expect(clippy::expect_used, reason = "testkit: without a door there is no test")]
    pub async fn over_tls(&self) -> OverTls {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .expect("a certificate and its key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tcp = TcpListener::bind("127.0.0.1:0").await.expect("a free port on 127.0.0.1");
        let address = tcp.local_addr().expect("a bound socket has an address");
        let listener = TlsListener { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) };
        let service = app(&self.shared).into_make_service_with_connect_info::<ClientPeer>();
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, service).await;
        });
        OverTls { v1: format!("https://{address}/v1"), certificate: cert.pem(), task }
    }
}

impl Drop for OverTls {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    /// Accepts connections with one handshake after the other: tests have few clients.
    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.tcp).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

impl Connected<IncomingStream<'_, TlsListener>> for ClientPeer {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        Self(*stream.remote_addr())
    }
}
