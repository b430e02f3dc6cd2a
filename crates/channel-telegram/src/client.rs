//! Calls of the Bot API. The token is part of every address, so no address is ever shown.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use openclaw_config::clock::now_ms;
use openclaw_tls::HttpVersions;
use reqwest::header::DATE;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::io::ReaderStream;

use crate::addresses::{Addresses, FirstFamily};
use crate::api_root::{ApiRoot, is_loopback};
use crate::credentials::BotToken;
use crate::failure::{BotApiError, UNSAID};
use crate::platform_clock::PlatformClock;
use crate::wire::Wire as _;
use crate::{reading, update};

const CONNECT: Duration = Duration::from_secs(10);
/// Time limit of an ordinary call.
pub(super) const CALL: Duration = Duration::from_secs(30);
/// An upload, where `timeoutSeconds` does not say.
const UPLOAD: Duration = Duration::from_secs(500);
/// Time that an upload needs besides the transfer of its bytes.
const UPLOAD_ANSWER: Duration = Duration::from_secs(120);
/// Slowest upload that is waited for, in bytes a second.
const UPLOAD_SPEED: u64 = 100_000;
/// Connections that lie idle longer may be gone on the other side: a request on one would have an unknown fate.
const IDLE: Duration = Duration::from_secs(20);
/// Longest answer that is read: a hundred updates of an ordinary size, many times over.
pub(super) const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// Bytes of an answer that can't be read in which the number of its first update is looked for.
const HEAD: usize = 200;

/// Client of the Bot API for one bot. Cheap to clone.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    root: ApiRoot,
    token: BotToken,
    proxy: Option<url::Url>,
    addresses: Addresses,
    call: Duration,
    upload: Duration,
    clock: PlatformClock,
}

/// Settings of the connection to the Bot API.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Transport<'a> {
    /// Through this proxy.
    pub(super) proxy: Option<&'a str>,
    /// Time limit of a request, if configured.
    pub(super) timeout: Option<Duration>,
    /// Addresses to use.
    pub(super) addresses: Addresses,
}

/// A file to be uploaded.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    /// Field name, such as `photo`.
    pub(super) field: &'static str,
    pub(super) path: PathBuf,
    pub(super) mime: String,
    pub(super) name: String,
}

impl Client {
    /// # Errors
    /// When the proxy is none, or TLS can't be set up; for people.
    pub(super) fn new(root: ApiRoot, token: BotToken, transport: Transport<'_>) -> Result<Self, String> {
        let Transport { proxy, timeout, addresses } = transport;
        let proxy = proxy.filter(|text| !text.trim().is_empty()).map(parse_proxy).transpose()?;
        let http = build(&root, proxy.as_ref(), addresses)?;
        Ok(Self {
            http,
            root,
            token,
            proxy,
            addresses,
            call: timeout.unwrap_or(CALL),
            upload: timeout.unwrap_or(UPLOAD),
            clock: PlatformClock::default(),
        })
    }

    /// Returns a client of the same bot over connections of its own. Long polling has them, so that
    /// a poll that hangs holds up no message; and it takes new ones after a failure, because the
    /// old ones may be dead without anybody having said so.
    pub(super) fn with_new_connections(&self) -> Self {
        match build(&self.root, self.proxy.as_ref(), self.addresses) {
            Ok(http) => Self { http, ..self.clone() },
            // The same settings could be built before.
            Err(_) => self.clone(),
        }
    }

    /// Address of the Bot API; without the token.
    pub(super) fn root(&self) -> &ApiRoot {
        &self.root
    }

    /// Estimate of this machine's clock error, from the answers.
    pub(super) fn clock(&self) -> &PlatformClock {
        &self.clock
    }

    pub(super) fn token(&self) -> &BotToken {
        &self.token
    }

    /// The usual time of a call.
    pub(super) fn call_limit(&self) -> Duration {
        self.call
    }

    /// Returns the time limit of an upload of this many bytes: the configured one, or a longer one
    /// that allows for a slow line.
    pub(super) fn upload_limit(&self, bytes: u64) -> Duration {
        (UPLOAD_ANSWER + Duration::from_secs(bytes / UPLOAD_SPEED)).max(self.upload)
    }

    /// Calls a method in the usual time.
    pub(super) async fn call(&self, method: &str, params: &Value) -> Result<Value, BotApiError> {
        self.call_within(method, params, self.call).await
    }

