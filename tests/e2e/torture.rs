//! The torture run in small (`testkit::torture`): people and clients write while the gateway is killed at every step of the pipeline.
//!
//! `OPENCLAW_TEST_TORTURE_KILLS` sets how many kills there are, `OPENCLAW_TEST_SEED` the chance, `OPENCLAW_TEST_BINARY` what is killed;
//! `cargo xtask torture` does the same at any length (`CONTRIBUTING.md`).

use anyhow::{Result, ensure};
use openclaw_testkit::torture::{MODES, Plan};

use crate::support::environment::set;

/// Unless `OPENCLAW_TEST_TORTURE_KILLS` says otherwise, as the gate does.
const KILLS: usize = 20;
/// Unless `OPENCLAW_TEST_SEED` says otherwise.
const SEED: u64 = 20_261_125;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_lost_or_doubled_at_whatever_step_the_gateway_is_killed() -> Result<()> {
    let plan = Plan {
        program: crate::program(),
        kills: set("OPENCLAW_TEST_TORTURE_KILLS", KILLS)?,
        seed: set("OPENCLAW_TEST_SEED", SEED)?,
        modes: MODES.map(str::to_owned).to_vec(),
        jobs: 3,
        children: 1,
        is_told: true,
    };
    let tally = plan.run().await?;
    println!("{tally}");
    ensure!(tally.kills == plan.kills, "{tally}");
    ensure!(tally.from_people > plan.kills, "too few messages: the test kills nothing\n{tally}");
    ensure!(tally.seen_twice <= tally.flagged, "{tally}");
    let is_short = tally.kills < 60;
    ensure!(
        is_short || tally.foretold > 0 && tally.sent_by_tool > 0,
        "the model only answers at the end\n{tally}"
    );
    ensure!(is_short || tally.outages > 0, "the platform was never down\n{tally}");
    ensure!(is_short || tally.stops > 0, "nothing was stopped in order\n{tally}");
    // A step that never comes is a step that nobody looks at.
    let missed = tally.steps.get("not reached, at any time").copied().unwrap_or_default();
    ensure!(missed * 4 <= tally.kills, "too many steps were not reached\n{tally}");
    Ok(())
}
