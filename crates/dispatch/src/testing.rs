//! Test dispatcher in a temporary state directory, with a model server that does what a test says.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::prompt::HostFacts;
use openclaw_channel_telegram::Telegram;
use openclaw_channels::Platforms;
use openclaw_config::{Config, Environment};
use openclaw_journal::api::{
    AbortError, AbortReason, AbortTarget, AgentMessage, Broadcast, ChangeError, ChatMessage, DispatchError,
    RunRecord,
};
use openclaw_journal::caller::CallerRights;
use openclaw_journal::clock::Clock;
use openclaw_journal::journal::memory::{self, MemoryJournal};
use openclaw_journal::journal::rows::MessageProgress;
use openclaw_journal::testing::copy_files;
use openclaw_models::{Http, Models, Variables};
use openclaw_protocol::{AgentId, RunId};
use openclaw_runtime::memory::Memories;
use openclaw_runtime::setup::{Deps, Settings};
use openclaw_runtime::system_events::SystemEvents;
use openclaw_sessions::key::KeyRules;
use openclaw_sessions::store::{
    Change, FileStore, FileStoreOptions, Query, Row, Rows, Selection, StoreFuture, StoredRows, Visitor,
};
use openclaw_sessions::transcript::{MemoryLogs, Transcripts};
use openclaw_sessions::{Layout, SessionEntry, SessionKey, SessionStore};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::handle::{Dispatch, Sent};
use crate::intake::Receipt;

pub(crate) const KEY: &str = "agent:main:main";

pub(crate) fn key_of(text: &str) -> SessionKey {
    SessionKey::parse(text).unwrap()
}

/// No test waits longer than this for anything; it is a failure, not a measure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Reaction of the model server to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Says this.
    Text(&'static str),
    /// Asks for a tool.
    Call(&'static str, Value),
    /// Says the beginning of something and then nothing, until the client leaves.
    Stall(&'static str),
    /// Waits until [`FakeModel::release`], then says this.
    Held(&'static str),
    /// Answers with a status and a body.
    Fail(u16, &'static str),
}

/// A server that speaks OpenAI's Chat Completions. Requests beyond the script are answered with `reply <n>`.
pub(crate) struct FakeModel {
    state: Arc<ModelState>,
    url: String,
    _tasks: JoinSet<()>,
}

struct ModelState {
    script: Mutex<VecDeque<Answer>>,
    requests: watch::Sender<Vec<Value>>,
    release: Notify,
}

impl FakeModel {
    pub(crate) async fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(ModelState {
            script: Mutex::new(script.into_iter().collect()),
            requests: watch::channel(Vec::new()).0,
            release: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&shared);
                connections.spawn(async move { drop(state.serve(stream).await) });
            }
        });
        Self { state, url, _tasks: tasks }
    }

    /// Lets the request that is held go on.
    pub(crate) fn release(&self) {
        self.state.release.notify_one();
    }

    /// Lets all requests that are held go on.
    pub(crate) fn release_all(&self) {
        self.state.release.notify_waiters();
    }

    /// Waits until there were so many requests.
    pub(crate) async fn asked(&self, count: usize) {
        let mut requests = self.state.requests.subscribe();
        let enough = requests.wait_for(|requests| requests.len() >= count);
        tokio::time::timeout(PATIENCE, enough).await.expect("the model is asked").unwrap();
    }

    pub(crate) fn count(&self) -> usize {
        self.state.requests.borrow().len()
    }

    /// The model a request asks for.
    pub(crate) fn model_of(&self, request: usize) -> String {
        self.state.requests.borrow()[request]["model"].as_str().unwrap().to_owned()
    }

    /// The messages of a request after the system prompt, as `role: text`.
    pub(crate) fn heard(&self, request: usize) -> Vec<String> {
        let requests = self.state.requests.borrow();
        let messages = requests[request]["messages"].as_array().unwrap();
        messages
            .iter()
            .filter(|message| message["role"] != "system" && message["role"] != "developer")
            .map(line)
            .collect()
    }
}

fn line(message: &Value) -> String {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("|")
        }
        _ => String::new(),
    };
    let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
    let calls = if calls > 0 { format!(" +{calls} calls") } else { String::new() };
    format!("{}: {text}{calls}", message["role"].as_str().unwrap())
}

