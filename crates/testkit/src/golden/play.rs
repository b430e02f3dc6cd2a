//! Speaking a recording's client and listening to the gateway.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::likeness::{Bindings, Live, bind, compare, substitute};
use super::script::{RecordedLine, RecordedStep, read};
use crate::{DeviceIdentity, GatewayUnderTest, Received, SocketOptions, TOKEN, WsClient};

/// The request that marks the end of a connection's part: what comes before its answer was sent before it.
const BARRIER: &str = "end-of-recording";

/// The note of a recording that stops its gateway.
const SIGTERM_NOTE: &str = "SIGTERM sent to gateway";

/// A place where we do better than the recording, and why.
#[derive(Clone)]
pub struct Deviation {
    /// The lines, from 1.
    pub lines: RangeInclusive<usize>,
    /// The reason, such as `KB-5`.
    pub why: &'static str,
    /// Difference to the recording.
    pub change: LineChange,
}

/// Difference between a recorded line and ours.
#[derive(Clone)]
pub enum LineChange {
    /// The line does not happen.
    Skip,
    /// The frame is different.
    Edit(fn(&mut Value)),
    /// Another frame comes (or is sent) instead.
    Instead(fn() -> Value),
    /// After it another frame comes on the same connection.
    Then(fn() -> Value),
    /// The connection ends with this code and reason instead.
    CloseWith(u16, &'static str),
    /// The recording ends before it.
    Stop,
}

/// A replay being set up.
pub struct Replay<'a> {
    gateway: Option<&'a GatewayUnderTest>,
    port: u16,
    live: Live,
    deviations: Vec<Deviation>,
    ignored_events: Vec<&'static str>,
    without: Vec<&'static str>,
    also_ignored: fn(&Value) -> bool,
    sockets: fn(&str) -> SocketOptions,
    placeholders: Vec<(String, String)>,
}

impl<'a> Replay<'a> {
    /// Against this gateway. Events that come on their own time (`tick`, `health`, `presence`) are passed over.
    pub fn new(gateway: &'a GatewayUnderTest) -> Self {
        let path = |path: &std::path::Path| path.display().to_string();
        let names = vec![
            (path(&gateway.state_dir()), "/home/user/.openclaw".to_owned()),
            (path(gateway.home()), "/home/user".to_owned()),
            (gateway.port().to_string(), "18789".to_owned()),
        ];
        Self { gateway: Some(gateway), ..Self::at(gateway.port(), Live { names }) }
    }

    fn at(port: u16, live: Live) -> Self {
        Self {
            gateway: None,
            port,
            live,
            deviations: Vec::new(),
            ignored_events: vec!["tick", "health", "presence"],
            without: Vec::new(),
            also_ignored: |_| false,
            sockets: |_| SocketOptions::default(),
            placeholders: vec![("<TOKEN>".into(), TOKEN.into())],
        }
    }

    /// Adds deviations: places where we differ on purpose.
    #[must_use]
    pub fn deviations(mut self, deviations: impl IntoIterator<Item = Deviation>) -> Self {
        self.deviations.extend(deviations);
        self
    }

