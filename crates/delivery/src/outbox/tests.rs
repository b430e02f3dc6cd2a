mod dead_conversations;
mod files;
mod platform;
mod simulation;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use openclaw_channels::{Content, FormattedText, MediaKind, Receipt, SendError};
use openclaw_journal::delivery::{Author, DeliveryFailure, DeliveryState};
use openclaw_journal::journal::memory::{self, MemoryJournal};
use openclaw_journal::journal::sqlite::testing as sqlite;
use openclaw_journal::testing::copy_files;
use openclaw_protocol::{AgentId, SessionKey};

use super::*;
use crate::testing::send_only::SendOnly;
use platform::{Knows, Platform, Reply};

/// Copies a directory with its journal as a crash would leave them.
fn crash(dir: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    // First: what was written meanwhile is found to be ahead of it, never behind.
    memory::copy(dir, to.path());
    copy_files(dir, to.path()).unwrap();
    to
}

/// An outbox on a directory.
struct Rig {
    outbox: Outbox,
    journal: Arc<dyn Journal>,
    kill: CancellationToken,
    now: Arc<AtomicI64>,
}

impl Rig {
    fn open(dir: &Path) -> Self {
        Self::on(MemoryJournal::open(dir).unwrap().journal)
    }

    fn on(journal: Arc<dyn Journal>) -> Self {
        let now = Arc::new(AtomicI64::new(openclaw_sessions::time::now_ms()));
        let clock = Arc::clone(&now);
        let clock = Clock::set(move || clock.load(Ordering::SeqCst), TimeZone::UTC);
        let kill = CancellationToken::new();
        let outbox = Outbox::new(Arc::clone(&journal), clock, kill.clone(), kill.clone());
        Self { outbox, journal, kill, now }
    }

    /// Ends the process.
    async fn end(self) {
        self.kill.cancel();
        self.outbox.inner.tasks.close();
        self.outbox.inner.tasks.wait().await;
        self.journal.close().await;
    }

    fn serve(&self, platform: &Arc<Platform>) {
        self.outbox.register("fake", "default", Arc::new(SendOnly(Arc::clone(platform))));
    }

    async fn accept(&self, id: &str, target: &str) {
        assert_eq!(self.outbox.accept(note(id, target)).await, Ok(Enqueued::New), "{id}");
    }

