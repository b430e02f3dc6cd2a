//! A WebSocket client of the gateway that sees every frame and hides nothing.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::DeviceIdentity;

/// Time that anything which must happen may take on a loaded machine. Nothing waits this long when
/// all is well.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Options for opening the socket.
#[derive(Debug, Clone, Default)]
pub struct SocketOptions {
    /// Path of the URL; empty is `/`.
    pub path: String,
    /// Headers that are set, `Host` and `Origin` included.
    pub headers: Vec<(String, String)>,
    /// Bytes that the system takes in for a client that does not read; its own choice unless told.
    pub receive_buffer: Option<u32>,
}

/// Params of `connect`.
#[derive(Debug, Clone)]
pub struct Login {
    params: Value,
    device: Option<DeviceIdentity>,
}

impl Login {
    /// A test client that proves nothing.
    pub fn anonymous() -> Self {
        let client = json!({"id": "test", "version": "1.0.0", "platform": "linux", "mode": "test"});
        Self { params: json!({"minProtocol": 3, "maxProtocol": 3, "client": client}), device: None }
    }

    /// A test client with the shared token.
    pub fn token(token: &str) -> Self {
        Self::anonymous().with("auth", json!({"token": token}))
    }

    /// A test client with the shared password.
    pub fn password(password: &str) -> Self {
        Self::anonymous().with("auth", json!({"password": password}))
    }

    /// A node with the shared token: a device that says what it can do.
    pub fn node(token: &str, device: DeviceIdentity) -> Self {
        Self::token(token).with("role", json!("node")).with("caps", json!(["system"])).device(device)
    }

    /// Signed by this device as well.
    #[must_use]
    pub fn device(mut self, device: DeviceIdentity) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        if let Some(params) = self.params.as_object_mut() {
            params.insert(name.to_owned(), value);
        }
        self
    }

    fn params(self, challenge: &Challenge) -> Value {
        let Some(device) = self.device else { return self.params };
        let proof = device.proof(&self.params, challenge.ts, Some(&challenge.nonce));
        Self { params: self.params, device: None }.with("device", proof).params
    }
}

/// Challenge that the gateway sends first.
#[derive(Debug, Clone)]
pub struct Challenge {
    /// Nonce to be signed.
    pub nonce: String,
    /// The gateway's clock, in Unix milliseconds.
    pub ts: u64,
}

