//! Each call by which a turn touches the disk fails once, one after the other: every message that was accepted ends, in order, once.
//!
//! `OPENCLAW_TEST_DISK_SECONDS` sets how long it goes on; what is not reached by then is left out.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::errno::Errno;
use openclaw_testkit::faulty_disk::{DiskCall, DiskFault, FaultyDisk};
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::conversation::{end, history, message, send, sessions_dir, turn, well_formed};
use crate::support::environment::set;
use crate::support::telegram::{bot_setup, in_blocks, small};

/// Duration of the test in seconds, unless `OPENCLAW_TEST_DISK_SECONDS` says otherwise.
const SECONDS: u64 = 75;
/// Maximum number of tries of a client whose request was refused. The fault is over by then.
const TRIES: usize = 20;
/// Longest time for a message that the disk refused once. The longest pause before any retry is five seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of messages of a conversation, so that it never gets too long for the model.
const CHAPTER: u32 = 8;

/// Surface over which messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Client,
    Chat,
}

/// A gateway over a faulty disk, and the clients and servers around it.
struct World {
    disk: FaultyDisk,
    gateway: GatewayUnderTest,
    client: WsClient,
    server: TelegramServer,
    model: ModelServer,
    asker: Asker,
    tally: Tally,
}

/// Counts of faults and their effects.
#[derive(Debug, Default)]
struct Tally {
    /// Faults that some call met.
    met: u32,
    /// Messages whose sender was told of an error.
    failed: u32,
    /// Requests that were refused and made again.
    refused: u32,
    /// Number of the first call that a turn no longer makes, for each kind of call.
    ends: Vec<(DiskCall, u32)>,
    /// The same for kinds of which calls are left when the time is over: the first that was not tried.
    left: Vec<(DiskCall, u32)>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { met, failed, refused, ends, left } = self;
        write!(
            f,
            "{met} faults, {failed} messages ended with an error, {refused} requests refused, all calls met of {ends:?}, \
             not tried from {left:?}"
        )
    }
}

impl World {
    async fn start(asker: Asker) -> Result<Option<Self>> {
        let Some(disk) = FaultyDisk::new()? else { return Ok(None) };
        let server = TelegramServer::start().await;
        let model = ModelServer::answering(|request| {
            let said = request.last_user_text();
            // A message without an answer is shown to the model together with the next one.
            let named = said.split_whitespace().rfind(|word| word.starts_with("no-")).unwrap_or("nobody");
            Reply::text(&format!("answer to {named}"))
        })
        .await;
        let telegram = json!({
            "botToken": server.token(), "apiRoot": server.root(), "dmPolicy": "open", "allowFrom": ["*"],
            "errorPolicy": "always",
        });
        let config = json!({
            "channels": {"telegram": telegram},
            "session": {"dmScope": "per-peer"},
            "messages": {"queue": {"mode": "followup", "debounceMs": 0}, "inbound": {"debounceMs": 0}},
        });
        let gateway = disk.under(crate::gateway().fake_model(&model.v1()).config(config)).start().await?;
        let client = gateway.client().await?;
        let tally = Tally::default();
        Ok(Some(Self { disk, gateway, client, server, model, asker, tally }))
    }