    /// Leaves out requests of these methods and their answers.
    #[must_use]
    pub fn without(mut self, methods: &[&'static str]) -> Self {
        self.without.extend(methods);
        self
    }

    /// Passes over these frames wherever they come.
    #[must_use]
    pub fn passing_over(mut self, frames: fn(&Value) -> bool) -> Self {
        self.also_ignored = frames;
        self
    }

    /// Compares these events too.
    #[must_use]
    pub fn minding(mut self, events: &[&str]) -> Self {
        self.ignored_events.retain(|event| !events.contains(event));
        self
    }

    /// Sets the function that chooses the socket options of each connection label.
    #[must_use]
    pub fn sockets(mut self, sockets: fn(&str) -> SocketOptions) -> Self {
        self.sockets = sockets;
        self
    }

    /// Sets the text that a placeholder of the recording stands for.
    #[must_use]
    pub fn placeholder(mut self, name: &str, text: &str) -> Self {
        self.placeholders.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Plays the recording.
    ///
    /// # Errors
    /// With the first difference, what came before it, and the gateway's log.
    pub async fn play(self, recording: &str) -> Result<()> {
        let lines = self.read(recording)?;
        let log = || self.gateway.map(GatewayUnderTest::log).unwrap_or_default();
        let mut stage = Stage::new(&self);
        for line in &lines {
            let Some(line) = stage.deviate(line)? else { continue };
            if matches!(line, Directed::End) {
                break;
            }
            if let Err(error) = stage.act(line).await {
                return Err(error.context(format!("{}\n--- gateway log\n{}", stage.story, log())));
            }
        }
        stage
            .end()
            .await
            .map_err(|error| error.context(format!("{}\n--- gateway log\n{}", stage.story, log())))
    }
}

impl Replay<'_> {
    /// The recording without the requests that are left out, and with what hello-ok says of every connection now.
    fn read(&self, recording: &str) -> Result<Vec<RecordedLine>> {
        let mut lines = read(recording)?;
        let mut left_out: HashSet<(String, Value)> = HashSet::new();
        lines.retain_mut(|line| {
            let (RecordedStep::Send(frame) | RecordedStep::Receive(frame)) = &mut line.step else {
                return true;
            };
            let id = (line.connection.clone(), frame.get("id").cloned().unwrap_or_default());
            match frame.get("type").and_then(Value::as_str) {
                Some("req") => {
                    let method = frame.get("method").and_then(Value::as_str).unwrap_or_default();
                    let out = self.without.contains(&method);
                    if out {
                        left_out.insert(id);
                    }
                    !out
                }
                Some("res") => {
                    better_hello(frame);
                    !left_out.contains(&id)
                }
                _ => true,
            }
        });
        Ok(lines)
    }
}

/// KB-4: frames of authenticated clients may be larger than the reference's, and hello-ok says so.
/// A canvas that is not there is not announced. In a recorded hello-ok with cut lists, presence was
/// cut to the first entry without a mark.
fn better_hello(frame: &mut Value) {
    let cut = frame.pointer("/payload/features/methods/0").and_then(Value::as_str) == Some("…");
    if cut
        && let Some(presence) = frame.pointer_mut("/payload/snapshot/presence").and_then(Value::as_array_mut)
    {
        presence.push("…".into());
    }
    if let Some(payload) = frame.get_mut("payload").and_then(Value::as_object_mut) {
        payload.remove("canvasHostUrl");
    }
    if let Some(limit) = frame.pointer_mut("/payload/policy/maxPayload") {
        *limit = json!(25 * 1024 * 1024);
    }
}

/// A line with what is different about it.
enum Directed {
    Play(RecordedLine, Option<fn() -> Value>),
    End,
}

/// Open connection.
struct OpenConnection {
    client: WsClient,
    nonce: String,
    recorded_nonce: String,
    ts: u64,
    recorded_ts: u64,
    /// Number of the last event that had one.
    last_seq: u64,
    /// The text of the newest `assistant` event of each run.
    assistant: HashMap<String, String>,
    ready: bool,
}

struct Stage<'a> {
    replay: &'a Replay<'a>,
    bindings: Bindings,
    connections: HashMap<String, OpenConnection>,
    /// Steps so far, for the reader of a failure.
    story: String,
}

impl<'a> Stage<'a> {
    fn new(replay: &'a Replay<'a>) -> Self {
        let bindings = replay.placeholders.iter().cloned().collect();
        Self { replay, bindings, connections: HashMap::new(), story: String::new() }
    }

    /// The line as it is to be played.
    fn deviate(&self, line: &RecordedLine) -> Result<Option<Directed>> {
        let mut line = line.clone();
        let mut then = None;
        for deviation in
            self.replay.deviations.iter().filter(|deviation| deviation.lines.contains(&line.number))
        {
            match (&deviation.change, &mut line.step) {
                (LineChange::Skip, _) => return Ok(None),
                (LineChange::Stop, _) => return Ok(Some(Directed::End)),
                (LineChange::Then(frame), _) => then = Some(*frame),
                (LineChange::Edit(edit), RecordedStep::Send(frame) | RecordedStep::Receive(frame)) => {
                    edit(frame)
                }
                (LineChange::Instead(instead), RecordedStep::Send(frame) | RecordedStep::Receive(frame)) => {
                    *frame = instead()
                }
                (LineChange::CloseWith(code, reason), step) => {
                    *step = RecordedStep::Closed { code: *code, reason: (*reason).to_owned() };
                }
                (LineChange::Edit(_) | LineChange::Instead(_), _) => {
                    bail!("line {} holds no frame to change ({})", line.number, deviation.why);
                }
            }
        }
        Ok(Some(Directed::Play(line, then)))
    }

