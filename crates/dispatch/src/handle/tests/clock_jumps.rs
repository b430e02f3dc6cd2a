//! Tests with changes of the wall clock while sessions and sub-agents wait for each other: no wait
//! ends by that, none hangs, and nothing at work is archived.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use openclaw_journal::child_run::ChildRun;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::CommitDurability;

use super::*;
use crate::subagents::sweep;

const HOUR: i64 = 3_600_000;
const YEAR: i64 = 365 * 24 * HOUR;

/// A dispatcher whose clock goes as the system's does until somebody sets it.
struct Jumping {
    rig: Rig,
    off_by: Arc<AtomicI64>,
}

impl Jumping {
    async fn start(dir: &tempfile::TempDir, model: &FakeModel) -> Self {
        let off_by = Arc::new(AtomicI64::new(0));
        let off = Arc::clone(&off_by);
        let now = move || openclaw_sessions::time::now_ms() + off.load(Ordering::SeqCst);
        let clock = Clock::set(now, TimeZone::UTC);
        Self { rig: Rig::at(dir.path(), model, json!({}), clock).await, off_by }
    }

    fn set_off_by(&self, ms: i64) {
        self.off_by.store(ms, Ordering::SeqCst);
    }

    /// Returns the only sub-agent.
    fn child(&self) -> Option<ChildRun> {
        let mut all = self.rig.dispatch.children().child_runs.select(|_| true);
        assert!(all.len() < 2, "{all:?}");
        all.pop()
    }

    /// Waits until its end was told.
    async fn told(&self) -> ChildRun {
        let told = async {
            loop {
                match self.child().filter(ChildRun::is_over) {
                    Some(child) => return child,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, told).await.expect("its end is told")
    }

    /// True if a sub-agent is left after the sweeper has looked.
    async fn is_left(&self) -> bool {
        sweep::look(&self.rig.dispatch).await;
        self.child().is_some()
    }
}

#[tokio::test]
async fn a_talk_between_sessions_goes_on() {
    let ping = json!({"sessionKey": "agent:main:side", "message": "ping", "timeoutSeconds": 20});
    let script = [
        Answer::Call("sessions_send", ping),
        Answer::Text("pong"),
        Answer::Text("done"),
        Answer::Held("turn 1"),
        Answer::Held("turn 2"),
    ];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let jumping = Jumping::start(&dir, &model).await;
    send(&jumping.rig, "r1", "ask the other").await;
    for (asked, off_by) in [(4, 2 * HOUR), (5, -YEAR)] {
        model.asked(asked).await;
        jumping.set_off_by(off_by);
        model.release();
    }
    // Three more turns, and the last word.
    model.asked(9).await;
    assert!(model.heard(8).last().unwrap().contains("Agent-to-agent announce step."), "{:?}", model.heard(8));
}

/// The deadline of a `chat.send` counts from when it was accepted, however the clock is set while it waits to be acknowledged and behind a
/// run.
#[tokio::test]
async fn a_message_that_waits_keeps_its_deadline() {
    for off_by in [YEAR, -YEAR] {
        let script = [Answer::Held("first"), Answer::Text("second")];
        let (dir, model) = (dir(), FakeModel::start(script).await);
        let jumping = Jumping::start(&dir, &model).await;
        send(&jumping.rig, "r1", "one").await;
        model.asked(1).await;
        // Accepted at one time, and heard of by its lane at another.
        let dispatch = &jumping.rig.dispatch;
        let (intake, lanes) = (&dispatch.families().intake, dispatch.lanes());
        let request = chat("r2", "two").into();
        let placed =
            intake.place(lanes, RunId::new("r2"), key_of(KEY), request, CommitDurability::Synced).await;
        let arriving = intake.stored(placed.unwrap()).await.unwrap();
        jumping.set_off_by(off_by);
        drop(intake.hand_over(arriving, lanes));
        // The lane does one thing after the other: it has the message by now.
        let nobody = AbortTarget::Run(RunId::new("nobody"));
        assert!(jumping.rig.abort(KEY, nobody, AbortReason::Rpc).await.unwrap().is_empty());
        model.release();
        assert_eq!(texts(&jumping.rig.end("r2").await), ["second"], "{off_by}");
    }
}

#[tokio::test]
async fn a_sub_agent_is_told_of_and_archived_once_it_is_past() {
    let script = [
        Answer::Call("sessions_spawn", json!({"task": "dig"})),
        Answer::Held("it is being done, or the hole is dug"),
        Answer::Held("it is being done, or the hole is dug"),
        Answer::Text("Result: a hole"),
        Answer::Held("a deeper one"),
    ];
    let (dir, model) = (dir(), FakeModel::start(script).await);
    let jumping = Jumping::start(&dir, &model).await;
    send(&jumping.rig, "r1", "delegate it").await;
    model.asked(3).await;
    jumping.set_off_by(YEAR);
    assert!(jumping.is_left().await, "it works");
    model.release_all();
    jumping.rig.end("r1").await;
    jumping.set_off_by(-YEAR);
    let child = jumping.told().await;
    let told = said(dir.path()).into_iter().find(|line| line.contains("Stats: runtime ")).unwrap();
    let (_, stats) = told.split_once("Stats: runtime ").unwrap();
    assert!(!stats.split(' ').next().unwrap().contains('h'), "{told}");
    assert!(jumping.is_left().await, "its time has not come");
    send(&jumping.rig, "r2", "/subagents send 1 dig deeper").await;
    model.asked(5).await;
    jumping.set_off_by(2 * YEAR);
    assert!(jumping.is_left().await, "it works again");
    model.release();
    assert_eq!(texts(&jumping.rig.end("r2").await), ["a deeper one"]);
    assert!(!jumping.is_left().await, "it is past");
    assert!(jumping.rig.store.get(&child.child_session_key).await.unwrap().is_none());
}
