//! A model server that answers what the test says, over real HTTP on 127.0.0.1.
//!
//! Protocols: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses, Google's
//! `generateContent`, Bedrock's Converse and embeddings, told apart by the end of the path, so that
//! any base URL works. Answers come from a queue, from a function of the request, or are those of
//! the recorded reference stub ([`ModelServer::reference`]). Nothing waits unless the script says
//! so.
//!
//! ```no_run
//! # use openclaw_testkit::model_server::{ModelServer, Reply, Step};
//! # async fn test() {
//! let server = ModelServer::queue([
//!     Reply::tool("call_1", "read", &serde_json::json!({"path": "a.txt"})),
//!     Reply::deltas(["It ", "says hi."]),
//! ])
//! .await;
//! // … point a provider's baseUrl at server.v1() …
//! assert_eq!(server.requests()[0].tool_names(), ["read"]);
//! # }
//! ```

mod bedrock;
mod captured;
mod embeddings;
mod encode;
mod google;
mod reference;
mod responses;
mod script;
mod tls;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, Version, header};
use axum::serve::IncomingStream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use bedrock::bedrock_exception;
pub use captured::Captured;
pub use reference::{HELLO, Pace, reply as reference_reply};
pub use script::{Gate, ModelStop, Reply, ScriptedCall, ScriptedUsage, Step};
pub use tls::OverTls;

use encode::Protocol;
use script::AnswerHead;

/// Length of an embedding unless the request says otherwise.
const DIMENSIONS: usize = 16;
/// Largest request body; far above any test's.
const MAX_REQUEST: usize = 256 * 1024 * 1024;

/// A running server. It ends when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<ModelServerState>,
    task: tokio::task::JoinHandle<()>,
}

type Lists = Box<dyn Fn(&Captured) -> Option<Reply> + Send + Sync>;

struct ModelServerState {
    script: Script,
    /// Answers at paths that belong to no protocol.
    lists: OnceLock<Lists>,
    /// Documents by path, with their status.
    pages: Mutex<BTreeMap<String, (u16, Value)>>,
    seen: Mutex<Vec<Captured>>,
    /// True if nothing is kept in `seen`.
    forgets: AtomicBool,
    /// Number of requests that have come in, and those that are over.
    progress: watch::Sender<ServerProgress>,
}

impl std::fmt::Debug for ModelServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("seen", &self.seen).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default)]
struct ServerProgress {
    arrived: usize,
    over: Vec<usize>,
}

enum Script {
    Queue(Mutex<VecDeque<Reply>>),
    Function(Box<dyn Fn(&Captured) -> Reply + Send + Sync>),
}

impl ModelServer {
    /// Answers with these replies, one a request; afterwards with status 500 and a text that says so.
    pub async fn queue(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start(Script::Queue(Mutex::new(replies.into_iter().collect()))).await
    }

