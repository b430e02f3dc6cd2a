//! A gateway in this process, talked to over its sockets.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer, SigningKey};
use futures_util::{SinkExt, StreamExt};
use openclaw_config::Environment;
use openclaw_gateway::events::GatewayEvent;
use openclaw_gateway::{ExitStatus, GatewayState, LogTarget, Ready, RunOptions, run};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "a-token-for-tests";

struct Gateway {
    address: SocketAddr,
    state: Arc<GatewayState>,
    stop: CancellationToken,
    running: JoinHandle<ExitStatus>,
    dir: tempfile::TempDir,
}

impl Gateway {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = json!({"gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}}});
        std::fs::write(dir.path().join("openclaw.json"), config.to_string()).unwrap();
        let (ready, is_ready) = oneshot::channel();
        let environment = environment(dir.path());
        let loaded = Arc::new(openclaw_config::load(&environment));
        let mut options = RunOptions::new(environment, loaded);
        options.flags.port = Some(0);
        options.log = LogTarget::Existing;
        options.ready = Some(ready);
        let stop = options.stop.clone();
        let running = tokio::spawn(async move { run(options).await.unwrap() });
        let Ready { addresses, state } = is_ready.await.unwrap();
        Self { address: addresses[0], state, stop, running, dir }
    }

    async fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let url = format!("ws://{}/any/path?x=1", self.address);
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        let mut client = Client { socket, nonce: String::new() };
        let challenge = client.frame().await;
        assert_eq!(challenge["event"], "connect.challenge");
        assert_eq!(challenge.get("seq"), None);
        client.nonce = challenge["payload"]["nonce"].as_str().unwrap().to_owned();
        client
    }

    async fn connected(&self) -> Client {
        let mut client = self.client().await;
        client.request("c1", "connect", connect(&json!({"auth": {"token": TOKEN}}))).await;
        let hello = client.frame().await;
        assert_eq!(hello["payload"]["type"], "hello-ok", "{hello}");
        client
    }

