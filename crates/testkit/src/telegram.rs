//! A Bot API server that keeps Telegram's rules and fails when the test says so, over real HTTP on 127.0.0.1.
//!
//! Updates wait until a poll confirms them by its offset; a second poll ends the first with 409. Everything that is called is recorded,
//! and a test waits for the n-th call instead of sleeping.
//!
//! ```no_run
//! # use openclaw_testkit::telegram::{CallFault, TelegramServer, private_message};
//! # async fn test() {
//! let server = TelegramServer::start().await;
//! server.push(private_message(5, "hi"));
//! server.fail("sendMessage", CallFault::Slower(3));
//! // … point channels.telegram.apiRoot at server.root(), with the token server.token() …
//! let call = server.nth_call("sendMessage", 1).await;
//! assert_eq!(call.params["text"], "hello");
//! # }
//! ```

mod fault;
mod markup;
mod methods;
mod multipart;
mod outage;
mod updates;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::{DEADLINE, ReservedPort};

pub use fault::CallFault;
pub use multipart::Upload;
pub use outage::Outage;
pub use updates::{bot, button, forum_message, group_message, person, private_message, reaction};

/// Largest request body.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Tells the tokens of servers apart.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A running server. It ends when dropped.
#[derive(Debug)]
pub struct TelegramServer {
    address: SocketAddr,
    shared: Arc<TelegramShared>,
    task: tokio::task::JoinHandle<()>,
}

/// Event that happens again and again, to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment<'m> {
    /// A poll was answered with updates.
    Brought,
    /// An update was confirmed.
    Confirmed,
    /// A method was called.
    Called(&'m str),
    /// A call of a method was answered, or cut off.
    Answered(&'m str),
}

/// A call that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct BotCall {
    /// Method of the call.
    pub method: String,
    /// Parameters of the call; those of a form as JSON where they are JSON.
    pub params: Value,
    /// The files of a form.
    pub uploads: Vec<Upload>,
    /// Time at which it came.
    pub at: Instant,
}

/// State of the server and its signals.
#[derive(Debug)]
struct TelegramShared {
    state: Mutex<TelegramState>,
    /// Rises with everything that happens.
    changes: watch::Sender<u64>,
    /// Kind of the present outage, if there is one.
    outage: watch::Sender<Option<Outage>>,
}

#[derive(Debug)]
struct TelegramState {
    bot: i64,
    token: String,
    /// Updates that are not confirmed yet, by id.
    updates: BTreeMap<i64, Value>,
    /// Brought with the next answer whatever was confirmed.
    again: Vec<Value>,
    /// The newest.
    last: Option<Value>,
    next_update: i64,
    next_message: i64,
    /// The poll that counts; another ends it.
    poll: u64,
    faults: BTreeMap<String, VecDeque<CallFault>>,
    /// Fault for every message to a chat, by chat id.
    dead_chats: BTreeMap<i64, CallFault>,
    calls: Vec<BotCall>,
    answered: Vec<String>,
    brought: usize,
    confirmed: usize,
    /// Parameters of messages that were made.
    made: Vec<Value>,
    /// Chat, message and keyboard of those that have one, as they were sent and edited.
    keyboards: Vec<(i64, i64, Value)>,
    /// The number of the next message to the bot.
    next_incoming: i64,
    files: BTreeMap<String, (String, Bytes)>,
    /// Address and secret.
    webhook: Option<(String, Option<String>)>,
    /// Groups that have another id now.
    moved: BTreeMap<i64, i64>,
    /// Chats that can be looked up.
    chats: Vec<Value>,
    /// Topics that are gone.
    gone_threads: Vec<i64>,
    revoked: bool,
    /// Seconds by which its clock is ahead of this machine's.
    clock_ahead: i64,
}

impl TelegramServer {
    /// The bot's id, where a test does not say another.
    pub const BOT: i64 = 7000;

    /// Starts one on a free port.
    pub async fn start() -> Self {
        Self::start_for(Self::BOT).await
    }

