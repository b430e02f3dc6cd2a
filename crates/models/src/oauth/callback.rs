//! Waits on this machine for the browser to bring the code (spec `models.md` §8.4).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::pasted::{CodeError, StateRule, from_query};

/// The port the server sends the browser to.
pub const PORT: u16 = 1455;
/// Time to wait for the browser before a person is asked to paste.
pub const WAIT: Duration = Duration::from_secs(60);
const PATH: &str = "/auth/callback";
/// Largest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Time limit of one connection.
const CONNECTION: Duration = Duration::from_secs(10);
/// Largest number of concurrent connections; more wait.
const MAX_CONNECTIONS: usize = 16;

const SUCCESS: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Logged in</title></head>\
    <body><h1>Logged in</h1><p>You can close this window and go back to the terminal.</p></body></html>";

/// A port on which the browser is awaited.
#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
}

impl Callback {
    /// Listens on 127.0.0.1; port 0 takes any free one.
    ///
    /// # Errors
    /// When the port is taken; then the code must be pasted.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        Ok(Self { listener })
    }

    /// Returns the address on which the server listens.
    ///
    /// # Errors
    /// Underlying I/O error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The code that the browser brings for this state. Requests that bring none, or another login's, are answered and
    /// forgotten. Ends only with a code: the caller bounds the time. Dropping it closes the port.
    pub async fn code(self, state: &str) -> String {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let state = state.to_owned();
                        connections.spawn(async move {
                            let served = tokio::time::timeout(CONNECTION, serve(stream, &state)).await;
                            served.ok().flatten()
                        });
                    }
                }
                Some(done) = connections.join_next() => {
                    if let Ok(Some(code)) = done {
                        return code;
                    }
                }
            }
        }
    }
}

/// Answers one request; the code if it brought one.
async fn serve(mut stream: TcpStream, state: &str) -> Option<String> {
    let target = read_target(&mut stream).await?;
    let (status, page, code) = answer(&target, state);
    let kind = if code.is_some() { "text/html; charset=utf-8" } else { "text/plain; charset=utf-8" };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        page.len()
    );
    // A browser that left already has still brought the code.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    code
}

/// The target of the request line, once the head is whole.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(buffer.get(..read)?);
        if head.len() > MAX_HEAD {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    // Any other request than this page gets none.
    Some(if method == "GET" { target.to_owned() } else { String::new() })
}

/// Status line, page and code for a request target. Pure.
fn answer(target: &str, state: &str) -> (&'static str, String, Option<String>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != PATH {
        return ("404 Not Found", "Not found".to_owned(), None);
    }
    match from_query(query, state, StateRule::Required) {
        Ok(code) => ("200 OK", SUCCESS.to_owned(), Some(code)),
        Err(error @ (CodeError::State | CodeError::Missing)) => ("400 Bad Request", error.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::codex::REDIRECT;

    /// Spec `models.md` §8.4.
    #[test]
    fn the_browser_is_awaited_for_a_minute_where_it_is_sent_to() {
        assert_eq!((PORT, WAIT), (1455, Duration::from_secs(60)));
        assert_eq!(REDIRECT, format!("http://localhost:{PORT}{PATH}"));
    }

    #[test]
    fn requests_are_answered_as_the_spec_says() {
        let rows = [
            ("/", "404 Not Found", "Not found", None),
            ("/auth/callback/x?code=c&state=s", "404 Not Found", "Not found", None),
            ("", "404 Not Found", "Not found", None),
            ("/auth/callback?code=c&state=x", "400 Bad Request", "State mismatch", None),
            ("/auth/callback?code=c", "400 Bad Request", "State mismatch", None),
            ("/auth/callback?state=s", "400 Bad Request", "Missing authorization code", None),
            ("/auth/callback?code=c&state=s", "200 OK", SUCCESS, Some("c")),
        ];
        for (target, status, page, code) in rows {
            assert_eq!(answer(target, "s"), (status, page.to_owned(), code.map(str::to_owned)), "{target}");
        }
    }

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_browser_brings_the_code_after_what_else_comes() {
        let callback = Callback::bind(0).await.unwrap();
        let address = callback.address().unwrap();
        assert!(Callback::bind(address.port()).await.is_err(), "a busy port is an error");
        let browser = async {
            let get = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n");
            let silent = TcpStream::connect(address).await.unwrap();
            let icon = ask(address, &get("/favicon.ico")).await;
            let post = ask(address, "POST /auth/callback?code=c&state=s HTTP/1.1\r\n\r\n").await;
            let foreign = ask(address, &get("/auth/callback?code=c&state=evil")).await;
            let ours = ask(address, &get("/auth/callback?code=c&state=s")).await;
            drop(silent);
            [icon, post, foreign, ours].map(|answer| answer.lines().next().unwrap().to_owned())
        };
        let (code, statuses) = tokio::join!(callback.code("s"), browser);
        assert_eq!(code, "c");
        let expect = ["404 Not Found", "404 Not Found", "400 Bad Request", "200 OK"];
        assert_eq!(statuses, expect.map(|status| format!("HTTP/1.1 {status}")));
        assert!(TcpStream::connect(address).await.is_err(), "the port is closed afterwards");
    }
}