    /// Status line and headers, and the body, of one plain request.
    async fn http(&self, head: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let text = format!("{head} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }

    async fn end(self) -> ExitStatus {
        self.stop.cancel();
        self.running.await.unwrap()
    }
}

fn environment(dir: &Path) -> Environment {
    let dir_text = dir.display().to_string();
    let vars = [("OPENCLAW_STATE_DIR", dir_text.clone()), ("HOME", dir_text)];
    Environment::new(vars, dir).with_temp_dir(dir.join("tmp"))
}

fn connect(extra: &Value) -> Value {
    let mut params = json!({
        "minProtocol": 3, "maxProtocol": 3,
        "client": {"id": "test", "displayName": "golden", "version": "1.0.0", "platform": "linux", "mode": "test"},
    });
    params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    params
}

struct Client {
    socket: WebSocketStream<TcpStream>,
    nonce: String,
}

impl Client {
    async fn send(&mut self, text: String) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    async fn request(&mut self, id: &str, method: &str, params: Value) {
        self.send(json!({"type": "req", "id": id, "method": method, "params": params}).to_string()).await;
    }

    async fn frame(&mut self) -> Value {
        match self.socket.next().await.unwrap().unwrap() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("no frame but {other:?}"),
        }
    }

    /// The response to a request; events in between are passed over.
    async fn response(&mut self, id: &str) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["type"] == "res" && frame["id"] == id {
                return frame;
            }
        }
    }

    /// Frames until the close, and the close.
    async fn rest(&mut self) -> (Vec<Value>, u16, String) {
        let mut frames = Vec::new();
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => frames.push(serde_json::from_str(&text).unwrap()),
                Message::Close(Some(close)) => return (frames, close.code.into(), close.reason.to_string()),
                other => panic!("neither frame nor close but {other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_token_gets_hello_ok_and_answers() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.request("c1", "connect", connect(&json!({"auth": {"token": TOKEN}}))).await;
    let hello = client.frame().await;
    let payload = &hello["payload"];
    assert_eq!((&hello["id"], &hello["ok"], &payload["protocol"]), (&json!("c1"), &json!(true), &json!(3)));
    assert_eq!(
        payload["policy"],
        json!({"maxPayload": 26_214_400, "maxBufferedBytes": 1_572_864, "tickIntervalMs": 30_000})
    );
    assert_eq!(payload["snapshot"]["sessionDefaults"]["mainSessionKey"], "agent:main:main");
    assert_eq!(payload.get("canvasHostUrl"), None, "there is no canvas yet");
    assert_eq!(payload["snapshot"]["presence"][1]["text"], "Node: golden · mode test");
    assert_eq!(payload.get("auth"), None);
    for (id, method, expect) in [
        ("1", "no.such.method", "unknown method: no.such.method"),
        ("2", "connect", "connect is only valid as the first request"),
        ("3", "cron.list", "not implemented: cron.list"),
    ] {
        client.request(id, method, json!({})).await;
        assert_eq!(client.response(id).await["error"]["message"], expect);
    }
    client.send("not json".to_owned()).await;
    client.send(r#"{"type":"req","method":"health"}"#.to_owned()).await;
    let invalid = "invalid request frame: must have required property 'id'";
    assert_eq!(client.response("invalid").await["error"]["message"], invalid);
    gateway.end().await;
}

/// KB-3: the reference closes a client that doesn't wait for `hello-ok`.
#[tokio::test(flavor = "multi_thread")]
async fn frames_sent_behind_connect_are_answered_in_turn() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.request("c1", "connect", connect(&json!({"auth": {"token": TOKEN}}))).await;
    client.request("h1", "no.such.method", json!({})).await;
    assert_eq!(client.frame().await["id"], "c1");
    assert_eq!(client.response("h1").await["ok"], false);
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused_with_answer_and_close() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.request("c1", "connect", connect(&json!({"auth": {"token": "wrong"}}))).await;
    let (frames, code, reason) = client.rest().await;
    let message = "unauthorized: gateway token mismatch (provide gateway auth token)";
    let expect = json!({"type": "res", "id": "c1", "ok": false, "error": {"code": "INVALID_REQUEST", "message": message}});
    assert_eq!((frames, code, reason.as_str()), (vec![expect], 1008, message));
    gateway.end().await;
}

/// Decision 13.
#[tokio::test(flavor = "multi_thread")]
async fn frames_are_small_before_authentication_and_big_after() {
    let gateway = Gateway::start().await;
    let mut stranger = gateway.client().await;
    stranger.send("x".repeat(600_000)).await;
    assert_eq!(stranger.rest().await, (Vec::new(), 1009, String::new()));
    let mut client = gateway.connected().await;
    client.request("big", "no.such.method", json!({"text": "x".repeat(5_000_000)})).await;
    assert_eq!(client.response("big").await["error"]["message"], "unknown method: no.such.method");
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_on_this_host_is_paired_and_comes_back_with_its_token() {
    let gateway = Gateway::start().await;
    let key = SigningKey::from_bytes(&[1; 32]);
    let public = key.verifying_key().to_bytes();
    let id: String = Sha256::digest(public).iter().map(|byte| format!("{byte:02x}")).collect();
    let proof = |nonce: &str, token: &str| {
        let signed_at = jiff::Timestamp::now().as_millisecond();
        let payload = format!("v2|{id}|test|test|operator|operator.read|{signed_at}|{token}|{nonce}");
        json!({
            "scopes": ["operator.read"], "auth": {"token": token},
            "device": {
                "id": id, "publicKey": URL_SAFE_NO_PAD.encode(public), "signedAt": signed_at, "nonce": nonce,
                "signature": URL_SAFE_NO_PAD.encode(key.sign(payload.as_bytes()).to_bytes()),
            },
        })
    };
    let mut watcher = gateway.connected().await;
    let mut first = gateway.client().await;
    let params = connect(&proof(&first.nonce, TOKEN));
    first.request("c1", "connect", params).await;
    let auth = first.frame().await["payload"]["auth"].clone();
    assert_eq!((&auth["role"], &auth["scopes"]), (&json!("operator"), &json!(["operator.read"])));
    // Others may come first, such as who is present.
    let resolved = loop {
        let told = watcher.frame().await;
        if told["event"] == "device.pair.resolved" {
            break told;
        }
    };
    assert_eq!(resolved["payload"]["decision"], "approved");

    let mut second = gateway.client().await;
    let token = auth["deviceToken"].as_str().unwrap();
    let params = connect(&proof(&second.nonce, token));
    second.request("c1", "connect", params).await;
    assert_eq!(second.frame().await["payload"]["auth"], auth);
    second.request("1", "config.get", json!({})).await;
    assert_eq!(second.response("1").await["error"]["message"], "missing scope: operator.admin");
    let paired = std::fs::read_to_string(gateway.dir.path().join("devices/paired.json")).unwrap();
    assert!(paired.contains(&id) && paired.contains(token));
    gateway.end().await;
}

/// The story of `gw-slow-consumer`.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_misses_events_and_is_closed_in_the_end() {
    let gateway = Gateway::start().await;
    let mut slow = gateway.connected().await;
    let mut fast = gateway.connected().await;
    // Far more than two sockets' buffers and the queue hold.
    const EVENTS: u64 = 120;
    for n in 0..EVENTS {
        gateway
            .state
            .events
            .publish(GatewayEvent::named("presence", json!({"n": n, "text": "x".repeat(300_000)}).into()));
        loop {
            if fast.frame().await["payload"]["n"] == n {
                break;
            }
        }
    }
    gateway.state.events.publish(GatewayEvent::named("chat", json!({"state": "final"}).into()));
    loop {
        if fast.frame().await["event"] == "chat" {
            break;
        }
    }
    let (frames, code, reason) = slow.rest().await;
    assert_eq!((code, reason.as_str()), (1008, "slow consumer"));
    let seen = frames.iter().filter(|frame| frame["payload"]["n"].is_u64()).count() as u64;
    assert!(seen > 0 && seen < EVENTS, "saw {seen}");
    assert!(frames.iter().all(|frame| frame["event"] != "chat"));
    gateway.end().await;
}

/// KB-39.
#[tokio::test(flavor = "multi_thread")]
async fn stopping_says_so_and_closes_every_socket() {
    let gateway = Gateway::start().await;
    let mut client = gateway.connected().await;
    let mut stranger = gateway.client().await;
    gateway.stop.cancel();
    let (frames, code, reason) = client.rest().await;
    let notice = frames.iter().find(|frame| frame["event"] == "shutdown").unwrap();
    assert_eq!(notice["payload"], json!({"reason": "gateway stopping"}));
    assert_eq!((code, reason.as_str()), (1001, "gateway stopping"));
    assert_eq!(stranger.rest().await, (Vec::new(), 1001, "gateway stopping".to_owned()));
    let address = gateway.address;
    assert_eq!(gateway.end().await, ExitStatus::Stopped);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn http_tells_health_and_serves_the_page() {
    let gateway = Gateway::start().await;
    let rows = [
        ("GET /healthz", "http/1.1 200", r#"{"ok":true,"status":"live"}"#),
        ("GET /readyz", "http/1.1 200", r#"{"ready":true,"draining":false,"degraded":[],"channels":{}}"#),
        ("POST /healthz", "http/1.1 405", "Method Not Allowed"),
        ("POST /", "http/1.1 405", "Method Not Allowed"),
        ("GET /assets/missing.js", "http/1.1 404", "Not Found"),
        ("GET /ui", "http/1.1 404", "Not Found"),
        ("GET /avatar/main?meta=1", "http/1.1 200", r#"{"avatarUrl":null}"#),
        ("HEAD /", "http/1.1 200", ""),
    ];
    for (request, status, body) in rows {
        let (head, answered) = gateway.http(request).await;
        assert!(head.starts_with(status), "{request}: {head}");
        assert_eq!(answered, body, "{request}");
    }
    for path in ["/", "/chat?session=main", "/%2e%2e/%2e%2e/etc/passwd"] {
        let (head, page) = gateway.http(&format!("GET {path}")).await;
        assert!(page.contains("__OPENCLAW_CONTROL_UI_BASE_PATH__"), "{path}: {page}");
        for header in [
            "x-frame-options: deny",
            "x-content-type-options: nosniff",
            "cache-control: no-cache",
            "frame-ancestors 'none'",
        ] {
            assert!(head.contains(header), "{path}: {header} in {head}");
        }
    }
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clients_at_once_are_let_in_and_told_of_each_other() {
    let gateway = Gateway::start().await;
    let joining = (0..500).map(|_| gateway.connected());
    let mut clients = futures_util::future::join_all(joining).await;
    assert_eq!(gateway.state.events.connections().len(), 500);
    for client in &mut clients {
        client.request("1", "no.such.method", json!({})).await;
        assert_eq!(client.response("1").await["ok"], false);
    }
    assert_eq!(gateway.end().await, ExitStatus::Stopped);
}

/// The offline guide answers: this needs no model.
#[tokio::test(flavor = "multi_thread")]
async fn a_system_event_reaches_the_agent_once_and_the_row_names_the_client() {
    let gateway = Gateway::start().await;
    let mut client = gateway.connected().await;
    client.request("1", "system-event", json!({"text": "somebody knocks"})).await;
    assert_eq!(client.response("1").await["ok"], true);
    client.request("2", "status", json!({})).await;
    assert_eq!(client.response("2").await["payload"]["queuedSystemEvents"], json!(["somebody knocks"]));
    let send = json!({"sessionKey": "main", "message": "hello there", "idempotencyKey": "run-1"});
    client.request("3", "chat.send", send).await;
    assert_eq!(client.response("3").await["payload"]["status"], "started");
    client.request("4", "agent.wait", json!({"runId": "run-1"})).await;
    assert_eq!(client.response("4").await["payload"]["status"], "ok");
    client.request("5", "status", json!({})).await;
    assert_eq!(client.response("5").await["payload"]["queuedSystemEvents"], json!([]));

    client.request("6", "chat.history", json!({"sessionKey": "main"})).await;
    let history = client.response("6").await;
    assert_eq!(history["payload"]["messages"][0]["content"][0]["text"], "hello there", "{history}");
    let file = format!("agents/main/sessions/{}.jsonl", history["payload"]["sessionId"].as_str().unwrap());
    let transcript = std::fs::read_to_string(gateway.dir.path().join(file)).unwrap();
    assert_eq!(transcript.matches("somebody knocks").count(), 1, "{transcript}");

    client.request("7", "sessions.list", json!({})).await;
    let row = client.response("7").await["payload"]["sessions"][0].clone();
    let origin =
        json!({"label": "golden", "provider": "webchat", "surface": "webchat", "chatType": "direct"});
    assert_eq!(
        (&row["key"], &row["displayName"], &row["chatType"], &row["origin"]),
        (&json!("agent:main:main"), &json!("golden"), &json!("direct"), &origin)
    );
    assert_eq!(
        (&row["lastChannel"], &row["deliveryContext"]),
        (&json!("webchat"), &json!({"channel": "webchat"}))
    );
    gateway.end().await;
}

/// The default limit of `sessions.md` §4.9.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_shows_two_hundred_messages_unless_told() {
    let gateway = Gateway::start().await;
    let mut client = gateway.connected().await;
    client.request("1", "sessions.patch", json!({"key": "main", "label": "long"})).await;
    let id = client.response("1").await["payload"]["entry"]["sessionId"].as_str().unwrap().to_owned();
    let mut text =
        format!("{}\n", json!({"type": "session", "version": 3, "id": id, "timestamp": "t", "cwd": "/"}));
    for n in 0..201 {
        let parent = (n > 0).then(|| (n - 1).to_string());
        let message = json!({"role": "user", "content": n.to_string(), "timestamp": n});
        let entry = json!({"type": "message", "id": n.to_string(), "parentId": parent, "timestamp": "t", "message": message});
        text.push_str(&format!("{entry}\n"));
    }
    std::fs::write(gateway.dir.path().join(format!("agents/main/sessions/{id}.jsonl")), text).unwrap();
    client.request("2", "chat.history", json!({"sessionKey": "main"})).await;
    let history = client.response("2").await;
    let messages = history["payload"]["messages"].as_array().unwrap();
    assert_eq!(
        (messages.len(), &messages[0]["content"], &messages[199]["content"]),
        (200, &json!("1"), &json!("200"))
    );
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_the_config_is_in_force_without_a_restart() {
    let gateway = Gateway::start().await;
    let mut client = gateway.connected().await;
    let mut settings = gateway.state.follow_settings();
    let write = |extra: Value| {
        let mut config = json!({"gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}}});
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        // As editors do it: a new file takes the place of the old one.
        let (new, path) = (gateway.dir.path().join("new.json"), gateway.dir.path().join("openclaw.json"));
        std::fs::write(&new, config.to_string()).unwrap();
        std::fs::rename(new, path).unwrap();
    };
    let named = |name: &'static str| {
        move |settings: &Arc<openclaw_dispatch::Settings>| {
            settings.config.document().pointer("/ui/assistant/name") == Some(&json!(name))
        }
    };
    write(json!({"ui": {"assistant": {"name": "Ada"}}}));
    settings.wait_for(named("Ada")).await.unwrap();
    client.request("1", "agent.identity.get", json!({})).await;
    assert_eq!(client.response("1").await["payload"]["name"], "Ada");

    assert_eq!(gateway.end().await, ExitStatus::Stopped);
}
