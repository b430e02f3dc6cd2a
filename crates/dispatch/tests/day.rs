//! Three hours of a user's day by a clock that only the test moves: 200 turns with tools, steered messages, messages that
//! wait, `/new`, compactions, memory flushes and a daily reset. The same day again, in a new directory, leaves the same bytes.
//!
//! The clock and the ids of the whole process are held, so this test has a binary of its own.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test's way to fail"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::date;
use jiff::tz::TimeZone;
use openclaw_channel_telegram::Telegram;
use openclaw_channels::Platforms;
use openclaw_config::{Config, Environment, clock};
use openclaw_dispatch::api::{Accepted, ChatMessage, Occasion, RunOutcome, Waited};
use openclaw_dispatch::caller::CallerRights;
use openclaw_dispatch::{AgentMessage, Broadcast, Deps, Dispatch, Sent, Settings};
use openclaw_models::{Http, Models, Variables};
use openclaw_protocol::{AgentId, RunId, SessionKey};
use openclaw_runtime::memory::Memories;
use openclaw_sessions::store::{FileStore, FileStoreOptions};
use openclaw_sessions::transcript::Transcripts;
use openclaw_sessions::{Layout, SessionStore, ids};
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, ScriptedCall, ScriptedUsage, Step};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

/// No test waits longer than this for anything; it is a failure, not a measure.
const PATIENCE: Duration = Duration::from_secs(120);
const TURNS: usize = 200;
/// Pause between two turns, in milliseconds: three hours in all.
const PAUSE: i64 = 54_000;
/// A turn of `/new`.
const NEW_AT: usize = 20;
/// Interval in turns at which something is said while the model works.
const STEER_EVERY: usize = 25;
/// Interval in turns at which another client asks while a run is under way, and waits.
const FOLLOW_EVERY: usize = 40;

/// Result of a day.
#[derive(Debug, PartialEq)]
struct Day {
    /// Every transcript, by name.
    files: BTreeMap<String, String>,
    /// Number of requests to the model.
    asked: usize,
}

impl Day {
    /// The entries of all transcripts.
    fn entries(&self) -> Vec<Value> {
        self.files
            .values()
            .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()))
            .collect()
    }

    fn count(&self, pleases: impl Fn(&Value) -> bool) -> usize {
        self.entries().iter().filter(|entry| pleases(entry)).count()
    }
}

#[tokio::test]
async fn a_day_leaves_the_same_bytes_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = day(dir.path()).await;
    let again = day(dir.path()).await;
    assert_eq!(first.files.keys().collect::<Vec<_>>(), again.files.keys().collect::<Vec<_>>());
    for (name, text) in &first.files {
        for (at, (line, other)) in text.lines().zip(again.files[name].lines()).enumerate() {
            assert_eq!(line, other, "{name}, line {at}");
        }
    }
    assert_eq!(first, again);

    let is_message = |entry: &Value, role: &str| entry["message"]["role"] == role;
    let sessions = first.files.len();
    let compactions = first.count(|entry| entry["type"] == "compaction");
    let skipped = first.count(|entry| {
        is_message(entry, "toolResult")
            && entry["message"]["content"][0]["text"] == "Skipped due to queued user message."
    });
    let flushes = first.count(|entry| {
        is_message(entry, "user")
            && entry["message"]["content"].to_string().contains("Before the conversation is compacted")
    });
    let turns = first.count(|entry| is_message(entry, "user")) - flushes;
    let results = first.count(|entry| is_message(entry, "toolResult"));
    let steered = TURNS / STEER_EVERY;
    let later = (1..=TURNS).filter(|turn| turn % FOLLOW_EVERY == 0 && turn % STEER_EVERY != 0).count();
    assert_eq!((turns, skipped), (TURNS + steered + later, steered));
    // Begun, anew by `/new`, and anew by the hour.
    assert_eq!((sessions, compactions, flushes, results), (3, 2, 3, 89));
    let unknown = (1..=TURNS).filter(|turn| turn % 11 == 0 && turn % 7 != 0).count();
    let not_found = |entry: &Value| entry["message"]["content"].to_string().contains("Tool fly not found");
    assert_eq!(first.count(not_found), unknown);
}

/// Lives the day in a fresh directory, and returns what it left.
async fn day(dir: &Path) -> Day {
    // The zone of the host's days is the machine's: the daily reset comes in the middle of the three hours.
    let begin = date(2026, 2, 9).at(2, 30, 0, 0).to_zoned(TimeZone::system()).unwrap();
    let begin = begin.timestamp().as_millisecond();
    clock::hold(begin);
    ids::repeat_from(7);
    // The path is in the transcripts: each day has the same.
    let home = dir.join("home");
    std::fs::create_dir(&home).unwrap();
    let held = Arc::new(Held::default());
    let known = Arc::clone(&held);
    let model = ModelServer::answering(move |asked| answer(asked, &known)).await;
    let person = Person::arrive(&home, &model).await;
    for turn in 1..=TURNS {
        clock::hold(begin + PAUSE * i64::try_from(turn).unwrap());
        person.turn(turn, &held).await;
    }
    assert!(person.dispatch.shutdown(PATIENCE).await.is_empty());
    person.store.close().await.unwrap();
    let files = session_files(&home.join("agents/main/sessions"));
    std::fs::remove_dir_all(&home).unwrap();
    Day { files, asked: model.requests().len() }
}