impl ModelState {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let body = read_request(&mut stream).await?;
        let mut number = 0;
        self.requests.send_modify(|requests| {
            requests.push(body);
            number = requests.len();
        });
        let answer = self.script.lock().pop_front();
        let said = match answer {
            Some(Answer::Fail(status, body)) => {
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                return stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
            Some(Answer::Held(text)) => {
                self.release.notified().await;
                json!({"content": text})
            }
            Some(Answer::Text(text) | Answer::Stall(text)) => json!({"content": text}),
            Some(Answer::Call(name, ref args)) => json!({"tool_calls": [{
                "index": 0, "id": format!("call_{number}"), "type": "function",
                "function": {"name": name, "arguments": args.to_string()},
            }]}),
            None => json!({"content": format!("reply {number}")}),
        };
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            .await?;
        stream.write_all(chunk(&said, None).as_bytes()).await?;
        if matches!(answer, Some(Answer::Stall(_))) {
            stream.flush().await?;
            // Ends when the client leaves.
            let mut rest = [0; 1];
            return stream.read(&mut rest).await.map(drop);
        }
        let reason = if matches!(answer, Some(Answer::Call(..))) { "tool_calls" } else { "stop" };
        stream.write_all(chunk(&json!({}), Some(reason)).as_bytes()).await?;
        stream.write_all(b"data: [DONE]\n\n").await
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let mut chunk = json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    if finish.is_some() {
        chunk["usage"] = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107});
    }
    format!("data: {chunk}\n\n")
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<Value> {
    let mut bytes = Vec::new();
    let body_at = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..body_at]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap().trim().parse::<usize>();
    let length = length.unwrap();
    while bytes.len() < body_at + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(serde_json::from_slice(&bytes[body_at..]).unwrap())
}

/// A dispatcher on a directory.
pub(crate) struct Rig {
    pub(crate) dispatch: Dispatch,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) system_events: Arc<SystemEvents>,
    pub(crate) models: Models,
    events: tokio::sync::mpsc::UnboundedReceiver<Broadcast>,
    _pump: JoinSet<()>,
}

impl Rig {
    pub(crate) async fn start(dir: &Path, model: &FakeModel) -> Self {
        Self::with_config(dir, model, json!({})).await
    }

    /// `extra` is laid over the test's own config, section by section.
    pub(crate) async fn with_config(dir: &Path, model: &FakeModel, extra: Value) -> Self {
        Self::at(dir, model, extra, Clock::system()).await
    }

