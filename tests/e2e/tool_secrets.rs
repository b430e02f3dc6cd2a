//! Environment that commands inherit, and what tools may say of the gateway's secrets.

use std::path::Path;

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{DeviceIdentity, GatewaySetup, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::connect::listener;
use crate::support::conversation::{end, send, transcript_path};

/// Stands for a secret.
const REDACTED: &str = "__OPENCLAW_REDACTED__";

const OF_THE_PROVIDER: &str = "provider-key-by-reference-1";
const OF_A_PROFILE: &str = "sk-ant-profile-0123456789";
const OF_A_KNOWN_NAME: &str = "sk-openai-0123456789";
const OF_A_CHANNEL: &str = "1234:telegram-bot-token";
const FOR_TOOLS: &str = "ghp_for-tools-0123456789";
const FOR_A_TOOL_FROM_DOTENV: &str = "npm_for-tools-0123456789";
const SECRETS: [&str; 7] =
    [TOKEN, OF_THE_PROVIDER, OF_A_PROFILE, OF_A_KNOWN_NAME, OF_A_CHANNEL, FOR_TOOLS, FOR_A_TOOL_FROM_DOTENV];

fn with_secrets(model: &ModelServer) -> GatewaySetup {
    gateway()
        .fake_model(&model.v1())
        .env("PROXY_LOGIN", OF_THE_PROVIDER)
        .env("OPENAI_API_KEY", OF_A_KNOWN_NAME)
        .env("TELEGRAM_BOT_TOKEN", OF_A_CHANNEL)
        .env("OPENCLAW_GATEWAY_TOKEN", TOKEN)
        .env("SAME_AS_A_PROFILE", OF_A_PROFILE)
        .config(json!({
            "models": {"providers": {"fake": {"apiKey": "${PROXY_LOGIN}"}}},
            "env": {"vars": {"GITHUB_TOKEN": FOR_TOOLS, "TRIVIAL_KEY": "1"}},
            "agents": {"defaults": {"verboseDefault": "full"}},
            "tools": {"exec": {"passEnv": ["TELEGRAM_BOT_TOKEN"]}},
        }))
}

/// Puts files with more secrets into a state directory.
fn add_files(state: &Path) {
    std::fs::write(state.join(".env"), format!("NPM_TOKEN={FOR_A_TOOL_FROM_DOTENV}\nPLAIN=kept\n")).unwrap();
    let agent = state.join("agents/main/agent");
    std::fs::create_dir_all(&agent).unwrap();
    let profile = json!({"type": "api_key", "provider": "anthropic", "key": OF_A_PROFILE});
    let store = json!({"version": 1, "profiles": {"anthropic:default": profile}});
    std::fs::write(agent.join("auth-profiles.json"), store.to_string()).unwrap();
}

/// The results of tools as the model was given them.
fn results(request: &Captured) -> Vec<String> {
    let results = request.messages().iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

fn assert_shows_none(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

#[tokio::test]
async fn commands_inherit_no_credentials_of_the_gateway_and_tools_print_no_secret() {
    let lengths = "echo ${#GITHUB_TOKEN} ${#TELEGRAM_BOT_TOKEN}";
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": "env"})),
        Reply::tool("c2", "exec", &json!({"command": lengths})),
        Reply::tool("c3", "exec", &json!({"command": "cat ~/.openclaw/openclaw.json"})),
        Reply::tool(
            "c4",
            "exec",
            &json!({"command": "cat ~/.openclaw/agents/main/agent/auth-profiles.json; exit 1"}),
        ),
        Reply::text("done"),
    ])
    .await;
    let mut gateway = with_secrets(&model).prepare().unwrap();
    add_files(&gateway.state_dir());
    gateway.start().await.unwrap();
    let mut client = listener(gateway.port()).await;
    send(&mut client, "main", "go", "run-1").await;
    end(&mut client, "run-1").await;

    let given = results(&model.requests().pop().unwrap());
    let [environment, sizes, config, profiles] = given.as_slice() else { panic!("{given:?}") };
    let line = |name: &str| environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let known = ["OPENAI_API_KEY", "OPENCLAW_GATEWAY_TOKEN", "PROXY_LOGIN", "SAME_AS_A_PROFILE"];
    assert_eq!(known.map(line), [None; 4], "{environment}");
    let kept = ["GITHUB_TOKEN", "NPM_TOKEN", "TELEGRAM_BOT_TOKEN", "PLAIN", "TRIVIAL_KEY"];
    let expect = [Some(REDACTED), Some(REDACTED), Some(REDACTED), Some("kept"), Some("1")];
    assert_eq!(kept.map(line), expect, "{environment}");
    assert_eq!(sizes, &format!("{} {}", FOR_TOOLS.len(), OF_A_CHANNEL.len()), "the command has the values");
    assert!(config.contains(REDACTED) && profiles.contains(REDACTED), "{config}\n{profiles}");

    let transcript = std::fs::read_to_string(transcript_path(&gateway, "main").await).unwrap();
    let events: Vec<Value> = client.take_passed();
    assert!(events.iter().any(|event| event["payload"]["stream"] == "tool"), "tool events were sent");
    assert_shows_none("the transcript", &transcript);
    assert_shows_none("an event", &Value::from(events).to_string());
    assert_shows_none("a request", &Value::from(given).to_string());
}

#[tokio::test]
async fn no_tool_shows_the_tokens_and_the_key_of_devices() {
    const KEY: &str = "MC4CAQAwBQYDK2VwBCIEIAfakefakefake";
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": "cat ~/.openclaw/devices/paired.json"})),
        Reply::tool(
            "c2",
            "exec",
            &json!({"command": "sed 's/PRIVATE KEY//g' ~/.openclaw/identity/device.json"}),
        ),
        Reply::text("done"),
    ])
    .await;
    let gateway = with_secrets(&model).start().await.unwrap();
    let state = gateway.state_dir();
    // Both come while the gateway runs.
    let device = Login::token(TOKEN).device(DeviceIdentity::from_seed(7));
    WsClient::connect(gateway.port(), device).await.unwrap();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n");
    std::fs::create_dir_all(state.join("identity")).unwrap();
    std::fs::write(state.join("identity/device.json"), json!({"privateKeyPem": pem}).to_string()).unwrap();
    let paired = std::fs::read(state.join("devices/paired.json")).unwrap();
    let paired: Value = serde_json::from_slice(&paired).unwrap();
    let token = paired[DeviceIdentity::from_seed(7).id()]["tokens"]["operator"]["token"].as_str().unwrap();

    let mut client = listener(gateway.port()).await;
    send(&mut client, "main", "go", "run-1").await;
    end(&mut client, "run-1").await;
    let given = results(&model.requests().pop().unwrap());
    let [devices, identity] = given.as_slice() else { panic!("{given:?}") };
    assert!(devices.contains(REDACTED) && devices.contains("operator.admin"), "{devices}");
    assert!(identity.contains(REDACTED), "{identity}");
    let transcript = std::fs::read_to_string(transcript_path(&gateway, "main").await).unwrap();
    for text in [devices, identity, &transcript] {
        assert!(!text.contains(token) && !text.contains(KEY), "{text}");
    }
}