fn session_files(sessions: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(sessions).unwrap().map(|file| file.unwrap().path());
    let is_transcript = |path: &PathBuf| path.to_string_lossy().contains(".jsonl");
    let kept = files.filter(|path| is_transcript(path) && path.extension() != Some("lock".as_ref()));
    kept.map(|path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    })
    .collect()
}

/// Answers as the model; the answer depends only on the request.
fn answer(asked: &Captured, held: &Held) -> Reply {
    let size = u64::try_from(asked.body["messages"].to_string().len()).unwrap();
    let usage = ScriptedUsage { input: size / 4, output: 50, ..ScriptedUsage::default() };
    reply(asked, held).usage(usage)
}

fn reply(asked: &Captured, held: &Held) -> Reply {
    if asked.tool_names().is_empty() {
        return Reply::text("## Goal\nThe day goes on as before.");
    }
    let said = asked.last_user_text();
    let is_answered = asked.ends_with_tool_result();
    if said.contains("Before the conversation is compacted") {
        let note = json!({"path": "memory/2026-02-09.md", "content": "Tea at four."});
        return if is_answered { Reply::text("NO_REPLY") } else { Reply::tool("flush", "write", &note) };
    }
    let number = said.split_once("Turn ").map(|(_, rest)| rest.split(':').next().unwrap_or_default());
    let Some(turn) = number.and_then(|number| number.parse::<usize>().ok()) else {
        return Reply::text("Good morning.");
    };
    let read =
        |call: &str| ScriptedCall::new(&format!("{call}{turn}"), "read", &json!({"path": "notes.txt"}));
    let text = format!("Answer {turn}: {}", "so much is to be said of it. ".repeat(20));
    let gate = || Step::Wait(held.gate(turn));
    match turn {
        _ if is_answered => Reply::text(&text),
        _ if said.contains("by the way") => Reply::text("I see."),
        _ if turn % STEER_EVERY == 0 => {
            Reply::steps([gate(), Step::ToolCalls(vec![read("first"), read("second")])])
        }
        _ if turn % FOLLOW_EVERY == 0 => Reply::steps([gate(), Step::Text(text)]),
        _ if turn % 7 == 0 => Reply::tools([
            ScriptedCall::new(
                &format!("write{turn}"),
                "write",
                &json!({"path": "notes.txt", "content": text}),
            ),
            read("read"),
        ]),
        _ if turn % 11 == 0 => Reply::tools([ScriptedCall::new(&format!("fly{turn}"), "fly", &json!({}))]),
        _ => Reply::text(&text),
    }
}

/// An answer that waits for the test.
struct Held {
    /// Turn that was reached.
    turn: watch::Sender<usize>,
    gate: parking_lot::Mutex<Gate>,
}

impl Default for Held {
    fn default() -> Self {
        Self { turn: watch::channel(0).0, gate: parking_lot::Mutex::new(Gate::new()) }
    }
}

impl Held {
    fn gate(&self, turn: usize) -> Gate {
        let gate = Gate::new();
        *self.gate.lock() = gate.clone();
        self.turn.send_replace(turn);
        gate
    }

    /// Waits for the model to be asked in this turn.
    async fn reached(&self, turn: usize) {
        let mut reached = self.turn.subscribe();
        let asked = reached.wait_for(|reached| *reached == turn);
        tokio::time::timeout(PATIENCE, asked).await.expect("the model is asked").unwrap();
    }

    fn open(&self) {
        self.gate.lock().open();
    }
}

struct Person {
    dispatch: Dispatch,
    events: Mutex<mpsc::UnboundedReceiver<Broadcast>>,
    _pump: JoinSet<()>,
    store: Arc<dyn SessionStore>,
}

