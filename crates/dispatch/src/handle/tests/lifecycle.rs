//! Tests of when a conversation goes on and when it starts anew (spec `sessions.md` §5), by a clock
//! of the test's.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::tz::TimeZone;
use openclaw_journal::api::{AgentMessage, ChatMessage, Occasion};
use openclaw_journal::clock::Clock;
use openclaw_sessions::SessionKey;

use super::*;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
const THREAD: &str = "agent:main:slack:channel:c1:thread:9";
const ROOM: &str = "agent:main:slack:channel:c1";

/// A dispatcher whose clock stands still until it is moved.
struct Timed {
    rig: Rig,
    now: Arc<AtomicI64>,
    sent: usize,
}

impl Timed {
    async fn start(dir: &std::path::Path, model: &FakeModel, session: Value, at: &str) -> Self {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at: jiff::civil::DateTime = at.parse().unwrap();
        let now = Arc::new(AtomicI64::new(at.to_zoned(zone.clone()).unwrap().timestamp().as_millisecond()));
        let clock = Arc::clone(&now);
        let clock = Clock::set(move || clock.load(Ordering::SeqCst), zone);
        let rig = Rig::at(dir, model, json!({"session": session}), clock).await;
        Self { rig, now, sent: 0 }
    }

    fn pass(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sends a message, waits for its end, and answers with the row.
    async fn say(&mut self, text: &str) -> openclaw_sessions::SessionEntry {
        self.sent += 1;
        let run = format!("t{}", self.sent);
        send(&self.rig, &run, text).await;
        self.rig.end(&run).await;
        self.rig.entry().await
    }

    async fn program(
        &mut self,
        occasion: Occasion,
        session_id: Option<&str>,
    ) -> openclaw_sessions::SessionEntry {
        self.sent += 1;
        let run = format!("t{}", self.sent);
        let session_id = session_id.map(str::to_owned);
        let message = AgentMessage { occasion, session_id, ..agent(&run, "by the gateway") };
        drop(self.rig.agent(message).await.unwrap());
        self.rig.end(&run).await;
        self.rig.entry().await
    }
}

#[tokio::test]
async fn a_conversation_ends_at_the_hour_or_after_the_silence_whichever_comes_first() {
    // Config, time of the first message, minutes until the second, and whether the conversation goes on.
    let thread = json!({"resetByType": {"direct": {"mode": "idle", "idleMinutes": 5}}});
    let channel = json!({"reset": {"mode": "idle", "idleMinutes": 5}, "resetByChannel": {"webchat": {"mode": "daily"}}});
    let rows = [
        (json!({}), "2026-02-10T03:00", 59, true),
        (json!({}), "2026-02-10T03:00", 60, false),
        (json!({}), "2026-02-10T04:00", 24 * 60 - 1, true),
        (json!({"reset": {"atHour": 5}}), "2026-02-10T03:00", 60, true),
        (json!({"idleMinutes": 30}), "2026-02-10T03:50", 30, true),
        (json!({"idleMinutes": 30}), "2026-02-10T12:00", 31, false),
        (json!({"reset": {"mode": "daily", "idleMinutes": 30}}), "2026-02-10T03:50", 20, false),
        (json!({"reset": {"mode": "daily", "idleMinutes": 30}}), "2026-02-10T12:00", 31, false),
        (thread, "2026-02-10T12:00", 6, false),
        (channel, "2026-02-10T12:00", 600, true),
        // The night of spring forward has 23 hours: 04:00 comes an hour early.
        (json!({}), "2026-03-28T04:00", 22 * 60 + 59, true),
        (json!({}), "2026-03-28T04:00", 23 * 60, false),
        // And that of fall back 25.
        (json!({}), "2026-10-24T04:00", 24 * 60 + 59, true),
        (json!({}), "2026-10-24T04:00", 25 * 60, false),
    ];
    for (config, at, minutes, goes_on) in rows {
        let (dir, model) = (dir(), FakeModel::start([]).await);
        let mut timed = Timed::start(dir.path(), &model, config.clone(), at).await;
        let first = timed.say("one").await.session_id;
        timed.pass(minutes * MINUTE);
        let second = timed.say("two").await.session_id;
        assert_eq!(first == second, goes_on, "{config} {at} {minutes}");
        assert_eq!(model.heard(1).len(), if goes_on { 3 } else { 1 }, "{config} {at} {minutes}");
    }
}

#[tokio::test]
async fn a_message_that_waited_over_a_restart_is_judged_by_when_it_was_said() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut timed = Timed::start(dir.path(), &model, json!({}), "2026-02-10T03:00").await;
    let first = timed.say("one").await.session_id;
    timed.pass(30 * MINUTE);
    let receipt = timed.rig.chat(chat("late", "two")).await.unwrap();
    let crashed = crash(dir.path());
    drop(receipt);
    let timed = Timed::start(crashed.path(), &model, json!({}), "2026-02-11T12:00").await;
    timed.rig.end("late").await;
    assert_eq!(timed.rig.entry().await.session_id, first);
}