/// Of a long output the end is kept: whoever prints as much after a secret as fits has only its beginning cut off.
#[tokio::test]
async fn output_that_begins_inside_of_a_secret_does_not_show_the_rest_of_it() {
    let rest = &FOR_TOOLS[3..];
    let print = "printf %s \"${GITHUB_TOKEN#???}\"";
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": format!("{print}; exit 1")})),
        Reply::tool("c2", "exec", &json!({"command": print, "workdir": "nowhere"})),
        Reply::tool("c3", "exec", &json!({"command": format!("{print}; exit 1"), "workdir": "nowhere"})),
        Reply::text("done"),
    ])
    .await;
    let gateway = with_secrets(&model).start().await.unwrap();
    let mut client = listener(gateway.port()).await;
    send(&mut client, "main", "go", "run-1").await;
    end(&mut client, "run-1").await;
    let given = results(&model.requests().pop().unwrap());
    assert_eq!(given.len(), 3);
    for result in &given {
        assert!(result.contains(REDACTED) && !result.contains(&rest[..12]), "{result}");
    }
}

#[tokio::test]
async fn a_secret_that_a_command_prints_in_pieces_shows_in_no_update() {
    let (first, rest) = FOR_TOOLS.split_at(12);
    let cut = rest.len();
    let command = format!(
        "secret=$GITHUB_TOKEN; printf 'it is %s' \"${{secret%{}}}\"; read -r go < go; echo \"${{secret#{}}}\"",
        "?".repeat(cut),
        "?".repeat(first.len()),
    );
    let model =
        ModelServer::queue([Reply::tool("c1", "exec", &json!({"command": command})), Reply::text("done")])
            .await;
    let gateway = with_secrets(&model).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let go = workspace.join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut client = listener(gateway.port()).await;
    send(&mut client, "main", "go", "run-1").await;
    let is_update = |payload: &Value| payload["stream"] == "tool" && payload["data"]["phase"] == "update";
    let update = client.event("agent", is_update).await.unwrap().to_string();
    assert!(update.contains("it is") && !update.contains(first), "{update}");
    tokio::task::spawn_blocking(move || std::fs::write(go, "on\n")).await.unwrap().unwrap();
    end(&mut client, "run-1").await;

    assert_eq!(results(&model.requests().pop().unwrap()), [format!("it is {REDACTED}")]);
    let events = Value::from(client.take_passed()).to_string();
    assert!(!events.contains(first) && !events.contains(rest), "{events}");
}

#[tokio::test]
async fn a_secret_that_was_replaced_while_running_is_masked_all_the_same() {
    const REPLACED: &str = "sk-of-the-file-0123456789";
    let model = ModelServer::answering(|request: &Captured| match request.ends_with_tool_result() {
        true => Reply::text("done"),
        false => Reply::tool(
            "c1",
            "exec",
            &json!({"command": "cat ~/.openclaw/openclaw.json ~/.openclaw/old.json"}),
        ),
    })
    .await;
    let config = json!({
        "commands": {"debug": true},
        "skills": {"entries": {"one": {"apiKey": REPLACED}, "two": {"apiKey": "first-of-the-second-skill"}}},
    });
    let gateway = with_secrets(&model).config(config).start().await.unwrap();
    let mut client = listener(gateway.port()).await;
    send(&mut client, "main", "/debug set skills.entries.one.apiKey=sk-of-the-override-0123456789", "run-1")
        .await;
    let set = end(&mut client, "run-1").await.to_string();
    assert!(set.contains("Debug override set"), "{set}");
    // A reload, before any run: nobody asked for the secrets of the file meanwhile.
    let file = gateway.state_dir().join("openclaw.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("first-of-the-second-skill", "other-of-the-second-skill")).unwrap();
    gateway.logged("skills.entries.two").await.unwrap();
    std::fs::write(gateway.state_dir().join("old.json"), &text).unwrap();
    send(&mut client, "main", "go", "run-2").await;
    end(&mut client, "run-2").await;
    let given = results(&model.requests().pop().unwrap());
    for secret in [REPLACED, "first-of-the-second-skill", "other-of-the-second-skill"] {
        assert!(!given.iter().any(|given| given.contains(secret)), "{secret}: {given:?}");
    }
    assert!(given[0].contains(REDACTED), "{given:?}");
}