    /// Tries these again; gives those that are.
    async fn revive(&self, ids: &[&str]) -> Vec<String> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        self.outbox.revive(&ids).await.unwrap()
    }

    async fn status(&self, id: &str) -> DeliveryStatus {
        self.outbox.find(id).await.unwrap().unwrap()
    }

    /// Waits until a delivery is over.
    async fn over(&self, id: &str) -> DeliveryStatus {
        self.until(id, |status| !status.state.is_open()).await
    }

    async fn until(&self, id: &str, wanted: impl Fn(&DeliveryStatus) -> bool) -> DeliveryStatus {
        loop {
            let status = self.status(id).await;
            if wanted(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn note(id: &str, target: &str) -> Delivery {
    Delivery {
        id: id.to_owned(),
        address: Address {
            channel: "fake".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: Some("7".to_owned()),
        },
        session_key: Some(SessionKey::main(&AgentId::default(), "main")),
        author: Author::Other,
        part: Part::text(format!("text of {id}")),
        expires_at: None,
        asked: None,
    }
}

/// A part of an answer behind a pause.
fn paced(rig: &Rig, id: &str, pause_ms: i64) -> NewDelivery {
    let accepted_at = rig.now.load(Ordering::SeqCst);
    NewDelivery { delivery: note(id, "x"), accepted_at, not_before: accepted_at + pause_ms }
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_made_before_a_delivery_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Ids, []);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("r:b1.1", "x").await;
    rig.over("r:b1.1").await;
    let began = tokio::time::Instant::now();
    for (id, pause) in [("r:b2.1", 5_000), ("r:b3.1", 9_000), ("r:1", 0)] {
        assert_eq!(rig.outbox.accept_new(paced(&rig, id, pause)).await, Ok(Enqueued::New));
    }
    rig.over("r:b2.1").await;
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert_eq!(platform.shown_in("x"), ["r:b1.1", "r:b2.1"]);
    rig.now.fetch_add(5_000, Ordering::SeqCst);
    let next = crash(dir.path());
    rig.end().await;

    let rig = Rig::open(next.path());
    rig.now.fetch_add(5_000, Ordering::SeqCst);
    let began = tokio::time::Instant::now();
    rig.serve(&platform);
    rig.over("r:1").await;
    assert!(began.elapsed() >= Duration::from_secs(3), "what is left of the pause");
    assert_eq!(platform.shown_in("x"), ["r:b1.1", "r:b2.1", "r:b3.1", "r:1"]);
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_pauses_is_taken_back_with_all_that_is_left_of_its_answer_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Ids, []);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    let main = SessionKey::main(&AgentId::default(), "main");
    assert_eq!(rig.outbox.withdraw(Paced::InSession(&main)).await, Ok(0));
    for (id, pause) in
        [("r:b1.1", 0), ("r:b2.1", 60_000), ("r:t3.1", 0), ("r:b4.1", 90_000), ("r:1", 0), ("s:1", 0)]
    {
        assert_eq!(rig.outbox.accept_new(paced(&rig, id, pause)).await, Ok(Enqueued::New));
    }
    rig.over("r:b1.1").await;
    let other = SessionKey::parse("agent:main:other").unwrap();
    assert_eq!(rig.outbox.withdraw(Paced::InSession(&other)).await, Ok(0));
    assert_eq!(rig.outbox.withdraw(Paced::OfRun(&RunId::new("s"))).await, Ok(0), "nothing of it pauses");
    let began = tokio::time::Instant::now();
    assert_eq!(rig.outbox.withdraw(Paced::InSession(&main)).await, Ok(3));
    rig.over("s:1").await;
    assert!(began.elapsed() < Duration::from_secs(30), "nothing waits for what is not sent");
    // Messages that a tool has sent were sent.
    assert_eq!(platform.shown_in("x"), ["r:b1.1", "r:t3.1", "s:1"]);
    for id in ["r:b2.1", "r:b4.1", "r:1"] {
        assert_eq!(rig.status(id).await.given_up, Some(DeliveryFailure::Discarded), "{id}");
    }
    assert_eq!(rig.outbox.withdraw(Paced::InSession(&main)).await, Ok(0));

    assert_eq!(rig.outbox.accept_new(paced(&rig, "u:b1.1", 60_000)).await, Ok(Enqueued::New));
    assert_eq!(rig.outbox.withdraw(Paced::OfRun(&RunId::new("u"))).await, Ok(1));
    rig.end().await;
}

fn retry() -> Reply {
    Reply::Refuse(SendError::Retry { reason: "busy".to_owned(), after: None })
}

fn gone() -> Reply {
    Reply::Refuse(SendError::Final { reason: "no such chat".to_owned() })
}

#[tokio::test(start_paused = true)]
async fn deliveries_are_sent_in_order_as_soon_as_their_account_is_registered() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::open(dir.path());
    for (id, target) in [("a", "x"), ("b", "y"), ("c", "x")] {
        rig.accept(id, target).await;
    }
    assert_eq!(rig.outbox.inner.tasks.len(), 0, "no account is registered: nothing runs");
    assert_eq!(rig.status("a").await.state, DeliveryState::Pending);
    let platform = Platform::new(Knows::Ids, [retry()]);
    rig.serve(&platform);
    rig.over("c").await;
    rig.over("b").await;
    assert_eq!(platform.shown_in("x"), ["a", "c"], "c waited for the second try of a");
    assert_eq!(platform.shown_in("y"), ["b"]);
    let receipt = Some(Receipt { message_ids: vec!["id-of-c".to_owned()], ..Receipt::default() });
    let status = rig.status("c").await;
    assert_eq!((status.state, status.attempts, status.receipt), (DeliveryState::Sent, 1, receipt));
    rig.outbox.unregister("fake", "default");
    while !rig.outbox.inner.tasks.is_empty() {
        tokio::task::yield_now().await;
    }
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_id_is_sent_once_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, []);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    let sent = rig.over("a").await;
    assert_eq!(rig.outbox.accept(note("a", "y")).await, Ok(Enqueued::Known(Box::new(sent.clone()))));
    rig.end().await;
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    assert_eq!(rig.outbox.accept(note("a", "x")).await, Ok(Enqueued::Known(Box::new(sent))));
    rig.accept("b", "x").await;
    rig.over("b").await;
    assert_eq!(platform.shown_in("x"), ["a", "b"]);
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_kept_for_a_person_and_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, [gone()]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    rig.accept("b", "x").await;
    rig.over("b").await;
    let failed = rig.outbox.failed(10).await.unwrap();
    let listed: Vec<_> =
        failed.iter().map(|one| (one.status.id.as_str(), one.status.error.as_deref())).collect();
    assert_eq!(listed, [("a", Some("no such chat"))]);
    assert_eq!(failed[0].part.as_ref().and_then(Part::words), Some("text of a"));
    assert_eq!(platform.shown_in("x"), ["b"]);
    assert_eq!(rig.revive(&["a"]).await, ["a"]);
    assert_eq!(rig.revive(&["b"]).await, [""; 0], "it was sent");
    assert_eq!(rig.over("a").await.state, DeliveryState::Sent);
    assert_eq!(platform.shown_in("x"), ["b", "a"]);
    platform.script([gone()]);
    rig.accept("c", "x").await;
    rig.over("c").await;
    assert!(
        rig.outbox.discard("c", Duration::ZERO).await.unwrap()
            && !rig.outbox.discard("a", Duration::ZERO).await.unwrap()
    );
    let discarded = rig.status("c").await;
    assert_eq!(discarded.given_up, Some(DeliveryFailure::Discarded));
    assert_eq!(rig.revive(&["c"]).await, [""; 0], "it was thrown away");
    rig.end().await;
}

