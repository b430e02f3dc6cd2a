//! HTTP layer of all providers: shared connections, timeouts, size caps, no redirects, no secrets
//! in errors.

pub mod public;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use openclaw_tls::HttpVersions;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::{Host, Url};

use crate::stream::FailureKind;

/// Bytes of an error answer that are read; the rest says nothing new.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// Time limit for reading the body of an error answer.
const ERROR_BODY_DEADLINE: Duration = Duration::from_secs(10);
/// Our name in requests to providers.
const USER_AGENT: &str = concat!("openclaw/", env!("CARGO_PKG_VERSION"));

/// Media type of nearly all requests and answers.
pub(crate) const JSON: &str = "application/json";

/// Timeouts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Limit for the connection, TLS included.
    pub connect: Duration,
    /// Between two signs of life: from the request to the head of the answer, and from one whole piece of it to the next.
    pub idle: Duration,
}

impl Default for Timeouts {
    /// 15 s to connect. 5 minutes of silence: a local model on a slow machine may read a long prompt for minutes before
    /// its first token, and the run's own deadline (10 minutes by default) stands above this.
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), idle: Duration::from_secs(300) }
    }
}

/// The shared HTTP client. Cheap to clone; nothing is built before the first request.
#[derive(Debug, Clone, Default)]
pub struct Http {
    shared: Arc<HttpClients>,
}

#[derive(Debug, Default)]
struct HttpClients {
    timeouts: Timeouts,
    /// Client for the internet; honours `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    outside: OnceLock<Result<reqwest::Client, String>>,
    /// Client for this machine, which a proxy could not reach.
    loopback: OnceLock<Result<reqwest::Client, String>>,
}

/// Reads the system's certificates beside the other tasks, before the first connection that needs
/// them. A handshake would read them itself, and keep all else waiting.
async fn load_roots_for(url: &Url) {
    if url.scheme() == "https" && !openclaw_tls::has_roots() {
        // A panic is in the log; the handshake tries again.
        let _ = tokio::task::spawn_blocking(openclaw_tls::load_roots).await;
    }
}

impl Http {
    /// A client with other timeouts than the default.
    pub fn with_timeouts(timeouts: Timeouts) -> Self {
        Self { shared: Arc::new(HttpClients { timeouts, ..HttpClients::default() }) }
    }

    /// Posts a JSON body and waits for the head of the answer, whatever its status. Dropping the future or the answer
    /// closes the request at once.
    ///
    /// # Errors
    /// [`NetError`] when there is no answer.
    pub async fn post_json(
        &self,
        url: &str,
        headers: Headers,
        body: impl Into<Bytes>,
    ) -> Result<Incoming, NetError> {
        self.send(reqwest::Method::POST, url, headers, body.into()).await
    }

    /// Asks for a document and waits for the head of the answer, as [`Http::post_json`] does.
    ///
    /// # Errors
    /// [`NetError`] when there is no answer.
    pub async fn get(&self, url: &str, headers: Headers) -> Result<Incoming, NetError> {
        self.send(reqwest::Method::GET, url, headers, Bytes::new()).await
    }

    /// Makes sure that there is a server at an address, whatever it answers, if anything.
    ///
    /// # Errors
    /// [`NetError`] when no connection is made.
    pub async fn reach(&self, url: &str) -> Result<(), NetError> {
        match self.get(url, Headers::default()).await {
            Ok(_)
            | Err(
                NetError::Silent { .. }
                | NetError::Dribbling { .. }
                | NetError::Broken { .. }
                | NetError::TooLong { .. },
            ) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        method: reqwest::Method,
        url: &str,
        headers: Headers,
        body: Bytes,
    ) -> Result<Incoming, NetError> {
        let url = parse_url(url)?;
        let place = place_of(&url);
        let client = self.client(&url)?;
        load_roots_for(&url).await;
        let request = client.request(method, url).headers(headers.0).body(body).send();
        let idle = self.shared.timeouts.idle;
        let response = tokio::time::timeout(idle, request)
            .await
            .map_err(|_| NetError::Silent { place: place.clone(), waited: idle })?
            .map_err(|error| NetError::of_request(&error, &place, self.shared.timeouts.connect))?;
        Ok(Incoming { status: response.status().as_u16(), place, idle, response })
    }

    fn client(&self, url: &Url) -> Result<&reqwest::Client, NetError> {
        let (cell, local) =
            if is_loopback(url) { (&self.shared.loopback, true) } else { (&self.shared.outside, false) };
        cell.get_or_init(|| self.build(local)).as_ref().map_err(|error| NetError::Setup(error.clone()))
    }

    fn build(&self, local: bool) -> Result<reqwest::Client, String> {
        let tls = openclaw_tls::client_config(HttpVersions::OneAndTwo).map_err(|error| error.to_string())?;
        let mut builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .tls_backend_preconfigured(tls)
            .connect_timeout(self.shared.timeouts.connect)
            // A redirect would carry the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(Duration::from_secs(90))
            .tcp_keepalive(Duration::from_secs(30));
        if local {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|error| error.to_string())
    }
}

/// Request headers; values are never shown.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

impl Headers {
    /// Creates the headers of a request for a document of this type.
    pub(crate) fn accepting(kind: &'static str) -> Self {
        Self([(header::ACCEPT, HeaderValue::from_static(kind))].into_iter().collect())
    }

