//! The `gateway` tool and the methods behind it, through the real program: the owner's agent reads and changes the configuration, and what
//! was asked for is told after the restart.

use std::process::Stdio;
use std::time::Instant;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, Login, ReservedPort, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;
use crate::support::conversation::{results, turn};
use crate::support::telegram::{bot, last_said};

/// A model that calls the tool with each of these, and then is done.
async fn calling(calls: Vec<Value>) -> ModelServer {
    ModelServer::answering(move |request| match calls.get(results(request).len()) {
        Some(args) => Reply::tool(&format!("c{}", results(request).len()), "gateway", args),
        None => Reply::text("done"),
    })
    .await
}

fn read(said: &str) -> Value {
    serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[tokio::test]
async fn the_owners_agent_reads_and_changes_the_configuration() {
    let model = calling(vec![
        json!({"action": "config.get"}),
        json!({"action": "config.patch", "raw": "{messages: {responsePrefix: 'b'}}"}),
        json!({"action": "config.patch", "raw": "{gateway: {port: 'x'}}"}),
        json!({"action": "config.patch", "raw": "{ui: {}}", "baseHash": "0"}),
        json!({"action": "config.patch", "raw": "{logging: {level: 'debug'}}", "note": "louder", "restartDelayMs": 60000}),
        json!({"action": "restart"}),
        json!({"action": "update.run"}),
        json!({"action": "config.schema", "gatewayUrl": "ws://elsewhere"}),
        json!({"action": "config.apply"}),
    ])
    .await;
    let config = json!({"messages": {"responsePrefix": "a"}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "done");

    let told = results(model.requests().last().unwrap());
    let got = read(&told[0]);
    assert_eq!((&got["ok"], &got["result"]["valid"]), (&json!(true), &json!(true)));
    assert_eq!(got["result"]["parsed"]["gateway"]["auth"]["token"], "__OPENCLAW_REDACTED__");
    assert!(!told[0].contains(TOKEN) && !told[0].contains("fake-key"), "{}", told[0]);
    let patched = read(&told[1]);
    assert_eq!(patched["result"]["config"]["messages"]["responsePrefix"], "b");
    assert_eq!(
        (&patched["ok"], patched["result"].get("restart")),
        (&json!(true), None),
        "it is in force already"
    );
    assert!(told[2].contains("invalid config:") && told[2].contains("gateway.port: "), "{}", told[2]);
    assert!(told[3].contains("config changed since last load; re-run config.get and retry"), "{}", told[3]);
    let louder = read(&told[4]);
    let restart = &louder["result"]["restart"];
    assert_eq!((&restart["delayMs"], &restart["reason"]), (&json!(60_000), &json!("config.patch")));
    let disabled = "Gateway restart is disabled. Set commands.restart=true to enable.";
    assert!(told[5].contains(disabled) && told[6].contains(disabled), "{} {}", told[5], told[6]);
    assert!(told[7].starts_with("gatewayUrl and gatewayToken are ignored"), "{}", told[7]);
    assert!(told[8].contains("raw required"), "{}", told[8]);

    let file = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    assert_eq!(read(&file)["messages"]["responsePrefix"], "b");
    assert!(file.contains(TOKEN), "the secret is still there");
    let sentinel = std::fs::read_to_string(gateway.state_dir().join("restart-sentinel.json")).unwrap();
    let sentinel = &read(&sentinel)["payload"];
    assert_eq!(
        (&sentinel["kind"], &sentinel["sessionKey"], &sentinel["message"], &sentinel["stats"]["mode"]),
        (&json!("config-apply"), &json!("agent:main:main"), &json!("louder"), &json!("config.patch"))
    );
    let audit = std::fs::read_to_string(gateway.state_dir().join("logs/config-audit.jsonl")).unwrap();
    assert!(audit.contains("\"actor\":\"agent\"") && audit.contains("messages.responsePrefix"), "{audit}");
}

#[tokio::test]
async fn whoever_is_not_the_owner_is_not_offered_it() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let open = json!({"dmPolicy": "open", "allowFrom": ["*"]});
    let rest =
        json!({"commands": {"ownerAllowFrom": [5], "restart": true}, "session": {"dmScope": "per-peer"}});
    let _gateway = bot(&server, &model, open, rest).await;
    let mut offered = Vec::new();
    for (n, sender) in [5, 9].into_iter().enumerate() {
        server.push(private_message(sender, "hello"));
        server.nth_call("sendMessage", n + 1).await;
        offered.push(model.requests()[n].tool_names());
    }
    let (owner, stranger) = (&offered[0], &offered[1]);
    assert!(owner.contains(&"gateway".to_owned()), "{owner:?}");
    let without: Vec<&String> = owner.iter().filter(|name| *name != "gateway").collect();
    assert_eq!(stranger.iter().collect::<Vec<_>>(), without, "all but that one");
}

#[tokio::test]
async fn a_restart_is_told_to_the_chat_that_asked_for_it_once() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|request| {
        if request.ends_with_tool_result() {
            return Reply::text("on my way");
        }
        match last_said(request) {
            said if said.contains("GatewayRestart:") => Reply::text("I am back"),
            said if said.contains("please") => Reply::tool(
                "c1",
                "gateway",
                &json!({"action": "restart", "delayMs": 0, "reason": "asked", "note": "tell them"}),
            ),
            _ => Reply::text("hello"),
        }
    })
    .await;
    let owner = json!({"dmPolicy": "allowlist", "allowFrom": [5]});
    let gateway = bot(&server, &model, owner, json!({"commands": {"restart": true}})).await;
    server.push(private_message(5, "please restart"));
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "on my way");
    assert_eq!(server.nth_call("sendMessage", 2).await.params["text"], "I am back");
    let requests = model.requests();
    let scheduled = read(&results(&requests[1])[0]);
    assert_eq!(
        (&scheduled["ok"], &scheduled["delayMs"], &scheduled["reason"]),
        (&json!(true), &json!(0), &json!("asked"))
    );
    let told = last_said(requests.last().unwrap());
    for part in [
        "\"kind\": \"restart\"",
        "\"status\": \"ok\"",
        "\"message\": \"tell them\"",
        "\"channel\": \"telegram\"",
        "\"to\": \"telegram:5\"",
    ] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    server.push(private_message(5, "hello"));
    assert_eq!(server.nth_call("sendMessage", 3).await.params["text"], "hello");
    assert!(!gateway.state_dir().join("restart-sentinel.json").exists(), "it is told once");
    assert_eq!(server.calls("sendMessage").len(), 3);
}