    /// Calls a method and waits for the whole answer no longer than that.
    pub(super) async fn call_within(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, BotApiError> {
        let request = self.http.post(self.root.method(self.token.expose(), method)).json(params);
        self.finish(request, limit).await
    }

    /// Calls a method with a file.
    pub(super) async fn upload(
        &self,
        method: &str,
        params: &Value,
        upload: &Upload,
    ) -> Result<Value, BotApiError> {
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                BotApiError::Gone(format!("the file {} is not there any more", upload.name))
            }
            _ => BotApiError::Unsent(format!("the file {} can't be read: {error}", upload.name)),
        };
        let file = tokio::fs::File::open(&upload.path).await.map_err(unreadable)?;
        let size = file.metadata().await.map_err(unreadable)?.len();
        let body = reqwest::Body::wrap_stream(ReaderStream::new(file));
        let part = Part::stream_with_length(body, size).file_name(upload.name.clone());
        let part = match part.mime_str(&upload.mime) {
            Ok(part) => part,
            Err(error) => {
                return Err(BotApiError::Unsent(format!("\"{}\" is no type: {error}", upload.mime)));
            }
        };
        let fields = params.as_object().into_iter().flatten();
        let form = fields.fold(Form::new(), |form, (key, value)| form.text(key.clone(), field(value)));
        let request = self.http.post(self.root.method(self.token.expose(), method));
        self.finish(request.multipart(form.part(upload.field, part)), self.upload_limit(size)).await
    }

    /// Begins to fetch a file.
    pub(super) async fn download(&self, path: &str) -> Result<reqwest::Response, BotApiError> {
        let url = self.root.file(self.token.expose(), path);
        let url = url.ok_or_else(|| BotApiError::Unread {
            what: "the path that Telegram names for the file can't be used".to_owned(),
            update: None,
        })?;
        let sent = timeout(self.call, self.http.get(url).send()).await.map_err(|_| self.silent(self.call))?;
        let response = sent.map_err(|error| self.transport(error))?;
        let status = response.status().as_u16();
        if status == 200 {
            return Ok(response);
        }
        let answer = self.read(response).await.unwrap_or_default();
        Err(self.refused(status, &answer))
    }

    async fn finish(&self, request: reqwest::RequestBuilder, limit: Duration) -> Result<Value, BotApiError> {
        let work = async {
            let asked_at = now_ms();
            let response = request.send().await.map_err(|error| self.transport(error))?;
            let answered_at = now_ms();
            let date = response.headers().get(DATE).cloned();
            let status = response.status().as_u16();
            let mut answer = match self.read(response).await {
                Ok(answer) => answer,
                // The body of an error is not needed to know that it is one.
                Err(_) if status >= 400 => Value::Null,
                Err(error) => return Err(error),
            };
            if status == 200 && answer.flag("ok") {
                // The clock of a proxy in between, such as one with a page of its own, is not used.
                let date = date.as_ref().and_then(|date| date.to_str().ok());
                self.clock.answered(asked_at, answered_at, date);
                return Ok(answer.get_mut("result").map(Value::take).unwrap_or_default());
            }
            Err(self.refused(status, &answer))
        };
        timeout(limit, work).await.unwrap_or_else(|_| Err(self.silent(limit)))
    }

    async fn read(&self, mut response: reqwest::Response) -> Result<Value, BotApiError> {
        let mut bytes: Vec<u8> = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.transport(error))? {
            append(&mut bytes, &chunk)?;
        }
        reading::answer(&bytes).ok_or_else(|| unread("Telegram's answer is not JSON".to_owned(), &bytes))
    }

    fn refused(&self, status: u16, answer: &Value) -> BotApiError {
        let text = answer.text("description").unwrap_or(UNSAID);
        BotApiError::refused(status, answer, &self.token.redact(text))
    }

    fn silent(&self, limit: Duration) -> BotApiError {
        BotApiError::Lost(format!("nothing came within {} s", limit.as_secs()))
    }

    /// Converts an error of the connection; its meaning depends on whether the request has gone
    /// out.
    fn transport(&self, error: reqwest::Error) -> BotApiError {
        let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
        let error = error.without_url();
        let cause = causes(&error).last();
        let text = self.token.redact(&cause.map_or_else(|| error.to_string(), ToString::to_string));
        match () {
            () if is_connect => BotApiError::Unreachable(text),
            () if is_builder => BotApiError::Unsent(text),
            () => BotApiError::Lost(text),
        }
    }
}

/// Leaves addresses out, because they hold the token.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("root", &self.root).field("token", &self.token).finish_non_exhaustive()
    }
}

fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

fn append(bytes: &mut Vec<u8>, chunk: &Bytes) -> Result<(), BotApiError> {
    if bytes.len() + chunk.len() > MAX_ANSWER {
        bytes.extend(chunk.iter().take(HEAD));
        return Err(unread(format!("Telegram's answer is longer than {MAX_ANSWER} bytes"), bytes));
    }
    bytes.extend_from_slice(chunk);
    Ok(())
}

/// A parameter as a field of a form: texts as they are, the rest as JSON.
fn field(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parse_proxy(text: &str) -> Result<url::Url, String> {
    let url = url::Url::parse(text.trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| "channels.telegram.proxy must be an http or https address".to_owned())
}

/// An answer that came and can't be read. It names the first update in it, if it has updates.
fn unread(what: String, answer: &[u8]) -> BotApiError {
    BotApiError::Unread { what, update: update::number_in(answer) }
}

fn build(root: &ApiRoot, proxy: Option<&url::Url>, addresses: Addresses) -> Result<reqwest::Client, String> {
    let tls = openclaw_tls::client_config(HttpVersions::One)
        .map_err(|error| format!("cannot set up TLS: {error}"))?;
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("openclaw/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // A redirect would carry the token to another host.
        .redirect(reqwest::redirect::Policy::none())
        // One request per connection: a broken connection affects only one request.
        .http1_only()
        .tls_backend_preconfigured(tls)
        .pool_idle_timeout(IDLE)
        .tcp_keepalive(Duration::from_secs(30));
    if addresses == Addresses::FirstFamily {
        builder = builder.dns_resolver(std::sync::Arc::new(FirstFamily));
    }
    builder = match proxy {
        Some(proxy) if !root.is_local() || is_loopback(proxy) => {
            let proxy =
                reqwest::Proxy::all(proxy.clone()).map_err(|_| "the proxy can't be used".to_owned())?;
            builder.proxy(proxy)
        }
        Some(_) => builder.no_proxy(),
        None if root.is_local() => builder.no_proxy(),
        None => builder,
    };
    builder.build().map_err(|error| format!("cannot set up the HTTP client: {}", error.without_url()))
}