    /// Starts a dispatcher that goes by a clock of the test's.
    pub(crate) async fn at(dir: &Path, model: &FakeModel, extra: Value, clock: Clock) -> Self {
        let mut deps = deps(dir, model, &extra);
        let time = clock.clone();
        deps.models = deps.models.with_clock(openclaw_models::clock::Clock::new(move || time.now_ms()));
        let (store, system_events) = (Arc::clone(&deps.store), Arc::clone(&deps.system_events));
        let models = deps.models.clone();
        let dispatch = Dispatch::start_with(deps, MemoryJournal::open(dir).unwrap(), clock).await;
        let mut subscription = dispatch.subscribe();
        let (sender, events) = tokio::sync::mpsc::unbounded_channel();
        let mut pump = JoinSet::new();
        pump.spawn(async move {
            while let Some(event) = subscription.recv().await {
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { dispatch, store, system_events, models, events, _pump: pump }
    }

    pub(crate) async fn chat(&self, message: ChatMessage) -> Result<Receipt, DispatchError> {
        match self.dispatch.chat(message).await.outcome().await? {
            Sent::Taken(receipt) => Ok(receipt),
            Sent::Stopped(runs) => panic!("a stop is no message: {runs:?}"),
        }
    }

    pub(crate) async fn agent(&self, message: AgentMessage) -> Result<Receipt, DispatchError> {
        self.dispatch.agent(message).await.outcome().await
    }

    pub(crate) async fn abort(
        &self,
        session_key: &str,
        target: AbortTarget,
        reason: AbortReason,
    ) -> Result<Vec<RunId>, AbortError> {
        self.dispatch.abort(&key_of(session_key), target, reason).await.outcome().await
    }

    /// Stops all work of a session, and waits for its end.
    pub(crate) async fn quiesce(&self, session_key: &str, patience: Duration) -> Result<(), ChangeError> {
        self.dispatch.change(&key_of(session_key), patience, std::future::ready(())).await.outcome().await
    }

    /// Waits for the next event, and returns it as a short line.
    pub(crate) async fn event(&mut self) -> String {
        let event =
            tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event comes").unwrap();
        short(&event)
    }

    /// Every event up to and including the one with this line.
    pub(crate) async fn events_until(&mut self, last: &str) -> Vec<String> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            let found = event == last;
            events.push(event);
            if found {
                return events;
            }
            assert!(events.len() < 1000, "no {last} in {events:#?}");
        }
    }

    pub(crate) async fn end(&self, run_id: &str) -> RunRecord {
        let run_id = RunId::new(run_id);
        match self.dispatch.wait(&run_id, PATIENCE).await {
            openclaw_journal::api::Waited::Ended(record) => record,
            openclaw_journal::api::Waited::TimedOut => panic!("{run_id} did not end"),
        }
    }

    pub(crate) async fn entry(&self) -> SessionEntry {
        let key = key_of(KEY);
        (*self.store.get(&key).await.unwrap().expect("a row").entry).clone()
    }
}

/// Event in one line: run, kind, and the text if there is one.
fn short(event: &Broadcast) -> String {
    let payload: Value = serde_json::from_str(event.payload.as_str()).unwrap();
    let run = payload["runId"].as_str().unwrap();
    if event.name == "chat" {
        let text = payload.pointer("/message/content/0/text").and_then(Value::as_str);
        let extra =
            payload["stopReason"].as_str().or(payload["errorMessage"].as_str()).or(text).unwrap_or("-");
        return format!("{run} chat {} {extra}", payload["state"].as_str().unwrap());
    }
    let data = &payload["data"];
    let what = data["phase"].as_str().or(data["text"].as_str()).unwrap_or("-");
    let aborted = if data["aborted"] == json!(true) { " aborted" } else { "" };
    format!("{run} {} {what}{aborted}", payload["stream"].as_str().unwrap())
}

/// Storage of a state directory's rows and transcripts: in memory, for tests that are not about
/// files.
#[derive(Clone)]
enum Storage {
    Memory(StoredRows, MemoryLogs),
    Files(Layout),
}

static STORAGES: Mutex<BTreeMap<PathBuf, Storage>> = Mutex::new(BTreeMap::new());

impl Storage {
    fn in_memory(rules: &KeyRules) -> Self {
        Self::Memory(StoredRows::new(rules.clone()), MemoryLogs::default())
    }

    /// Returns the storage that was opened for a directory; the same after a restart.
    fn of(dir: &Path) -> Option<Self> {
        STORAGES.lock().get(dir).cloned()
    }

