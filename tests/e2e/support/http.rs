//! Requests over HTTP, written by hand.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Answer to a path, head and all.
pub(crate) async fn get(port: u16, path: &str) -> String {
    ask(port, "GET", path).await
}

/// Answer to a method and a path, head and all.
pub(crate) async fn ask(port: u16, method: &str, path: &str) -> String {
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Makes a request of a method and a path, with a body; returns the status, the head in lower case, and the
/// body.
pub(crate) async fn request_at(port: u16, asked: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let host = if headers.contains("Host: ") { "" } else { "Host: localhost\r\n" };
    let head = format!(
        "{asked} HTTP/1.1\r\n{host}Connection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    // A body that is too large is not read to its end.
    let _ = socket.write_all(body).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split_whitespace().nth(1).unwrap_or("0").parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}
