//! A platform that is down for a while.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Response;
use tokio::net::TcpStream;

use super::answer;
use crate::DEADLINE;

/// Outage that every caller meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Connections are refused; open ones have ended.
    Refuses,
    /// The proxy before the platform answers 502 with a page of its own.
    BadGateway,
}

impl Outage {
    pub(super) fn answer(self) -> Result<Response<Body>, std::io::Error> {
        match self {
            Self::Refuses => Err(std::io::Error::other("the platform is down")),
            Self::BadGateway => {
                let mut response = answer(502, &serde_json::Value::Null);
                *response.body_mut() = Body::from("<html><h1>502 Bad Gateway</h1></html>");
                Ok(response)
            }
        }
    }
}

/// Waits until an outage has begun.
pub(super) async fn is_so(address: SocketAddr, outage: Outage) {
    let begun = Instant::now();
    while outage == Outage::Refuses && TcpStream::connect(address).await.is_ok() {
        assert!(begun.elapsed() < DEADLINE, "{address} takes connections still");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
