//! `sessions.*` and the usage methods against the real binary: with runs under way, with bad params, with many sessions
//! (spec `gateway-protocol.md` §6.2), and the command that lists them (spec `cli.md` §3.3).

use std::path::{Path, PathBuf};

use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedUsage, Step};
use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::{said, sessions_dir};

/// Price of a million tokens of the model: input, output.
const PRICE: (u64, u64) = (1, 2);

async fn started(model: &ModelServer) -> (GatewayUnderTest, WsClient) {
    let priced = json!({"id": "fake-1", "name": "Fake One", "input": ["text"], "contextWindow": 32000, "maxTokens": 4096,
        "cost": {"input": PRICE.0, "output": PRICE.1, "cacheRead": 0, "cacheWrite": 0}});
    let provider = json!({"models": {"providers": {"fake": {"models": [priced]}}}});
    // Turns that save memory count too, and are none of these tests' turns.
    let no_flush = json!({"agents": {"defaults": {"compaction": {"memoryFlush": {"enabled": false}}}}});
    let setup = gateway().fake_model(&model.v1()).config(provider).config(no_flush);
    let gateway = setup.start().await.unwrap();
    let client = gateway.client().await.unwrap();
    (gateway, client)
}

async fn say(client: &mut WsClient, session: &str, text: &str, run: &str) {
    let params = json!({"sessionKey": session, "message": text, "idempotencyKey": run});
    client.request("chat.send", params).await.unwrap();
}

async fn turn(client: &mut WsClient, session: &str, text: &str, run: &str) {
    say(client, session, text, run).await;
    client.event("chat", |payload| payload["runId"] == run && payload["state"] == "final").await.unwrap();
}

