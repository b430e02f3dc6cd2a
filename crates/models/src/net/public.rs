//! Fetching what models and strangers name, from the public web alone (spec `tools.md` §5.2, SSRF guard): a name is looked up once, all
//! of its addresses are checked, and the connection goes to these and no others. Each redirect is a new address.
//!
//! [`address`] says which addresses are public; it is the only place that does. [`document`] reads what comes.

mod address;
mod document;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use openclaw_tls::HttpVersions;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, LOCATION};
use url::{Host, Url};

pub use address::is_public;
pub use document::Document;

/// Redirects that are followed unless configured.
pub const MAX_REDIRECTS: usize = 3;
const CONNECT: Duration = Duration::from_secs(10);
/// Silence that is waited for.
const IDLE: Duration = Duration::from_secs(30);
/// Languages requested from multilingual sites.
const LANGUAGES: &str = "en-US,en;q=0.9";
const USER_AGENT: &str = concat!("openclaw/", env!("CARGO_PKG_VERSION"));

/// Reason why nothing was fetched; models and people are told this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// The text is not an address of the web.
    #[error("Invalid URL: must be http or https")]
    Address,
    /// A name that is never asked.
    #[error("Blocked hostname: {0}")]
    Name(String),
    /// An address that is never asked.
    #[error("Blocked: private/internal IP address")]
    Private,
    /// A name with such an address.
    #[error("Blocked: resolves to private/internal IP address")]
    ResolvesToPrivate,
    /// The name is not known.
    #[error("cannot find the host {0}")]
    NoHost(String),
    /// The address redirects more often than allowed.
    #[error("Too many redirects (limit: {0})")]
    Redirects(usize),
    /// The address redirects to itself.
    #[error("Redirect loop detected")]
    RedirectLoop,
    /// The redirect names no target.
    #[error("Redirect missing location header ({0})")]
    NoLocation(u16),
    /// The server has no such document, or gives it to nobody.
    #[error("the server answered {0}")]
    Status(u16),
    /// The document is larger than allowed.
    #[error("it is larger than {} MB", .0 / 1_000_000)]
    TooLarge(u64),
    /// The document is compressed in a way that was not asked for.
    #[error("the answer is compressed in a way that is not known: {0}")]
    Encoding(String),
    /// The document can't be decompressed.
    #[error("the compressed answer is damaged")]
    Damaged,
    /// The network.
    #[error("{0}")]
    Net(String),
}

impl WebError {
    /// Returns true if the address is forbidden for every caller and every method.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Address | Self::Name(_) | Self::Private | Self::ResolvesToPrivate => true,
            Self::NoHost(_)
            | Self::Redirects(_)
            | Self::RedirectLoop
            | Self::NoLocation(_)
            | Self::Status(_)
            | Self::TooLarge(_)
            | Self::Encoding(_)
            | Self::Damaged
            | Self::Net(_) => false,
        }
    }

    fn silent(waited: Duration) -> Self {
        Self::Net(format!("nothing came for {} s", waited.as_secs()))
    }
}

/// Treatment of a document that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Refuses the document.
    Refuse,
    /// Returns the beginning of the document.
    Cut,
}

/// Selection of the statuses that count as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    /// 200 alone; the rest are errors.
    OkOnly,
    /// All but redirects.
    Any,
}

/// Compression that the server may use. Limits count what is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression; the answer is taken as it is.
    None,
    /// gzip.
    Gzip,
}

/// Options of a request for a document.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Bytes that are read at most.
    pub max_bytes: u64,
    /// Treatment of a longer document.
    pub overflow: Overflow,
    /// Statuses that count as an answer.
    pub statuses: Statuses,
    /// Accepted compression.
    pub compression: Compression,
    /// Redirects that are followed.
    pub max_redirects: usize,
    /// Our name in the request.
    pub user_agent: String,
    /// Silence that is waited for.
    pub idle: Duration,
    /// Hosts, as `host` or `host:port`, that may be asked wherever they are.
    pub allowed: Vec<String>,
}

impl FetchOptions {
    /// A file of so many bytes at most.
    pub fn file(max_bytes: u64, allowed: &[String]) -> Self {
        Self {
            max_bytes,
            overflow: Overflow::Refuse,
            statuses: Statuses::OkOnly,
            compression: Compression::None,
            max_redirects: MAX_REDIRECTS,
            user_agent: USER_AGENT.to_owned(),
            idle: IDLE,
            allowed: allowed.to_vec(),
        }
    }
}

/// Asks for a document of so many bytes at most. `allowed` are hosts, as `host` or `host:port`, that may be asked wherever they are.
///
/// # Errors
/// [`WebError`].
pub async fn get(address: &str, limit: u64, allowed: &[String]) -> Result<Document, WebError> {
    fetch(address, &FetchOptions::file(limit, allowed)).await
}