impl Person {
    async fn arrive(home: &Path, model: &ModelServer) -> Self {
        let document = json!({
            "agents": {"defaults": {
                "model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true,
            }},
            "messages": {"queue": {"mode": "steer"}},
            "models": {"providers": {"fake": {
                "baseUrl": model.v1(), "apiKey": "fake-key", "api": "openai-completions",
                "models": [{
                    "id": "fake-1", "name": "Fake", "reasoning": false, "input": ["text"],
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                    "contextWindow": 40_000, "maxTokens": 4096,
                }],
            }}},
        });
        let path = home.display().to_string();
        let variables = [
            ("OPENCLAW_STATE_DIR", path.as_str()),
            ("HOME", path.as_str()),
            ("PATH", "/usr/bin:/bin"),
            ("OPENCLAW_LOCAL_MODELS", "off"),
            ("SHELL", "/bin/sh"),
        ];
        let environment = Environment::new(variables, home);
        let config = Config::from_json5(&document.to_string(), &environment).unwrap();
        let settings = Settings::from(config);
        let layout = Layout::new(home, home, None);
        let options =
            FileStoreOptions::new(layout.clone(), settings.sessions.key_rules(), vec![AgentId::default()]);
        let store: Arc<dyn SessionStore> = Arc::new(FileStore::open(options).unwrap());
        // The sender may go: what was sent stays.
        let settings = watch::channel(Arc::new(settings)).1;
        let models = Models::new(Variables::from(&environment), Http::default());
        let transcripts = Transcripts::in_files(layout);
        let dispatch = Dispatch::start(Deps {
            state_dir: home.to_path_buf(),
            memories: Memories::new(
                settings.clone(),
                models.clone(),
                transcripts.clone(),
                Arc::new(str::to_owned),
            ),
            settings,
            store: Arc::clone(&store),
            transcripts,
            models,
            skills: Arc::default(),
            platforms: Arc::new(Platforms::new(vec![Arc::new(Telegram)])),
            host: openclaw_agent::prompt::HostFacts::default(),
            system_events: Arc::default(),
            command_variables: Vec::new(),
            command_lock: None,
            approvals: Arc::default(),
            command_sessions: Arc::new(openclaw_tools::CommandSessions::new(Box::new(|_, _| {}))),
            sandboxes: Arc::new(openclaw_tools::sandbox::Sandboxes::new("/no/program", home)),
            secrets: Vec::new(),
            surroundings: None,
        })
        .await
        .unwrap();
        let mut subscription = dispatch.subscribe();
        let (sender, events) = mpsc::unbounded_channel();
        let mut pump = JoinSet::new();
        pump.spawn(async move {
            while let Some(event) = subscription.recv().await {
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { dispatch, events: Mutex::new(events), _pump: pump, store }
    }

    /// Says the message of one turn, and whatever else is said before its end.
    async fn turn(&self, turn: usize, held: &Held) {
        let run = format!("turn-{turn}");
        let text = if turn == NEW_AT { "/new".to_owned() } else { format!("Turn {turn}: what now?") };
        self.chat(&run, &text).await;
        if turn.is_multiple_of(STEER_EVERY) {
            held.reached(turn).await;
            let aside = format!("aside-{turn}");
            self.chat(&aside, &format!("Turn {turn}: by the way, it rains.")).await;
            // Told as soon as it waits for the run.
            self.told(&aside).await;
            held.open();
            self.over(&aside).await;
        } else if turn.is_multiple_of(FOLLOW_EVERY) {
            held.reached(turn).await;
            let later = format!("later-{turn}");
            self.agent(&later, &format!("Turn {turn}: by the way, somebody rang.")).await;
            held.open();
            self.over(&run).await;
            self.over(&later).await;
        }
        self.over(&run).await;
    }

    async fn chat(&self, run: &str, text: &str) {
        let message = ChatMessage {
            run_id: RunId::new(run),
            session_key: key(),
            text: text.to_owned(),
            images: Vec::new(),
            thinking: None,
            timeout_ms: None,
            rights: CallerRights::of_client(false, true),
            sender: Some("person".to_owned()),
            parent_session_key: None,
        };
        match self.dispatch.chat(message).await.outcome().await.unwrap() {
            Sent::Taken(receipt) => assert!(matches!(receipt.accepted, Accepted::New { .. }), "{receipt:?}"),
            Sent::Stopped(runs) => panic!("{runs:?}"),
        }
    }

    async fn agent(&self, run: &str, text: &str) {
        let message = AgentMessage {
            run_id: RunId::new(run),
            agent_id: AgentId::default(),
            session_key: key(),
            session_id: None,
            text: text.to_owned(),
            images: Vec::new(),
            thinking: None,
            timeout_seconds: None,
            lane: None,
            extra_system_prompt: None,
            occasion: Occasion::Request,
            deliver_to: None,
            rights: CallerRights::of_client(false, true),
            entry_patch: serde_json::Map::new(),
        };
        drop(self.dispatch.agent(message).await.outcome().await.unwrap());
    }

    /// Waits for the message to be told as one that waits for a run.
    async fn told(&self, run: &str) {
        let mut events = self.events.lock().await;
        loop {
            let event = tokio::time::timeout(PATIENCE, events.recv()).await.expect("an event comes").unwrap();
            let payload: Value = serde_json::from_str(event.payload.as_str()).unwrap();
            if payload["runId"] == run && payload["state"] == "final" {
                return;
            }
        }
    }

    async fn over(&self, run: &str) {
        match self.dispatch.wait(&RunId::new(run), PATIENCE).await {
            Waited::Ended(record) => {
                assert!(matches!(record.outcome, RunOutcome::Ok { .. }), "{record:?}");
            }
            Waited::TimedOut => panic!("{run} did not end"),
        }
    }
}

fn key() -> SessionKey {
    SessionKey::parse("agent:main:main").unwrap()
}