async fn refusal(client: &mut WsClient, method: &str, params: Value) -> (String, String) {
    let answer = client.call(method, params.clone()).await.unwrap();
    assert!(!answer.ok, "{method} {params} went well: {}", answer.payload);
    let text = |name: &str| answer.error[name].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn what_a_turn_used_is_told_by_every_usage_method() {
    let used = ScriptedUsage { input: 1_000_000, output: 500_000, ..ScriptedUsage::default() };
    let model = ModelServer::answering(move |_| Reply::text("Hello.").usage(used)).await;
    let (_gateway, mut client) = started(&model).await;
    turn(&mut client, "main", "first", "r1").await;
    turn(&mut client, "main", "second", "r2").await;
    turn(&mut client, "side", "third", "r3").await;

    let cost = client.request("usage.cost", json!({"days": "1"})).await.unwrap();
    assert_eq!((cost["days"].as_u64(), cost["daily"].as_array().map(Vec::len)), (Some(1), Some(1)));
    let usage = client.request("sessions.usage", json!({})).await.unwrap();
    assert_eq!(usage["totals"], cost["totals"]);
    let keys: Vec<&str> =
        usage["sessions"].as_array().unwrap().iter().filter_map(|s| s["key"].as_str()).collect();
    assert_eq!(keys, ["agent:main:side", "agent:main:main"]);
    let totals = |of: &Value| {
        (of["totalTokens"].as_u64(), of["totalCost"].as_f64(), of["missingCostEntries"].as_u64())
    };
    assert_eq!(totals(&usage["totals"]), (Some(4_500_000), Some(6.0), Some(0)));
    assert_eq!(totals(&usage["sessions"][1]["usage"]), (Some(3_000_000), Some(4.0), Some(0)));
    let counts =
        json!({"total": 6, "user": 3, "assistant": 3, "toolCalls": 0, "toolResults": 0, "errors": 0});
    assert_eq!(usage["aggregates"]["messages"], counts);
    assert_eq!(usage["aggregates"]["byModel"][0]["model"], "fake-1");

    let main = json!({"key": "main"});
    let series = client.request("sessions.usage.timeseries", main.clone()).await.unwrap();
    let sums: Vec<_> =
        series["points"].as_array().unwrap().iter().map(|p| p["cumulativeCost"].as_f64()).collect();
    assert_eq!(sums, [Some(2.0), Some(4.0)]);
    let logs = client.request("sessions.usage.logs", main).await.unwrap();
    let spoken: Vec<_> =
        logs["logs"].as_array().unwrap().iter().map(|log| said(log["content"].as_str().unwrap())).collect();
    assert_eq!(spoken, ["first", "Hello.", "second", "Hello."]);
    // A further turn is counted at once.
    turn(&mut client, "main", "fourth", "r4").await;
    let cost = client.request("usage.cost", json!({})).await.unwrap();
    assert_eq!(totals(&cost["totals"]), (Some(6_000_000), Some(8.0), Some(0)));
}

#[tokio::test]
async fn usage_of_sessions_is_the_owners_to_see_and_cost_every_readers() {
    let model = ModelServer::answering(|_| Reply::text("x")).await;
    let (gateway, _) = started(&model).await;
    let login = Login::token(TOKEN).with("scopes", json!(["operator.read"]));
    let (mut reader, _) = WsClient::connect(gateway.port(), login).await.unwrap();
    assert!(reader.call("usage.cost", json!({})).await.unwrap().ok);
    for method in ["sessions.usage", "sessions.usage.timeseries", "sessions.usage.logs", "sessions.compact"] {
        let (_, message) = refusal(&mut reader, method, json!({"key": "main"})).await;
        assert_eq!(message, "missing scope: operator.admin", "{method}");
    }
}

#[tokio::test]
async fn a_run_is_stopped_before_its_transcript_is_cut() {
    let hangs = |request: &openclaw_testkit::model_server::Captured| match request.last_user_text() {
        text if text.contains("hang") && !text.contains("and on") => Reply::deltas(["half"]).then(Step::Hang),
        _ => Reply::text("whole"),
    };
    let model = ModelServer::answering(hangs).await;
    let (_gateway, mut client) = started(&model).await;
    for n in 0..4 {
        turn(&mut client, "main", &format!("turn {n}"), &format!("r{n}")).await;
    }
    say(&mut client, "main", "now hang", "r-hang").await;
    client.event("agent", |payload| payload["data"]["text"] == "half").await.unwrap();
    let id = client.send("sessions.compact", json!({"key": "main", "maxLines": 4})).await.unwrap();
    client
        .event("chat", |payload| payload["runId"] == "r-hang" && payload["state"] == "aborted")
        .await
        .unwrap();
    let cut = client.answer(&id).await.unwrap().payload;
    assert_eq!((cut["compacted"].as_bool(), cut["kept"].as_u64()), (Some(true), Some(4)));
    let archive = PathBuf::from(cut["archived"].as_str().unwrap());
    let now = archive.to_str().unwrap().split_once(".bak.").unwrap().0.to_owned();
    let before = lines(&archive);
    assert_eq!(before.last().unwrap()["message"]["stopReason"], "aborted");
    let now = lines(Path::new(&now));
    assert_eq!((now.len(), &now[0], &now[1]["parentId"]), (5, &before[0], &Value::Null));
    assert_eq!(now[2..], before[before.len() - 3..]);
    let row = client.request("sessions.list", json!({})).await.unwrap()["sessions"][0].clone();
    assert_eq!((row.get("inputTokens"), row["totalTokens"].as_u64()), (None, Some(0)));

    turn(&mut client, "main", "and on", "r-after").await;
    let sent = json!(model.requests().last().unwrap().messages()).to_string();
    assert!(!sent.contains("turn 0") && sent.contains("turn 3") && sent.contains("and on"), "{sent}");
}

#[tokio::test]
async fn a_session_is_deleted_with_its_run_and_its_queue() {
    let model = ModelServer::answering(|_| Reply::deltas(["half"]).then(Step::Hang)).await;
    let (gateway, mut client) = started(&model).await;
    say(&mut client, "side", "first", "r1").await;
    client.event("agent", |payload| payload["data"]["text"] == "half").await.unwrap();
    say(&mut client, "side", "queued", "r2").await;
    let deleted = client.request("sessions.delete", json!({"key": "side"})).await.unwrap();
    assert_eq!(
        (deleted["deleted"].as_bool(), deleted["key"].as_str()),
        (Some(true), Some("agent:main:side"))
    );
    let archived = deleted["archived"].as_array().unwrap();
    assert_eq!(archived.len(), 1, "{deleted}");
    assert!(Path::new(archived[0].as_str().unwrap()).exists());
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    assert_eq!(listed["sessions"], json!([]));
    let left: Vec<String> = std::fs::read_dir(sessions_dir(&gateway))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".jsonl") || name.ends_with(".lock"))
        .collect();
    assert_eq!(left, [""; 0]);
    assert_eq!(model.requests().len(), 1, "what was queued never ran");
}