/// A large file on a slow line: the outbox waits as long as the account does.
#[tokio::test(start_paused = true)]
async fn a_request_has_the_time_that_its_account_grants() {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    // Without anything granted the fate of a request is unknown after five minutes.
    for (granted, taken, attempts) in [(minutes(20), minutes(19), 1), (Duration::ZERO, minutes(6), 2)] {
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::new(Knows::Nothing, [Reply::TakeThenWait]);
        platform.grants(granted);
        let rig = Rig::open(dir.path());
        rig.serve(&platform);
        rig.accept("a", "x").await;
        platform.asked(1).await;
        tokio::time::sleep(taken).await;
        platform.release();
        let sent = rig.over("a").await;
        assert_eq!((sent.state, sent.attempts), (DeliveryState::Sent, attempts), "{granted:?}");
        rig.end().await;
    }
}

/// Checks that a delivery that always fails holds up its conversation until a person throws it
/// away, or has it tried at once.
#[tokio::test(start_paused = true)]
async fn what_waits_is_thrown_away_or_tried_at_once_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, vec![down(); 5]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    rig.accept("b", "x").await;
    rig.until("a", |status| status.attempts == 5 && status.state == DeliveryState::Pending).await;
    assert_eq!(rig.status("b").await.attempts, 0);
    let ids: Vec<String> = rig.outbox.waiting().await.unwrap().into_iter().map(|one| one.status.id).collect();
    assert_eq!(ids, ["a", "b"]);
    let before = tokio::time::Instant::now();
    assert!(rig.outbox.discard("a", Duration::ZERO).await.unwrap());
    let sent = rig.over("b").await;
    assert!(before.elapsed() < Duration::from_secs(1), "it waited for nothing");
    assert_eq!((sent.state, platform.shown_in("x")), (DeliveryState::Sent, vec!["b".to_owned()]));
    let thrown = rig.status("a").await;
    assert_eq!((thrown.state, thrown.given_up), (DeliveryState::Failed, Some(DeliveryFailure::Discarded)));
    assert_eq!(rig.revive(&["a"]).await, [""; 0]);

    platform.script(vec![down(); 5]);
    rig.accept("c", "x").await;
    rig.until("c", |status| status.attempts == 5 && status.state == DeliveryState::Pending).await;
    assert!(rig.outbox.hasten("c").await.unwrap());
    assert_eq!(rig.over("c").await.attempts, 6);
    assert!(!rig.outbox.hasten("c").await.unwrap(), "it was sent");
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_being_sent_is_thrown_away_only_if_its_platform_did_not_take_it() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, [Reply::TakeThenWait]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    platform.asked(1).await;
    assert!(!rig.outbox.discard("a", Duration::from_secs(1)).await.unwrap(), "it is being sent");
    let outbox = rig.outbox.clone();
    let discarding = tokio::spawn(async move { outbox.discard("a", Duration::from_secs(60)).await });
    platform.release();
    assert_eq!(discarding.await.unwrap(), Ok(false));
    assert_eq!(rig.over("a").await.state, DeliveryState::Sent);

    // A try that ends meanwhile: its rest is thrown away.
    platform.script([Reply::Hang]);
    rig.accept("b", "x").await;
    platform.asked(2).await;
    assert!(rig.outbox.discard("b", Duration::from_secs(3600)).await.unwrap());
    let thrown = rig.status("b").await;
    assert_eq!(thrown.given_up, Some(DeliveryFailure::Discarded));
    assert!(thrown.error.unwrap().ends_with("it may have arrived"));
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_only_waits_for_its_turn_was_not_sent_and_holds_up_no_other() {
    let (dir, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let platform = Platform::new(Knows::Nothing, []);
    platform.holds("x", Some(Duration::from_secs(3)));
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    rig.accept("b", "y").await;
    rig.over("b").await;
    platform.turn_asked(5).await;
    let waits = rig.status("a").await;
    assert_eq!((waits.state, waits.attempts), (DeliveryState::Pending, 0));
    openclaw_journal::journal::memory::copy(dir.path(), crashed.path());
    platform.holds("x", None);
    assert!(!rig.over("a").await.may_repeat);
    rig.end().await;
    // A process that died meanwhile never sent it, and knows that.
    let again = Rig::open(crashed.path());
    assert_eq!(again.status("a").await.state, DeliveryState::Pending);
    again.serve(&Platform::new(Knows::Nothing, []));
    assert!(!again.over("a").await.may_repeat);
    again.end().await;
}

#[tokio::test(start_paused = true)]
async fn tries_end_after_the_fifth_and_a_channel_that_is_not_ready_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let not_ready = (0..20).map(|_| Reply::Refuse(SendError::NotReady));
    let platform = Platform::new(Knows::Nothing, not_ready.chain((0..5).map(|_| retry())));
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    let failed = rig.over("a").await;
    assert_eq!((failed.attempts, failed.error.as_deref()), (5, Some("busy (after 5 tries)")));
    assert_eq!(platform.requests(), 25);
    rig.end().await;
}

