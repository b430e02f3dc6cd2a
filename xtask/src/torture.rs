//! Kills the gateway while people and clients write (`testkit::torture`), as often as is wanted.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use openclaw_testkit::torture::{MODES, Plan};
use tokio::runtime::Runtime;

use crate::build::release;

const USAGE: &str = "usage: cargo xtask torture [--kills N] [--seed S] [--modes collect,steer,…] [--jobs N] [--children N] [--binary PATH]";
/// Unless `--kills` says otherwise.
const KILLS: usize = 500;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut kills, mut seed, mut jobs, mut children, mut program) = (KILLS, 1, 1, 1, None);
    let mut modes = MODES.map(str::to_owned).to_vec();
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let value = args.next().context(USAGE)?;
        match flag.as_str() {
            "--kills" => kills = value.parse().context(USAGE)?,
            "--seed" => seed = value.parse().context(USAGE)?,
            "--jobs" => jobs = value.parse().context(USAGE)?,
            "--children" => children = value.parse().context(USAGE)?,
            "--modes" => modes = value.split(',').map(|mode| mode.trim().to_owned()).collect(),
            "--binary" => program = Some(PathBuf::from(value)),
            _ => bail!(USAGE),
        }
    }
    if let Some(unknown) = modes.iter().find(|mode| !MODES.contains(&mode.as_str())) {
        bail!("{unknown} is no queue mode: there are {}", MODES.join(", "));
    }
    let program = match program {
        Some(program) => program,
        None => release()?,
    };
    let program = program.canonicalize().with_context(|| program.display().to_string())?;
    let plan = Plan { program, kills, seed, modes, jobs, children, is_told: true };
    let tally = Runtime::new()?.block_on(plan.run())?;
    print!("\n{tally}");
    Ok(())
}
