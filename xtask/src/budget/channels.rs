//! Costs of messages of a chat platform: the way to the model and back, many at once, and a bot to
//! whom nobody writes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};
use serde_json::{Value, json};

use super::bot_api::BotApi;
use super::counts::tracer::Tracer;
use super::model::{InstantModel, Script};
use super::{Row, percentile, process};

/// Messages one after the other. A bot may send thirty a second.
const ONE_BY_ONE: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);
/// Number of measurements when several programs are compared.
const ROUNDS: usize = 3;
/// Conversations at once, and messages of each.
const CONVERSATIONS: usize = 1_000;
const EACH: usize = 5;
/// Time for which a bot to whom nobody writes is watched.
const IDLE: Duration = Duration::from_secs(20);
/// Bots besides the first.
const FURTHER: usize = 10;
/// Messages that are counted call by call.
const COUNTED: usize = 40;

/// A gateway whose bots are on a server.
pub(crate) struct Stage {
    pub(crate) api: BotApi,
    pub(super) model: InstantModel,
    pub(crate) gateway: GatewayUnderTest,
}

impl Stage {
    /// Starts a stage with so many bots.
    pub(crate) async fn start(program: &Path, bots: usize) -> Result<Self> {
        let (api, model) = (BotApi::start()?, InstantModel::start(Script::SHORT)?);
        let accounts: serde_json::Map<String, Value> =
            (1..=bots).map(|bot| (format!("bot{bot}"), json!({"botToken": BotApi::token(bot)}))).collect();
        let telegram = json!({
            "apiRoot": api.root(), "dmPolicy": "open", "allowFrom": ["*"], "accounts": accounts,
        });
        let config = json!({"channels": {"telegram": telegram}, "session": {"dmScope": "per-peer"}});
        let config = if bots == 0 { json!({}) } else { config };
        let gateway = GatewaySetup::new(program).fake_model(&model.url()).config(config).start().await?;
        if bots > 0 {
            api.polled(bots)?;
        }
        Ok(Self { api, model, gateway })
    }

    fn pid(&self) -> Result<u32> {
        self.gateway.pid().context("the gateway ended")
    }
}

pub(super) async fn rows(program: &Path) -> Result<Vec<Row>> {
    let mut rows = one_by_one(program).await?;
    rows.push(at_once(program).await?);
    rows.extend(idle(program).await?);
    if Tracer::Calls.works() {
        rows.extend(counted(program).await?);
    } else {
        println!("system calls were NOT counted: strace is not installed, or may not trace here");
    }
    Ok(rows)
}

/// The ways of messages through several programs, which take turns: the machine's speed changes meanwhile.
pub(super) async fn side_by_side(programs: &[PathBuf]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for _ in 0..ROUNDS {
        for program in programs {
            for mut row in one_by_one(program).await? {
                row.what = format!("{}: {}", program.display(), row.what);
                rows.push(row);
            }
        }
    }
    rows.sort_by(|a, b| a.what.cmp(&b.what));
    Ok(rows)
}

