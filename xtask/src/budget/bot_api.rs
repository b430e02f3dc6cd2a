//! A Bot API server that answers at once, for several bots. Threads, like the model's: it shares none with what measures, and remembers
//! nothing but counts and times.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Updates of one answer, at most.
const PAGE: usize = 100;

/// Running server; its threads end with the process.
pub(crate) struct BotApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bots: HashMap<String, Bot>,
    sent: usize,
    last_sent: Option<Instant>,
}

#[derive(Default)]
struct Bot {
    /// Updates that are not confirmed yet.
    updates: VecDeque<(i64, String)>,
    next: i64,
    polls: usize,
}

impl BotApi {
    /// Starts it.
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = Self { address: listener.local_addr()?, shared: Arc::default() };
        let shared = Arc::clone(&server.shared);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // The gateway closes connections as it likes.
                std::thread::spawn(move || drop(serve(&socket, &shared)));
            }
        });
        Ok(server)
    }

    /// Value for `apiRoot`.
    pub(crate) fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token of a bot, by its number from 1 on.
    pub(crate) fn token(bot: usize) -> String {
        format!("{}:BUDGET-token-of-a-bot-that-is-not-there", 7000 + bot)
    }

    /// Writes a message to a bot. The poll that waits is answered at once.
    pub(crate) fn write(&self, bot: usize, chat: usize, text: &str) {
        let mut state = self.state();
        let bot = state.bots.entry(Self::token(bot)).or_default();
        bot.next += 1;
        let id = bot.next;
        let person = json!({"id": chat, "is_bot": false, "first_name": "Ada"});
        let message = json!({
            "message_id": id, "date": now(), "chat": {"id": chat, "type": "private", "first_name": "Ada"},
            "from": person, "text": text,
        });
        bot.updates.push_back((id, json!({"update_id": id, "message": message}).to_string()));
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Updates that were not confirmed.
    pub(crate) fn waiting(&self) -> usize {
        self.state().bots.values().map(|bot| bot.updates.len()).sum()
    }

    /// Number of messages that the bots have sent, and the time of the last one.
    pub(crate) fn sent(&self) -> (usize, Option<Instant>) {
        let state = self.state();
        (state.sent, state.last_sent)
    }

    /// Waits until so many bots ask for updates.
    pub(crate) fn polled(&self, bots: usize) -> Result<()> {
        self.until("polls", |state| state.bots.values().filter(|bot| bot.polls > 0).count() >= bots)
    }

    /// Waits until so many messages were sent.
    pub(crate) fn has_sent(&self, count: usize) -> Result<()> {
        self.until("messages of bots", |state| state.sent >= count)
    }

    /// Waits until every update was confirmed.
    pub(crate) fn all_confirmed(&self) -> Result<()> {
        self.until("confirmations", |state| state.bots.values().all(|bot| bot.updates.is_empty()))
    }

    fn until(&self, what: &str, is_there: impl Fn(&State) -> bool) -> Result<()> {
        const PATIENCE: Duration = Duration::from_secs(120);
        let until = Instant::now() + PATIENCE;
        let mut state = self.state();
        while !is_there(&state) {
            let left = until.checked_duration_since(Instant::now());
            let left = left.with_context(|| format!("there were no {what} within {PATIENCE:?}"))?;
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared)
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(socket: &TcpStream, shared: &Shared) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket);
    let mut writer = socket;
    while let Some((path, body)) = read_request(&mut reader)? {
        let came = Instant::now();
        let path = path.replace("%3A", ":");
        let (token, method) = path.trim_start_matches("/bot").split_once('/').unwrap_or_default();
        let result = match method {
            "getUpdates" => updates(shared, token, &body),
            "sendMessage" => {
                let mut state = lock(shared);
                state.sent += 1;
                state.last_sent = Some(came);
                let id = state.sent;
                drop(state);
                shared.changed.notify_all();
                let chat = body["chat_id"].as_i64().unwrap_or_default();
                json!({"message_id": id, "date": 1_735_787_046, "chat": {"id": chat, "type": "private"}, "text": "x"})
                    .to_string()
            }
            "getMe" => {
                // The number of a bot begins its token.
                let id = token.split(':').next().unwrap_or_default();
                json!({
                    "id": id.parse::<i64>().unwrap_or_default(), "is_bot": true, "first_name": "Budget",
                    "username": format!("budget_{id}_bot"),
                })
                .to_string()
            }
            _ => "true".to_owned(),
        };
        let answer = format!("{{\"ok\":true,\"result\":{result}}}");
        let mut response = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            response,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        writer.write_all(response.as_bytes())?;
    }
    Ok(())
}

fn updates(shared: &Shared, token: &str, params: &Value) -> String {
    let until = Instant::now() + Duration::from_secs(params["timeout"].as_u64().unwrap_or_default());
    let mut state = lock(shared);
    {
        let bot = state.bots.entry(token.to_owned()).or_default();
        bot.polls += 1;
        let offset = params["offset"].as_i64().unwrap_or_default();
        while bot.updates.front().is_some_and(|(id, _)| *id < offset) {
            bot.updates.pop_front();
        }
    }
    shared.changed.notify_all();
    loop {
        let waiting = state.bots.get(token).map(|bot| &bot.updates).filter(|updates| !updates.is_empty());
        if let Some(updates) = waiting {
            let page: Vec<&str> = updates.iter().take(PAGE).map(|(_, update)| update.as_str()).collect();
            return format!("[{}]", page.join(","));
        }
        let Some(left) = until.checked_duration_since(Instant::now()) else { return "[]".to_owned() };
        let waited = shared.changed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Path and body of one request; `None` when the connection ends instead.
fn read_request(reader: &mut impl BufRead) -> Result<Option<(String, Value)>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(Some((path, serde_json::from_slice(&body).unwrap_or_default())))
}

/// Unix time in seconds.
fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}