#[tokio::test]
async fn a_clock_put_back_a_day_resets_nothing_and_keeps_order_and_time() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let session = json!({"reset": {"mode": "daily", "idleMinutes": 10}});
    let mut timed = Timed::start(dir.path(), &model, session.clone(), "2026-02-10T12:00").await;
    let before = timed.say("one").await;
    timed.pass(-DAY);
    let back = timed.say("two").await;
    assert_eq!(back.session_id, before.session_id);
    assert!(back.updated_at >= before.updated_at && back.last_interaction_at >= before.last_interaction_at);
    // Also when it starts anew, and by a process that knows nothing of it.
    let anew = timed.say("/new three").await;
    assert_ne!(anew.session_id, before.session_id);
    assert!(anew.updated_at >= back.updated_at);
    let receipts = [timed.rig.chat(chat("a", "four")).await, timed.rig.chat(chat("b", "five")).await];
    let crashed = crash(dir.path());
    drop(receipts);
    let timed = Timed::start(crashed.path(), &model, session, "2026-02-08T12:00").await;
    timed.rig.end("b").await;
    let last = timed.rig.entry().await;
    assert_eq!(last.session_id, anew.session_id);
    assert!(last.updated_at >= anew.updated_at);
    let heard = model.heard(model.count() - 1);
    let asked: Vec<&str> = heard.iter().filter(|line| line.starts_with("user")).map(String::as_str).collect();
    let asked = asked.join("\n");
    // Messages that waited may be collected into one prompt.
    let words = asked.lines().filter_map(|line| line.strip_prefix("user: ").unwrap_or(line).split_once("] "));
    let words: Vec<&str> = words.map(|(_, word)| word).filter(|word| *word != "Queued").collect();
    assert_eq!(words, ["three", "four", "five"], "{asked}");
}

#[tokio::test]
async fn heartbeats_keep_no_idle_session_alive_and_requests_do() {
    for (occasion, goes_on) in [(Occasion::Heartbeat, false), (Occasion::Request, true)] {
        let (dir, model) = (dir(), FakeModel::start([]).await);
        let mut timed =
            Timed::start(dir.path(), &model, json!({"idleMinutes": 60}), "2026-02-10T12:00").await;
        let first = timed.say("one").await;
        timed.pass(50 * MINUTE);
        let beat = timed.program(occasion, None).await;
        assert_eq!(beat.session_id, first.session_id);
        assert_eq!(beat.last_interaction_at > first.last_interaction_at, goes_on, "{occasion:?}");
        timed.pass(20 * MINUTE);
        assert_eq!(timed.say("two").await.session_id == first.session_id, goes_on, "{occasion:?}");
    }
}