    /// Creates the headers of a request that posts a JSON document.
    pub(crate) fn posting(accept: &'static str) -> Self {
        let mut headers = Self::accepting(accept);
        headers.0.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers
    }

    /// Sets the header that carries a token.
    ///
    /// # Errors
    /// As [`Headers::set`].
    pub(crate) fn bearer(&mut self, token: &str) -> Result<(), NetError> {
        self.set("authorization", &format!("Bearer {token}"))
    }

    /// Sets a header, replacing one of the same name. All values are marked sensitive.
    ///
    /// # Errors
    /// When name or value can't be sent; the value is not part of the error.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), NetError> {
        let bad = || NetError::Header(name.to_owned());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        self.0.insert(key, value);
        Ok(())
    }

    /// Names and values, for tests of request building.
    #[cfg(test)]
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned())).collect()
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// An answer whose head has arrived.
#[derive(Debug)]
pub struct Incoming {
    /// HTTP status.
    pub status: u16,
    place: String,
    idle: Duration,
    response: reqwest::Response,
}

impl Incoming {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next bytes, as soon as they are there; nothing at the end.
    ///
    /// # Errors
    /// [`NetError`] when the connection breaks or stays silent.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        self.chunk_after(Duration::ZERO).await
    }

    /// Returns the next chunk if only incomplete pieces came for `pieces`, which counts against the
    /// idle limit: a server that sends pieces one by one for ever is as silent as one that sends
    /// nothing.
    ///
    /// # Errors
    /// [`NetError`] when the connection breaks, stays silent, or brings nothing whole in time.
    pub async fn chunk_after(&mut self, pieces: Duration) -> Result<Option<Bytes>, NetError> {
        match tokio::time::timeout(self.idle.saturating_sub(pieces), self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(_)) => Err(NetError::Broken { place: self.place.clone() }),
            Err(_) if pieces.is_zero() => {
                Err(NetError::Silent { place: self.place.clone(), waited: self.idle })
            }
            Err(_) => Err(NetError::Dribbling { place: self.place.clone(), waited: self.idle }),
        }
    }

    /// The whole body, if it is no longer than that.
    ///
    /// # Errors
    /// [`NetError`] when the connection breaks or stays silent, or there is more.
    pub async fn whole(mut self, most: usize) -> Result<Vec<u8>, NetError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > most {
                return Err(NetError::TooLong { place: self.place.clone(), most });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// The body of an error answer as text, cut at 64 KiB and after 10 s. Unreadable parts are left
    /// out.
    pub async fn error_body(mut self) -> String {
        let mut bytes = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = self.chunk().await {
                let room = MAX_ERROR_BODY - bytes.len();
                bytes.extend(chunk.iter().take(room));
                if bytes.len() >= MAX_ERROR_BODY {
                    break;
                }
            }
        };
        // Too late is like cut: what came is enough to say what is wrong.
        let _ = tokio::time::timeout(ERROR_BODY_DEADLINE, read).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Error of a request: no answer, or no more of it. The texts are for people and hold neither keys
/// nor full addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The address is none; the configuration must change.
    #[error("\"{0}\" is not an http(s) address; check the provider's baseUrl{meant}", meant = meant(.0))]
    Address(String),
    /// The region name would change the host of the provider's address; the configuration or the
    /// environment must change.
    #[error(
        "\"{0}\" is not the name of a region; regions have letters, digits and hyphens only. Check AWS_REGION, \
         AWS_DEFAULT_REGION or the AWS profile for Bedrock, GOOGLE_CLOUD_LOCATION for Vertex AI"
    )]
    Region(String),
    /// A header can't be sent; the configuration (or the key) must change.
    #[error(
        "header \"{0}\" has a value that can't be sent; check the provider's headers and key for line breaks"
    )]
    Header(String),
    /// TLS or the client could not be set up.
    #[error("cannot set up the HTTP client: {0}")]
    Setup(String),
    /// Connection refused: no server listens at the address.
    #[error("connection refused by {0}; is the server running?")]
    Refused(String),
    /// The name has no address, the route is down, TLS failed.
    #[error("connection error: cannot connect to {place}: {cause}")]
    Connect {
        /// Host and port.
        place: String,
        /// Underlying I/O error.
        cause: String,
    },
    /// No connection in time.
    #[error("timed out connecting to {place} after {waited:?}")]
    ConnectTimeout {
        /// Host and port.
        place: String,
        /// Time that was waited.
        waited: Duration,
    },
    /// Connected, but nothing came in time.
    #[error("timed out: {place} sent nothing for {waited:?}")]
    Silent {
        /// Host and port.
        place: String,
        /// Time that was waited.
        waited: Duration,
    },
    /// The server sent pieces all the time, but no complete event in time.
    #[error("timed out: {place} sent nothing but pieces for {waited:?}")]
    Dribbling {
        /// Host and port.
        place: String,
        /// Time that was waited.
        waited: Duration,
    },
    /// The answer is longer than we read.
    #[error("{place} sent more than {most} bytes")]
    TooLong {
        /// Host and port.
        place: String,
        /// Bytes that are read at most.
        most: usize,
    },
    /// The connection broke.
    #[error("connection error: {place} closed the connection before the answer was complete")]
    Broken {
        /// Host and port.
        place: String,
    },
}

