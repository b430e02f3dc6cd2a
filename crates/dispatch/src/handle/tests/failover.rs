//! The failover drill (spec `models.md` §8.5, §8.6, §9): three profiles of two providers that fail as scripted, by a clock of
//! the test's. What is asserted is every request that is made, in order.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::tz::TimeZone;
use openclaw_journal::beat::{Beat, BeatChat, BeatMessage, BeatPurpose};
use openclaw_journal::clock::Clock;
use openclaw_protocol::AgentId;
use openclaw_sessions::entry::AuthProfileSource;
use openclaw_testkit::model_server::{ModelServer, Reply};

use super::*;

const NOW: i64 = 1_760_000_000_000;
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Answers of the credentials, by key; without a script they answer well.
type Scripts = Arc<Mutex<HashMap<&'static str, VecDeque<u16>>>>;

struct Drill {
    rig: Rig,
    server: ModelServer,
    scripts: Scripts,
    now: Arc<AtomicI64>,
    dir: tempfile::TempDir,
    seen: usize,
    sent: usize,
    _unused: FakeModel,
}

impl Drill {
    /// `one/big` with profiles `one:a` and `one:b`, then `two/m` with `two:c`.
    async fn start() -> Self {
        let scripts = Scripts::default();
        let script = Arc::clone(&scripts);
        let server = ModelServer::answering(move |request| {
            let key =
                request.header("authorization").unwrap().strip_prefix("Bearer key-").unwrap().to_owned();
            let next = script.lock().unwrap().get_mut(key.as_str()).and_then(VecDeque::pop_front);
            match next {
                None | Some(200) => Reply::text("fine"),
                Some(status) => Reply::openai_error(status, "scripted", "no").header("retry-after-ms", "0"),
            }
        })
        .await;
        let provider = |id: &str| {
            json!({"baseUrl": server.v1(), "api": "openai-completions",
                "models": [{"id": id, "name": id, "contextWindow": 32_000, "maxTokens": 4_096,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]})
        };
        let config = json!({
            "agents": {"defaults": {"model": {"primary": "one/big", "fallbacks": ["two/m"]}, "skipBootstrap": true}},
            "models": {"providers": {"one": provider("big"), "two": provider("m")}},
            "auth": {"order": {"one": ["one:a", "one:b"]}},
        });
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = dir.path().join("agents/main/agent");
        std::fs::create_dir_all(&agent_dir).unwrap();
        let key = |provider: &str, key: &str| json!({"type": "api_key", "provider": provider, "key": key});
        let profiles = json!({"version": 1, "profiles": {
            "one:a": key("one", "key-a"), "one:b": key("one", "key-b"), "two:c": key("two", "key-c")}});
        std::fs::write(agent_dir.join("auth-profiles.json"), profiles.to_string()).unwrap();
        let now = Arc::new(AtomicI64::new(NOW));
        let clock = Arc::clone(&now);
        let clock = Clock::set(move || clock.load(Ordering::SeqCst), TimeZone::UTC);
        let unused = FakeModel::start([]).await;
        let rig = Rig::at(dir.path(), &unused, config, clock).await;
        Self { rig, server, scripts, now, dir, seen: 0, sent: 0, _unused: unused }
    }

    fn script(&self, key: &'static str, statuses: &[u16]) {
        self.scripts.lock().unwrap().insert(key, statuses.iter().copied().collect());
    }

    fn at(&self, since_start: i64) {
        self.now.store(NOW + since_start, Ordering::SeqCst);
    }

    /// Sends a message; gives the keys with which requests were made for it, in order, and how it ended.
    async fn say(&mut self) -> (String, RunOutcome) {
        self.sent += 1;
        let run = format!("r{}", self.sent);
        send(&self.rig, &run, "hello").await;
        let outcome = self.rig.end(&run).await.outcome;
        let requests = self.server.requests();
        let keys: Vec<&str> = requests[self.seen..]
            .iter()
            .map(|request| request.header("authorization").unwrap().strip_prefix("Bearer key-").unwrap())
            .collect();
        self.seen = requests.len();
        (keys.join(" "), outcome)
    }

    async fn answered(&mut self) -> String {
        let (keys, outcome) = self.say().await;
        assert!(matches!(outcome, RunOutcome::Ok { .. }), "{outcome:?}");
        keys
    }

    async fn failed(&mut self) -> (String, String) {
        let (keys, outcome) = self.say().await;
        let RunOutcome::Error { message, .. } = outcome else { panic!("{outcome:?}") };
        (keys, message)
    }

    /// `usageStats` as they are on disk once everything is written.
    async fn stats(&self) -> Value {
        self.rig.models.settle().await;
        let text = std::fs::read(self.dir.path().join("agents/main/agent/auth-profiles.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["usageStats"].clone()
    }
}

#[tokio::test]
async fn failures_go_from_profile_to_profile_to_model_and_rests_end_by_the_clock() {
    let mut drill = Drill::start().await;
    drill.script("a", &[429, 429]);
    drill.script("b", &[402]);
    assert_eq!(drill.answered().await, "a b c");
    let entry = drill.rig.entry().await;
    assert_eq!((entry.model_provider.as_deref(), entry.model.as_deref()), (Some("two"), Some("m")));

    // A profile in cooldown is not asked; a minute later the first is back, and its next cooldown is five.
    assert_eq!(drill.answered().await, "c");
    drill.at(MINUTE - 1);
    assert_eq!(drill.answered().await, "c");
    drill.at(MINUTE);
    assert_eq!(drill.answered().await, "a c");
    drill.at(6 * MINUTE - 1);
    assert_eq!(drill.answered().await, "c");
    drill.at(6 * MINUTE);
    assert_eq!(drill.answered().await, "a");

    let stats = drill.stats().await;
    assert_eq!(stats["one:a"], json!({"errorCount": 0, "lastUsed": NOW + 6 * MINUTE}));
    assert_eq!(stats["one:b"]["disabledReason"], "billing");
    assert_eq!(stats["one:b"]["disabledUntil"], json!(NOW + 5 * HOUR));

    // The disabled one is passed over until its five hours are over.
    drill.at(5 * HOUR - 1);
    drill.script("a", &[401]);
    assert_eq!(drill.answered().await, "a c");
    drill.at(5 * HOUR);
    assert_eq!(drill.answered().await, "b");
}

#[tokio::test]
async fn when_everything_fails_the_requests_are_bounded_and_every_model_is_named() {
    let mut drill = Drill::start().await;
    for key in ["a", "b", "c"] {
        drill.script(key, &[503; 20]);
    }
    let (keys, message) = drill.failed().await;
    // Two while there is somebody else to ask, four of the last one.
    assert_eq!(keys, "a a b b c c c c");
    let (list, next) = message.split_once('\n').unwrap();
    assert_eq!(list, "All models failed (2): one/big: 503 no (unavailable) | two/m: 503 no (unavailable)");
    assert!(next.starts_with("`openclaw models status --probe`"), "{next}");

    // The server's trouble is no reason to send nobody: it may be over.
    drill.scripts.lock().unwrap().clear();
    assert_eq!(drill.answered().await, "a");
}

#[tokio::test]
async fn when_everybody_rests_nothing_is_sent_and_the_answer_says_so() {
    let mut drill = Drill::start().await;
    for key in ["a", "b", "c"] {
        drill.script(key, &[401; 4]);
    }
    let (keys, message) = drill.failed().await;
    assert_eq!(keys, "a b c");
    let list = "All models failed (2): one/big: 401 no (auth) | two/m: 401 no (auth)";
    assert_eq!(message.lines().next(), Some(list));
    let (keys, message) = drill.failed().await;
    assert_eq!(keys, "");
    assert_eq!(
        message,
        "Error: All models failed (2): one/big: Provider one is in cooldown (all profiles unavailable) (rate_limit) | \
         two/m: Provider two is in cooldown (all profiles unavailable) (rate_limit)\n`openclaw models status` shows what \
         each of them lacks, or until when it rests."
    );
    drill.at(MINUTE);
    drill.scripts.lock().unwrap().clear();
    assert_eq!(drill.answered().await, "a");
}

#[tokio::test]
async fn what_nobody_can_answer_is_kept_with_its_error_once_and_a_heartbeat_is_not() {
    let mut drill = Drill::start().await;
    for key in ["a", "b", "c"] {
        drill.script(key, &[401; 4]);
    }
    drill.failed().await;
    let before = said(drill.dir.path());
    let (keys, message) = drill.failed().await;
    assert_eq!(keys, "");
    let expected =
        [before.as_slice(), &["user: hello\n[message_id: r2]".to_owned(), "assistant:  (error)".to_owned()]]
            .concat();
    assert_eq!(said(drill.dir.path()), expected);

    let beat = BeatMessage {
        run_id: RunId::new("beat"),
        agent_id: AgentId::default(),
        session_key: key_of(KEY),
        text: "anything?".to_owned(),
        beat: Beat {
            reason: "interval".to_owned(),
            purpose: BeatPurpose::Check,
            model: None,
            ack_max_chars: 300,
            chat: BeatChat::Nothing,
        },
    };
    drop(drill.rig.dispatch.beat(beat).await.outcome().await.unwrap());
    let beaten = drill.rig.end("beat").await;
    assert_eq!(beaten.outcome.failure(), Some(message.as_str()));
    assert_eq!(said(drill.dir.path()), expected);

    // The process died before the end of the run was stored: nobody has heard of it, and now there is somebody to ask.
    let crashed = crash(drill.dir.path());
    unfinish(crashed.path(), "r2");
    let model = FakeModel::start([Answer::Text("at last")]).await;
    let (_rig, again) = after(&crashed, &model, &["r2"]).await;
    assert_eq!(again, [expected.as_slice(), &["assistant: at last".to_owned()]].concat());
    assert_eq!(model.count(), 1);
}

#[tokio::test]
async fn a_request_that_is_at_fault_is_held_against_nobody() {
    let mut drill = Drill::start().await;
    drill.script("a", &[400]);
    assert_eq!(drill.answered().await, "a b");
    assert_eq!(drill.answered().await, "a");
    assert_eq!(drill.stats().await["one:a"]["failureCounts"], Value::Null);
}

#[tokio::test]
async fn a_session_stays_with_its_profile_and_a_persons_choice_is_the_only_one() {
    let mut drill = Drill::start().await;
    drill.script("a", &[429]);
    assert_eq!(drill.answered().await, "a b");
    assert_eq!(drill.answered().await, "b");
    drill.at(2 * MINUTE);
    assert_eq!(drill.answered().await, "b", "it stays, though the first is back");
    let entry = drill.rig.entry().await;
    assert_eq!(entry.auth_profile_override.as_deref(), Some("one:b"));
    assert_eq!(entry.auth_profile_override_source, Some(AuthProfileSource::Auto));

    let key = openclaw_sessions::SessionKey::parse(crate::testing::KEY).unwrap();
    let choose = Box::new(|edit: openclaw_sessions::store::Edit<'_>| {
        edit.entry.auth_profile_override_source = Some(AuthProfileSource::User);
        edit.entry.auth_profile_override_compaction_count = None;
        Ok(())
    });
    drill.rig.store.update(&key, choose).await.unwrap();
    drill.script("b", &[429, 200]);
    assert_eq!(drill.answered().await, "b c", "the provider's other profile is not asked");
    assert_eq!(drill.answered().await, "b", "also in cooldown");
}

#[tokio::test]
async fn a_new_conversation_takes_the_next_profile() {
    let mut drill = Drill::start().await;
    assert_eq!(drill.answered().await, "a");
    assert_eq!(drill.answered().await, "a");
    send(&drill.rig, "new", "/new").await;
    drill.rig.end("new").await;
    drill.seen = drill.server.requests().len();
    assert_eq!(drill.answered().await, "b");
}