fn down() -> Reply {
    Reply::Refuse(SendError::Down { reason: "500".to_owned() })
}

/// Waits by the test's clock, in steps in which timers that are due meanwhile run.
async fn pass(rig: &Rig, seconds: u64) {
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.now.fetch_add(1_000, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_is_down_for_hours_costs_no_delivery_and_few_tries() {
    let unreachable = || Reply::Refuse(SendError::Unreachable { reason: "no route".to_owned() });
    let silence = || Reply::Refuse(SendError::Uncertain { reason: "reset".to_owned() });
    type Makes = fn() -> Reply;
    let kinds: [(Makes, bool, usize); 4] =
        [(down, false, 100), (down, true, 100), (silence, true, 100), (unreachable, false, 900)];
    for (kind, is_lost, most) in kinds {
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::new(Knows::Ids, (0..2_000).map(|_| kind()));
        let rig = Rig::open(dir.path());
        rig.serve(&platform);
        if is_lost {
            rig.outbox.lost("fake", "default");
        }
        let ids: Vec<(String, String)> =
            (0..100).map(|n| (format!("d{n}"), format!("chat{}", n % 40))).collect();
        for (id, target) in &ids {
            rig.accept(id, target).await;
        }
        pass(&rig, 3 * 3600).await;
        assert!(rig.outbox.failed(9).await.unwrap().is_empty(), "nothing is given up");
        // The first of each conversation was on its way before anything was known.
        assert!(platform.requests() < most, "{} requests in three hours", platform.requests());
        platform.clear_script();
        let (begun, asked) = (tokio::time::Instant::now(), platform.requests());
        if is_lost {
            rig.outbox.hurry("fake", "default");
        }
        for (id, _) in &ids {
            assert_eq!(rig.over(id).await.state, DeliveryState::Sent, "{id}");
        }
        assert!(begun.elapsed() <= Duration::from_secs(6 * 60), "{:?}", begun.elapsed());
        assert_eq!(platform.requests() - asked, ids.len(), "each once");
        for chat in 0..40 {
            let target = format!("chat{chat}");
            let here: Vec<String> =
                ids.iter().filter(|(_, to)| *to == target).map(|(id, _)| id.clone()).collect();
            let shown: Vec<String> = platform
                .shown_in(&target)
                .iter()
                .map(|text| text.split(' ').next().unwrap().to_owned())
                .collect();
            assert_eq!(shown, here);
        }
        rig.end().await;
    }
}

/// Others arrive meanwhile: it is not known whether the platform or the message is to blame.
#[tokio::test(start_paused = true)]
async fn what_a_platform_fails_in_one_conversation_waits_as_in_an_outage_and_is_given_up_after_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, (0..9).map(|_| down()));
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("long:1", "x").await;
    rig.accept("next:1", "x").await;
    platform.asked(9).await;
    rig.accept("other:1", "y").await;
    assert_eq!(rig.over("other:1").await.state, DeliveryState::Sent, "another conversation goes on");
    rig.over("next:1").await;
    assert_eq!(platform.shown_in("x"), ["long:1", "next:1"], "half an hour of it is no reason");

    platform.script((0..2_000).map(|_| down()));
    let begun = tokio::time::Instant::now();
    rig.accept("bad:1", "x").await;
    rig.accept("bad:2", "x").await;
    while rig.status("bad:1").await.state.is_open() {
        pass(&rig, 60).await;
    }
    assert_eq!(rig.status("bad:1").await.given_up, Some(DeliveryFailure::PutOff));
    let hours = begun.elapsed().as_secs() / 3600;
    assert!((22..=25).contains(&hours), "{hours} hours");
    assert_eq!(
        rig.over("bad:2").await.given_up,
        Some(DeliveryFailure::PutOff),
        "not without the part before it"
    );
    platform.clear_script();
    rig.accept("good:1", "x").await;
    rig.over("good:1").await;
    assert_eq!(platform.shown_in("x"), ["long:1", "next:1", "good:1"]);
    rig.end().await;
}

