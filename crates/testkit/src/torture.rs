//! The torture run: people write to a bot and clients write over WebSockets while the gateway is killed with SIGKILL, at random and at
//! every named step of the pipeline, now and then stopped in order (SIGTERM) instead, and while the platform loses, cuts and refuses answers or is down for a while. At the end each accepted message stands
//! once in a transcript, has one answer or one named disposition, and was delivered once; where the platform can't tell, a second
//! delivery is flagged `uncertain` in its trace.
//!
//! The model answers in all the ways that a message can be answered: by a text at the end, with
//! words of their own before a tool call, and by the `message` tool, behind which it says nothing
//! more or the same once more. People say on while a run of theirs is under way, so that with
//! `steer` and `steer-backlog` several messages are answered in one run, each in another of these
//! ways. The words before a call are delivered as often as they were said, before the answer of
//! their message, as messages of their own or joined to it. The tool's message counts as the
//! answer, and a repetition behind it is not sent.
//!
//! A run consists of chapters. Each has a gateway, a queue mode and a seed of its own, and is checked before the next begins, so that a
//! run of any length needs little memory and a failure is repeated with one short chapter.

mod check;
mod children;
mod client;
mod downtime;
mod model;
mod people;
mod steps;
mod watch_file;
mod world;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use self::world::World;

/// The queue modes of messages that come while a run of their session is under way.
pub const MODES: [&str; 5] = ["collect", "followup", "steer", "steer-backlog", "interrupt"];
/// Kills of one chapter.
const CHAPTER: usize = 20;

/// Plan of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The binary.
    pub program: PathBuf,
    /// Number of kills.
    pub kills: usize,
    /// Seed of all random choices: chapter `n` has `seed + n`.
    pub seed: u64,
    /// The queue modes, which the chapters take in turn.
    pub modes: Vec<String>,
    /// Chapters side by side: most of a chapter is waiting.
    pub jobs: usize,
    /// Sub-agents that each answer starts which starts any.
    pub children: usize,
    /// True if each chapter is reported on standard output.
    pub is_told: bool,
}

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ends of the gateway's lives.
    pub kills: usize,
    /// Number of lives that ended with an orderly stop (`SIGTERM`) instead.
    pub stops: usize,
    /// Messages of people that the platform brought.
    pub from_people: usize,
    /// Messages of clients that were acknowledged.
    pub from_clients: usize,
    /// Messages with words before a tool call.
    pub foretold: usize,
    /// Answers that the model sent by the `message` tool.
    pub sent_by_tool: usize,
    /// Messages by what became of them.
    pub dispositions: BTreeMap<String, usize>,
    /// Messages that a reader saw more than once. Each is flagged.
    pub seen_twice: usize,
    /// Messages that may have been seen more than once, by their traces.
    pub flagged: usize,
    /// Sub-agents by what came of telling their ends.
    pub children: BTreeMap<String, usize>,
    /// Times at which the platform was down for a while, each across a kill.
    pub outages: usize,
    /// Kills by the step at which they were made.
    pub steps: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.stops += other.stops;
        self.foretold += other.foretold;
        self.sent_by_tool += other.sent_by_tool;
        self.from_people += other.from_people;
        self.from_clients += other.from_clients;
        self.seen_twice += other.seen_twice;
        self.flagged += other.flagged;
        self.outages += other.outages;
        for (name, count) in other.dispositions {
            *self.dispositions.entry(name).or_default() += count;
        }
        for (name, count) in other.children {
            *self.children.entry(name).or_default() += count;
        }
        for (name, count) in other.steps {
            *self.steps.entry(name).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, stops, from_people, from_clients, foretold, sent_by_tool, .. } = self;
        let Self { seen_twice, flagged, outages, .. } = self;
        writeln!(
            f,
            "kills {kills}, {stops} of them stops in order, messages of people {from_people}, of clients {from_clients}"
        )?;
        writeln!(f, "with words before a tool call {foretold}, answered by the message tool {sent_by_tool}")?;
        writeln!(f, "outages of the platform {outages}")?;
        writeln!(f, "lost 0, seen twice {seen_twice}, flagged uncertain {flagged}")?;
        for (name, count) in &self.dispositions {
            writeln!(f, "  {name:<40}{count:>8}")?;
        }
        writeln!(f, "sub-agents:")?;
        for (name, count) in &self.children {
            writeln!(f, "  {name:<40}{count:>8}")?;
        }
        writeln!(f, "kills by step:")?;
        for (name, count) in &self.steps {
            writeln!(f, "  {name:<40}{count:>8}")?;
        }
        Ok(())
    }
}

impl Plan {
    /// Runs the plan. The caller's runtime needs two threads at least.
    ///
    /// # Errors
    /// At the first message that was lost, doubled or not explained; the text says how to repeat it.
    #[expect(clippy::print_stdout, reason = "a run of an hour tells how far it is")]
    pub async fn run(&self) -> Result<Tally> {
        if self.modes.is_empty() {
            bail!("no queue mode is named");
        }
        let chapters = self.kills.div_ceil(CHAPTER);
        let numbered = self.modes.iter().cycle().zip(0..chapters);
        let chapters = numbered.map(|(mode, at)| async move {
            let seed = self.seed.wrapping_add(at as u64);
            let kills = CHAPTER.min(self.kills - at * CHAPTER);
            let chapter = chapter(self, mode, seed, kills).await.with_context(|| {
                format!(
                    "to repeat this chapter: cargo xtask torture --kills {kills} --seed {seed} --modes {mode} --children {}",
                    self.children
                )
            })?;
            anyhow::Ok((mode, seed, chapter))
        });
        let began = Instant::now();
        let mut ended = stream::iter(chapters).buffer_unordered(self.jobs.max(1));
        let mut tally = Tally::default();
        while let Some((mode, seed, chapter)) = ended.try_next().await? {
            tally.add(chapter);
            if self.is_told {
                let (seconds, kills) = (began.elapsed().as_secs(), tally.kills);
                let messages = tally.from_people + tally.from_clients;
                println!("{seconds:>6} s  {kills:>5} kills  {messages:>6} messages  {mode}, seed {seed}");
            }
        }
        Ok(tally)
    }
}

async fn chapter(plan: &Plan, mode: &str, seed: u64, kills: usize) -> Result<Tally> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut world = World::start(plan, mode, seed).await?;
    let mut tally = Tally { kills, ..Tally::default() };
    for kill in 0..kills {
        // Every step in turn, then by chance: a short chapter of another seed begins with another one.
        let at = usize::try_from(seed).unwrap_or_default().wrapping_mul(CHAPTER).wrapping_add(kill);
        let step = steps::STEPS[at % steps::STEPS.len()];
        let life = world.live_and_die(step, &mut chance).await?;
        *tally.steps.entry(life.step).or_default() += 1;
        tally.outages += usize::from(life.was_down);
        tally.stops += usize::from(life.was_stopped);
    }
    world.settle(&mut tally).await?;
    Ok(tally)
}

/// Time that an answer may take when nothing fails any more: a delivery that failed twice waits for
/// 25 seconds, one that failed three times for two minutes.
const PATIENCE: Duration = Duration::from_secs(150);
