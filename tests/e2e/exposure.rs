//! Exposure of a running gateway, compared with the tables of `docs/security.md`: a socket or a
//! file with a secret that is not listed there fails the test, and so does a listed one that is no
//! longer there.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{DeviceIdentity, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;

/// The key of the model server in the config of a gateway under test.
const PROVIDER_KEY: &str = "fake-key-0123456789";
/// A key in the state directory's `.env`.
const ENV_KEY: &str = "sk-test-env-0123456789";
/// A key in a credential profile.
const PROFILE_KEY: &str = "sk-test-profile-0123456789";

/// A gateway with a secret of each kind, after a device was paired, a tool has run and the configuration was changed.
async fn used_gateway() -> GatewayUnderTest {
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": "env; cat .env 2>/dev/null; true"})),
        Reply::text("done"),
        Reply::text("hi"),
    ])
    .await;
    let mut gateway = gateway()
        .fake_model(&model.v1())
        .config(json!({"models": {"providers": {"fake": {"apiKey": PROVIDER_KEY}}}}))
        .prepare()
        .unwrap();
    let state = gateway.state_dir();
    std::fs::write(state.join(".env"), format!("GROQ_API_KEY={ENV_KEY}\n")).unwrap();
    let agent = state.join("agents/main/agent");
    std::fs::create_dir_all(&agent).unwrap();
    let profile = json!({"type": "api_key", "provider": "openai", "key": PROFILE_KEY});
    let profiles = json!({"version": 1, "profiles": {"openai:default": profile}});
    std::fs::write(agent.join("auth-profiles.json"), profiles.to_string()).unwrap();
    gateway.start().await.unwrap();

    let mut client = gateway.client().await.unwrap();
    let send = json!({"sessionKey": "main", "message": "go", "idempotencyKey": "run-1"});
    client.request("chat.send", send).await.unwrap();
    client.event("chat", |payload| payload["state"] == "final").await.unwrap();
    let device = Login::token(TOKEN).device(DeviceIdentity::from_seed(7));
    WsClient::connect(gateway.port(), device).await.unwrap();
    let set = ["config", "set", "ui.seamColor", "#ff4500"];
    assert!(gateway.command().args(set).status().await.unwrap().success());
    let mut command = gateway.command();
    command.env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
    // However the run ends: what the command leaves behind counts.
    assert!(command.args(["agent", "--message", "hi", "--agent", "main"]).status().await.is_ok());
    gateway
}

#[tokio::test]
async fn every_listening_socket_is_in_the_security_page() {
    let gateway = used_gateway().await;
    let port = gateway.port();
    let mut listening = BTreeSet::new();
    for (table, width) in [("tcp", 8), ("tcp6", 32), ("udp", 8), ("udp6", 32)] {
        listening.extend(sockets(gateway.pid().unwrap(), table, width, port));
    }
    assert_eq!(listening, documented("Listening sockets"));
}

#[tokio::test]
async fn every_file_with_a_secret_is_in_the_security_page_and_for_its_owner_alone() {
    let mut gateway = used_gateway().await;
    gateway.terminate().await.unwrap();
    let state = gateway.state_dir();
    let mut secrets: Vec<String> = [TOKEN, PROVIDER_KEY, ENV_KEY, PROFILE_KEY].map(str::to_owned).into();
    secrets.extend(device_secrets(&state));
    let mut found = BTreeSet::new();
    for path in files(gateway.home()) {
        let bytes = std::fs::read(&path).unwrap();
        let holds = |secret: &String| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        if secrets.iter().any(holds) {
            found.insert(path.strip_prefix(&state).unwrap().display().to_string());
            assert_eq!(mode(&path) & 0o077, 0, "{} is readable by others", path.display());
        }
    }
    assert_eq!(found, documented("Files with a secret"));
}

/// The tokens of paired devices and the private key of this host's own.
fn device_secrets(state: &Path) -> Vec<String> {
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(state.join(name)).unwrap()).unwrap() };
    let mut secrets = Vec::new();
    for device in read("devices/paired.json").as_object().unwrap().values() {
        secrets.extend(device["tokens"].as_object().unwrap().values().map(|token| text(&token["token"])));
    }
    assert!(!secrets.is_empty(), "a paired device has a token");
    let pem = text(&read("identity/device.json")["privateKeyPem"]);
    secrets.push(pem.lines().nth(1).unwrap().to_owned());
    secrets
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The first column of the table below a heading of `docs/security.md`, without its code marks.
fn documented(heading: &str) -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, section) = page.split_once(&format!("## {heading}\n")).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect()
}

/// Sockets of a table below `/proc` that the process owns and that others can reach: TCP that listens, any UDP. The port
/// that the gateway was given stands as `<port>`.
fn sockets(pid: u32, table: &str, width: usize, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let owned: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let lines = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
    let mut found = Vec::new();
    for line in lines.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields[1], fields[3], fields[9]);
        if !owned.contains(inode) || (table.starts_with("tcp") && state != LISTEN) {
            continue;
        }
        let (address, hex_port) = local.split_once(':').unwrap();
        assert_eq!(address.len(), width);
        let at = u16::from_str_radix(hex_port, 16).unwrap();
        let at = if at == port { "<port>".to_owned() } else { at.to_string() };
        found.push(format!("{} {}:{at}", &table[..3], readable(address)));
    }
    found
}

/// An address of `/proc/net`: words of four bytes, each in the byte order of the machine.
fn readable(hex: &str) -> String {
    let word = |start: usize| u32::from_str_radix(&hex[start..start + 8], 16).unwrap().to_ne_bytes();
    let bytes: Vec<u8> = (0..hex.len()).step_by(8).flat_map(word).collect();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(v4) => std::net::Ipv4Addr::from(v4).to_string(),
        Err(_) => {
            let v6 = <[u8; 16]>::try_from(bytes.as_slice()).unwrap();
            format!("[{}]", std::net::Ipv6Addr::from(v6))
        }
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap().file_type() {
            kind if kind.is_dir() => found.extend(files(&path)),
            kind if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}