    /// Starts one for the bot of this id.
    pub async fn start_for(bot: i64) -> Self {
        let reserved = ReservedPort::any().unwrap_or_else(|error| panic!("bind: {error}"));
        let number = reserved.number().unwrap_or_else(|error| panic!("address: {error}"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
        let state = TelegramState {
            bot,
            token: format!("{bot}:TEST-token-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            updates: BTreeMap::new(),
            again: Vec::new(),
            last: None,
            next_update: 1000,
            next_message: 500,
            poll: 0,
            faults: BTreeMap::new(),
            dead_chats: BTreeMap::new(),
            calls: Vec::new(),
            answered: Vec::new(),
            brought: 0,
            confirmed: 0,
            made: Vec::new(),
            keyboards: Vec::new(),
            next_incoming: updates::UNNUMBERED,
            files: BTreeMap::new(),
            webhook: None,
            moved: BTreeMap::new(),
            chats: Vec::new(),
            gone_threads: Vec::new(),
            revoked: false,
            clock_ahead: 0,
        };
        let (changes, outage) = (watch::Sender::new(0), watch::Sender::new(None));
        let shared = Arc::new(TelegramShared { state: Mutex::new(state), changes, outage });
        let listener = listen(address).await;
        let task = tokio::spawn(accept(listener, (address, reserved), Arc::clone(&shared)));
        Self { address, shared, task }
    }

    /// Value for `apiRoot`.
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bot's token; each server has another.
    pub fn token(&self) -> String {
        self.shared.state().token.clone()
    }

    /// Adds an update; it gets the next number, which is returned. A message that a test has not numbered gets one of its own: the first
    /// is 11.
    pub fn push(&self, mut update: Value) -> i64 {
        let mut state = self.shared.state();
        let id = state.next_update;
        state.next_update += 1;
        state.number_message(&mut update);
        if let Some(map) = update.as_object_mut() {
            map.insert("update_id".to_owned(), json!(id));
        }
        state.last = Some(update.clone());
        state.updates.insert(id, update);
        drop(state);
        self.shared.changed();
        id
    }

    /// Lets the user `from` press the button with this data, of the newest message that has one.
    ///
    /// # Panics
    /// When there is none.
    pub fn press(&self, from: i64, data: &str) {
        let shown = self.shared.state().keyboards.clone();
        let has = |keyboard: &Value| {
            let rows = keyboard["inline_keyboard"].as_array().into_iter().flatten();
            rows.flat_map(|row| row.as_array().into_iter().flatten())
                .any(|button| button["callback_data"] == data)
        };
        let found = shown.iter().rev().find(|(_, _, keyboard)| has(keyboard));
        let Some((chat, message, _)) = found else { panic!("no button says {data}: {shown:?}") };
        let mut update = updates::button(from, *message, data);
        if *chat < 0 {
            update["callback_query"]["message"]["chat"] =
                json!({"id": chat, "type": "supergroup", "title": "Team"});
        }
        self.push(update);
    }

    /// Adds an update as a text, which need not be JSON; it is given its number.
    pub fn push_raw(&self, write: impl FnOnce(i64) -> String) {
        let mut state = self.shared.state();
        let id = state.next_update;
        state.next_update += 1;
        state.updates.insert(id, Value::String(write(id)));
        drop(state);
        self.shared.changed();
    }

    /// Adds an update whose number says the test; later ones count on from it.
    pub fn push_numbered(&self, id: i64, update: Value) {
        self.shared.state().next_update = id;
        self.push(update);
    }

    /// Brings the newest update with the next answer once more, whatever was confirmed.
    pub fn push_last_again(&self) {
        let mut state = self.shared.state();
        let last = state.last.clone();
        state.again.extend(last);
        drop(state);
        self.shared.changed();
    }

    /// Brings this with the next answer, as it is, whatever was confirmed: duplicates, strange things.
    pub fn push_again(&self, update: Value) {
        self.shared.state().again.push(update);
        self.shared.changed();
    }

    /// Numbers of the updates that were not confirmed.
    pub fn unconfirmed(&self) -> Vec<i64> {
        self.shared.state().updates.keys().copied().collect()
    }

    /// Makes each message to a chat fail from now on.
    pub fn fail_chat(&self, chat: i64, fault: CallFault) {
        self.shared.state().dead_chats.insert(chat, fault);
    }

    /// Lets the next call of a method fail. Faults of a method come in the order in which they were set.
    pub fn fail(&self, method: &str, fault: CallFault) {
        self.shared.state().faults.entry(method.to_owned()).or_default().push_back(fault);
    }

    /// Adds a file that `getFile` finds.
    pub fn add_file(&self, id: &str, path: &str, content: impl Into<Bytes>) {
        self.shared.state().files.insert(id.to_owned(), (path.to_owned(), content.into()));
    }

    /// Adds a chat that `getChat` finds by its id, and by its `username` where it has one; `me` is what `getChatMember` says of the bot.
    pub fn add_chat(&self, chat: Value) {
        self.shared.state().chats.push(chat);
    }

    /// A group gets another id.
    pub fn move_group(&self, from: i64, to: i64) {
        self.shared.state().moved.insert(from, to);
    }

    /// A topic is gone, in all groups.
    pub fn delete_thread(&self, thread: i64) {
        self.shared.state().gone_threads.push(thread);
    }

    /// The token is not good any more, or is again.
    pub fn revoke(&self, revoked: bool) {
        self.shared.state().revoked = revoked;
    }

    /// Sets its clock ahead of this machine's by so many seconds, or behind: the time that its
    /// answers tell.
    pub fn set_clock_ahead(&self, seconds: i64) {
        self.shared.state().clock_ahead = seconds;
    }

    /// The time by its clock, in Unix seconds.
    pub fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second() + self.shared.state().clock_ahead
    }

    /// The calls of a method so far.
    pub fn calls(&self, method: &str) -> Vec<BotCall> {
        self.shared.state().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// The parameters of the messages that readers see, in order: of a request that failed before it had its effect there is none.
    pub fn made(&self) -> Vec<Value> {
        self.shared.state().made.clone()
    }

    /// Waits until readers see messages that are as the test wants them.
    ///
    /// # Panics
    /// When they do not within half a minute.
    pub async fn has_made(&self, what: &str, are: impl Fn(&[Value]) -> bool) {
        self.wait(what, |state| are(&state.made).then_some(())).await;
    }

    /// The same without a deadline of its own.
    pub async fn sees(&self, are: impl Fn(&[Value]) -> bool) {
        self.look(|state| are(&state.made).then_some(())).await;
    }

    /// Number of times that something has happened.
    pub fn count(&self, moment: Moment<'_>) -> usize {
        self.shared.state().count(moment)
    }

    /// Waits until something has happened so often. It has no deadline of its own.
    pub async fn counted(&self, moment: Moment<'_>, times: usize) {
        self.look(|state| (state.count(moment) >= times).then_some(())).await;
    }

    /// True if a call is still to fail.
    pub fn has_faults(&self) -> bool {
        self.shared.state().faults.values().any(|faults| !faults.is_empty())
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.shared.state().faults.clear();
    }

    /// Takes the platform down: from now on every call fails, until [`TelegramServer::comes_back`].
    ///
    /// # Panics
    /// When its port can't be closed within half a minute.
    pub async fn goes_down(&self, outage: Outage) {
        self.shared.outage.send_replace(Some(outage));
        outage::is_so(self.address, outage).await;
    }

    /// Ends the outage.
    pub fn comes_back(&self) {
        self.shared.outage.send_replace(None);
    }

    /// Waits until there were so many calls that concern a chat.
    ///
    /// # Panics
    /// When there are not within half a minute.
    pub async fn called(&self, count: usize) {
        let calls = |state: &TelegramState| {
            state.calls.iter().filter(|call| call.params.get("chat_id").is_some()).count()
        };
        self.wait("calls", |state| (calls(state) >= count).then_some(())).await;
    }

    /// All calls so far but polls.
    pub fn all_calls(&self) -> Vec<BotCall> {
        self.shared.state().calls.iter().filter(|call| call.method != "getUpdates").cloned().collect()
    }

    /// Waits for the n-th call of a method, counted from 1.
    ///
    /// # Panics
    /// When it does not come within half a minute.
    pub async fn nth_call(&self, method: &str, n: usize) -> BotCall {
        let what = format!("call {n} of {method}");
        self.wait(&what, |state| {
            state.calls.iter().filter(|call| call.method == method).nth(n.saturating_sub(1)).cloned()
        })
        .await
    }

    /// Waits until the n-th call of a method was answered.
    ///
    /// # Panics
    /// When it is not within half a minute.
    pub async fn nth_answer(&self, method: &str, n: usize) {
        let what = format!("answer {n} of {method}");
        let count =
            |state: &TelegramState| state.answered.iter().filter(|answered| *answered == method).count();
        self.wait(&what, |state| (count(state) >= n).then_some(())).await;
    }

    /// Waits until all updates were confirmed.
    ///
    /// # Panics
    /// When none is for half a minute.
    pub async fn all_confirmed(&self) {
        let mut left = usize::MAX;
        while left > 0 {
            let fewer = |state: &TelegramState| Some(state.updates.len()).filter(|now| *now < left);
            left = self.wait("confirmation of all updates", fewer).await;
        }
    }

    /// Pushes an update to the webhook that is set, and returns the status of the answer.
    ///
    /// # Panics
    /// When none is set, or it can't be reached.
    pub async fn push_to_webhook(&self, mut update: Value) -> u16 {
        let (url, secret) = {
            let mut state = self.shared.state();
            if update.get("update_id").is_none() {
                update["update_id"] = json!(state.next_update);
                state.next_update += 1;
            }
            state.number_message(&mut update);
            state.webhook.clone().unwrap_or_else(|| panic!("no webhook is set"))
        };
        methods::post(&url, secret.as_deref(), &update).await.unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    async fn look<T>(&self, look: impl Fn(&TelegramState) -> Option<T>) -> T {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(&self.shared.state()) {
                return found;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn wait<T>(&self, what: &str, look: impl Fn(&TelegramState) -> Option<T>) -> T {
        match tokio::time::timeout(DEADLINE, self.look(look)).await {
            Ok(found) => found,
            Err(_) => {
                let calls = self.all_calls();
                let last = calls.get(calls.len().saturating_sub(30)..).unwrap_or_default();
                panic!("no {what}; the last of {} calls: {last:?}", calls.len());
            }
        }
    }
}

impl TelegramState {
    fn number_message(&mut self, update: &mut Value) {
        let Some(written) = update["message"]["message_id"].as_i64() else { return };
        let id = if written == updates::UNNUMBERED { self.next_incoming } else { written };
        update["message"]["message_id"] = json!(id);
        self.next_incoming = self.next_incoming.max(id.saturating_add(1));
    }

    fn count(&self, moment: Moment<'_>) -> usize {
        match moment {
            Moment::Brought => self.brought,
            Moment::Confirmed => self.confirmed,
            Moment::Called(method) => self.calls.iter().filter(|call| call.method == method).count(),
            Moment::Answered(method) => self.answered.iter().filter(|answered| *answered == method).count(),
        }
    }
}

impl Drop for TelegramServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TelegramShared {
    fn state(&self) -> MutexGuard<'_, TelegramState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

async fn listen(address: SocketAddr) -> TcpListener {
    TcpListener::bind(address).await.unwrap_or_else(|error| panic!("listen: {error}"))
}

/// The port stays ours while nobody listens on it.
async fn accept(
    mut listener: TcpListener,
    (address, _reserved): (SocketAddr, ReservedPort),
    shared: Arc<TelegramShared>,
) {
    let mut outage = shared.outage.subscribe();
    loop {
        let mut connections = tokio::task::JoinSet::new();
        tokio::select! {
            () = serve(&listener, &shared, &mut connections) => {}
            _ = outage.wait_for(|outage| *outage == Some(Outage::Refuses)) => {}
        }
        connections.shutdown().await;
        drop(listener);
        let _ = outage.wait_for(|outage| *outage != Some(Outage::Refuses)).await;
        listener = listen(address).await;
    }
}

async fn serve(
    listener: &TcpListener,
    shared: &Arc<TelegramShared>,
    connections: &mut tokio::task::JoinSet<()>,
) {
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let shared = Arc::clone(shared);
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let shared = Arc::clone(&shared);
                    async move { respond(&shared, request.map(Body::new)).await }
                });
                connections.spawn(async move {
                    // A connection that a fault ended.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The words of a message as people read them.
pub fn visible(params: &Value) -> String {
    let text = params["text"].as_str().or(params["caption"].as_str()).unwrap_or_default();
    match params["parse_mode"].as_str() {
        Some("HTML") => markup::visible(text).unwrap_or_else(|why| panic!("{text}: {why}")),
        _ => text.to_owned(),
    }
}

/// An error ends the connection without an answer.
async fn respond(shared: &TelegramShared, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
    // Some clients escape the colon of the token.
    let path = request.uri().path().replace("%3A", ":");
    let (token, is_revoked) = {
        let state = shared.state();
        (state.token.clone(), state.revoked)
    };
    if let Some(file) = path.strip_prefix(&format!("/file/bot{token}/")) {
        return Ok(methods::file(shared, file));
    }
    let Some(method) = path.strip_prefix(&format!("/bot{token}/")).map(str::to_owned) else {
        return Ok(answer(404, &json!({"ok": false, "error_code": 404, "description": "Not Found"})));
    };
    let call = read(&method, request).await?;
    let fault = {
        let mut state = shared.state();
        state.calls.push(call.clone());
        let chat = call.params["chat_id"].as_i64().or_else(|| call.params["chat_id"].as_str()?.parse().ok());
        let dead =
            chat.filter(|_| method == "sendMessage").and_then(|chat| state.dead_chats.get(&chat).cloned());
        dead.or_else(|| state.faults.get_mut(&method).and_then(VecDeque::pop_front))
    };
    shared.changed();
    let outage = *shared.outage.borrow();
    if let Some(outage) = outage {
        return outage.answer();
    }
    if is_revoked {
        return Ok(answer(401, &json!({"ok": false, "error_code": 401, "description": "Unauthorized"})));
    }
    let response = match fault {
        Some(fault) => fault.respond(|| methods::call(shared, call.clone())).await,
        None => Ok(methods::call(shared, call).await),
    };
    let response = response.map(|response| dated(response, shared.state().clock_ahead));
    shared.state().answered.push(method);
    shared.changed();
    response
}

async fn read(method: &str, request: Request<Body>) -> Result<BotCall, std::io::Error> {
    let (head, body) = request.into_parts();
    let kind =
        head.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let body = to_bytes(body, MAX_BODY).await.map_err(std::io::Error::other)?;
    let (mut params, uploads) = if kind.starts_with("multipart/form-data") {
        multipart::read(&kind, &body)
    } else if kind.starts_with("application/x-www-form-urlencoded") {
        (multipart::form(&body), Vec::new())
    } else {
        (serde_json::from_slice(&body).unwrap_or_else(|_| json!({})), Vec::new())
    };
    let query = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    for (key, value) in query {
        params[key.as_ref()] = multipart::value(&value);
    }
    Ok(BotCall { method: method.to_owned(), params, uploads, at: Instant::now() })
}

/// The same with the time of a clock that is wrong.
fn dated(mut response: Response<Body>, clock_ahead: i64) -> Response<Body> {
    let now = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(clock_ahead);
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(date) = date.parse() {
        response.headers_mut().insert("date", date);
    }
    response
}

fn answer(status: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("application/json"));
    response
}

/// An error of the API.
fn refuse(status: u16, description: &str) -> Response<Body> {
    answer(status, &json!({"ok": false, "error_code": status, "description": description}))
}

/// A result of the API.
fn result(value: &Value) -> Response<Body> {
    answer(200, &json!({"ok": true, "result": value}))
}

/// A body that breaks off in the middle.
fn broken_body(start: &'static str) -> Body {
    let parts = [Ok(Bytes::from_static(start.as_bytes())), Err(std::io::Error::other("cut"))];
    Body::from_stream(futures_util::stream::iter(parts))
}
