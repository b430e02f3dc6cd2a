//! A gateway with everything around it, and its lives.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::{Client, ClientCounts};
use super::downtime::Downtime;
use super::model::{self, ModelCounts};
use super::people::{self, People};
use super::steps::KillStep;
use super::{Plan, Tally, check};
use crate::model_server::ModelServer;
use crate::telegram::{Moment, TelegramServer};
use crate::{GatewaySetup, GatewayUnderTest};

const CLIENTS: usize = 3;
/// Announce modes of sub-agents, one a chapter.
const ANNOUNCES: [&str; 3] = ["step", "raw", "summary"];
/// Time to wait for the first message of a burst.
const FIRST: Duration = Duration::from_millis(500);
/// Share of lives that end with an orderly stop.
const STOPS: f64 = 0.1;
/// A delivery that was tried so often without success is waited for before the next kill: after five tries it would be given up.
const TRIES: usize = 2;

pub(super) struct World {
    pub(super) gateway: GatewayUnderTest,
    pub(super) server: TelegramServer,
    pub(super) people: People,
    pub(super) clients: Vec<Client>,
    /// Largest number of runs that read a message.
    times: usize,
    _model: ModelServer,
    asked: watch::Receiver<ModelCounts>,
    seen: watch::Receiver<ClientCounts>,
}

/// A life of the gateway.
pub(super) struct GatewayLife {
    /// The name of the step at which it was killed.
    pub(super) step: &'static str,
    /// True if it was asked to end (`SIGTERM`) instead of killed.
    pub(super) was_stopped: bool,
    /// True if the platform was down when it was killed and while the next one started.
    pub(super) was_down: bool,
}

/// Counts before a round.
pub(super) struct Counts {
    pub(super) brought: usize,
    pub(super) confirmed: usize,
    pub(super) typing: usize,
    pub(super) sending: usize,
    pub(super) sent: usize,
    pub(super) asked: ModelCounts,
    pub(super) seen: ClientCounts,
}