    /// Answers with what a function of the request returns.
    pub async fn answering(reply: impl Fn(&Captured) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Script::Function(Box::new(reply))).await
    }

    /// Answers as the recorded reference stub did, at its pace.
    pub async fn reference() -> Self {
        Self::reference_at(Pace::RECORDED).await
    }

    /// Answers as the recorded reference stub did, at another pace.
    pub async fn reference_at(pace: Pace) -> Self {
        Self::answering(move |request| reference::reply(request, pace)).await
    }

    /// # Panics
    /// When no port can be had: the test can't run.
    #[expect(clippy::expect_used, reason = "testkit: without a port there is no test")]
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(ModelServerState {
            script,
            lists: OnceLock::new(),
            pages: Mutex::default(),
            seen: Mutex::default(),
            forgets: AtomicBool::new(false),
            progress: watch::Sender::new(ServerProgress::default()),
        });
        let app = app(&shared).into_make_service_with_connect_info::<ClientPeer>();
        // Owned by the server: aborted when it is dropped.
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Self { address, shared, task }
    }

    /// Answers every question at a path, query aside, with a document; the script has no part in it.
    pub fn page(&self, path: &str, status: u16, document: &Value) {
        let mut pages = self.shared.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert(path.to_owned(), (status, document.clone()));
    }

    /// `http://127.0.0.1:<port>`: the base URL of an Anthropic provider.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:<port>/v1`: the base URL of an OpenAI provider.
    pub fn v1(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Socket address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers at paths that belong to no protocol too: lists of models and the like, and first at those of embeddings. A request for
    /// which it returns `None` is not found.
    #[must_use]
    pub fn listing(self, lists: impl Fn(&Captured) -> Option<Reply> + Send + Sync + 'static) -> Self {
        // A second one changes nothing.
        let _ = self.shared.lists.set(Box::new(lists));
        self
    }

    /// Forgets every request once it is answered: for tests that make more than memory should hold.
    #[must_use]
    pub fn forgetful(self) -> Self {
        self.shared.forgets.store(true, Ordering::Relaxed);
        self
    }

    /// Adds an answer to the end of the queue. A server that answers by a function takes none.
    pub fn push(&self, reply: Reply) {
        if let Script::Queue(queue) = &self.shared.script {
            lock(queue).push_back(reply);
        }
    }

    /// The requests so far, in the order they came.
    pub fn requests(&self) -> Vec<Captured> {
        lock(&self.shared.seen).clone()
    }

    /// Waits until `count` requests have come in.
    pub async fn arrived(&self, count: usize) {
        let mut progress = self.shared.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.arrived >= count).await;
    }

    /// Waits until the answer to request `number` (from 0) is over: sent whole, cut, or the client hung up.
    pub async fn over(&self, number: usize) {
        let mut progress = self.shared.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.over.contains(&number)).await;
    }
}

/// The client's end of a connection, whatever that is made of.
#[derive(Debug, Clone, Copy)]
struct ClientPeer(SocketAddr);

impl Connected<IncomingStream<'_, TcpListener>> for ClientPeer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self(*stream.remote_addr())
    }
}

fn app(shared: &Arc<ModelServerState>) -> axum::Router {
    axum::Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .with_state(Arc::clone(shared))
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ModelServerState {
    /// Notes a request; the guard says when its answer is over.
    fn capture(self: &Arc<Self>, request: Captured) -> OverSignal {
        let mut seen = lock(&self.seen);
        let number = seen.len();
        if !self.forgets.load(Ordering::Relaxed) {
            seen.push(request);
        }
        drop(seen);
        self.progress.send_modify(|progress| progress.arrived += 1);
        OverSignal { shared: Arc::clone(self), number }
    }

    fn reply(&self, request: &Captured) -> Reply {
        match &self.script {
            Script::Function(reply) => reply(request),
            Script::Queue(queue) => lock(queue).pop_front().unwrap_or_else(|| {
                Reply::openai_error(500, "script_error", "the script has no more replies")
            }),
        }
    }
}

/// Tells when an answer is over, by being dropped with it.
struct OverSignal {
    shared: Arc<ModelServerState>,
    number: usize,
}

impl Drop for OverSignal {
    fn drop(&mut self) {
        self.shared.progress.send_modify(|progress| progress.over.push(self.number));
    }
}

/// Takes a request and answers it.
async fn answer(
    State(shared): State<Arc<ModelServerState>>,
    ConnectInfo(ClientPeer(peer)): ConnectInfo<ClientPeer>,
    version: Version,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let request = Captured {
        peer,
        version: format!("{version:?}"),
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect::<BTreeMap<_, _>>(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        text: String::from_utf8_lossy(&body).into_owned(),
    };
    let ending = shared.capture(request.clone());
    let path = uri.path();
    let page = shared.pages.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
    if let Some((status, document)) = page {
        return build(status, &[], Body::from(document.to_string()));
    }
    if path.ends_with("/embeddings") {
        // A test that scripts failures answers first.
        if let Some(reply) = shared.lists.get().and_then(|lists| lists(&request)) {
            return speak(Wire::Chat(Protocol::ChatCompletions), &request, reply, ending).await;
        }
        let dimensions = request.body.get("dimensions").and_then(Value::as_u64);
        let dimensions = dimensions.and_then(|n| usize::try_from(n).ok()).unwrap_or(DIMENSIONS);
        return json_answer(&embeddings::embeddings(&request.body, dimensions));
    }
    let wire = if path.ends_with("/messages") {
        Wire::Chat(Protocol::AnthropicMessages)
    } else if path.ends_with("/chat/completions") {
        Wire::Chat(Protocol::ChatCompletions)
    } else if path.ends_with("/responses") {
        Wire::Responses
    } else if path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent") {
        Wire::Google
    } else if path.ends_with("/converse-stream") || path.ends_with("/converse") {
        Wire::Bedrock
    } else {
        if let Some(reply) = shared.lists.get().and_then(|lists| lists(&request)) {
            return speak(Wire::Chat(Protocol::ChatCompletions), &request, reply, ending).await;
        }
        let message = format!("the scripted model server has nothing at {method} {path}");
        return build(404, &[], Body::from(json!({"error": {"message": message}}).to_string()));
    };
    let reply = shared.reply(&request);
    speak(wire, &request, reply, ending).await
}

/// A protocol the server speaks, told by the end of the path.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Chat(Protocol),
    Responses,
    Google,
    Bedrock,
}

