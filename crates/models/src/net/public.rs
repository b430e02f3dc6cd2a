//! Fetching what models and strangers name, from the public web alone (spec `tools.md` §5.2, SSRF guard): a name is looked up once, all
//! of its addresses are checked, and the connection goes to these and no others. Each redirect is a new address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use url::{Host, Url};

/// Addresses that are asked in turn.
const MAX_REDIRECTS: usize = 3;
const CONNECT: Duration = Duration::from_secs(10);
/// Silence that is waited for.
const IDLE: Duration = Duration::from_secs(30);
const USER_AGENT: &str = concat!("openclaw/", env!("CARGO_PKG_VERSION"));
/// Names of this machine and its network.
const BLOCKED_NAMES: &[&str] = &["localhost", "metadata.google.internal"];
const BLOCKED_ENDS: &[&str] = &[".localhost", ".local", ".internal"];

/// Why nothing was fetched; models and people are told this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// It is no address of the web.
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
    /// It leads on and on.
    #[error("Too many redirects (limit: {MAX_REDIRECTS})")]
    Redirects,
    /// It leads nowhere.
    #[error("Redirect missing location header ({0})")]
    NoLocation(u16),
    /// The server has no such document, or gives it to nobody.
    #[error("the server answered {0}")]
    Status(u16),
    /// It is larger than may be.
    #[error("it is larger than {} MB", .0 / 1_000_000)]
    TooLarge(u64),
    /// The network.
    #[error("{0}")]
    Net(String),
}

/// A document on its way.
#[derive(Debug)]
pub struct Document {
    /// Where it was found in the end.
    pub url: Url,
    /// Its type, as the server says.
    pub content_type: Option<String>,
    /// Its name, as the server says.
    pub name: Option<String>,
    response: reqwest::Response,
    left: u64,
    limit: u64,
}

impl Document {
    /// The next piece of it; `None` at its end.
    ///
    /// # Errors
    /// [`WebError`]: the network, or it is too large after all.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, WebError> {
        let next = tokio::time::timeout(IDLE, self.response.chunk()).await;
        let next = next.map_err(|_| WebError::Net(format!("nothing came for {} s", IDLE.as_secs())))?;
        let Some(bytes) = next.map_err(|error| failed(&error))? else { return Ok(None) };
        let length = bytes.len() as u64;
        if length > self.left {
            return Err(WebError::TooLarge(self.limit));
        }
        self.left -= length;
        Ok(Some(bytes))
    }
}

/// Asks for a document of so many bytes at most. `allowed` are hosts, as `host` or `host:port`, that may be asked wherever they are.
///
/// # Errors
/// [`WebError`].
pub async fn get(address: &str, limit: u64, allowed: &[String]) -> Result<Document, WebError> {
    let mut url = Url::parse(address).map_err(|_| WebError::Address)?;
    for _ in 0..=MAX_REDIRECTS {
        let addresses = checked(&url, allowed).await?;
        let response = ask(&url, &addresses).await?;
        let status = response.status().as_u16();
        match status {
            200 => return opened(url, response, limit),
            301 | 302 | 303 | 307 | 308 => {
                let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                let next = location.and_then(|next| url.join(next).ok());
                url = next.ok_or(WebError::NoLocation(status))?;
            }
            _ => return Err(WebError::Status(status)),
        }
    }
    Err(WebError::Redirects)
}

fn opened(url: Url, response: reqwest::Response, limit: u64) -> Result<Document, WebError> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let announced = header(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(WebError::TooLarge(limit));
    }
    let name = header(CONTENT_DISPOSITION).as_deref().and_then(file_name);
    Ok(Document { content_type: header(CONTENT_TYPE), name, url, response, left: limit, limit })
}

/// The name in `attachment; filename="a.png"`.
fn file_name(disposition: &str) -> Option<String> {
    let (_, value) = disposition.split_once("filename=")?;
    let value = value.split(';').next()?.trim().trim_matches('"').trim();
    Some(value.to_owned()).filter(|name| !name.is_empty())
}