#[tokio::test]
async fn a_request_goes_on_whatever_the_time_a_command_line_expires_and_a_job_is_always_fresh() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut timed = Timed::start(dir.path(), &model, json!({"idleMinutes": 60}), "2026-02-10T12:00").await;
    let first = timed.say("one").await.session_id;
    timed.pass(30 * MINUTE);
    assert_eq!(timed.program(Occasion::Command, None).await.session_id, first);
    timed.pass(3 * DAY);
    assert_eq!(timed.program(Occasion::Request, None).await.session_id, first);
    timed.pass(3 * DAY);
    let second = timed.program(Occasion::Command, None).await.session_id;
    assert_ne!(second, first);
    let named = second.as_ref().map(|id| id.as_str());
    let third = timed.program(Occasion::Isolated, named).await.session_id;
    let fourth = timed.program(Occasion::Isolated, None).await.session_id;
    assert!(third != second && fourth != third, "{second:?} {third:?} {fourth:?}");
    assert_eq!(model.heard(model.count() - 1).len(), 1);
}

#[tokio::test]
async fn the_rule_of_a_rooms_platform_holds_whoever_looks_in() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let session = json!({"reset": {"mode": "idle", "idleMinutes": 5}, "resetByChannel": {"slack": {"mode": "idle", "idleMinutes": 600}}});
    let timed = Timed::start(dir.path(), &model, session, "2026-02-10T12:00").await;
    let key = SessionKey::parse(ROOM).unwrap();
    let mut ids = Vec::new();
    for run in ["r1", "r2"] {
        let message = ChatMessage { session_key: key_of(ROOM), ..chat(run, "hi") };
        drop(timed.rig.chat(message).await.unwrap());
        timed.rig.end(run).await;
        ids.push(timed.rig.store.get(&key).await.unwrap().unwrap().entry.session_id.clone());
        timed.pass(60 * MINUTE);
    }
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn whoever_starts_anew_waits_for_nothing_they_leave_behind() {
    for mode in ["collect", "steer", "followup"] {
        let (dir, model) = (dir(), FakeModel::start([Answer::Stall("tick"), Answer::Text("welcome")]).await);
        let queue = json!({"messages": {"queue": {"mode": mode}}});
        let mut rig = Rig::with_config(dir.path(), &model, queue).await;
        send(&rig, "r1", "long work").await;
        rig.events_until("r1 chat delta tick").await;
        send(&rig, "r2", "/NEW").await;
        assert_eq!(texts(&rig.end("r2").await), ["welcome"], "{mode}");
        let stopped = rig.end("r1").await;
        let reason = match &stopped.outcome {
            RunOutcome::Aborted { reason, .. } => reason.as_str(),
            other => panic!("{other:?}"),
        };
        assert_eq!(reason, "interrupt", "{mode}");
        let heard = model.heard(1);
        assert!(heard.len() == 1 && heard[0].contains("The user began a new session"), "{mode}: {heard:?}");
        assert_eq!(rig.entry().await.aborted_last_run, Some(false), "{mode}");
    }
}

fn in_thread(run: &str, text: &str, parent: &str) -> ChatMessage {
    let parent_session_key = Some(key_of(parent));
    ChatMessage { session_key: key_of(THREAD), parent_session_key, ..chat(run, text) }
}

async fn said_in(rig: &Rig, message: ChatMessage) -> RunRecord {
    let run = message.run_id.as_str().to_owned();
    drop(rig.chat(message).await.unwrap());
    rig.end(&run).await
}

async fn thread_entry(rig: &Rig) -> openclaw_sessions::SessionEntry {
    let key = SessionKey::parse(THREAD).unwrap();
    (*rig.store.get(&key).await.unwrap().unwrap().entry).clone()
}