impl World {
    pub(super) async fn start(plan: &Plan, mode: &str, seed: u64) -> Result<Self> {
        let server = TelegramServer::start().await;
        let (model, asked) = model::start(plan.children).await;
        // In every other chapter what is typed at once is one message.
        let gathered = if seed.is_multiple_of(2) { 0 } else { 80 };
        let at = usize::try_from(seed).unwrap_or_default() % ANNOUNCES.len();
        let telegram = json!({
            "botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"],
            "groupPolicy": "open", "groups": {"*": {"requireMention": false}},
        });
        let config = json!({
            "channels": {"telegram": telegram},
            "session": {"dmScope": "per-peer"},
            "agents": {"defaults": {"subagents": {"announceMode": ANNOUNCES[at], "maxConcurrent": 4}}},
            "messages": {"queue": {"mode": mode, "debounceMs": 50}, "inbound": {"debounceMs": gathered}},
        });
        let setup = GatewaySetup::new(&plan.program).fake_model(&model.v1()).config(config);
        let gateway = setup.start().await?;
        let (told, seen) = watch::channel(ClientCounts::default());
        let clients = (0..CLIENTS).map(|name| {
            let seed = seed.wrapping_mul(31).wrapping_add(u64::try_from(name).unwrap_or_default());
            Client::new(name, seed, told.clone())
        });
        let clients = clients.collect();
        let times = if mode == "steer-backlog" { 2 } else { 1 };
        Ok(Self { gateway, server, people: People::default(), clients, times, _model: model, asked, seen })
    }

    /// Runs one life of the gateway, until it is killed at a step.
    pub(super) async fn live_and_die(&mut self, step: KillStep, chance: &mut StdRng) -> Result<GatewayLife> {
        self.spare().await;
        let brought = self.server.count(Moment::Brought);
        let mut lives = JoinSet::new();
        for client in self.clients.drain(..) {
            lives.spawn(client.live(self.gateway.port()));
        }
        people::fail(&self.server, chance);
        let later = self.people.write(&self.server, chance);
        if !later.is_empty() {
            // The message may not come, after a failure.
            let _ = tokio::time::timeout(FIRST, self.server.counted(Moment::Brought, brought + 1)).await;
        }
        for update in later {
            tokio::time::sleep(Duration::from_millis(chance.random_range(5..40))).await;
            self.server.push(update);
        }
        let before = self.counts();
        let outage = Downtime::by_chance(step, chance);
        let down = async {
            if let Some(outage) = &outage {
                outage.begin(&self.server, &before).await;
            }
        };
        let (name, ()) = tokio::join!(step.reached(self, &before, chance), down);
        let was_stopped = chance.random_bool(STOPS);
        match was_stopped {
            true => drop(self.gateway.terminate().await?),
            false => self.gateway.kill().await?,
        }
        while let Some(client) = lives.join_next().await {
            self.clients.push(client??);
        }
        self.clients.sort_by_key(Client::name);
        if step == KillStep::Starting {
            self.gateway.launch()?;
            tokio::time::sleep(Duration::from_micros(chance.random_range(0..250_000))).await;
            self.gateway.kill().await?;
        }
        self.gateway.start().await.context("the gateway does not start after a kill")?;
        if let Some(outage) = &outage {
            outage.end(&self.server).await;
        }
        Ok(GatewayLife { step: name, was_down: outage.is_some(), was_stopped })
    }

    /// Waits for texts that the platform was asked to take more than once, so that no accident of kills and faults makes five of it.
    async fn spare(&self) {
        let mut tried: Vec<String> =
            self.server.calls("sendMessage").iter().flat_map(|call| texts_in(&call.params)).collect();
        let seen: BTreeSet<String> = self.server.made().iter().flat_map(texts_in).collect();
        tried.retain(|run| !seen.contains(run));
        tried.sort();
        let often = tried.chunk_by(|one, other| one == other).filter(|same| same.len() >= TRIES);
        let often: Vec<&String> = often.filter_map(<[String]>::first).collect();
        if often.is_empty() {
            return;
        }
        self.server.heal();
        let are_seen = self.server.sees(|made| {
            let seen: BTreeSet<String> = made.iter().flat_map(texts_in).collect();
            often.iter().all(|run| seen.contains(*run))
        });
        // Missing messages are found at the end.
        let _ = tokio::time::timeout(Duration::from_secs(30), are_seen).await;
    }

    fn counts(&self) -> Counts {
        let server = &self.server;
        Counts {
            brought: server.count(Moment::Brought),
            confirmed: server.count(Moment::Confirmed),
            typing: server.count(Moment::Called("sendChatAction")),
            sending: server.count(Moment::Called("sendMessage")),
            sent: server.count(Moment::Answered("sendMessage")),
            asked: *self.asked.borrow(),
            seen: *self.seen.borrow(),
        }
    }

    pub(super) async fn was_asked(&self, is_there: impl FnMut(&ModelCounts) -> bool) {
        // The model lives as long as the world.
        let _ = self.asked.clone().wait_for(is_there).await;
    }

    pub(super) async fn was_seen(&self, is_there: impl FnMut(&ClientCounts) -> bool) {
        let _ = self.seen.clone().wait_for(is_there).await;
    }

    /// Lets everything come to its end, and checks it.
    pub(super) async fn settle(self, tally: &mut Tally) -> Result<()> {
        self.server.heal();
        let home = self.gateway.home().to_owned();
        let World { mut gateway, server, people, clients, times, _model: model, .. } = self;
        let checked = check::all(&mut gateway, &server, &people, &clients, times, tally).await;
        drop(model);
        if checked.is_err() {
            gateway.keep();
        }
        checked.with_context(|| format!("what it left is kept in {}", home.display()))
    }
}

/// Numbered texts in a message of the bot: answers, and words before tool calls.
fn texts_in(message: &serde_json::Value) -> Vec<String> {
    let words = foretold_in(message).into_iter().map(|run| format!("first words for {run}"));
    answers_in(message).into_iter().chain(words).collect()
}

/// The numbers that a message of the bot answers.
pub(super) fn answers_in(message: &serde_json::Value) -> Vec<String> {
    model::answered(message["text"].as_str().unwrap_or_default())
}

/// The numbers for which a message of the bot has words that stood before a tool call.
pub(super) fn foretold_in(message: &serde_json::Value) -> Vec<String> {
    model::foretold(message["text"].as_str().unwrap_or_default())
}