/// Inbound to the model's request, and the model's last word to the platform's request. Each message is of another person, whose
/// conversation has begun before.
async fn one_by_one(program: &Path) -> Result<Vec<Row>> {
    let stage = Stage::start(program, 1).await?;
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for number in 0..2 * ONE_BY_ONE {
        let began = Instant::now();
        stage.api.write(1, 1 + number % ONE_BY_ONE, "hello");
        stage.api.has_sent(number + 1)?;
        let (_, sent) = stage.api.sent();
        let (asked, ended) = stage.model.last_times()?;
        if number >= ONE_BY_ONE {
            there.push(asked - began);
            back.push(sent.context("nothing was sent")? - ended);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(vec![
        Row::limited("inbound to model request, p50", "ms", percentile(&mut there, 50), 3.0),
        Row::shown("inbound to model request, p99", "ms", percentile(&mut there, 99)),
        Row::limited("last token to Telegram request, p50", "ms", percentile(&mut back, 50), 2.0),
        Row::shown("last token to Telegram request, p99", "ms", percentile(&mut back, 99)),
    ])
}

/// Messages a second that are taken for good, while they are worked on.
async fn at_once(program: &Path) -> Result<Row> {
    let stage = Stage::start(program, 1).await?;
    let began = Instant::now();
    for number in 0..CONVERSATIONS * EACH {
        stage.api.write(1, 1 + number % CONVERSATIONS, "hello");
    }
    stage.api.all_confirmed()?;
    let seconds = began.elapsed().as_secs_f64();
    // Fewer is worse: what is limited is the time of a thousand.
    Ok(Row::limited(
        "1,000 messages accepted, of 1,000 conversations",
        "ms",
        seconds * 1e3 / EACH as f64,
        500.0,
    ))
}

/// Cost of a bot to whom nobody writes. The first one brings what all of them need, such as the
/// certificates.
async fn idle(program: &Path) -> Result<Vec<Row>> {
    let bare = spent(&Stage::start(program, 0).await?).await?;
    let one = spent(&Stage::start(program, 1).await?).await?;
    let several = spent(&Stage::start(program, 1 + FURTHER).await?).await?;
    let each = (several.own - one.own) / FURTHER as f64;
    Ok(vec![
        Row::limited("memory of an idle account, the first", "MB", one.own - bare.own, 1.0),
        Row::limited("memory of an idle account, each further", "MB", each, 1.0),
        Row::shown("the first, with the program's pages it reads", "MB", one.resident - bare.resident),
        Row::limited("processor of an idle account", "‰", (one.cpu - bare.cpu).max(0.0), 1.0),
    ])
}

/// Resources that an idle gateway takes.
struct Spent {
    /// Memory of its own, in MB: not the pages of the program's file, which the system takes back when it likes.
    own: f64,
    /// All of its memory, in MB.
    resident: f64,
    /// The part of a core, in thousandths.
    cpu: f64,
}

async fn spent(stage: &Stage) -> Result<Spent> {
    let pid = stage.pid()?;
    let before = process::cpu_when_quiet(pid).await?;
    tokio::time::sleep(IDLE).await;
    let cpu = process::cpu_when_quiet(pid).await? - before;
    Ok(Spent {
        own: process::memory(pid, "RssAnon:")?,
        resident: process::memory(pid, "VmRSS:")?,
        cpu: cpu.as_secs_f64() / IDLE.as_secs_f64() * 1e3,
    })
}

/// System calls and synced writes of a message and its answer.
async fn counted(program: &Path) -> Result<Vec<Row>> {
    let program = program.canonicalize()?;
    let few = life(&program, COUNTED).await?;
    let more = life(&program, 2 * COUNTED).await?;
    let of = |names: &[&str]| {
        let sum =
            |counts: &super::counts::Counts| names.iter().filter_map(|name| counts.get(*name)).sum::<f64>();
        (sum(&more) - sum(&few)) / COUNTED as f64
    };
    Ok(vec![
        Row::shown("system calls of a message and its answer", "", of(&["total"])),
        Row::shown("synced writes of a message and its answer", "", of(&["fsync", "fdatasync"])),
        Row::shown("writes to gateway.sqlite and its log", "", of(&["pwrite64"])),
    ])
}

async fn life(program: &Path, messages: usize) -> Result<super::counts::Counts> {
    let dir = tempfile::tempdir()?;
    let report = dir.path().join("report");
    let wrapper = Tracer::Calls.wrap(program, dir.path(), &report)?;
    let mut stage = Stage::start(&wrapper, 1).await?;
    for number in 0..messages {
        stage.api.write(1, 1 + number % COUNTED, "hello");
        stage.api.has_sent(number + 1)?;
        tokio::time::sleep(PAUSE).await;
    }
    stage.gateway.terminate().await?;
    Tracer::Calls.read(&report)
}
