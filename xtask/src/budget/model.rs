//! A model that answers at once and knows to the microsecond when: what a turn takes beyond its share is the gateway's.
//!
//! It is not the scripted server of the tests: that one is asynchronous, shares its threads with the client and is built
//! without optimisation, which would be measured with it.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// When what happened to one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// It was read.
    pub(super) asked: Instant,
    /// The first piece of the answer was sent.
    pub(super) began: Instant,
    /// The last one was.
    pub(super) answered: Instant,
}

/// An OpenAI-compatible server with one answer.
pub(super) struct InstantModel {
    address: SocketAddr,
    last: Arc<Mutex<Option<Times>>>,
}

impl InstantModel {
    /// Starts it. After the first word it pauses this long. Its threads end with the process.
    pub(super) fn start(pause: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let model = Self { address: listener.local_addr()?, last: Arc::default() };
        let last = Arc::clone(&model.last);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let last = Arc::clone(&last);
                // The gateway closes connections as it likes.
                std::thread::spawn(move || drop(serve(&socket, pause, &last)));
            }
        });
        Ok(model)
    }

    /// The provider's base URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The last request's times.
    pub(super) fn last(&self) -> Result<Times> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.context("the model was never asked")
    }
}

fn serve(socket: &TcpStream, pause: Duration, last: &Mutex<Option<Times>>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket);
    let mut writer = socket;
    let chunk = |piece: &str| format!("{:x}\r\n{piece}\r\n", piece.len());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let first =
        format!("{head}{}", chunk(&delta(&json!({"role": "assistant", "content": "Hello"}), &Value::Null)));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107});
    let rest = chunk(&delta(&json!({"content": " to you too."}), &Value::Null))
        + &chunk(&delta(&json!({}), &json!("stop")))
        + &chunk(&format!("data: {}\n\ndata: [DONE]\n\n", json!({"id": "c", "choices": [], "usage": usage})))
        + "0\r\n\r\n";
    while read_request(&mut reader)? {
        let asked = Instant::now();
        writer.write_all(first.as_bytes())?;
        let began = Instant::now();
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        // Before the bytes go out: whoever reads the end finds the times of this request.
        let times = Times { asked, began, answered: Instant::now() };
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(times);
        writer.write_all(rest.as_bytes())?;
    }
    Ok(())
}

/// Reads one request to its end; false when the connection ends instead.
fn read_request(reader: &mut impl std::io::BufRead) -> Result<bool> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
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
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    Ok(true)
}

fn delta(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "fake-1", "choices": [choice]});
    format!("data: {chunk}\n\n")
}