/// Frame or close that came over the socket.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// A frame.
    Frame(Value),
    /// The end. A socket that closed without a status says 1005, one that broke 1006.
    Closed {
        /// Close code.
        code: u16,
        /// Reason.
        reason: String,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct WsAnswer {
    /// True if the request succeeded.
    pub ok: bool,
    /// The result; `null` when absent.
    pub payload: Value,
    /// The error; `null` when absent.
    pub error: Value,
}

impl WsAnswer {
    /// The answer that this response frame holds.
    pub fn of(frame: &Value) -> Self {
        let part = |name: &str| frame.get(name).cloned().unwrap_or_default();
        Self { ok: part("ok") == json!(true), payload: part("payload"), error: part("error") }
    }
}

/// Connection to a gateway. It reads only when asked to, so a client that never reads is one that
/// is left alone.
#[derive(Debug)]
pub struct WsClient {
    socket: WebSocketStream<TcpStream>,
    /// Frames that were passed over while something else was awaited.
    passed: VecDeque<Value>,
    closed: Option<(u16, String)>,
    next_id: u64,
}

impl WsClient {
    /// Opens a socket to `127.0.0.1:port` and says nothing.
    ///
    /// # Errors
    /// When nobody listens or the upgrade is refused.
    pub async fn open(port: u16, options: &SocketOptions) -> Result<Self> {
        let path = options.path.trim_start_matches('/');
        let mut request = format!("ws://127.0.0.1:{port}/{path}").into_client_request()?;
        for (name, value) in &options.headers {
            request.headers_mut().insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        }
        let upgrade = async {
            let socket = TcpSocket::new_v4()?;
            if let Some(bytes) = options.receive_buffer {
                socket.set_recv_buffer_size(bytes)?;
            }
            let stream = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
            stream.set_nodelay(true)?;
            anyhow::Ok(client_async(request, stream).await?)
        };
        let (socket, _) = timeout(DEADLINE, upgrade).await.context("the upgrade took too long")??;
        Ok(Self { socket, passed: VecDeque::new(), closed: None, next_id: 1 })
    }

    /// Opens a socket and logs in. Gives the client and the hello-ok payload.
    ///
    /// # Errors
    /// When the gateway refuses; the text holds its error.
    pub async fn connect(port: u16, login: Login) -> Result<(Self, Value)> {
        Self::connect_with(port, login, &SocketOptions::default()).await
    }

    /// The same over a socket of one's choice.
    ///
    /// # Errors
    /// When the gateway refuses; the text holds its error.
    pub async fn connect_with(port: u16, login: Login, options: &SocketOptions) -> Result<(Self, Value)> {
        let mut client = Self::open(port, options).await?;
        let challenge = client.challenge().await?;
        let answer = client.call("connect", login.params(&challenge)).await?;
        if !answer.ok {
            bail!("connect was refused: {}", answer.error);
        }
        Ok((client, answer.payload))
    }

    /// Waits for the challenge.
    ///
    /// # Errors
    /// When the first frame is something else.
    pub async fn challenge(&mut self) -> Result<Challenge> {
        let Received::Frame(frame) = self.receive().await? else { bail!("closed before the challenge") };
        let field = |name: &str| frame.pointer(&format!("/payload/{name}"));
        match (field("nonce").and_then(Value::as_str), field("ts").and_then(Value::as_u64)) {
            (Some(nonce), Some(ts)) => Ok(Challenge { nonce: nonce.to_owned(), ts }),
            _ => bail!("not a challenge: {frame}"),
        }
    }

    /// Sends a request and gives its id.
    ///
    /// # Errors
    /// When the socket is broken.
    pub async fn send(&mut self, method: &str, params: Value) -> Result<String> {
        let id = format!("r{}", self.next_id);
        self.next_id += 1;
        self.send_raw(&json!({"type": "req", "id": id, "method": method, "params": params}).to_string())
            .await?;
        Ok(id)
    }

    /// The socket underneath, to say what no WebSocket client says.
    pub fn into_stream(self) -> TcpStream {
        self.socket.into_inner()
    }

    /// Sends this text as it is.
    ///
    /// # Errors
    /// When the socket is broken.
    pub async fn send_raw(&mut self, text: &str) -> Result<()> {
        timeout(DEADLINE, self.socket.send(Message::text(text))).await.context("sending took too long")??;
        Ok(())
    }

    /// Sends a request and waits for its (first) answer.
    ///
    /// # Errors
    /// When none comes.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<WsAnswer> {
        let id = self.send(method, params).await?;
        self.answer(&id).await.with_context(|| format!("no answer to {method}"))
    }

    /// Sends a request and waits for its payload.
    ///
    /// # Errors
    /// When it fails; the text holds the error.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.call(method, params).await?;
        if answer.ok { Ok(answer.payload) } else { Err(anyhow!("{method} failed: {}", answer.error)) }
    }

    /// Waits for the next answer to a request that was sent.
    ///
    /// # Errors
    /// When none comes.
    pub async fn answer(&mut self, id: &str) -> Result<WsAnswer> {
        let frame = self.wait_for(|frame| frame["type"] == "res" && frame["id"] == id).await?;
        Ok(WsAnswer::of(&frame))
    }

    /// Waits for an event of this name whose payload pleases.
    ///
    /// # Errors
    /// When none comes.
    pub async fn event(&mut self, name: &str, pleases: impl Fn(&Value) -> bool) -> Result<Value> {
        let frame = self
            .wait_for(|frame| {
                frame["type"] == "event" && frame["event"] == name && pleases(&frame["payload"])
            })
            .await
            .with_context(|| format!("no such {name} event"))?;
        Ok(frame.get("payload").cloned().unwrap_or_default())
    }

    /// The first frame, of those passed over and those to come, that pleases.
    ///
    /// # Errors
    /// When the socket closes or the deadline passes before it comes.
    pub async fn wait_for(&mut self, pleases: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(at) = self.passed.iter().position(&pleases) {
            return self.passed.remove(at).context("it was there");
        }
        let wait = async {
            loop {
                match self.read().await? {
                    Received::Frame(frame) if pleases(&frame) => return Ok(frame),
                    Received::Frame(frame) => self.passed.push_back(frame),
                    Received::Closed { code, reason } => bail!("closed with {code} \"{reason}\""),
                }
            }
        };
        let found = timeout(DEADLINE, wait).await;
        found.unwrap_or_else(|_| Err(anyhow!("the deadline passed; seen meanwhile: {}", self.seen())))
    }

    /// The next frame in order, those passed over first.
    ///
    /// # Errors
    /// When nothing comes before the deadline.
    pub async fn receive(&mut self) -> Result<Received> {
        if let Some(frame) = self.passed.pop_front() {
            return Ok(Received::Frame(frame));
        }
        timeout(DEADLINE, self.read()).await.context("nothing came")?
    }

    /// Waits for the end, passing over frames.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn closed(&mut self) -> Result<(u16, String)> {
        loop {
            if let Received::Closed { code, reason } = self.receive().await? {
                return Ok((code, reason));
            }
        }
    }

    /// Takes the frames that were passed over so far.
    pub fn take_passed(&mut self) -> Vec<Value> {
        self.passed.drain(..).collect()
    }

    /// Says goodbye and waits until the gateway has heard it.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn close(mut self) -> Result<()> {
        // Closed by the other side already is as good.
        let _ = self.socket.close(None::<CloseFrame>).await;
        self.closed().await.map(drop)
    }

    /// The answer to a request as it came, for benchmarks, where reading it is not what counts. Other frames are dropped.
    ///
    /// # Errors
    /// When the socket closes or the deadline passes before it comes.
    pub async fn answer_text(&mut self, id: &str) -> Result<String> {
        let wait = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Text(text))) if text.contains(id) => {
                        return Ok(text.as_str().to_owned());
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => bail!("closed"),
                }
            }
        };
        timeout(DEADLINE, wait).await.context("no answer came")?
    }

    async fn read(&mut self) -> Result<Received> {
        if let Some((code, reason)) = &self.closed {
            return Ok(Received::Closed { code: *code, reason: reason.clone() });
        }
        loop {
            let (code, reason) = match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Received::Frame(serde_json::from_str(&text)?)),
                Some(Ok(Message::Close(Some(frame)))) => (u16::from(frame.code), frame.reason.to_string()),
                Some(Ok(Message::Close(None))) => (1005, String::new()),
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => (1006, String::new()),
            };
            self.closed = Some((code, reason.clone()));
            return Ok(Received::Closed { code, reason });
        }
    }

    fn seen(&self) -> String {
        const SHOWN: usize = 10;
        let frames =
            self.passed.iter().rev().take(SHOWN).map(|frame| frame.to_string().chars().take(300).collect());
        frames.collect::<Vec<String>>().join("\n")
    }
}
