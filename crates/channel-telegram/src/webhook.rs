//! Telegram pushes: a listener of our own (spec `channels.md` §7.2). Pushed updates are answered
//! when the inbox has them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use openclaw_channels::{AccountIo, Exit, InboundEvent, Knock, SecretGiven};
use openclaw_config::clock::now_ms;
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use serde_json::json;
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::bot::Bot;
use crate::client::{self, Client};
use crate::entities::Me;
use crate::failure::BotApiError;
use crate::poller_slot::PollerSlot;
use crate::polling::{AfterFailure, Polling};
use crate::pressed::{self, ReceivedUpTo};
use crate::reception::{Answers, failed, give, works};
use crate::wire::Wire as _;
use crate::{reading, update};

const HOST: &str = "127.0.0.1";
const PORT: u16 = 8787;
const PATH: &str = "/telegram-webhook";
const HEALTH: &str = "/healthz";
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";
/// Connections at a time; Telegram opens forty at most.
pub(super) const CONNECTIONS: usize = 64;
/// Longest update; an answer to a poll may be as long.
const MAX_BODY: usize = client::MAX_ANSWER;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which Telegram is asked for the status of its pushes.
const LOOK: Duration = Duration::from_secs(300);

/// State that handling a request needs.
struct Hook {
    path: String,
    secret: openclaw_config::settings::Secret,
    account: String,
    me: Me,
    io: AccountIo,
    client: Client,
    answers: Mutex<Answers>,
    heard: Mutex<ReceivedUpTo>,
}

impl Hook {
    /// Returns the secret that a request presents.
    fn given(&self, headers: &HeaderMap) -> SecretGiven {
        let given = headers.get(SECRET_HEADER).filter(|given| !given.is_empty());
        let Some(given) = given else { return SecretGiven::Nothing };
        match given.as_bytes().ct_eq(self.secret.expose_secret().as_bytes()).into() {
            true => SecretGiven::Right,
            false => SecretGiven::Wrong,
        }
    }
}

/// Listens until it is stopped.
pub(super) async fn listen(bot: &Bot, me: Me, io: &AccountIo, _slot: PollerSlot) -> Exit {
    let settings = &bot.settings;
    let Some(secret) = settings.webhook_secret.clone() else {
        let text = "channels.telegram.webhookUrl requires channels.telegram.webhookSecret";
        return Exit::Misconfigured(text.to_owned());
    };
    let host = settings.webhook_host.as_deref().unwrap_or(HOST);
    let port = settings.webhook_port.unwrap_or(PORT);
    let listener = match TcpListener::bind((host, port)).await {
        Ok(listener) => listener,
        Err(error) => {
            return Exit::Lost(format!("the webhook's listener {host}:{port} can't be opened: {error}"));
        }
    };
    let hook = Arc::new(Hook {
        path: settings.webhook_path.clone().unwrap_or_else(|| PATH.to_owned()),
        secret,
        account: bot.id.clone(),
        me,
        io: io.clone(),
        client: bot.client.clone(),
        answers: Mutex::new(Answers::new(bot.client.clone())),
        heard: Mutex::default(),
    });
    tokio::select! { biased;
        () = io.stop.cancelled() => Exit::Stopped,
        exit = register(bot, &hook) => exit,
        () = accept(&listener, &hook) => Exit::Stopped,
    }
}

/// Tells Telegram where to push, and looks now and then whether it still does.
async fn register(bot: &Bot, hook: &Hook) -> Exit {
    let mut polling = Polling::new(None);
    let url = bot.settings.webhook_url.clone().unwrap_or_default();
    let mut is_set = false;
    loop {
        let result = if is_set { look(bot, &url).await } else { set(bot, &url, hook).await };
        let wait = match result {
            Ok(WebhookState::Pushes) => {
                is_set = true;
                polling.took(None, now_ms());
                works(&hook.io, &bot.client);
                LOOK
            }
            Ok(WebhookState::Gone) => {
                is_set = false;
                polling.not_taken(rand::random())
            }
            Ok(WebhookState::Fails(why)) => {
                hook.io.status.update(|status| {
                    status.connected = false;
                    status.last_error = Some(why);
                });
                LOOK
            }
            Err(error) => match failed(&mut polling, &error, &hook.io) {
                AfterFailure::Pause(wait) => wait,
                // The calls made here have no updates in their answers.
                AfterFailure::PassOver(_) => continue,
                AfterFailure::End(exit) => return exit,
            },
        };
        tokio::time::sleep(wait).await;
    }
}

enum WebhookState {
    Pushes,
    /// Another webhook was set, or ours was removed.
    Gone,
    /// Telegram can't reach us.
    Fails(String),
}

async fn set(bot: &Bot, url: &str, hook: &Hook) -> Result<WebhookState, BotApiError> {
    let params = json!({
        "url": url,
        "secret_token": hook.secret.expose_secret(),
        "allowed_updates": update::KINDS,
        "drop_pending_updates": false,
    });
    bot.client.call("setWebhook", &params).await.map(|_| WebhookState::Pushes)
}