/// The platform asked for a quarter of an hour, and the process ended.
#[tokio::test(start_paused = true)]
async fn a_wait_that_gave_up_a_message_holds_its_conversation_also_behind_a_restart() {
    const MINUTE: i64 = 60_000;
    let long = || {
        Reply::Refuse(SendError::Retry { reason: "429".to_owned(), after: Some(Duration::from_secs(900)) })
    };
    // Columns: time of the clock at the next start, in minutes from then on, and seconds that the
    // conversation waits. With a clock that was put back by far only the longest pause of a start
    // is left.
    for (jump, expect) in [(0, 900), (10, 300), (-5, 1_200), (-24 * 60, 600), (24 * 60, 0)] {
        let dir = tempfile::tempdir().unwrap();
        let rig = Rig::open(dir.path());
        rig.serve(&Platform::new(Knows::Nothing, [long()]));
        rig.accept("a:1", "x").await;
        rig.over("a:1").await;
        rig.accept("b:1", "x").await;
        rig.accept("c:1", "y").await;
        rig.over("c:1").await;
        assert_eq!(rig.status("b:1").await.state, DeliveryState::Pending);
        let (crashed, then) = (crash(dir.path()), rig.now.load(Ordering::SeqCst));
        rig.end().await;
        let again = Rig::open(crashed.path());
        again.now.store(then + jump * MINUTE, Ordering::SeqCst);
        let platform = Platform::new(Knows::Nothing, []);
        again.serve(&platform);
        again.accept("d:1", "y").await;
        again.over("d:1").await;
        assert!(!(-15..=15).contains(&jump) || platform.shown_in("x").is_empty(), "{jump}");
        pass(&again, expect).await;
        pass(&again, 2).await;
        assert_eq!(platform.shown_in("x").len(), 1, "{jump}");
        again.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_gives_up_the_rest_of_the_message_and_a_retry_sends_it_in_order() {
    let long = SendError::Retry { reason: "429".to_owned(), after: Some(Duration::from_secs(900)) };
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, [Reply::Take, Reply::Refuse(long)]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    for id in ["run:1", "run:2", "run:3", "next:1"] {
        rig.accept(id, "x").await;
    }
    rig.over("run:3").await;
    assert_eq!(
        platform.shown_in("x"),
        ["run:1"],
        "what stands behind waits as long as the platform asked for"
    );
    pass(&rig, 901).await;
    rig.over("next:1").await;
    assert_eq!(platform.shown_in("x"), ["run:1", "next:1"]);
    // A later part, such as a block that was not written yet.
    rig.accept("run:4", "x").await;
    assert_eq!(rig.over("run:4").await.state, DeliveryState::Failed);
    assert_eq!(
        rig.status("run:3").await.error.as_deref(),
        Some("what stands before it in the same message was given up")
    );
    // A process that dies between the wish and its effect.
    assert_eq!(rig.revive(&["run:4"]).await, ["run:2", "run:3", "run:4"], "all of the message");
    assert_eq!(rig.revive(&["run:4"]).await, [""; 0], "pressed twice");
    let crashed = crash(dir.path());
    rig.end().await;
    let shown = platform.shown_in("x");
    let again = Rig::open(crashed.path());
    let fresh = Platform::new(Knows::Nothing, []);
    again.serve(&fresh);
    again.over("run:4").await;
    assert!(shown.len() >= 2);
    assert_eq!(fresh.shown_in("x"), ["run:2", "run:3", "run:4"]);
    again.end().await;
}

#[tokio::test(start_paused = true)]
async fn old_deliveries_say_so_and_expired_ones_are_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::open(dir.path());
    rig.accept("old", "x").await;
    let soon = rig.now.load(Ordering::SeqCst) + 1_000;
    let short = Delivery { expires_at: Some(soon), ..note("short", "x") };
    rig.outbox.accept(short).await.unwrap();
    rig.now.fetch_add(31 * 60 * 1000, Ordering::SeqCst);
    rig.accept("new", "x").await;
    let platform = Platform::new(Knows::Nothing, []);
    rig.serve(&platform);
    rig.over("new").await;
    assert_eq!(platform.shown_in("x"), ["old (late)", "new"]);
    let error = rig.status("short").await.error;
    assert_eq!(error.as_deref(), Some("it expired before it could be sent"));
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_back_a_day_changes_no_order_and_delays_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Ids, [retry()]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    rig.until("a", |status| status.attempts == 1 && status.state == DeliveryState::Pending).await;
    rig.now.fetch_sub(24 * 60 * 60 * 1000, Ordering::SeqCst);
    rig.accept("b", "x").await;
    let crashed = crash(dir.path());
    rig.end().await;
    let rig = Rig::open(crashed.path());
    rig.now.fetch_sub(24 * 60 * 60 * 1000, Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    rig.serve(&platform);
    rig.over("b").await;
    assert_eq!(platform.shown_in("x"), ["a", "b"]);
    // The pause of the second try may be there; a delivery that waits by the clock takes a day.
    assert!(begun.elapsed() < Duration::from_secs(20 * 60 * 60), "{:?}", begun.elapsed());
    rig.end().await;
}

#[tokio::test]
async fn deliveries_without_an_address_and_too_many_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let journal = sqlite::opened(dir.path()).unwrap();
    let rig = Rig::on(journal.clone());
    assert_eq!(rig.outbox.accept(note(" ", "x")).await, Err(OutboxError::Unaddressed));
    assert_eq!(rig.outbox.accept(note("a", "")).await, Err(OutboxError::Unaddressed));
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
         INSERT INTO outbox (id, kind, channel, account, target, payload, accepted_at, state)
         SELECT 'n' || i, 'other', 'c', '', 't', '{}', 0, 'pending' FROM n";
    sqlite::run_sql(&journal, fill).await.unwrap();
    assert_eq!(rig.outbox.accept(note("a", "x")).await, Err(OutboxError::Full));
    assert!(matches!(rig.outbox.accept(note("n1", "x")).await, Ok(Enqueued::Known(_))));
    rig.end().await;
}

#[tokio::test]
async fn a_disk_that_refuses_keeps_new_ones_out_and_forgets_nothing_that_happened() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, [Reply::TakeThenWait]);
    let journal = sqlite::opened(dir.path()).unwrap();
    let rig = Rig::on(journal.clone());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    platform.asked(1).await;
    let refuse =
        "CREATE TRIGGER full BEFORE UPDATE ON outbox BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END;
        CREATE TRIGGER full2 BEFORE INSERT ON outbox BEGIN SELECT RAISE(ROLLBACK, 'disk is full'); END;";
    sqlite::run_sql(&journal, refuse).await.unwrap();
    let refused = rig.outbox.accept(note("b", "x")).await.unwrap_err();
    assert!(refused.to_string().contains("disk is full"), "{refused}");
    platform.release();
    sqlite::run_sql(&journal, "SELECT 1").await.unwrap_or_default();
    assert_eq!(
        rig.status("a").await.state,
        DeliveryState::Sending,
        "the disk does not take that it was sent"
    );
    let allow = "DROP TRIGGER full; DROP TRIGGER full2";
    sqlite::run_sql(&journal, allow).await.unwrap();
    assert_eq!(rig.over("a").await.state, DeliveryState::Sent);
    rig.accept("b", "x").await;
    rig.over("b").await;
    assert_eq!(platform.shown_in("x"), ["a", "b"]);
    rig.end().await;
}

