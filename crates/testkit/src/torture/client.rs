//! A client that sends bursts of messages into sessions it shares with others and into one of its own, and sends again what it has not
//! seen end.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use tokio::sync::watch;

use crate::{Login, Received, TOKEN, WsClient};

/// Sessions that all clients share.
const SHARED: usize = 2;
/// Messages after which a client goes on in other sessions: every turn sends the whole history.
const MESSAGES: usize = 40;

/// Counts of what clients have seen so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClientCounts {
    pub(super) frames: usize,
    pub(super) acknowledged: usize,
}

#[derive(Debug)]
pub(super) struct Client {
    name: usize,
    next: usize,
    /// Sent and not seen to end, oldest first.
    open: Vec<String>,
    pub(super) accepted: BTreeSet<String>,
    chance: StdRng,
    seen: watch::Sender<ClientCounts>,
}

impl Client {
    pub(super) fn new(name: usize, seed: u64, seen: watch::Sender<ClientCounts>) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { name, next: 0, open: Vec::new(), accepted: BTreeSet::new(), chance, seen }
    }

    pub(super) fn name(&self) -> usize {
        self.name
    }

    /// Works until the connection is gone. An error is the gateway's mistake.
    pub(super) async fn live(mut self, port: u16) -> Result<Self> {
        if let Ok((mut socket, _)) = WsClient::connect(port, Login::token(TOKEN)).await {
            while self.burst(&mut socket).await? {}
        }
        Ok(self)
    }

    /// Runs a burst until its end. False when the connection is lost.
    async fn burst(&mut self, socket: &mut WsClient) -> Result<bool> {
        if self.open.is_empty() {
            for _ in 0..self.chance.random_range(1..4) {
                self.next += 1;
                self.open.push(format!("client-{}-{}", self.name, self.next));
            }
        }
        let mut asked = BTreeMap::new();
        for run in &self.open {
            let message = format!("please answer {run} now");
            let params = json!({"sessionKey": self.session(run), "message": message, "idempotencyKey": run});
            let Ok(id) = socket.send("chat.send", params).await else { return Ok(false) };
            asked.insert(id, run.clone());
        }
        let key = self.open.first().map(|run| self.session(run)).unwrap_or_default();
        let also = match self.chance.random_range(0..12) {
            0 => socket.send("chat.abort", json!({"sessionKey": key})).await,
            1 => socket.send("sessions.reset", json!({"key": key})).await,
            _ => Ok(String::new()),
        };
        if also.is_err() {
            return Ok(false);
        }
        while !self.open.is_empty() {
            let Ok(Received::Frame(frame)) = socket.receive().await else { return Ok(false) };
            self.seen.send_modify(|seen| seen.frames += 1);
            let payload = &frame["payload"];
            if let Some(run) = frame["id"].as_str().and_then(|id| asked.get(id)) {
                ensure!(frame["ok"] == true || frame["error"]["code"] == "UNAVAILABLE", "{run}: {frame}");
                if frame["ok"] == true {
                    self.accepted.insert(run.clone());
                    self.seen.send_modify(|seen| seen.acknowledged += 1);
                }
                if payload["status"] == "ok" {
                    self.open.retain(|open| open != run);
                }
            }
            let is_end = frame["event"] == "chat" && payload["state"] != "delta";
            if is_end && let Some(ended) = payload["runId"].as_str() {
                self.open.retain(|open| open != ended);
            }
        }
        Ok(true)
    }

    /// The same for the same message, whenever it is sent: one of those that are shared, or the client's own.
    fn session(&self, run: &str) -> String {
        let number = number(run).unwrap_or_default();
        let part = number / MESSAGES;
        match number % (SHARED + 1) {
            SHARED => format!("own-{}-{part}", self.name),
            shared => format!("shared-{shared}-{part}"),
        }
    }
}

/// The number of a client's message among its own.
pub(super) fn number(run: &str) -> Option<usize> {
    run.rsplit('-').next()?.parse().ok()
}
