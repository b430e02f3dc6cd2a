//! `kill -9` at random moments under load: no accepted message without its one reply, none with two.
//!
//! Chance picks how many acknowledgements and events are seen before each kill, so that a kill falls anywhere in a turn:
//! before and after the acknowledgement, while the model streams, between a tool call and its result, at the end.
//! While the gateway is dead its process number comes to belong to another program, as it does after a reboot.
//! `OPENCLAW_TEST_KILLS` sets how many there are, `OPENCLAW_TEST_SEED` the chance, `OPENCLAW_TEST_BINARY` what is killed
//! (`CONTRIBUTING.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, Login, Received, TOKEN, WsClient};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::environment::set;
use crate::support::locks::Bystander;

/// Unless `OPENCLAW_TEST_KILLS` says otherwise, as the gate does.
const KILLS: usize = 40;
const CLIENTS: usize = 4;
/// Frames seen by all clients together before a kill, at most.
const LIFETIME: usize = 200;
/// Messages of one session; its client goes on with another then, for every turn sends the whole history.
const MESSAGES: usize = 100;
/// Unless `OPENCLAW_TEST_SEED` says otherwise.
const SEED: u64 = 20_261_121;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_message_is_answered_once_however_often_the_gateway_is_killed() -> Result<()> {
    let (kills, seed) = (set("OPENCLAW_TEST_KILLS", KILLS)?, set("OPENCLAW_TEST_SEED", SEED)?);
    let model = ModelServer::answering(answer).await.forgetful();
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    let mut chance = StdRng::seed_from_u64(seed);
    let mut clients: Vec<Client> = (0..CLIENTS).map(Client::new).collect();

    for _ in 0..kills {
        let alarm = Arc::new(Alarm::after(chance.random_range(1..LIFETIME)));
        let mut lives = JoinSet::new();
        for client in clients.drain(..) {
            lives.spawn(client.live(gateway.port(), Arc::clone(&alarm)));
        }
        alarm.rings().await;
        let pid = gateway.pid().context("it runs")?;
        gateway.kill().await?;
        while let Some(client) = lives.join_next().await {
            clients.push(client??);
        }
        let reuse = chance.random_range(0..REUSES.len());
        let _other = reuse_number(&gateway, pid, REUSES[reuse])?;
        gateway.start().await.context("the gateway does not start after a kill")?;
    }

    let accepted = settle(&gateway, &clients).await?;
    gateway.terminate().await?;
    ensure!(accepted.len() > kills, "only {} messages were accepted: the test kills nothing", accepted.len());
    let told = transcripts(&gateway.state_dir().join("agents/main/sessions"))?;
    for run in &accepted {
        assert_eq!(
            told.get(run),
            Some(&Told { asked: 1, answered: 1 }),
            "{run}, in {}",
            gateway.home().display()
        );
    }
    for (run, told) in &told {
        assert!(told.asked <= 1 && told.answered <= 1, "{run}: {told:?}");
    }
    Ok(())
}

/// Reuse of a killed gateway's process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reuse {
    /// The id is not used again.
    Nobody,
    /// The id goes to another program, where the system lets a test choose ids; otherwise as the
    /// next one.
    ByNumber,
    /// The locks name another program under it, with everything else they said.
    InLocks,
    /// The locks name another program in the way of programs that know no start times.
    InForeignLocks,
}

const REUSES: [Reuse; 4] = [Reuse::Nobody, Reuse::ByNumber, Reuse::InLocks, Reuse::InForeignLocks];

/// Lets another program have a dead gateway's number, until that program is dropped.
fn reuse_number(gateway: &GatewayUnderTest, pid: u32, reuse: Reuse) -> Result<Option<Bystander>> {
    if reuse == Reuse::Nobody {
        return Ok(None);
    }
    if reuse == Reuse::ByNumber {
        // The next process gets the number after this one, if nobody is faster.
        let _ = std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string());
    }
    let other = Bystander::start();
    if other.pid() == pid {
        return Ok(Some(other));
    }
    let sessions = std::fs::read_dir(gateway.state_dir().join("agents/main/sessions"))?;
    let beside = sessions.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let own = gateway.state_dir().join("gateway.lock");
    let is_lock = |path: &Path| path.extension().is_some_and(|extension| extension == "lock");
    for lock in beside.into_iter().chain([own]).filter(|path| is_lock(path)) {
        // A lock whose maker was killed before it wrote names nobody.
        let Ok(mut content) = serde_json::from_slice::<Value>(&std::fs::read(&lock)?) else { continue };
        content["pid"] = json!(other.pid());
        if reuse == Reuse::InForeignLocks {
            let known = ["pid", "createdAt", "startedAt", "configPath"];
            content.as_object_mut().context("a lock")?.retain(|name, _| known.contains(&name.as_str()));
        }
        std::fs::write(&lock, content.to_string())?;
        // The other program came later, which a clock can tell.
        let before = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::options().write(true).open(&lock)?.set_modified(before)?;
    }
    Ok(Some(other))
}