#[tokio::test]
async fn a_full_database_refuses_and_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, []);
    let journal = sqlite::opened(dir.path()).unwrap();
    let rig = Rig::on(journal.clone());
    rig.serve(&platform);
    sqlite::run_sql(&journal, "PRAGMA max_page_count = 1").await.unwrap();
    let big = || Delivery { part: Part::text("x".repeat(200_000)), ..note("a", "x") };
    let refused = rig.outbox.accept(big()).await.unwrap_err();
    assert_eq!(refused.to_string(), "the delivery could not be stored: the disk is full");
    assert_eq!(rig.outbox.find("a").await.unwrap(), None);
    sqlite::run_sql(&journal, "PRAGMA max_page_count = 100000").await.unwrap();
    assert_eq!(rig.outbox.accept(big()).await, Ok(Enqueued::New));
    rig.over("a").await;
    assert_eq!(platform.shown_in("x"), ["a"]);
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_try_that_panics_or_is_never_answered_is_uncertain_and_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Contents, [Reply::TakeThenPanic, Reply::TakeThenHang, Reply::Hang]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    for id in ["a", "b", "c"] {
        rig.accept(id, "x").await;
    }
    assert_eq!(rig.over("c").await.state, DeliveryState::Sent);
    assert_eq!(platform.shown_in("x"), ["a", "b", "c"]);
    assert_eq!(platform.requests(), 4, "a and b were found, c was not");
    rig.end().await;
}

