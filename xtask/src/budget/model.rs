//! A model that answers at once and knows to the microsecond when: what a turn takes beyond its share is the gateway's.
//!
//! The scripted server of the tests would not do: that one is asynchronous, shares its threads with
//! the client and is built without optimisation, which would be measured with it.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Script of the model for every turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    /// Number of tool calls, one at a time, before it answers.
    pub(super) tool_calls: usize,
    /// The tool.
    pub(super) tool: Tool,
    /// Tokens of its answer.
    pub(super) tokens: usize,
    /// Pause after each of them.
    pub(super) pause: Duration,
}

/// A tool that the model calls.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tool {
    /// `read` of [`FILE`].
    Read,
    /// `sessions_send` to the session with the label [`PEER`].
    Send,
}

/// The file that it reads, in the workspace.
pub(super) const FILE: &str = "small.txt";
/// The label of the session that it writes to.
pub(super) const PEER: &str = "peer";

impl Script {
    /// A short answer, at once.
    pub(super) const SHORT: Self = Self { tool_calls: 0, tool: Tool::Read, tokens: 2, pause: Duration::ZERO };
}

impl Tool {
    fn call(self) -> (&'static str, Value) {
        match self {
            Self::Read => ("read", json!({"path": FILE})),
            Self::Send => ("sessions_send", json!({"label": PEER, "message": "hello", "timeoutSeconds": 30})),
        }
    }
}

/// Record of the model's work.
#[derive(Debug, Default)]
struct Done {
    /// Tool calls, in all turns.
    tool_calls: usize,
    /// Answers, in all turns.
    answers: usize,
    turn: Turn,
}

/// Record of the current turn.
#[derive(Debug, Default)]
struct Turn {
    /// Time it took, over all requests.
    took: Duration,
    /// Time of the first request.
    asked: Option<Instant>,
    /// Time at which it sent the end of its answer.
    ended: Option<Instant>,
    /// Time at which it sent the first token of its answer.
    began: Option<Instant>,
    tool_calls: usize,
    requests: Vec<Request>,
}

/// Request to the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Time at which all of it was there.
    pub(super) asked: Instant,
    /// Time at which the last of the answer was written.
    pub(super) ended: Instant,
    /// True if it ends with the result of a tool.
    pub(super) has_result: bool,
}

/// An OpenAI-compatible server that keeps to a script.
pub(super) struct InstantModel {
    address: SocketAddr,
    done: Arc<Mutex<Done>>,
}

impl InstantModel {
    /// Starts the model; its threads end with the process.
    pub(super) fn start(script: Script) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let model = Self { address: listener.local_addr()?, done: Arc::default() };
        let done = Arc::clone(&model.done);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let done = Arc::clone(&done);
                // The gateway closes connections as it likes.
                std::thread::spawn(move || drop(serve(&socket, script, &done)));
            }
        });
        Ok(model)
    }

    /// The provider's base URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Number of answers so far.
    pub(super) fn answers(&self) -> usize {
        lock(&self.done).answers
    }

    /// Times of the first request and the last word in the last turn.
    pub(super) fn last_times(&self) -> Result<(Instant, Instant)> {
        let turn = std::mem::take(&mut lock(&self.done).turn);
        turn.asked.zip(turn.ended).context("the model was never asked")
    }

    /// Requests since the last look, in order.
    pub(super) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut lock(&self.done).turn).requests
    }

    /// The time it took in the last turn, and when its answer began.
    pub(super) fn last_turn(&self) -> Result<(Duration, Instant)> {
        let turn = std::mem::take(&mut lock(&self.done).turn);
        Ok((turn.took, turn.began.context("the model was never asked")?))
    }
}

fn serve(socket: &TcpStream, script: Script, done: &Mutex<Done>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket);
    let mut writer = socket;
    let (first, token, end) = answer();
    while let Some(body) = read_request(&mut reader)? {
        let asked = Instant::now();
        let request = || Request { asked, ended: Instant::now(), has_result: ends_with_result(&body) };
        lock(done).turn.asked.get_or_insert(asked);
        if let Some(call) = tool_call(script, done) {
            let mut times = lock(done);
            times.turn.took += asked.elapsed();
            times.turn.requests.push(request());
            drop(times);
            writer.write_all(call.as_bytes())?;
            continue;
        }
        writer.write_all(first.as_bytes())?;
        lock(done).turn.began = Some(Instant::now());
        // Without a pause all goes out at once.
        let mut rest = String::new();
        for _ in 1..script.tokens {
            if !script.pause.is_zero() {
                writer.write_all(rest.as_bytes())?;
                rest.clear();
                std::thread::sleep(script.pause);
            }
            rest += &token;
        }
        rest += &end;
        // Before the bytes go out: whoever reads the end finds the times of this turn.
        let mut times = lock(done);
        times.answers += 1;
        times.turn.took += asked.elapsed();
        times.turn.ended = Some(Instant::now());
        times.turn.requests.push(request());
        drop(times);
        writer.write_all(rest.as_bytes())?;
    }
    Ok(())
}

fn lock(done: &Mutex<Done>) -> MutexGuard<'_, Done> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A response that calls the tool, if this turn has such a call left.
fn tool_call(script: Script, done: &Mutex<Done>) -> Option<String> {
    let mut done = lock(done);
    if done.turn.tool_calls == script.tool_calls {
        return None;
    }
    done.turn.tool_calls += 1;
    done.tool_calls += 1;
    let (name, arguments) = script.tool.call();
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let id = format!("call_{}", done.tool_calls);
    let call = json!({"index": 0, "id": id, "type": "function", "function": function});
    let said = delta(&json!({"role": "assistant", "tool_calls": [call]}), &Value::Null);
    Some(format!("{HEAD}{}{}", chunk(&said), end(&json!("tool_calls"))))
}

/// A response to its first token, a further token, and its end.
fn answer() -> (String, String, String) {
    let first = delta(&json!({"role": "assistant", "content": "Hello"}), &Value::Null);
    let token = delta(&json!({"content": " again"}), &Value::Null);
    (format!("{HEAD}{}", chunk(&first)), chunk(&token), end(&json!("stop")))
}

fn end(finish: &Value) -> String {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107});
    let usage = json!({"id": "c", "choices": [], "usage": usage});
    format!(
        "{}{}0\r\n\r\n",
        chunk(&delta(&json!({}), finish)),
        chunk(&format!("data: {usage}\n\ndata: [DONE]\n\n"))
    )
}

fn chunk(piece: &str) -> String {
    format!("{:x}\r\n{piece}\r\n", piece.len())
}

fn delta(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "fake-1", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

/// True if the last message of a request is the result of a tool.
fn ends_with_result(body: &[u8]) -> bool {
    let role = b"\"role\":\"";
    let last = body.windows(role.len()).rposition(|bytes| bytes == role);
    last.is_some_and(|at| body.get(at + role.len()..).is_some_and(|role| role.starts_with(b"tool\"")))
}

/// Reads one request to its end and gives its body; nothing when the connection ends instead.
fn read_request(reader: &mut impl std::io::BufRead) -> Result<Option<Vec<u8>>> {
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
    let mut body = Vec::with_capacity(usize::try_from(length)?);
    reader.take(length).read_to_end(&mut body)?;
    Ok(Some(body))
}