impl Wire {
    fn encoder(self, model: &str, reply: &Reply) -> AnswerEncoder {
        match self {
            Self::Chat(protocol) => AnswerEncoder::Chat(encode::ChatEncoder::new(protocol, model, reply)),
            Self::Responses => AnswerEncoder::Responses(responses::ResponsesEncoder::new(model, reply)),
            Self::Google => AnswerEncoder::Google(google::GoogleEncoder::new(model, reply)),
            Self::Bedrock => AnswerEncoder::Bedrock(bedrock::BedrockEncoder::new(reply)),
        }
    }

    fn document(self, model: &str, reply: &Reply) -> Value {
        match self {
            Self::Chat(protocol) => encode::document(protocol, model, reply),
            Self::Responses => responses::ResponsesEncoder::new(model, reply).document(reply),
            Self::Google => google::GoogleEncoder::new(model, reply).document(reply),
            Self::Bedrock => bedrock::BedrockEncoder::new(reply).document(reply),
        }
    }

    /// True if a request wants a stream: most say so in the body, some by the path.
    fn wants_stream(self, request: &Captured) -> bool {
        match self {
            Self::Chat(_) | Self::Responses => {
                request.body.get("stream").and_then(Value::as_bool).unwrap_or(false)
            }
            Self::Google => request.path.contains(":stream"),
            Self::Bedrock => request.path.ends_with("-stream"),
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Chat(_) | Self::Responses | Self::Google => "text/event-stream",
            Self::Bedrock => "application/vnd.amazon.eventstream",
        }
    }
}

/// Writes one streamed answer, step by step.
#[derive(Debug)]
enum AnswerEncoder {
    Chat(encode::ChatEncoder),
    Responses(responses::ResponsesEncoder),
    Google(google::GoogleEncoder),
    Bedrock(bedrock::BedrockEncoder),
}

impl AnswerEncoder {
    fn begin(&self) -> Vec<u8> {
        match self {
            Self::Chat(encoder) => encoder.begin().into_bytes(),
            Self::Responses(encoder) => encoder.begin().into_bytes(),
            Self::Google(encoder) => encoder.begin().into_bytes(),
            Self::Bedrock(_) => bedrock::BedrockEncoder::begin(),
        }
    }

