//! People write to bots at a steady rate for as long as is wanted: memory must stay where it is after five minutes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::runtime::Runtime;

use crate::budget::channels::Stage;
use crate::budget::process;
use crate::build::release;

const USAGE: &str = "usage: cargo xtask soak [--minutes M] [--rate R] [--binary PATH]";
/// A bot may send thirty messages a second.
const PER_BOT: usize = 25;
/// Seconds between two messages of one person, so that conversations stay short.
const PAUSE: usize = 40;
/// The minute with whose memory the end is compared, and how much more there may be.
const SETTLED: usize = 5;
const GROWTH: f64 = 1.05;
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut minutes, mut rate, mut program) = (60, 50, None);
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let value = args.next().context(USAGE)?;
        match flag.as_str() {
            "--minutes" => minutes = value.parse().context(USAGE)?,
            "--rate" => rate = value.parse().context(USAGE)?,
            "--binary" => program = Some(PathBuf::from(value)),
            _ => bail!(USAGE),
        }
    }
    if rate == 0 || minutes == 0 {
        bail!(USAGE);
    }
    let program = match program {
        Some(program) => program.canonicalize()?,
        None => release()?,
    };
    Runtime::new()?.block_on(soak(&program, minutes, rate))
}

async fn soak(program: &std::path::Path, minutes: usize, rate: usize) -> Result<()> {
    let bots = rate.div_ceil(PER_BOT);
    let stage = Stage::start(program, bots).await?;
    let pid = stage.gateway.pid().context("the gateway ended")?;
    println!(
        "{bots} bots, {} people; the start takes {:.1} MB",
        rate * PAUSE,
        process::memory(pid, "VmRSS:")?
    );
    let mut settled = None;
    let mut written = 0;
    let began = Instant::now();
    for minute in 1..=minutes {
        let until = began + MINUTE * u32::try_from(minute)?;
        while Instant::now() < until {
            let due = (began.elapsed().as_secs_f64() * rate as f64) as usize;
            while written < due {
                stage.api.write(1 + written % bots, 1 + written % (rate * PAUSE), "hello");
                written += 1;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let resident = process::memory(pid, "VmRSS:")?;
        // The rest is pages of the program's file, which the system takes back when it likes.
        let own = process::memory(pid, "RssAnon:")?;
        let (sent, _) = stage.api.sent();
        let waiting = stage.api.waiting();
        println!(
            "minute {minute:>3}: {resident:>7.1} MB, {own:.1} of its own, {written} written, {waiting} not fetched, {} not answered",
            written - sent.min(written)
        );
        if minute == SETTLED {
            settled = Some(resident);
        }
    }
    let end = process::memory(pid, "VmRSS:")?;
    stage.api.has_sent(written).context("messages stay without an answer")?;
    match settled {
        Some(settled) if end > settled * GROWTH => {
            bail!("memory has grown from {settled:.1} MB at minute {SETTLED} to {end:.1} MB")
        }
        Some(settled) => println!("memory: {settled:.1} MB at minute {SETTLED}, {end:.1} MB at the end"),
        None => println!("too short to compare memory: {SETTLED} minutes at least"),
    }
    Ok(())
}