impl NetError {
    /// The class of failure.
    pub fn kind(&self) -> FailureKind {
        match self {
            // Nothing is there, so that another provider may be asked.
            Self::Address(_) => FailureKind::Gone,
            Self::Region(_) | Self::Header(_) | Self::Setup(_) | Self::TooLong { .. } => FailureKind::Other,
            // A failure that never reached the provider says nothing about the credential.
            Self::Refused(_) | Self::Connect { .. } | Self::ConnectTimeout { .. } | Self::Broken { .. } => {
                FailureKind::Transient
            }
            Self::Silent { .. } | Self::Dribbling { .. } => FailureKind::Timeout,
        }
    }

    fn of_request(error: &reqwest::Error, place: &str, connect: Duration) -> Self {
        let place = place.to_owned();
        if io_kind(error) == Some(std::io::ErrorKind::ConnectionRefused) {
            Self::Refused(place)
        } else if error.is_connect() && error.is_timeout() {
            Self::ConnectTimeout { place, waited: connect }
        } else if error.is_connect() {
            Self::Connect { place, cause: root_cause(error) }
        } else {
            Self::Broken { place }
        }
    }
}

/// Addresses that were meant by one without a scheme.
fn meant(shown: &str) -> String {
    match shown.contains("://") {
        true => String::new(),
        false => format!(": http://{shown} or https://{shown}"),
    }
}

fn io_kind(error: &reqwest::Error) -> Option<std::io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind)
}

fn root_cause(error: &reqwest::Error) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |cause| cause.source())
}

/// Fault of a text that is to be the address of a server, if it has one.
pub fn address_fault(text: &str) -> Option<NetError> {
    parse_url(text).err()
}

fn parse_url(text: &str) -> Result<Url, NetError> {
    // The address may hold a key in its query or user part; only its start is shown.
    let shown = || text.split(['?', '@']).next().unwrap_or_default().chars().take(200).collect();
    let url = Url::parse(text.trim()).map_err(|_| NetError::Address(shown()))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err(NetError::Address(shown()))
    }
}

fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Returns true if an address is on this machine.
pub(crate) fn is_local_url(text: &str) -> bool {
    Url::parse(text.trim()).is_ok_and(|url| is_loopback(&url))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Replaces every occurrence of a secret by `[redacted]`. Secrets of fewer than six characters are left: they would
/// redact ordinary words.
pub(crate) fn redact(text: &str, secret: Option<&str>) -> String {
    match secret {
        Some(secret) if secret.len() >= 6 => text.replace(secret, "[redacted]"),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_none_are_named_without_their_secrets() {
        let rows = [
            ("ftp://host/x", "ftp://host/x"),
            ("nonsense?key=hunter22", "nonsense"),
            ("http:///?key=hunter22", "http:///"),
        ];
        for (input, shown) in rows {
            assert_eq!(parse_url(input), Err(NetError::Address(shown.to_owned())), "{input}");
        }
    }

    #[test]
    fn an_address_without_a_scheme_is_named_with_one() {
        let rows = [
            ("localhost:1234", ": http://localhost:1234 or https://localhost:1234"),
            ("ftp://host/x", "check the provider's baseUrl"),
        ];
        for (address, end) in rows {
            let fault = address_fault(address).unwrap();
            let start = format!("\"{address}\" is not an http(s) address; check the provider's baseUrl");
            assert!(fault.to_string().starts_with(&start) && fault.to_string().ends_with(end), "{fault}");
            assert_eq!(fault.kind(), FailureKind::Gone, "another model may be asked");
        }
        for right in ["http://localhost:1234/v1", "https://api.example.org"] {
            assert_eq!(address_fault(right), None, "{right}");
        }
    }

    #[test]
    fn local_addresses_are_told_from_others() {
        let rows = [
            ("http://127.0.0.1:11434/v1", true),
            ("http://LOCALHOST:1/", true),
            ("http://[::1]:8080", true),
            ("https://api.anthropic.com", false),
            ("http://10.0.0.1", false),
            ("x", false),
        ];
        for (url, expect) in rows {
            assert_eq!(is_local_url(url), expect, "{url}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let mut headers = Headers::default();
        let error = headers.set("x-api-key", "sk-secret\nx").unwrap_err();
        assert!(!error.to_string().contains("sk-secret"), "{error}");
        headers.set("x-api-key", "sk-secret").unwrap();
        assert!(!format!("{headers:?}").contains("sk-secret"));
    }

    #[test]
    fn secrets_are_redacted() {
        assert_eq!(
            redact("bad key sk-123456 (sk-123456)", Some("sk-123456")),
            "bad key [redacted] ([redacted])"
        );
        assert_eq!(redact("a lk b", Some("lk")), "a lk b");
    }
}