    fn step(&mut self, step: &Step) -> Vec<u8> {
        match self {
            Self::Chat(encoder) => encoder.step(step).into_bytes(),
            Self::Responses(encoder) => encoder.step(step).into_bytes(),
            Self::Google(encoder) => encoder.step(step).into_bytes(),
            Self::Bedrock(encoder) => encoder.step(step),
        }
    }

    fn end(&mut self) -> Vec<u8> {
        match self {
            Self::Chat(encoder) => encoder.end().into_bytes(),
            Self::Responses(encoder) => encoder.end().into_bytes(),
            Self::Google(encoder) => encoder.end().into_bytes(),
            Self::Bedrock(encoder) => encoder.end(),
        }
    }
}

async fn speak(wire: Wire, request: &Captured, reply: Reply, ending: OverSignal) -> Response<Body> {
    let model = request.body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
    let wants_stream = wire.wants_stream(request);
    match &reply.head {
        AnswerHead::Never => {
            std::future::pending::<Infallible>().await;
            unreachable_answer()
        }
        AnswerHead::Plain { status, headers, body } => build(*status, headers, Body::from(body.clone())),
        AnswerHead::Stream if wants_stream => {
            let kind = ("content-type".to_owned(), wire.content_type().to_owned());
            build(200, &[kind], Body::from_stream(stream(wire, &model, reply, ending)))
        }
        AnswerHead::Stream | AnswerHead::Document => json_answer(&wire.document(&model, &reply)),
    }
}

/// The body of a streamed answer. A cut is an error, which closes the connection without the end of the body.
fn stream(
    wire: Wire,
    model: &str,
    reply: Reply,
    ending: OverSignal,
) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send + use<> {
    let encoder = wire.encoder(model, &reply);
    let first = encoder.begin();
    let speech = Speech { encoder, steps: reply.steps.into(), said: Some(first), _ending: ending };
    futures_util::stream::unfold(speech, Speech::next)
}

struct Speech {
    encoder: AnswerEncoder,
    steps: VecDeque<Step>,
    /// Bytes to send before the first step; `None` once they were sent, like the speech itself.
    said: Option<Vec<u8>>,
    _ending: OverSignal,
}

impl Speech {
    async fn next(mut self) -> Option<(Result<Bytes, std::io::Error>, Self)> {
        if self.said.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
        if let Some(first) = self.said.take() {
            return Some((Ok(Bytes::from(first)), self));
        }
        while let Some(step) = self.steps.pop_front() {
            match &step {
                Step::Delay(pause) => tokio::time::sleep(*pause).await,
                Step::Wait(gate) => gate.pass().await,
                Step::Hang => std::future::pending::<()>().await,
                Step::Cut => {
                    // Flushes the earlier words: the server does that when the body has nothing for
                    // a moment.
                    tokio::task::yield_now().await;
                    return Some((Err(std::io::Error::other("cut by the script")), self));
                }
                Step::Raw(bytes) => return Some((Ok(Bytes::from(bytes.clone())), self)),
                Step::Text(_)
                | Step::Thinking(_)
                | Step::Signature(_)
                | Step::ToolCalls(_)
                | Step::HalfToolCall(_) => {
                    let words = self.encoder.step(&step);
                    if !words.is_empty() {
                        return Some((Ok(Bytes::from(words)), self));
                    }
                }
            }
        }
        let last = self.encoder.end();
        self.said = Some(Vec::new());
        Some((Ok(Bytes::from(last)), self))
    }
}

fn json_answer(document: &Value) -> Response<Body> {
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    build(200, &[kind], Body::from(document.to_string()))
}

fn build(status: u16, headers: &[(String, String)], body: Body) -> Response<Body> {
    let mut response = Response::builder().status(status).header(header::CACHE_CONTROL, "no-store");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).unwrap_or_else(|_| unreachable_answer())
}

/// Answer for a script that asks for a status or header that does not exist.
fn unreachable_answer() -> Response<Body> {
    let mut response = Response::new(Body::from("the script asks for an impossible answer"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