#[tokio::test]
async fn what_is_said_in_a_thread_goes_by_the_rule_of_threads_whatever_its_key() {
    let rules = json!({"resetByType": {"thread": {"mode": "idle", "idleMinutes": 600}, "group": {"mode": "idle", "idleMinutes": 5}}});
    for (parent, goes_on) in [(Some(ROOM), true), (None, false)] {
        let (dir, model) = (dir(), FakeModel::start([]).await);
        let timed = Timed::start(dir.path(), &model, rules.clone(), "2026-02-10T12:00").await;
        let message = |run: &str| ChatMessage {
            session_key: key_of("agent:main:discord:channel:t"),
            parent_session_key: parent.map(key_of),
            ..chat(run, "hello")
        };
        said_in(&timed.rig, message("r1")).await;
        timed.pass(60 * MINUTE);
        said_in(&timed.rig, message("r2")).await;
        assert_eq!(model.heard(1).len(), if goes_on { 3 } else { 1 }, "{parent:?}");
    }
}

#[tokio::test]
async fn a_thread_begins_with_what_was_said_in_its_room() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    in_files(dir.path());
    let rig = Rig::start(dir.path(), &model).await;
    said_in(&rig, ChatMessage { session_key: key_of(ROOM), ..chat("r1", "in the room") }).await;
    said_in(&rig, in_thread("r2", "in the thread", ROOM)).await;
    let heard = model.heard(1);
    assert!(
        heard.len() == 3 && heard[0].contains("in the room") && heard[2].contains("in the thread"),
        "{heard:?}"
    );
    let entry = thread_entry(&rig).await;
    let file = entry.session_file.as_deref().unwrap().to_owned();
    let id = entry.session_id.clone().unwrap();
    assert!(file.ends_with(&format!("_{id}.jsonl")), "{file}");
    let text = std::fs::read_to_string(&file).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let room =
        rig.store.get(&SessionKey::parse(ROOM).unwrap()).await.unwrap().unwrap().entry.session_id.clone();
    let parent = header["parentSession"].as_str().unwrap();
    assert!(parent.ends_with(&format!("{}.jsonl", room.unwrap())) && header["id"] == id.as_str(), "{header}");
    // The room knows nothing of the thread, and the thread goes on with its own.
    said_in(&rig, ChatMessage { session_key: key_of(ROOM), ..chat("r3", "again in the room") }).await;
    assert_eq!(model.heard(2).len(), 3);
    said_in(&rig, in_thread("r4", "again in the thread", ROOM)).await;
    assert_eq!(model.heard(3).len(), 5);
    assert_eq!(thread_entry(&rig).await.session_file.as_deref(), Some(file.as_str()));
    // A person who starts anew does not want to hear it again.
    said_in(&rig, in_thread("r5", "/new hello", ROOM)).await;
    assert_eq!(model.heard(4).len(), 1);
}

#[tokio::test]
async fn a_thread_of_nothing_of_itself_or_of_too_much_begins_fresh() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let rig = Rig::start(dir.path(), &model).await;
    let full = SessionKey::parse(ROOM).unwrap();
    said_in(&rig, ChatMessage { session_key: key_of(ROOM), ..chat("r0", "a lot") }).await;
    let fill = |edit: openclaw_sessions::store::Edit<'_>| {
        edit.entry.total_tokens = Some(100_001);
        Ok(())
    };
    rig.store.update(&full, Box::new(fill)).await.unwrap();
    for (n, parent) in ["agent:main:slack:channel:none", THREAD, ROOM].into_iter().enumerate() {
        let run = format!("r{}", n + 1);
        said_in(&rig, in_thread(&run, "hi", parent)).await;
        assert_eq!(model.heard(n + 1).len(), 1, "{parent}");
        let entry = thread_entry(&rig).await;
        let (file, id) = (entry.session_file.as_deref().unwrap(), entry.session_id.as_ref().unwrap());
        assert!(file.ends_with(&format!("/{id}.jsonl")), "{parent}: {file}");
        rig.store.delete(&SessionKey::parse(THREAD).unwrap()).await.unwrap();
    }
}