/// Where a request to it may go.
async fn checked(url: &Url, allowed: &[String]) -> Result<Vec<SocketAddr>, WebError> {
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
            let bare = name.trim_end_matches('.').to_ascii_lowercase();
            let is_blocked =
                BLOCKED_NAMES.contains(&bare.as_str()) || BLOCKED_ENDS.iter().any(|end| bare.ends_with(end));
            if is_blocked && !is_allowed {
                return Err(WebError::Name(name.to_owned()));
            }
            let found = tokio::net::lookup_host((name, port)).await;
            let found: Vec<SocketAddr> = found.map_err(|_| WebError::NoHost(name.to_owned()))?.collect();
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

/// One request, to these addresses. No proxy: it would look the name up once more.
async fn ask(url: &Url, addresses: &[SocketAddr]) -> Result<reqwest::Response, WebError> {
    super::install_tls();
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if let Some(Host::Domain(name)) = url.host() {
        builder = builder.resolve_to_addrs(name, addresses);
    }
    let client = builder.build().map_err(|error| failed(&error))?;
    let sent = tokio::time::timeout(IDLE, client.get(url.clone()).send()).await;
    let sent = sent.map_err(|_| WebError::Net(format!("nothing came for {} s", IDLE.as_secs())))?;
    sent.map_err(|error| failed(&error))
}

/// Without the address, which may hold a credential.
fn failed(error: &reqwest::Error) -> WebError {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    WebError::Net(causes.last().map_or_else(|| "the request failed".to_owned(), ToString::to_string))
}

/// Whether an address is one of the public internet: of no machine's own, no private network, no special purpose.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            let is_benchmark = first == 198 && (18..20).contains(&second);
            let is_protocol = first == 192 && second == 0 && third == 0;
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_documentation()
                || first == 0
                || first >= 240
                || is_shared
                || is_benchmark
                || is_protocol)
        }
        IpAddr::V6(address) => {
            let segments = address.segments();
            // Addresses of IPv4 in another form.
            let is_translated = segments.first() == Some(&0x64) && segments.get(1) == Some(&0xff9b);
            let is_site_local = segments.first().is_some_and(|first| first & 0xffc0 == 0xfec0);
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || is_translated
                || is_site_local)
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Spec `tools.md` §5.2.
    #[test]
    fn only_the_public_internet_is_public() {
        let rows = [
            ("93.184.216.34", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("10.0.0.5", false),
            ("172.31.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.1.1", false),
            ("198.18.0.1", false),
            ("192.0.0.8", false),
            ("224.0.0.1", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("::", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:7f00:1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("febf::1", false),
            ("fec0::1", false),
            ("64:ff9b::7f00:1", false),
        ];
        for (address, expect) in rows {
            assert_eq!(is_public(address.parse().unwrap()), expect, "{address}");
        }
    }

    #[tokio::test]
    async fn what_is_not_public_is_not_asked() {
        let rows = [
            ("ftp://example.com/a", "Invalid URL: must be http or https"),
            ("nonsense", "Invalid URL: must be http or https"),
            ("http://localhost/a", "Blocked hostname: localhost"),
            ("http://printer.local/a", "Blocked hostname: printer.local"),
            ("http://Metadata.Google.Internal/", "Blocked hostname: metadata.google.internal"),
            ("http://127.0.0.1/a", "Blocked: private/internal IP address"),
            ("http://2130706433/a", "Blocked: private/internal IP address"),
            ("http://0x7f.1/a", "Blocked: private/internal IP address"),
            ("http://[::ffff:7f00:1]/a", "Blocked: private/internal IP address"),
        ];
        for (address, expect) in rows {
            assert_eq!(get(address, 10, &[]).await.unwrap_err().to_string(), expect, "{address}");
        }
    }

    /// Answers each request in turn.
    async fn server(answers: Vec<String>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await.unwrap();
                stream.write_all(answer.replace("PORT", &port.to_string()).as_bytes()).await.unwrap();
            }
        });
        port
    }

    fn answer(head: &str, body: &str) -> String {
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_redirect_does_not_lead_inside() {
        let inside = answer("302 Found\r\nLocation: http://127.0.0.2:1/secret", "");
        let port = server(vec![inside]).await;
        let allowed = [format!("127.0.0.1:{port}")];
        let error = get(&format!("http://127.0.0.1:{port}/a"), 10, &allowed).await.unwrap_err();
        assert_eq!(error, WebError::Private);
        let nowhere = answer("302 Found", "");
        let port = server(vec![nowhere]).await;
        let allowed = ["127.0.0.1".to_owned()];
        let error = get(&format!("http://127.0.0.1:{port}/a"), 10, &allowed).await.unwrap_err();
        assert_eq!(error, WebError::NoLocation(302));
        let round = answer("302 Found\r\nLocation: http://127.0.0.1:PORT/a", "");
        let port = server(vec![round; 4]).await;
        let error = get(&format!("http://127.0.0.1:{port}/a"), 10, &allowed).await.unwrap_err();
        assert_eq!(error, WebError::Redirects);
    }

    #[tokio::test]
    async fn a_document_is_read_up_to_its_limit() {
        let allowed = ["127.0.0.1".to_owned()];
        let named =
            "200 OK\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=\"a b.png\"";
        let port = server(vec![answer(named, "12345")]).await;
        let mut document = get(&format!("http://127.0.0.1:{port}/a"), 5, &allowed).await.unwrap();
        assert_eq!(document.name.as_deref(), Some("a b.png"));
        assert_eq!(document.content_type.as_deref(), Some("image/png"));
        let mut read = Vec::new();
        while let Some(bytes) = document.chunk().await.unwrap() {
            read.extend_from_slice(&bytes);
        }
        assert_eq!(read, b"12345");
        let port = server(vec![answer("200 OK", "123456")]).await;
        let error = get(&format!("http://127.0.0.1:{port}/a"), 5, &allowed).await.unwrap_err();
        assert_eq!(error, WebError::TooLarge(5));
        let endless =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n0\r\n\r\n".to_owned();
        let port = server(vec![endless]).await;
        let mut document = get(&format!("http://127.0.0.1:{port}/a"), 5, &allowed).await.unwrap();
        assert_eq!(document.chunk().await.unwrap_err(), WebError::TooLarge(5));
        let port = server(vec![answer("404 Not Found", "")]).await;
        let error = get(&format!("http://127.0.0.1:{port}/a"), 5, &allowed).await.unwrap_err();
        assert_eq!(error, WebError::Status(404));
    }
}