async fn look(bot: &Bot, url: &str) -> Result<WebhookState, BotApiError> {
    let now = bot.client.call("getWebhookInfo", &json!({})).await?;
    if now.text("url") != Some(url) {
        return Ok(WebhookState::Gone);
    }
    let since =
        (now_ms() - bot.client.clock().ahead()) / 1000 - i64::try_from(LOOK.as_secs()).unwrap_or_default();
    let is_recent = now.int("last_error_date").is_some_and(|at| at >= since);
    let waits = now.int("pending_update_count").is_some_and(|count| count > 0);
    if is_recent && waits {
        let why = now.text("last_error_message").unwrap_or("no reason given");
        return Ok(WebhookState::Fails(format!("Telegram can't push to {url}: {why}")));
    }
    Ok(WebhookState::Pushes)
}

async fn accept(listener: &TcpListener, hook: &Arc<Hook>) {
    let mut connections = JoinSet::new();
    let mut strangers = Strangers::default();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS {
            strangers.close_oldest();
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                let is_telegram = Arc::new(AtomicBool::new(false));
                let connection = serve(stream, peer, Arc::clone(hook), Arc::clone(&is_telegram));
                strangers.add(connections.spawn(connection), is_telegram);
            }
            Err(error) => {
                tracing::warn!(%error, "the webhook's listener can't accept");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Connections that have not shown Telegram's secret, the oldest first. They make room for others, so that nobody can hold all places
/// with requests that never end.
#[derive(Default)]
struct Strangers(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl Strangers {
    fn add(&mut self, connection: AbortHandle, is_telegram: Arc<AtomicBool>) {
        self.0.retain(|(connection, is_telegram)| {
            !connection.is_finished() && !is_telegram.load(Ordering::Relaxed)
        });
        self.0.push_back((connection, is_telegram));
    }

    fn close_oldest(&mut self) {
        while let Some((connection, is_telegram)) = self.0.pop_front() {
            if !connection.is_finished() && !is_telegram.load(Ordering::Relaxed) {
                return connection.abort();
            }
        }
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, hook: Arc<Hook>, is_telegram: Arc<AtomicBool>) {
    // A closed connection has no peer that could be answered.
    let Ok(local) = stream.local_addr() else { return };
    let ends = Ends { peer, local };
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (hook, is_telegram) = (Arc::clone(&hook), Arc::clone(&is_telegram));
        async move { Ok::<_, Infallible>(respond(&hook, request.map(Body::new), ends, &is_telegram).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection of the webhook ended");
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy)]
struct Ends {
    peer: SocketAddr,
    local: SocketAddr,
}

async fn respond(
    hook: &Hook,
    request: Request<Body>,
    Ends { peer, local }: Ends,
    is_telegram: &AtomicBool,
) -> Response<Body> {
    let path = request.uri().path();
    if request.method() == Method::GET && path == HEALTH {
        return answer(StatusCode::OK, "ok");
    }
    if request.method() != Method::POST || path != hook.path {
        return answer(StatusCode::NOT_FOUND, "");
    }
    let given = hook.given(request.headers());
    let knock = Knock { peer, local, headers: request.headers() };
    if let Err(wait) = hook.io.guesses.count(knock, given) {
        return locked(wait);
    }
    if given != SecretGiven::Right {
        return answer(StatusCode::UNAUTHORIZED, "");
    }
    is_telegram.store(true, Ordering::Relaxed);
    let body = Limited::new(request.into_body(), MAX_BODY).collect();
    let value = match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => {
            let body = body.to_bytes();
            let text = || String::from_utf8_lossy(&body).into_owned();
            reading::document(&body).map_err(|error| (error.to_string(), text()))
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((format!("longer than {MAX_BODY} bytes"), String::new()))
        }
        // Telegram brings it again.
        Ok(Err(_)) | Err(_) => return answer(StatusCode::REQUEST_TIMEOUT, ""),
    };
    // Refused, one that can't be read would be brought again for a day, and what comes behind it would wait.
    let now = now_ms();
    let times = update::UpdateTimes { now, ahead: hook.client.clock().ahead() };
    let mut update = match value {
        Ok(value) => update::read(&value, &hook.account, &hook.me, times),
        Err((why, text)) => {
            let event = update::unreadable(&text, &hook.account, &hook.me, &why, now);
            update::Update { events: vec![event], callback: None }
        }
    };
    let heard = *hook.heard.lock();
    let heard = pressed::date(&hook.client, std::slice::from_mut(&mut update), heard, now).await;
    let flaw = update.events.iter().find_map(|event| {
        let InboundEvent::Unreadable { why } = &event.event else { return None };
        let id = &event.native_id;
        Some(format!("an update of Telegram ({id}) can't be read and was passed over: {why}"))
    });
    match give(&hook.io, update.events).await {
        Ok(()) => {
            works(&hook.io, &hook.client);
            {
                let mut kept = hook.heard.lock();
                *kept = heard.max(*kept);
            }
            if let Some(flaw) = flaw {
                hook.io.status.update(|status| status.last_error = Some(flaw));
            }
            if let Some(callback) = update.callback {
                hook.answers.lock().add(callback);
            }
            answer(StatusCode::OK, "")
        }
        // Telegram brings it again.
        Err(_) => answer(StatusCode::SERVICE_UNAVAILABLE, ""),
    }
}

fn answer(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}

/// Returns the answer to a client that has guessed too often.
fn locked(wait: Duration) -> Response<Body> {
    let text = "too many wrong secrets from this address; try again later";
    let mut response = answer(StatusCode::TOO_MANY_REQUESTS, text);
    let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}