    async fn act(&mut self, directed: Directed) -> Result<()> {
        let Directed::Play(line, then) = directed else { return Ok(()) };
        let RecordedLine { number, connection, step } = line;
        let place = || format!("line {number} ({connection})");
        match step {
            RecordedStep::Note(note) => {
                let _ = writeln!(self.story, "{number} note {note}");
                if note == SIGTERM_NOTE {
                    let gateway = self.replay.gateway.context("nobody to signal")?;
                    gateway.signal(nix::sys::signal::Signal::SIGTERM)?;
                }
            }
            RecordedStep::Send(frame) => self.send(&connection, frame).await.with_context(place)?,
            RecordedStep::SendRaw(text) => {
                let _ = writeln!(self.story, "{number} {connection} > {text}");
                self.connection(&connection).await?.client.send_raw(&text).await.with_context(place)?;
            }
            RecordedStep::Receive(frame) => self.expect(&connection, &frame).await.with_context(place)?,
            RecordedStep::Closed { code, reason } => {
                let ended = self.next(&connection).await.with_context(place)?;
                let expected = Received::Closed { code, reason };
                if ended != expected {
                    bail!("line {number} ({connection}): expected {expected:?}, came {ended:?}");
                }
                self.connections.remove(&connection);
            }
            RecordedStep::Leave => self.leave(&connection).await.with_context(place)?,
        }
        match then {
            Some(frame) => {
                self.expect(&connection, &frame()).await.with_context(|| format!("after line {number}"))
            }
            None => Ok(()),
        }
    }

    async fn send(&mut self, label: &str, mut frame: Value) -> Result<()> {
        substitute(&mut frame, &self.bindings);
        let connection = self.connection(label).await?;
        connection.prove(&mut frame)?;
        let text = frame.to_string();
        connection.client.send_raw(&text).await?;
        self.tell(label, '>', &text);
        Ok(())
    }

    async fn expect(&mut self, label: &str, recorded: &Value) -> Result<()> {
        if self.passes_over(recorded) {
            return Ok(());
        }
        if recorded.get("event").and_then(Value::as_str) == Some("connect.challenge") {
            return self.connection(label).await?.remember_challenge(recorded);
        }
        let live = match self.next(label).await? {
            Received::Frame(live) => live,
            closed @ Received::Closed { .. } => bail!("expected {recorded}, came {closed:?}"),
        };
        compare(recorded, &live, &self.replay.live)
            .map_err(|difference| anyhow!("{difference}\nrecorded {recorded}\nlive {live}"))?;
        bind(recorded, &live, &mut self.bindings);
        if live.pointer("/payload/type").and_then(Value::as_str) == Some("hello-ok")
            && let Some(connection) = self.connections.get_mut(label)
        {
            connection.ready = true;
            if let Some(token) = live.pointer("/payload/auth/deviceToken").and_then(Value::as_str) {
                for name in ["<DEVICE_TOKEN>", "<TOKEN32>"] {
                    self.bindings.insert(name.to_owned(), token.to_owned());
                }
            }
        }
        Ok(())
    }

    /// True if an event comes in its own time: those that the replay passes over, and `chat`
    /// deltas, which are paced by the clock.
    fn passes_over(&self, frame: &Value) -> bool {
        let event = frame.get("event").and_then(Value::as_str).unwrap_or_default();
        self.replay.ignored_events.contains(&event)
            || (self.replay.also_ignored)(frame)
            || event == "chat" && frame.pointer("/payload/state").and_then(Value::as_str) == Some("delta")
    }

    /// The next frame that is to be compared, after the laws that hold for all were checked.
    async fn next(&mut self, label: &str) -> Result<Received> {
        loop {
            let received = self.connection(label).await?.client.receive().await?;
            let Received::Frame(frame) = &received else { return Ok(received) };
            self.tell(label, '<', &frame.to_string());
            let connection = self.connection(label).await?;
            connection.check_number(frame)?;
            connection.check_delta(frame)?;
            if !self.passes_over(frame) {
                return Ok(received);
            }
        }
    }

    /// Ends a connection after making sure that nothing came that was not expected.
    async fn leave(&mut self, label: &str) -> Result<()> {
        let ready = self.connections.get(label).is_some_and(|connection| connection.ready);
        if ready {
            let barrier = json!({"type": "req", "id": BARRIER, "method": BARRIER});
            self.connection(label).await?.client.send_raw(&barrier.to_string()).await?;
            match self.next(label).await? {
                Received::Frame(frame) if frame.get("id").and_then(Value::as_str) == Some(BARRIER) => {}
                other => bail!("came without being in the recording: {other:?}"),
            }
        }
        match self.connections.remove(label) {
            Some(connection) => connection.client.close().await,
            None => Ok(()),
        }
    }