    /// Sends two messages while a call fails. Returns true if the call was made, and so failed.
    async fn exchange(&mut self, number: u32, fault: &DiskFault) -> Result<bool> {
        let names = ["a", "b"].map(|which| format!("no-{which}-{:?}-{number}-{:?}", fault.call, fault.error));
        let chapter = i64::from(number / CHAPTER);
        let store = self.store();
        self.disk.arm(std::slice::from_ref(fault))?;
        match self.asker {
            Asker::Client => self.ask_as_client(&format!("talk-{chapter}"), &names).await?,
            Asker::Chat => self.ask_in_chat(100 + chapter, &names).await?,
        }
        // The sessions are written a second behind the turn: the last of what it renames.
        if fault.call == DiskCall::Rename {
            let written = async {
                while self.store() == store {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, written).await.context("the sessions are never written")?;
        }
        let met = self.disk.disarm()?;
        self.tally.met += u32::from(!met.is_empty());
        Ok(!met.is_empty())
    }

    /// The file of the sessions, by its number: another one takes its place at each writing.
    fn store(&self) -> Option<u64> {
        std::fs::metadata(sessions_dir(&self.gateway).join("sessions.json")).ok().map(|file| file.ino())
    }

    async fn ask_as_client(&mut self, session: &str, names: &[String; 2]) -> Result<()> {
        for name in names {
            self.send(session, name).await?;
        }
        for name in names {
            let is_theirs = |event: &Value| names.iter().any(|name| event["runId"] == name.as_str());
            let ended = self.client.event("chat", |event| is_theirs(event) && event["state"] != "delta");
            let ended = tokio::time::timeout(PATIENCE, ended).await.context("it never ends")??;
            ensure!(ended["runId"] == name.as_str(), "{ended} before {name}");
            match ended["state"].as_str() {
                Some("final") => {
                    let said = ended["message"].to_string();
                    ensure!(said.contains(&format!("answer to {name}")), "{ended}");
                }
                Some("error") => self.tally.failed += 1,
                _ => bail!("{ended}"),
            }
        }
        for name in names {
            let wait = json!({"runId": name, "timeoutMs": 10_000});
            let status = self.client.request("agent.wait", wait).await?;
            ensure!(status["status"] != "timeout", "{name} does not end: {status}");
            // The idempotency key counts too: nobody is answered once more for it.
            let again = self.client.call("chat.send", message(session, name, name)).await?;
            ensure!(again.payload["status"] != "in_flight", "{name}: {again:?}");
        }
        let more = self.client.take_passed();
        let ended = more.iter().filter(|frame| {
            frame["event"] == "chat"
                && frame["payload"]["state"] != "delta"
                && names.iter().any(|name| frame["payload"]["runId"] == name.as_str())
        });
        let ended: Vec<&Value> = ended.collect();
        ensure!(ended.is_empty(), "it ended twice: {ended:?}");
        Ok(())
    }

    /// Sends a message until it is accepted.
    async fn send(&mut self, session: &str, name: &str) -> Result<()> {
        for _ in 0..TRIES {
            let answer = self.client.call("chat.send", message(session, name, name)).await?;
            if answer.ok {
                return Ok(());
            }
            ensure!(answer.error["retryable"] == true, "{answer:?}");
            self.tally.refused += 1;
        }
        bail!("{name} is never accepted")
    }

    async fn ask_in_chat(&mut self, chat: i64, names: &[String; 2]) -> Result<()> {
        let before = self.server.made().len();
        for name in names {
            self.server.push(private_message(chat, name));
        }
        let answered = self.server.sees(|made| made.len() >= before + names.len());
        let answered = tokio::time::timeout(PATIENCE, answered).await;
        let said = self.said_since(before);
        answered.map_err(|_| anyhow::anyhow!("only {said:?} is said"))?;
        // Everything else is sent by then.
        self.gateway.fates().await?;
        let said = self.said_since(before);
        ensure!(said.len() == names.len(), "{said:?}");
        for (said, name) in said.iter().zip(names) {
            if !said.contains(&format!("answer to {name}")) {
                ensure!(!said.contains("answer to"), "{said} in the place of {name}");
                self.tally.failed += 1;
            }
        }
        Ok(())
    }

    fn said_since(&self, before: usize) -> Vec<String> {
        let made = self.server.made();
        made.iter().skip(before).map(|made| made["text"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Calls that one gateway is tried with: every `step`-th of these kinds, beginning with `first`.
struct CallShare {
    asker: Asker,
    kinds: Vec<(DiskCall, Option<Errno>)>,
    first: u32,
    step: u32,
}

/// Lets the first call of each kind fail, then the next, until a turn has no such call any more, or the time is over.
async fn sweep(share: CallShare, until: Instant) -> Result<Option<Tally>> {
    let CallShare { asker, kinds: mut open, first: mut number, step } = share;
    let Some(mut world) = World::start(asker).await? else { return Ok(None) };
    while !open.is_empty() && Instant::now() < until {
        for (call, error) in open.clone() {
            let fault = DiskFault { first: number, error, ..DiskFault::once(call) };
            let met = world.exchange(number, &fault).await;
            let met = met.with_context(|| format!("{asker:?}, {fault:?}\n{}", world.gateway.log()))?;
            if !met {
                open.retain(|kind| *kind != (call, error));
                world.tally.ends.push((call, number));
            }
        }
        number += step;
    }
    world.tally.left = open.into_iter().map(|(call, _)| (call, number)).collect();
    // A start finds nothing that is left to do, and asks no model.
    let asked = world.model.requests().len();
    world.gateway.crash_and_restart().await?;
    world.gateway.fates().await?;
    ensure!(world.model.requests().len() == asked, "a start asked again\n{}", world.gateway.log());
    Ok(Some(world.tally))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_message_ends_in_order_and_once_whichever_call_of_the_disk_fails() -> Result<()> {
    use DiskCall::{Open, Rename, Sync, Write};
    let until = Instant::now() + Duration::from_secs(set("OPENCLAW_TEST_DISK_SECONDS", SECONDS)?);
    let (failing, full) = (Some(Errno::EIO), Some(Errno::ENOSPC));
    // Half a write is an error of its own.
    let writes = [failing, None, full];
    let few = |error| [Sync, Rename, Open].map(|call| (call, error)).to_vec();
    let share = |asker, kinds, first, step| CallShare { asker, kinds, first, step };
    let mut shares = vec![
        share(Asker::Client, [few(failing), few(full)].concat(), 1, 1),
        share(Asker::Client, writes.map(|error| (Write, error)).to_vec(), 1, 1),
        share(Asker::Chat, few(failing), 1, 1),
        share(Asker::Chat, few(full), 1, 1),
    ];
    // What a chat brings is written many times, and waits a while behind each refusal.
    for error in writes {
        shares.extend((1..=3).map(|first| share(Asker::Chat, vec![(Write, error)], first, 3)));
    }
    let mut sweeps: JoinSet<Result<Option<Tally>>> =
        shares.into_iter().map(|share| sweep(share, until)).collect();
    while let Some(tally) = sweeps.join_next().await {
        let Some(tally) = tally?? else { continue };
        println!("{tally}");
        ensure!(tally.met > 0, "nothing failed: the test tests nothing");
    }
    Ok(())
}

/// A block of an answer that the disk refuses for a moment is stored a little later, in its place, and nothing is said twice.
#[tokio::test]
async fn a_block_that_can_not_be_stored_for_a_moment_is_said_once_and_in_its_place() -> Result<()> {
    let Some(disk) = FaultyDisk::new()? else { return Ok(()) };
    let server = TelegramServer::start().await;
    let gate = Gate::new();
    let paragraphs =
        ["One", "Two", "Three", "Four"].map(|word| format!("{word} is what this one says. ").repeat(3));
    let paragraphs = paragraphs.map(|one| format!("{}\n\n", one.trim()));
    let (held, written) = (gate.clone(), paragraphs.clone());
    let model = ModelServer::answering(move |_| {
        let mut steps = written.clone().map(Step::Text).to_vec();
        steps.insert(2, Step::Wait(held.clone()));
        Reply::steps(steps)
    })
    .await;
    let setup = bot_setup(&server, &model, in_blocks(), small());
    let gateway = disk.under(setup).start().await?;
    server.push(private_message(5, "tell me"));
    server.has_made("the first block", |made| !made.is_empty()).await;
    let refused = DiskFault { times: 3, ..DiskFault::once(DiskCall::Write) }.of("gateway.sqlite-wal");
    disk.arm(&[refused])?;
    gate.open();
    server
        .has_made("the end", |made| made.iter().any(|one| one["text"].to_string().contains("Four is")))
        .await;
    gateway.fates().await?;
    ensure!(disk.disarm()?.len() == 1, "the fault was not met\n{}", gateway.log());
    let said: Vec<String> =
        server.made().iter().map(|one| one["text"].as_str().unwrap_or_default().trim().to_owned()).collect();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    ensure!(words(&said.join(" ")) == words(&paragraphs.concat()), "{said:?}\n{}", gateway.log());
    Ok(())
}

/// Half a line is written, and the disk refuses to cut it off, once more at each try: of a message, whose transcript is opened anew for
/// each, and of an answer, whose run has it open.
#[tokio::test]
async fn half_a_line_that_can_not_be_cut_off_for_a_while_is_kept_once_and_the_conversation_goes_on()
-> Result<()> {
    for (of_message, copies) in [(true, 1), (false, 0)] {
        let Some(disk) = FaultyDisk::new()? else { return Ok(()) };
        let (gate, is_second) = (Gate::new(), |request: &Captured| request.messages().len() > 3);
        let held = gate.clone();
        let model = ModelServer::answering(move |request| match is_second(request) {
            true => Reply::text("answer").after(Step::Wait(held.clone())),
            false => Reply::text("answer"),
        })
        .await;
        let gateway = disk.under(crate::gateway().fake_model(&model.v1())).start().await?;
        let mut client = gateway.client().await?;
        turn(&mut client, "main", "one", "run-1").await;
        let refused = |fault: DiskFault| fault.of(".jsonl");
        let faults = [
            refused(DiskFault { error: None, ..DiskFault::once(DiskCall::Write) }),
            refused(DiskFault::once(DiskCall::Write)),
            refused(DiskFault { times: 4, ..DiskFault::once(DiskCall::Truncate) }),
        ];
        if of_message {
            disk.arm(&faults)?;
            send(&mut client, "main", "two", "run-2").await;
        } else {
            send(&mut client, "main", "two", "run-2").await;
            model.arrived(2).await;
            disk.arm(&faults)?;
        }
        gate.open();
        ensure!(end(&mut client, "run-2").await["state"] == "final", "{}", gateway.log());
        ensure!(disk.disarm()?.len() == faults.len(), "a fault was not met\n{}", gateway.log());
        let told = ["user: one", "assistant: answer", "user: two", "assistant: answer"];
        ensure!(history(&mut client, "main").await == told, "{}", gateway.log());
        let files = std::fs::read_dir(sessions_dir(&gateway))?.map(|file| Ok(file?.path()));
        let files = files.collect::<Result<Vec<_>>>()?;
        let kept = files.iter().filter(|path| path.display().to_string().contains(".jsonl.bak-"));
        ensure!(kept.count() == copies, "{files:?}");
        for path in files.iter().filter(|path| path.extension().is_some_and(|is| is == "jsonl")) {
            well_formed(path);
        }
    }
    Ok(())
}