/// Checks every moment at which a process can end, and what each kind of platform shows after the
/// next start.
#[tokio::test(start_paused = true)]
async fn a_crash_between_any_two_steps_loses_nothing_and_doubles_only_where_nobody_can_tell() {
    // Columns: reaction of the platform to the first request before the crash, and its knowledge.
    let rows: [(&str, Option<Reply>, Knows, &[&str]); 12] = [
        ("accepted", None, Knows::Ids, &["a", "b"]),
        ("accepted", None, Knows::Contents, &["a", "b"]),
        ("accepted", None, Knows::Nothing, &["a", "b"]),
        ("asked, no effect", Some(Reply::Hang), Knows::Ids, &["a", "b"]),
        ("asked, no effect", Some(Reply::Hang), Knows::Contents, &["a", "b"]),
        ("asked, no effect", Some(Reply::Hang), Knows::Nothing, &["a (again)", "b"]),
        ("taken", Some(Reply::TakeThenHang), Knows::Ids, &["a", "b"]),
        ("taken", Some(Reply::TakeThenHang), Knows::Contents, &["a", "b"]),
        ("taken", Some(Reply::TakeThenHang), Knows::Nothing, &["a", "a (again)", "b"]),
        ("refused for now", Some(retry()), Knows::Nothing, &["a", "b"]),
        ("silence", Some(Reply::TakeThenSilence), Knows::Contents, &["a", "b"]),
        ("silence", Some(Reply::TakeThenSilence), Knows::Nothing, &["a", "a (again)", "b"]),
    ];
    for (moment, reply, knows, expected) in rows {
        let dir = tempfile::tempdir().unwrap();
        let rig = Rig::open(dir.path());
        let platform = Platform::new(knows, reply.clone());
        rig.accept("a", "x").await;
        rig.accept("b", "x").await;
        if let Some(reply) = reply {
            rig.serve(&platform);
            platform.asked(1).await;
            match reply {
                Reply::Refuse(_) => drop(rig.until("a", |a| a.state == DeliveryState::Pending).await),
                Reply::TakeThenSilence => drop(rig.until("a", |a| a.state == DeliveryState::Uncertain).await),
                _ => assert_eq!(rig.status("a").await.state, DeliveryState::Sending),
            }
        }
        let crashed = crash(dir.path());
        rig.end().await;
        let rig = Rig::open(crashed.path());
        rig.serve(&platform);
        rig.over("b").await;
        assert_eq!(platform.shown_in("x"), expected, "{moment}, {knows:?}");
        rig.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_stored_is_not_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Nothing, []);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    rig.accept("a", "x").await;
    rig.over("a").await;
    let crashed = crash(dir.path());
    rig.end().await;
    let rig = Rig::open(crashed.path());
    rig.serve(&platform);
    rig.accept("b", "x").await;
    rig.over("b").await;
    assert_eq!(platform.shown_in("x"), ["a", "b"]);
    rig.end().await;
}

fn no_file() -> Reply {
    Reply::Refuse(SendError::File { reason: "no such file".to_owned() })
}

/// A picture with words below it.
fn picture(id: &str, target: &str) -> Delivery {
    let mut delivery = note(id, target);
    delivery.part.content = Content::Media {
        path: "/nowhere".into(),
        sent_as: MediaKind::Image,
        mime: "image/png".to_owned(),
        name: "x.png".to_owned(),
        caption: Some(FormattedText::plain(format!("text of {id}"))),
    };
    delivery
}

/// Parts that are sent, replies of the platform, texts that are shown, and number of parts given
/// up.
type Told = (&'static [&'static str], Vec<Reply>, &'static [&'static str], usize);