    async fn end(&mut self) -> Result<()> {
        let labels: Vec<String> = self.connections.keys().cloned().collect();
        for label in labels {
            self.leave(&label).await.with_context(|| format!("at the end of {label}"))?;
        }
        Ok(())
    }

    async fn connection(&mut self, label: &str) -> Result<&mut OpenConnection> {
        if !self.connections.contains_key(label) {
            let options = (self.replay.sockets)(label);
            let mut client = WsClient::open(self.replay.port, &options).await?;
            let challenge = client.challenge().await?;
            let connection = OpenConnection {
                client,
                nonce: challenge.nonce,
                recorded_nonce: String::new(),
                ts: challenge.ts,
                recorded_ts: 0,
                last_seq: 0,
                assistant: HashMap::new(),
                ready: false,
            };
            self.connections.insert(label.to_owned(), connection);
        }
        self.connections.get_mut(label).context("it was just put in")
    }

    fn tell(&mut self, label: &str, direction: char, text: &str) {
        const SHOWN: usize = 600;
        let shown: String = text.chars().take(SHOWN).collect();
        let _ = writeln!(self.story, "{label} {direction} {shown}");
    }
}

impl OpenConnection {
    fn remember_challenge(&mut self, recorded: &Value) -> Result<()> {
        let field = |name: &str| recorded.pointer(&format!("/payload/{name}"));
        self.recorded_nonce = field("nonce").and_then(Value::as_str).context("no recorded nonce")?.to_owned();
        self.recorded_ts = field("ts").and_then(Value::as_u64).context("no recorded ts")?;
        Ok(())
    }

    /// Makes the device proof of a recorded `connect` fresh: this socket's nonce where the recording had its own, as old as
    /// it was, and signed again unless the recording's signature was a dummy.
    fn prove(&self, frame: &mut Value) -> Result<()> {
        let Some(params) = frame.get_mut("params").filter(|params| params.get("device").is_some()) else {
            return Ok(());
        };
        let device = params.get("device").cloned().unwrap_or_default();
        let text = |name: &str| device.get(name).and_then(Value::as_str).map(str::to_owned);
        let recorded_at = device.get("signedAt").and_then(Value::as_i64).unwrap_or_default();
        let offset = recorded_at - i64::try_from(self.recorded_ts)?;
        let signed_at = u64::try_from(i64::try_from(self.ts)?.saturating_add(offset)).unwrap_or_default();
        let nonce =
            text("nonce").map(|nonce| if nonce == self.recorded_nonce { self.nonce.clone() } else { nonce });
        let mut fresh = device.clone();
        let fields = fresh.as_object_mut().context("device is no object")?;
        fields.insert("signedAt".into(), json!(signed_at));
        if let Some(nonce) = &nonce {
            fields.insert("nonce".into(), json!(nonce));
        }
        let dummy = text("signature").is_some_and(|signature| signature.bytes().all(|byte| byte == b'A'));
        let identity = text("publicKey").and_then(|key| DeviceIdentity::with_public_key(&key));
        if let (Some(identity), false) = (identity, dummy) {
            let id = text("id").unwrap_or_default();
            let signed = crate::device::signed_text(params, &id, signed_at, nonce.as_deref());
            fields.insert("signature".into(), json!(identity.sign(&signed)));
        }
        if let Some(place) = params.get_mut("device") {
            *place = fresh;
        }
        Ok(())
    }

    /// Events are numbered per connection without a gap (KB-25).
    fn check_number(&mut self, frame: &Value) -> Result<()> {
        let Some(seq) = frame.get("seq").and_then(Value::as_u64) else { return Ok(()) };
        let expected = self.last_seq + 1;
        self.last_seq = seq;
        if seq == expected {
            Ok(())
        } else {
            Err(anyhow!("event number {seq} after {}: {frame}", expected - 1))
        }
    }

    /// A `chat` delta shows the text of the newest `assistant` event of its run.
    fn check_delta(&mut self, frame: &Value) -> Result<()> {
        let text = |pointer: &str| frame.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let run = text("/payload/runId");
        match (text("/event"), text("/payload/stream"), text("/payload/state")) {
            ("agent", "assistant", _) => {
                self.assistant.insert(run.to_owned(), text("/payload/data/text").to_owned());
                Ok(())
            }
            ("chat", _, "delta") => {
                let shown = text("/payload/message/content/0/text");
                let known = self.assistant.get(run).map(String::as_str).unwrap_or_default();
                if shown == known {
                    Ok(())
                } else {
                    Err(anyhow!("delta \"{shown}\" does not show \"{known}\""))
                }
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