#[tokio::test]
async fn wrong_params_are_refused_in_words_that_name_them() {
    let model = ModelServer::answering(|_| Reply::text("x")).await;
    let (gateway, mut client) = started(&model).await;
    let long = "x".repeat(100_000);
    let nobody = |method: &str| format!("invalid {method} params: unknown agent id \"nobody\"");
    let empty_key = "at /key: must NOT have fewer than 1 characters";
    let required = "must have required property 'key'";
    let rows = [
        ("sessions.compact", json!({}), format!("invalid sessions.compact params: {required}")),
        ("sessions.compact", json!({"key": ""}), format!("invalid sessions.compact params: {empty_key}")),
        ("sessions.compact", json!({"key": "main", "maxLines": 0}), "invalid sessions.compact params: at /maxLines: must be >= 1".into()),
        ("sessions.compact", json!({"key": "main", "maxLines": 1.5}), "invalid sessions.compact params: at /maxLines: must be integer".into()),
        ("sessions.compact", json!({"key": 5, "x": 1}), "invalid sessions.compact params: at root: unexpected property 'x'; at /key: must be string".into()),
        ("sessions.compact", json!({"key": "agent:nobody:main"}), nobody("sessions.compact")),
        ("sessions.reset", json!({"key": "agent:nobody:main"}), nobody("sessions.reset")),
        ("sessions.delete", json!({"key": "agent:nobody:x"}), nobody("sessions.delete")),
        ("sessions.patch", json!({"key": "agent:nobody:x", "label": "l"}), nobody("sessions.patch")),
        ("sessions.reset", json!({}), format!("invalid sessions.reset params: {required}")),
        ("sessions.delete", json!({"key": "x", "deleteTranscript": "no"}), "invalid sessions.delete params: at /deleteTranscript: must be boolean".into()),
        ("sessions.preview", json!({"keys": []}), "invalid sessions.preview params: at /keys: must NOT have fewer than 1 items".into()),
        ("sessions.preview", json!({"keys": ["a"], "maxChars": 19}), "invalid sessions.preview params: at /maxChars: must be >= 20".into()),
        ("sessions.patch", json!({"key": "main", "label": long}), "invalid sessions.patch params: at /label: must NOT have more than 64 characters; at /label: must be null; at /label: must match a schema in anyOf".into()),
        ("sessions.patch", json!({"key": "main", "thinkingLevel": long}), "invalid thinkingLevel (use off|minimal|low|medium|high)".into()),
        ("sessions.usage", json!({"startDate": "yesterday"}), r#"invalid sessions.usage params: at /startDate: must match pattern "^\d{4}-\d{2}-\d{2}$""#.into()),
        ("sessions.usage", json!({"endDate": 20261121}), "invalid sessions.usage params: at /endDate: must be string".into()),
        ("sessions.usage", json!({"startDate": "2026-02-31"}), "invalid sessions.usage params: at /startDate: 2026-02-31 is not a day between 1970-01-01 and 9999-12-31".into()),
        ("sessions.usage", json!({"startDate": "2026-02-02", "endDate": "2026-02-01"}), "invalid sessions.usage params: endDate 2026-02-01 is before startDate 2026-02-02".into()),
        ("sessions.usage", json!({"limit": 0}), "invalid sessions.usage params: at /limit: must be >= 1".into()),
        ("usage.cost", json!({"startDate": "1.1.2026"}), r#"invalid usage.cost params: at /startDate: must match pattern "^\d{4}-\d{2}-\d{2}$""#.into()),
        ("sessions.usage.timeseries", json!({"key": 5}), "key is required for timeseries".into()),
        ("sessions.usage.logs", json!({}), "key is required for logs".into()),
        ("sessions.usage.timeseries", json!({"key": "main"}), "No transcript found for session: main".into()),
    ];
    for (method, params, expect) in rows {
        assert_eq!(
            refusal(&mut client, method, params).await,
            ("INVALID_REQUEST".into(), expect),
            "{method}"
        );
    }
    let agents: Vec<_> =
        std::fs::read_dir(gateway.state_dir().join("agents")).into_iter().flatten().collect();
    assert!(agents.iter().all(|agent| agent.as_ref().unwrap().file_name() != "nobody"), "{agents:?}");
    // Loose params: what can't be used is as if it were not there.
    let cost = client.request("usage.cost", json!({"days": [], "startDate": 5, "more": true})).await.unwrap();
    assert_eq!(cost["days"], 30);
}

/// The Control UI's recording: its sessions, listed and changed.
#[tokio::test]
async fn the_control_ui_sees_and_changes_its_sessions_as_recorded() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/control-ui-rpc.json");
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let calls = recording["calls"].as_array().unwrap();
    let of = |method: &str| calls.iter().filter(|call| call["method"] == method).cloned().collect::<Vec<_>>();
    // The first list is of the last two hours only, and it was recorded longer ago.
    let (lists, patches) = (of("sessions.list"), of("sessions.patch"));
    let listed = &lists[1]["response"]["payload"]["sessions"];
    let model = json!({"id": "mock-1", "name": "Mock One", "input": ["text"], "contextWindow": 32000, "maxTokens": 4096});
    let provider = json!({"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k", "api": "openai-completions", "models": [model]});
    let mut gateway = gateway()
        .config(json!({
            "models": {"providers": {"mock": provider}},
            "agents": {"defaults": {"model": {"primary": "mock/mock-1"}}, "list": [{"id": "main", "default": true}, {"id": "work"}]},
        }))
        .prepare()
        .unwrap();
    let state = gateway.state_dir().display().to_string();
    let mut main = patches[1]["response"]["payload"]["entry"].clone();
    main["thinkingLevel"] = json!("high");
    main["displayName"] = listed[0]["displayName"].clone();
    main["updatedAt"] = listed[0]["updatedAt"].clone();
    let work = {
        let row = listed[1].as_object().unwrap().clone();
        let derived = ["key", "kind", "displayName"];
        Value::Object(row.into_iter().filter(|(name, _)| !derived.contains(&name.as_str())).collect())
    };
    for (agent, key, row) in [("main", "agent:main:main", &main), ("work", "agent:work:main", &work)] {
        let dir = gateway.state_dir().join("agents").join(agent).join("sessions");
        std::fs::create_dir_all(&dir).unwrap();
        let rows = json!({key: row}).to_string().replace("<STATE>", &state);
        std::fs::write(dir.join("sessions.json"), rows).unwrap();
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    for call in [&lists[1], &patches[0], &patches[1]] {
        let answer = client.request(call["method"].as_str().unwrap(), call["params"].clone()).await.unwrap();
        let mut expect: Value =
            serde_json::from_str(&call["response"]["payload"].to_string().replace("<STATE>", &state))
                .unwrap();
        // The rows are compared by content, not by the time of the request; the name stands in the
        // row with us.
        if let Some(entry) = expect.get_mut("entry").and_then(Value::as_object_mut) {
            entry.insert("displayName".into(), main["displayName"].clone());
        }
        assert_eq!(timeless(answer), timeless(expect), "{}", call["params"]);
    }
}

/// Value without moments.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "ts" && name != "updatedAt");
            fields.values_mut().for_each(|field| *field = timeless(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = timeless(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[tokio::test]
async fn fifty_thousand_sessions_are_listed_from_the_command_line() {
    let gateway = gateway()
        .config(json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "ops"}]}}))
        .prepare()
        .unwrap();
    let write = |agent: &str, count: usize| {
        let dir = gateway.state_dir().join("agents").join(agent).join("sessions");
        std::fs::create_dir_all(&dir).unwrap();
        let row = |n: usize| {
            let row = json!({"sessionId": format!("s{n}"), "updatedAt": 1_795_229_479_704_u64 + n as u64, "totalTokens": n,
                "skillsSnapshot": {"prompt": "p".repeat(200), "skills": []}});
            (format!("agent:{agent}:telegram:dm:{n}"), row)
        };
        let rows: serde_json::Map<String, Value> = (0..count).map(row).collect();
        std::fs::write(dir.join("sessions.json"), Value::Object(rows).to_string()).unwrap();
    };
    write("main", 50_000);
    write("ops", 3);
    let text = openclaw(&gateway, &["sessions", "--verbose"]).await;
    assert_eq!((text.code, text.out.lines().count()), (Some(0), 50_003), "{}", text.err);
    assert!(text.out.lines().nth(3).unwrap().starts_with("direct agent:main:teleg...:49999 "));
    let ops = openclaw(&gateway, &["sessions", "--agent", "ops"]).await;
    assert_eq!(ops.out.lines().nth(1), Some("Sessions listed: 3"));
    let both = openclaw(&gateway, &["sessions", "--all-agents", "--json"]).await;
    let both: Value = serde_json::from_str(&both.out).unwrap();
    assert_eq!((both["count"].as_u64(), both["path"].as_str()), (Some(50_003), Some("(multiple)")));
    assert_eq!(both["sessions"].as_array().unwrap().iter().filter(|row| row["agentId"] == "ops").count(), 3);
    let store = sessions_dir(&gateway).join("sessions.json");
    let one =
        openclaw(&gateway, &["sessions", "--store", store.to_str().unwrap(), "--active", "1", "--json"])
            .await;
    assert_eq!(serde_json::from_str::<Value>(&one.out).unwrap()["activeMinutes"], 1);
    openclaw(&gateway, &["sessions", "--active", "x"])
        .await
        .failed(&["--active must be a positive integer (minutes)"]);
    openclaw(&gateway, &["sessions", "--agent", "nobody"]).await.failed(&["Unknown agent id \"nobody\"."]);
}
