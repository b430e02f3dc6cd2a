//! Doors for the fuzz targets in `fuzz/`: what strangers reach, without a socket. Nothing else uses them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::settings::{AuthKind, ControlUi};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::handshake::SharedSecret;
use crate::handshake::client_address::{AddressBook, ClientAddress, Origination};
use crate::handshake::machine::{ConnectAttempt, Door, Proof, judge};
use crate::handshake::origin::PageRules;
use crate::handshake::settle::settle;
use crate::pairing::PairingBook;
use crate::places::{ConnectionLimits, PlaceLimits};
use crate::secret_digest::SecretDigest;
use crate::server::accept::serve_http;
use crate::server::front::Front;
use crate::server::http::TcpEndpoints;
use crate::state::GatewayState;

/// Largest number of bytes read of one answer. The web UI's largest file is a tenth of it.
const MOST_READ: u64 = 1024 * 1024;
/// Time for which one input may keep the gateway busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opening message of a stranger on a fresh socket.
#[derive(Debug)]
pub struct Stranger<'a> {
    /// True if the stranger comes over the network.
    pub is_remote: bool,
    /// `Host`
    pub host: Option<&'a str>,
    /// `Origin`
    pub origin: Option<&'a str>,
    /// `X-Forwarded-For`
    pub forwarded_for: Option<&'a str>,
    /// First frame.
    pub frame: &'a str,
}

/// True if a gateway with this token and an empty pairing book lets a stranger in.
pub fn handshake(token: &str, stranger: &Stranger<'_>) -> bool {
    let remote: IpAddr = [192, 0, 2, 7].into();
    let loopback: IpAddr = [127, 0, 0, 1].into();
    let peer = SocketAddr::new(if stranger.is_remote { remote } else { loopback }, 40_000);
    let mut origination = Origination::bare(peer, SocketAddr::new(loopback, 18_789));
    origination.host = stranger.host.map(str::to_owned);
    origination.origin = stranger.origin.map(str::to_owned);
    origination.forwarded_for = stranger.forwarded_for.map(str::to_owned);
    let door = Door {
        secret: SharedSecret { kind: AuthKind::Token, digest: Some(SecretDigest::of(token)) },
        addresses: AddressBook {
            trusted_proxies: vec![loopback.into()],
            own: vec![remote],
            names: vec!["box".to_owned()],
        },
        control_ui: ControlUi::default(),
        pages: PageRules::new("box", &["https://ui.example.com".to_owned()]),
    };
    let address = ClientAddress::of(&origination, &door.addresses);
    let attempt =
        ConnectAttempt { origination: &origination, address, nonce: "nonce", locked_for: None, now: 0 };
    let Ok(claim) = judge(&door, &attempt, stranger.frame) else { return false };
    let knows_token = claim.proof == Proof::Shared;
    let settled = settle(&claim, &mut PairingBook::default(), 0, &mut || "00000000-id".to_owned());
    settled.outcome.is_ok() && knows_token
}

/// The HTTP side of a gateway.
#[derive(Debug)]
pub struct Http {
    front: Arc<Front>,
}

impl Http {
    /// HTTP side of a running gateway.
    pub fn of(state: &GatewayState) -> Self {
        let limits = ConnectionLimits { per_address: 1, remote: 1, all: 1 };
        let limits = PlaceLimits { connections: limits, handshakes: limits };
        let front = Arc::new(Front::new(PageRules::new("box", &[]), limits));
        front.open(Arc::clone(&state.served));
        Self { front }
    }

    /// Sends bytes over a connection of their own, then nothing more. Gives what was answered; nothing when the connection
    /// did not end.
    pub async fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        let caller =
            TcpEndpoints { peer: ([127, 0, 0, 1], 40_000).into(), local: ([127, 0, 0, 1], 18_789).into() };
        let (reading, mut writing) = tokio::io::split(theirs);
        let asking = async {
            // The gateway may end the connection before all of it is sent.
            let _ = writing.write_all(bytes).await;
            let _ = writing.shutdown().await;
        };
        let mut answer = Vec::new();
        let hearing = async {
            // A connection that broke has been answered as well.
            let _ = reading.take(MOST_READ).read_to_end(&mut answer).await;
        };
        let serving = async {
            // Errors in the bytes are the client's business.
            let _ = serve_http(ours, caller, &self.front).await;
        };
        let all = async { tokio::join!(serving, asking, hearing) };
        tokio::time::timeout(PATIENCE, all).await.ok()?;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_token_is_let_in() {
        let frame = |token: &str| {
            serde_json::json!({"type": "req", "id": "1", "method": "connect", "params": {
                "minProtocol": 3, "maxProtocol": 3, "auth": {"token": token},
                "client": {"id": "test", "version": "1", "platform": "x", "mode": "test"},
            }})
            .to_string()
        };
        for (given, origin, expect) in
            [("right", None, true), ("wrong", None, false), ("right", Some("http://evil.example"), false)]
        {
            let frame = frame(given);
            let stranger =
                Stranger { is_remote: true, host: Some("box"), origin, forwarded_for: None, frame: &frame };
            assert_eq!(handshake("right", &stranger), expect, "{given} {origin:?}");
        }
    }
}