/// Notices for a session that is used from a client wait: its agent reads them with its next turn.
#[tokio::test]
async fn what_was_left_to_be_told_waits_for_the_next_turn_of_a_session_without_a_chat() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let mut gateway = gateway;
    let left = json!({"version": 1, "payload": {"kind": "update", "status": "ok", "ts": 1, "sessionKey": "agent:main:main",
        "message": "updated"}});
    std::fs::write(gateway.state_dir().join("restart-sentinel.json"), left.to_string()).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let waiting = loop {
        let status = client.request("status", json!({})).await.unwrap();
        let waiting = status["queuedSystemEvents"].clone();
        if waiting != json!([]) {
            break waiting;
        }
        tokio::task::yield_now().await;
    };
    let line = waiting[0].as_str().unwrap();
    assert!(
        line.starts_with("GatewayRestart:\n{\n  \"kind\": \"update\",\n  \"status\": \"ok\",\n  \"ts\": 1,"),
        "{line}"
    );
    turn(&mut client, "main", "hello", "run-1").await;
    let told = model.requests()[0].messages().last().unwrap().to_string();
    assert!(told.contains("GatewayRestart:") && told.contains("updated"), "{told}");
    assert!(!gateway.state_dir().join("restart-sentinel.json").exists());
}

/// The recorded mistakes and changes (`gw-config`), with the hash of this file.
#[tokio::test]
async fn clients_change_the_configuration() {
    let gateway = gateway().fake_model("http://127.0.0.1:9/v1").start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let hash = client.request("config.get", json!({})).await.unwrap()["hash"].clone();
    let rows = [
        ("config.set", json!({"raw": "{}"}), "config base hash required; re-run config.get and retry"),
        (
            "config.set",
            json!({"raw": "{}", "baseHash": "0"}),
            "config changed since last load; re-run config.get and retry",
        ),
        (
            "config.set",
            json!({"raw": "{ not json", "baseHash": hash}),
            "SyntaxError: JSON5: invalid character 'j' at 1:7",
        ),
        ("config.set", json!({"raw": "{\"gateway\":{\"port\":\"x\"}}", "baseHash": hash}), "invalid config"),
        ("config.patch", json!({"raw": "[1]", "baseHash": hash}), "config.patch raw must be an object"),
        ("config.apply", json!({"raw": "{\"nope\":1}", "baseHash": hash}), "invalid config"),
        (
            "config.set",
            json!({"raw": "{\"talk\":{\"apiKey\":\"__OPENCLAW_REDACTED__\"}}", "baseHash": hash}),
            "config write rejected: \"apiKey\" is redacted; set an explicit value instead of __OPENCLAW_REDACTED__",
        ),
    ];
    for (method, params, expect) in rows {
        let answer = client.call(method, params.clone()).await.unwrap();
        let error = answer.error;
        assert_eq!(
            (error["code"].as_str(), error["message"].as_str()),
            (Some("INVALID_REQUEST"), Some(expect))
        );
        let issues = error["details"]["issues"].as_array().map_or(0, Vec::len);
        assert_eq!(issues > 0, expect == "invalid config", "{error}");
    }
    let named = json!({"raw": "{ui:{assistant:{name:\"Goldie\"}}}", "baseHash": hash});
    let written = client.request("config.patch", named).await.unwrap();
    assert_eq!(written["config"]["ui"]["assistant"]["name"], "Goldie");
    assert_eq!((written.get("restart"), written.get("sentinel")), (None, None), "decision 29");
    let again = client.request("config.get", json!({})).await.unwrap();
    let louder = json!({"raw": "{logging:{level:\"debug\"}}", "baseHash": again["hash"], "note": "golden note",
        "sessionKey": "agent:main:main", "restartDelayMs": 60000});
    let written = client.request("config.patch", louder).await.unwrap();
    assert_eq!(
        (&written["restart"]["signal"], &written["restart"]["delayMs"]),
        (&json!("SIGUSR1"), &json!(60_000))
    );
    let payload = &written["sentinel"]["payload"];
    assert_eq!((&payload["kind"], &payload["message"]), (&json!("config-apply"), &json!("golden note")));
    let update = client.request("update.run", json!({})).await.unwrap();
    assert_eq!((&update["result"]["status"], update.get("restart")), (&json!("skipped"), None), "KB-12");
    // The new content is the old one but for these keys.
    let raw = client.request("config.get", json!({})).await.unwrap();
    let whole = json!({"raw": raw["raw"], "baseHash": raw["hash"]});
    let same = client.request("config.apply", whole).await.unwrap();
    assert_eq!((&same["ok"], same.get("restart")), (&json!(true), None));
    assert!(std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap().contains(TOKEN));
}