/// Asks for a document.
///
/// # Errors
/// [`WebError`].
pub async fn fetch(address: &str, options: &FetchOptions) -> Result<Document, WebError> {
    fetch_with(address, options, look_up).await
}

/// Fetches with another name resolver, which is called once per redirect hop.
async fn fetch_with<L, F>(address: &str, options: &FetchOptions, look_up: L) -> Result<Document, WebError>
where
    L: Fn(String, u16) -> F,
    F: Future<Output = io::Result<Vec<SocketAddr>>>,
{
    let mut url = Url::parse(address.trim()).map_err(|_| WebError::Address)?;
    let mut visited = Vec::new();
    loop {
        let addresses = checked(&url, &options.allowed, &look_up).await?;
        let response = ask(&url, addresses, options).await?;
        let status = response.status().as_u16();
        match status {
            301 | 302 | 303 | 307 | 308 => {
                let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                let next = location.and_then(|next| url.join(next).ok());
                let next = next.ok_or(WebError::NoLocation(status))?;
                visited.push(std::mem::replace(&mut url, next));
                if visited.len() > options.max_redirects {
                    return Err(WebError::Redirects(options.max_redirects));
                }
                if visited.contains(&url) {
                    return Err(WebError::RedirectLoop);
                }
            }
            200 => return Document::open(url, response, options),
            _ if options.statuses == Statuses::Any => return Document::open(url, response, options),
            _ => return Err(WebError::Status(status)),
        }
    }
}

async fn look_up(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), port)).await?.collect())
}

/// Returns the addresses to which a request for the URL may go.
async fn checked<L, F>(url: &Url, allowed: &[String], look_up: &L) -> Result<Vec<SocketAddr>, WebError>
where
    L: Fn(String, u16) -> F,
    F: Future<Output = io::Result<Vec<SocketAddr>>>,
{
    if !matches!(url.scheme(), "http" | "https") {
        return Err(WebError::Address);
    }
    let port = url.port_or_known_default().unwrap_or(443);
    let host = url.host().ok_or(WebError::Address)?;
    let is_allowed = is_allowed(&host.to_string(), port, allowed);
    match host {
        Host::Ipv4(address) => literal(address.into(), port, is_allowed),
        Host::Ipv6(address) => literal(address.into(), port, is_allowed),
        Host::Domain(name) => {
            let bare = address::bare(name);
            if address::is_blocked_name(&bare) && !is_allowed {
                return Err(WebError::Name(bare));
            }
            let found = look_up(name.to_owned(), port).await.unwrap_or_default();
            if found.is_empty() {
                return Err(WebError::NoHost(name.to_owned()));
            }
            let is_private = found.iter().any(|address| !is_public(address.ip()));
            if is_private && !is_allowed { Err(WebError::ResolvesToPrivate) } else { Ok(found) }
        }
    }
}

fn literal(address: IpAddr, port: u16, is_allowed: bool) -> Result<Vec<SocketAddr>, WebError> {
    if is_allowed || is_public(address) {
        Ok(vec![SocketAddr::new(address, port)])
    } else {
        Err(WebError::Private)
    }
}

fn is_allowed(host: &str, port: u16, allowed: &[String]) -> bool {
    let with_port = format!("{host}:{port}");
    allowed
        .iter()
        .map(|each| each.trim())
        .any(|each| each.eq_ignore_ascii_case(host) || each.eq_ignore_ascii_case(&with_port))
}

/// Answers every question of the HTTP client with the addresses that were checked.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Sends one request to these addresses. No proxy: it would look the name up once more.
async fn ask(
    url: &Url,
    addresses: Vec<SocketAddr>,
    options: &FetchOptions,
) -> Result<reqwest::Response, WebError> {
    super::load_roots_for(url).await;
    let tls = openclaw_tls::client_config(HttpVersions::OneAndTwo)
        .map_err(|error| WebError::Net(error.to_string()))?;
    let client = reqwest::Client::builder()
        .user_agent(&options.user_agent)
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Pinned(addresses))
        .no_proxy()
        .build()
        .map_err(|error| failed(&error))?;
    let mut request = client.get(url.clone()).header(ACCEPT, "*/*").header(ACCEPT_LANGUAGE, LANGUAGES);
    if options.compression == Compression::Gzip {
        request = request.header(ACCEPT_ENCODING, "gzip");
    }
    let sent = tokio::time::timeout(options.idle, request.send()).await;
    sent.map_err(|_| WebError::silent(options.idle))?.map_err(|error| failed(&error))
}

/// Converts the error without the address, which may hold a credential.
fn failed(error: &reqwest::Error) -> WebError {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    WebError::Net(causes.last().map_or_else(|| "the request failed".to_owned(), ToString::to_string))
}

#[cfg(test)]
mod tests;