#[tokio::test]
async fn a_crash_before_the_row_names_it_makes_the_threads_file_anew() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    in_files(dir.path());
    let rig = Rig::start(dir.path(), &model).await;
    said_in(&rig, ChatMessage { session_key: key_of(ROOM), ..chat("r1", "in the room") }).await;
    let receipt = rig.chat(in_thread("r2", "in the thread", ROOM)).await.unwrap();
    let crashed = crash(dir.path());
    drop(receipt);
    rig.end("r2").await;
    // The part that the last process had written so far.
    let name = std::path::PathBuf::from(thread_entry(&rig).await.session_file.unwrap().to_string());
    let half = crashed.path().join("agents/main/sessions").join(name.file_name().unwrap());
    std::fs::write(&half, "{\"type\":\"session\",\"ver").unwrap();
    let rig = Rig::start(crashed.path(), &model).await;
    rig.end("r2").await;
    let entry = thread_entry(&rig).await;
    assert!(entry.session_file.unwrap().ends_with(half.file_name().unwrap().to_str().unwrap()));
    let heard = model.heard(model.count() - 1);
    assert_eq!(heard.len(), 3, "{heard:?}");
}

#[tokio::test]
async fn the_model_that_would_be_taken_anyway_is_no_override() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    // Without a chosen model the connected one is taken.
    let agents = json!({"defaults": {"userTimezone": "UTC", "skipBootstrap": true}});
    let rig = Rig::with_config(dir.path(), &model, json!({"agents": agents})).await;
    send(&rig, "r1", "/new fake/fake-1 hello").await;
    rig.end("r1").await;
    let entry = rig.entry().await;
    assert_eq!((entry.model_override, entry.model.as_deref()), (None, Some("fake-1")));
    assert!(model.heard(0)[0].ends_with("hello\n[message_id: r1]"), "{:?}", model.heard(0));
}

#[tokio::test]
async fn a_direct_chat_with_a_limit_sends_its_last_turns_and_keeps_them_all() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let limits = json!({"channels": {"telegram": {"dmHistoryLimit": 2}}});
    let rig = Rig::with_config(dir.path(), &model, limits).await;
    for (number, text) in ["one", "two", "three", "four"].into_iter().enumerate() {
        for (kind, key) in [("d", "agent:main:telegram:dm:7"), ("g", "agent:main:telegram:group:7")] {
            let mut message = chat(&format!("{kind}{number}"), text);
            message.session_key = key_of(key);
            drop(rig.chat(message).await.unwrap());
            rig.end(&format!("{kind}{number}")).await;
        }
    }
    let people =
        |request: usize| model.heard(request).iter().filter(|line| line.starts_with("user:")).count();
    let sent: Vec<usize> = (0..8).map(people).collect();
    assert_eq!(
        sent,
        [1, 1, 2, 2, 3, 3, 3, 4],
        "direct and group by turns; the limit is of what was said before"
    );
}

#[tokio::test]
async fn words_behind_a_message_that_begins_anew_by_time_follow_it() {
    let (dir, model) = (dir(), FakeModel::start([]).await);
    let mut timed = Timed::start(dir.path(), &model, json!({"idleMinutes": 60}), "2026-02-10T12:00").await;
    let first = timed.say("one").await.session_id;
    timed.pass(3 * DAY);
    // The run begins when its receipt is dropped: until then the session has its old conversation.
    let receipt = timed.rig.chat(chat("late", "two")).await.unwrap();
    let note = InjectMessage { session_key: key_of(KEY), text: "note".to_owned(), label: None };
    let placed = timed.rig.dispatch.inject(note).await;
    let released = async {
        tokio::task::yield_now().await;
        drop(receipt);
    };
    let (injected, ()) = tokio::join!(placed.outcome(), released);
    injected.unwrap();
    timed.rig.end("late").await;
    assert_ne!(timed.say("three").await.session_id, first);
    let heard = model.heard(model.count() - 1);
    let stands = |word: &str| heard.iter().any(|line| line.contains(word));
    assert!(stands("two") && stands("note") && !stands("one"), "{heard:?}");
}