/// Answer of the model; every other message makes a tool call first.
fn answer(request: &Captured) -> Reply {
    let said = request.last_user_text();
    let Some(run) = said.split_whitespace().find(|word| word.starts_with("run-")) else {
        return Reply::text("what?");
    };
    let wants_tool = run.ends_with(['1', '3', '5', '7', '9']);
    if wants_tool && !request.ends_with_tool_result() {
        return Reply::tool(&format!("call-{run}"), "read", &json!({"path": "openclaw-test-no-such-file"}));
    }
    Reply::deltas(["answer ", "to ", run, " is here"])
}

/// Rings when so many frames have been seen by all clients.
struct Alarm {
    left: AtomicUsize,
    ring: Notify,
}

impl Alarm {
    fn after(frames: usize) -> Self {
        Self { left: AtomicUsize::new(frames), ring: Notify::new() }
    }

    fn seen(&self) {
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1) {
            self.ring.notify_one();
        }
    }

    async fn rings(&self) {
        self.ring.notified().await;
    }
}

/// A client that sends one message after the other in sessions of its own, and asks again after a lost connection.
struct Client {
    name: usize,
    next: usize,
    /// Sent and not seen to end.
    open: Option<String>,
    accepted: BTreeSet<String>,
}

impl Client {
    fn new(name: usize) -> Self {
        Self { name, next: 0, open: None, accepted: BTreeSet::new() }
    }

    /// Works until the connection is gone.
    async fn live(mut self, port: u16, alarm: Arc<Alarm>) -> Result<Self> {
        if let Ok((mut socket, _)) = WsClient::connect(port, Login::token(TOKEN)).await {
            while self.turn(&mut socket, &alarm).await.is_ok() {}
        }
        Ok(self)
    }

    /// Sends one message and waits for its end; an error is a lost connection.
    async fn turn(&mut self, socket: &mut WsClient, alarm: &Alarm) -> Result<()> {
        let run = self.open.clone().unwrap_or_else(|| {
            self.next += 1;
            format!("run-{}-{}", self.name, self.next)
        });
        self.open = Some(run.clone());
        let (method, params) = self.request(&run);
        let id = socket.send(method, params).await?;
        loop {
            let Received::Frame(frame) = socket.receive().await? else { anyhow::bail!("closed") };
            alarm.seen();
            if frame["type"] == "res" && frame["id"] == id.as_str() {
                ensure!(frame["ok"] == true, "{run} was refused: {frame}");
                self.accepted.insert(run.clone());
                if frame["payload"]["status"] == "ok" {
                    break;
                }
            }
            let payload = &frame["payload"];
            if frame["event"] == "chat" && payload["runId"] == run.as_str() && payload["state"] == "final" {
                break;
            }
        }
        self.open = None;
        Ok(())
    }

    /// Half of the clients use `chat.send`, the others `agent`.
    fn request(&self, run: &str) -> (&'static str, Value) {
        let session = format!("client-{}-{}", self.name, self.next / MESSAGES);
        let message = format!("please answer {run} now");
        let params = json!({"sessionKey": session, "message": message, "idempotencyKey": run});
        (if self.name.is_multiple_of(2) { "chat.send" } else { "agent" }, params)
    }
}

/// Waits for the end of everything that was accepted, asked from a gateway that has just been started. A client goes on only
/// after an end, so that one message of each may be open; of thousands the gateway has forgotten the first by now.
async fn settle(gateway: &GatewayUnderTest, clients: &[Client]) -> Result<BTreeSet<String>> {
    let mut socket = gateway.client().await?;
    let mut accepted = BTreeSet::new();
    for client in clients {
        for run in client.open.iter().filter(|run| client.accepted.contains(*run)) {
            let end = socket.request("agent.wait", json!({"runId": run, "timeoutMs": 20_000})).await?;
            ensure!(end["status"] == "ok", "{run} ended with {end}; log:\n{}", gateway.log());
        }
        accepted.extend(client.accepted.iter().cloned());
    }
    Ok(accepted)
}

/// Counts of a run in the transcripts.
#[derive(Debug, Default, PartialEq)]
struct Told {
    asked: usize,
    answered: usize,
}

fn transcripts(dir: &Path) -> Result<BTreeMap<String, Told>> {
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path)?.lines() {
            let entry: Value =
                serde_json::from_str(line).with_context(|| format!("{}: {line}", path.display()))?;
            note(&entry["message"], &mut told);
        }
    }
    Ok(told)
}

fn note(message: &Value, told: &mut BTreeMap<String, Told>) {
    let text = message["content"].to_string();
    let Some(run) = text.split([' ', '"', '\\']).find(|word| word.starts_with("run-")) else { return };
    let told = told.entry(run.to_owned()).or_default();
    if message["role"] == "user" {
        told.asked += 1;
    }
    if message["role"] == "assistant" && message["stopReason"] == "stop" {
        told.answered += 1;
    }
}