#[tokio::test]
async fn a_set_config_that_needs_a_restart_has_one_and_any_other_has_none() {
    const ASKED: &str = "a restart was asked for";
    let gateway = gateway().start().await.unwrap();
    let edited = async |edit: fn(&mut Value)| {
        let mut client = gateway.client().await.unwrap();
        let now = client.request("config.get", json!({})).await.unwrap();
        let mut config = now["parsed"].clone();
        edit(&mut config);
        let params = json!({"raw": config.to_string(), "baseHash": now["hash"]});
        let written = client.request("config.set", params).await.unwrap();
        assert_eq!((&written["ok"], written.get("restart")), (&json!(true), None), "as recorded");
        client
    };
    edited(|config| config["ui"]["assistant"]["name"] = json!("Goldie")).await;
    edited(|config| config["talk"]["voiceId"] = json!("nobody speaks yet")).await;
    assert!(!gateway.log().contains(ASKED), "{}", gateway.log());
    let mut client = edited(|config| config["logging"]["level"] = json!("debug")).await;
    assert_eq!(client.closed().await.unwrap(), (1012, "service restart".to_owned()));
    let deadline = Instant::now() + DEADLINE;
    while gateway.log().matches("gateway started").count() < 2 {
        assert!(Instant::now() < deadline, "{}", gateway.log());
        tokio::task::yield_now().await;
    }
}

/// A client of the gateway on this port, once it listens there.
async fn client_at(port: u16) -> WsClient {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match WsClient::connect(port, Login::token(TOKEN)).await {
            Ok((client, _)) => return client,
            Err(error) => assert!(Instant::now() < deadline, "{port}: {error}"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_changed_config_is_in_force_after_the_restart_that_it_needs() {
    for method in ["config.set", "config.patch", "config.apply"] {
        let [before, after] = [ReservedPort::any().unwrap(), ReservedPort::any().unwrap()];
        let [before, after] = [&before, &after].map(|port| port.number().unwrap());
        let setup = gateway().config(json!({"gateway": {"port": before}}));
        let gateway = setup.fake_model("http://127.0.0.1:9/v1").prepare().unwrap();
        let mut run = gateway.command();
        let mut process =
            run.args(["gateway", "run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut client = client_at(before).await;
        let now = client.request("config.get", json!({})).await.unwrap();
        let store = gateway.home().join("moved/sessions.json").display().to_string();
        let edit = json!({"gateway": {"port": after}, "session": {"store": store}});
        let raw = match method {
            "config.patch" => edit,
            _ => {
                let mut whole = now["parsed"].clone();
                merge(&mut whole, edit);
                whole
            }
        };
        let mut params = json!({"raw": raw.to_string(), "baseHash": now["hash"]});
        if method != "config.set" {
            params["restartDelayMs"] = json!(0);
        }
        let written = client.request(method, params).await.unwrap();
        assert_eq!(written.get("restart").is_some(), method != "config.set", "{written}");
        let notice = client.event("shutdown", |_| true).await.unwrap();
        assert_eq!(notice, json!({"reason": "gateway restarting", "restartExpectedMs": 1_500}), "{method}");
        assert_eq!(client.closed().await.unwrap(), (1012, "service restart".to_owned()), "{method}");
        let mut client = client_at(after).await;
        client.request("sessions.patch", json!({"key": "main", "label": "moved"})).await.unwrap();
        let listed = client.request("sessions.list", json!({})).await.unwrap();
        assert_eq!((&listed["path"], &listed["count"]), (&json!(store), &json!(1)), "{method}");
        assert!(WsClient::connect(before, Login::token(TOKEN)).await.is_err(), "{method}");
        assert!(process.try_wait().unwrap().is_none(), "the same process");
    }
}