/// Checks that the reader hears of files without words once for each answer, and never again if
/// that line is refused; a caller that sends one by hand or by a tool is the only one to hear of
/// it.
#[tokio::test(start_paused = true)]
async fn the_reader_of_an_answer_is_told_once_of_files_that_are_refused() {
    let silent = |id: &str| {
        let mut delivery = picture(id, "x");
        if let Content::Media { caption, .. } = &mut delivery.part.content {
            *caption = None;
        }
        delivery
    };
    let rows: [Told; 4] = [
        (&["r:1", "r:2"], vec![no_file(), Reply::Take, no_file()], &["r:1 (note)"], 1),
        (&["r:1", "q:1"], vec![no_file(), Reply::Take, no_file()], &["r:1 (note)", "q:1 (note)"], 0),
        (&["r:1", "r:2"], vec![no_file(), gone(), no_file()], &[], 2),
        (&["r:t1.1"], vec![no_file()], &[], 1),
    ];
    for (ids, script, shown, failed) in rows {
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::new(Knows::Nothing, script);
        let rig = Rig::open(dir.path());
        rig.serve(&platform);
        for id in ids {
            assert_eq!(rig.outbox.accept(silent(id)).await, Ok(Enqueued::New));
        }
        rig.over(ids[ids.len() - 1]).await;
        assert_eq!(platform.shown_in("x"), shown, "{ids:?}");
        assert_eq!(rig.outbox.failed(9).await.unwrap().len(), failed, "{ids:?}");
        rig.end().await;
    }
}

/// Whenever the process ends: its reader sees the words once, in their place.
#[tokio::test(start_paused = true)]
async fn words_whose_file_is_refused_are_sent_without_it_in_their_place_and_once_over_a_crash() {
    let rows = [
        // The file is on its way.
        (vec![Reply::Hang], 1, vec![no_file()]),
        // The words are on their way, and do not arrive, or do.
        (vec![no_file(), Reply::Hang], 2, vec![]),
        (vec![no_file(), Reply::TakeThenHang], 2, vec![]),
        // The delivery behind them is on its way.
        (vec![no_file(), Reply::Take, Reply::Hang], 3, vec![]),
        // Nothing is left.
        (vec![no_file(), Reply::Take, Reply::Take], 3, vec![]),
    ];
    for (script, requests, then) in rows {
        let shown = format!("{script:?}");
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::new(Knows::Contents, script);
        let rig = Rig::open(dir.path());
        rig.serve(&platform);
        assert_eq!(rig.outbox.accept(picture("a", "x")).await, Ok(Enqueued::New));
        rig.accept("b", "x").await;
        platform.asked(requests).await;
        let crashed = crash(dir.path());
        rig.end().await;
        platform.clear_script();
        platform.script(then);
        let rig = Rig::open(crashed.path());
        rig.serve(&platform);
        rig.over("b").await;
        let a = rig.status("a").await;
        assert_eq!(
            (a.state, a.left_out.as_deref()),
            (DeliveryState::Sent, Some("file x.png was not sent: no such file")),
            "{shown}"
        );
        assert_eq!(platform.shown_in("x"), ["a (noted)", "b"], "{shown}");
        rig.end().await;
    }
}

/// Checks refused files without replacement words: a chat that takes nothing ends the delivery with
/// one more try, a file without words that a tool sends with none.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_refused_is_given_up_where_no_words_can_be_sent() {
    let dir = tempfile::tempdir().unwrap();
    let platform = Platform::new(Knows::Contents, [no_file(), gone(), no_file()]);
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    let mut bare = picture("run:t1.1", "x");
    if let Content::Media { caption, .. } = &mut bare.part.content {
        *caption = None;
    }
    for delivery in [picture("a", "x"), bare] {
        assert_eq!(rig.outbox.accept(delivery).await, Ok(Enqueued::New));
    }
    let error = async |id: &str| rig.over(id).await.error;
    assert_eq!(error("a").await.as_deref(), Some("no such chat"));
    assert_eq!(error("run:t1.1").await.as_deref(), Some("no such file"));
    assert_eq!(platform.requests(), 3);
    rig.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_parts_of_a_message_that_were_refused_come_back_together() {
    let dir = tempfile::tempdir().unwrap();
    let ids = ["run:1", "run:2", "run:3", "run:t4.1", "other:1"];
    let platform = Platform::new(Knows::Contents, ids.map(|_| gone()));
    let rig = Rig::open(dir.path());
    rig.serve(&platform);
    for id in ids {
        rig.accept(id, "x").await;
    }
    rig.over("other:1").await;
    assert_eq!(rig.revive(&["run:3"]).await, ["run:1", "run:2", "run:3"]);
    rig.over("run:3").await;
    assert_eq!(platform.shown_in("x"), ["run:1", "run:2", "run:3"]);
    assert_eq!(rig.revive(&["run:t4.1"]).await, ["run:t4.1"], "what a tool sent is a message of its own");
    rig.end().await;
}