    fn open(self, rules: KeyRules) -> (Arc<dyn SessionStore>, Transcripts) {
        match self {
            Self::Memory(rows, logs) => (Arc::new(rows.open()), logs.transcripts()),
            Self::Files(layout) => {
                let options = FileStoreOptions::new(layout.clone(), rules, vec![AgentId::default()]);
                (Arc::new(FileStore::open(options).unwrap()), Transcripts::in_files(layout))
            }
        }
    }
}

/// The transcripts of a state directory.
pub(crate) fn transcripts(dir: &Path) -> Transcripts {
    Storage::of(dir).expect("a dispatcher was started there").open(KeyRules::default()).1
}

/// Keeps the rows and transcripts of a state directory in its files, for tests that are about them.
pub(crate) fn in_files(dir: &Path) {
    STORAGES.lock().insert(dir.to_path_buf(), Storage::Files(Layout::new(dir, dir, None)));
}

fn deps(dir: &Path, model: &FakeModel, extra: &Value) -> Deps {
    let mut document = json!({
        "agents": {"defaults": {"model": {"primary": "fake/fake-1"}, "userTimezone": "UTC", "skipBootstrap": true}},
        "models": {"providers": {"fake": {
            "baseUrl": model.url, "apiKey": "fake-key", "api": "openai-completions",
            "models": [{
                "id": "fake-1", "name": "Fake", "reasoning": false, "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 32000, "maxTokens": 4096,
            }],
        }}},
    });
    for (key, value) in extra.as_object().unwrap() {
        document[key] = value.clone();
    }
    let home = dir.display().to_string();
    let environment = Environment::new(
        [
            ("OPENCLAW_STATE_DIR", home.as_str()),
            ("HOME", home.as_str()),
            ("PATH", "/usr/bin:/bin"),
            ("OPENCLAW_LOCAL_MODELS", "off"),
            ("SHELL", "/bin/sh"),
        ],
        dir,
    );
    let config = Config::from_json5(&document.to_string(), &environment).unwrap();
    let hooks = Arc::new(openclaw_agent::hooks::HookSet::load(&config));
    let settings = Settings { hooks, ..Settings::from(config) };
    let rules = settings.sessions.key_rules();
    let storage =
        STORAGES.lock().entry(dir.to_path_buf()).or_insert_with(|| Storage::in_memory(&rules)).clone();
    let (store, transcripts) = storage.open(rules);
    // The sender may go: what was sent stays.
    let settings = watch::channel(Arc::new(settings)).1;
    let models = Models::new(Variables::from(&environment), Http::default());
    Deps {
        state_dir: dir.to_path_buf(),
        store: Arc::new(Faulty(store)),
        memories: Memories::new(
            settings.clone(),
            models.clone(),
            transcripts.clone(),
            Arc::new(str::to_owned),
        ),
        settings,
        transcripts,
        models,
        skills: Arc::default(),
        platforms: Arc::new(Platforms::new(vec![Arc::new(Telegram)])),
        host: HostFacts::default(),
        system_events: Arc::default(),
        command_variables: vec![("OPENCLAW_GATEWAY_PORT".to_owned(), "18790".to_owned())],
        command_lock: None,
        approvals: Arc::default(),
        command_sessions: Arc::new(openclaw_tools::CommandSessions::new(Box::new(|_, _| {}))),
        sandboxes: Arc::new(openclaw_tools::sandbox::Sandboxes::new("/no/program", dir)),
        secrets: Vec::new(),
        surroundings: None,
    }
}

/// The session whose row can't be changed without a panic.
pub(crate) const PANICS: &str = "agent:main:panics";

/// A store in which [`PANICS`] lies.
struct Faulty(Arc<dyn SessionStore>);

impl SessionStore for Faulty {
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>> {
        self.0.get(key)
    }

    fn select<'a>(&'a self, which: Rows<'a>, query: &'a Query) -> StoreFuture<'a, Selection> {
        self.0.select(which, query)
    }

    fn visit<'a>(&'a self, which: Rows<'a>, query: &'a Query, visitor: Visitor) -> StoreFuture<'a, ()> {
        self.0.visit(which, query, visitor)
    }

    fn update<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row> {
        assert_ne!(key.as_str(), PANICS, "a bug");
        self.0.update(key, change)
    }

    fn record<'a>(&'a self, key: &'a SessionKey, change: Change) -> StoreFuture<'a, Row> {
        assert_ne!(key.as_str(), PANICS, "a bug");
        self.0.record(key, change)
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Row>> {
        self.0.delete(key)
    }

    fn flush(&self) -> StoreFuture<'_, ()> {
        self.0.flush()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.0.close()
    }

    fn rules(&self) -> &KeyRules {
        self.0.rules()
    }

    fn set_agents(&self, agents: Vec<AgentId>) {
        self.0.set_agents(agents);
    }

    fn found_agents(&self) -> Vec<AgentId> {
        self.0.found_agents()
    }

    fn location_of(&self, agent: &AgentId) -> String {
        self.0.location_of(agent)
    }

    fn location(&self) -> String {
        self.0.location()
    }
}

pub(crate) fn chat(run_id: &str, text: &str) -> ChatMessage {
    ChatMessage {
        run_id: RunId::new(run_id),
        session_key: key_of(KEY),
        text: text.to_owned(),
        images: Vec::new(),
        thinking: None,
        timeout_ms: None,
        sender: Some("golden".to_owned()),
        rights: CallerRights::of_client(false, true),
        parent_session_key: None,
    }
}

pub(crate) fn agent(run_id: &str, text: &str) -> AgentMessage {
    AgentMessage {
        run_id: RunId::new(run_id),
        agent_id: AgentId::default(),
        session_key: key_of(KEY),
        session_id: None,
        text: text.to_owned(),
        images: Vec::new(),
        thinking: None,
        timeout_seconds: None,
        lane: None,
        extra_system_prompt: None,
        occasion: openclaw_journal::api::Occasion::Request,
        deliver_to: None,
        rights: CallerRights::of_client(false, true),
        entry_patch: serde_json::Map::new(),
    }
}

/// Copies a state directory and its journal as a crash would leave them: written data is there,
/// nothing is closed.
pub(crate) fn crash(dir: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    // First: what was written meanwhile is found to be ahead of it, never behind.
    memory::copy(dir, to.path());
    match Storage::of(dir) {
        Some(Storage::Memory(rows, logs)) => {
            let logs = logs.copied(|| copy_files(dir, to.path()).unwrap());
            STORAGES.lock().insert(to.path().to_path_buf(), Storage::Memory(rows.copied(), logs));
        }
        Some(Storage::Files(_)) => {
            copy_files(dir, to.path()).unwrap();
            in_files(to.path());
        }
        None => copy_files(dir, to.path()).unwrap(),
    }
    to
}

/// Takes back that a run has ended, as if the process had died before that was stored.
pub(crate) fn unfinish(dir: &Path, run_id: &str) {
    let mut was_finished = false;
    memory::edit(dir, |message| {
        if message.run_id.as_str() == run_id {
            let MessageProgress { is_finished, outcome, started_at, ended_at, .. } = &mut message.progress;
            was_finished = std::mem::take(is_finished);
            (*outcome, *started_at, *ended_at) = (None, None, None);
        }
    });
    assert!(was_finished, "{run_id}");
}

/// The messages of every transcript, as `role: text`, with tool calls counted.
pub(crate) fn said(dir: &Path) -> Vec<String> {
    if let Some(Storage::Memory(_, logs)) = Storage::of(dir) {
        let entries = logs.all().into_iter().flat_map(|(_, entries)| entries);
        let values = entries.map(|entry| serde_json::to_value(entry).unwrap());
        return values
            .filter(|entry| entry["type"] == "message")
            .map(|entry| said_line(&entry["message"]))
            .collect();
    }
    let sessions = dir.join("agents/main/sessions");
    let mut files: Vec<_> =
        std::fs::read_dir(sessions).into_iter().flatten().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let mut out = Vec::new();
    for file in files {
        for entry in std::fs::read_to_string(file).unwrap().lines() {
            let entry: Value = serde_json::from_str(entry).unwrap();
            if entry["type"] == "message" {
                out.push(said_line(&entry["message"]));
            }
        }
    }
    out
}

fn said_line(message: &Value) -> String {
    let blocks = message["content"].as_array().unwrap();
    let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    // The envelope's time is today's.
    let text = text.join("|");
    let text = match text.strip_prefix('[').and_then(|rest| rest.split_once("UTC] ")) {
        Some((_, rest)) => rest.to_owned(),
        None => text,
    };
    let calls = blocks.iter().filter(|block| block["type"] == "toolCall").count();
    let calls = if calls > 0 { format!(" +{calls} calls") } else { String::new() };
    let stop = match message["stopReason"].as_str() {
        Some("stop" | "toolUse") | None => String::new(),
        Some(other) => format!(" ({other})"),
    };
    format!("{}: {text}{calls}{stop}", message["role"].as_str().unwrap())
}
