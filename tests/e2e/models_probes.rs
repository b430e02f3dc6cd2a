//! `openclaw models status --probe` and `models scan`: models are asked through the real binary.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, openclaw};
use crate::support::config::config;

fn provider(server: &ModelServer, id: &str) -> Value {
    json!({"baseUrl": server.v1(), "api": "openai-completions", "models": [{"id": id, "name": id}]})
}

fn put_store(gateway: &GatewayUnderTest, profiles: &Value) {
    let dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("auth-profiles.json"), json!({"version": 1, "profiles": profiles}).to_string())
        .unwrap();
}

/// Answers by the key that asks.
fn by_key(request: &Captured) -> Reply {
    match request.header("authorization").unwrap_or_default() {
        "Bearer good-key" => Reply::text("OK"),
        "Bearer poor-key" => Reply::openai_error(402, "billing", "payment required for poor-key"),
        "Bearer busy-key" => Reply::openai_error(429, "rate_limit_error", "slow down"),
        "Bearer down-key" => Reply::openai_error(503, "server_error", "down"),
        "Bearer slow-key" => Reply::never(),
        "Bearer mute-key" => Reply::plain(
            200,
            "text/event-stream",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        _ => Reply::openai_error(401, "authentication_error", "invalid api key"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_credential_is_tried_and_a_failure_says_its_kind() {
    let server = ModelServer::answering(by_key).await;
    let config = json!({
        "agents": {"defaults": {"model": "mine/m1"}},
        "models": {"providers": {"mine": provider(&server, "m1"), "other": {"baseUrl": server.v1(), "apiKey": "good-key",
            "api": "openai-completions", "models": [{"id": "o1", "name": "O"}]}, "empty": {"baseUrl": server.v1(), "apiKey": "k", "models": []}}}});
    let gateway = gateway().whole_config(config).prepare().unwrap();
    let key = |key: &str| json!({"type": "api_key", "provider": "mine", "key": key});
    put_store(
        &gateway,
        &json!({"mine:good": key("good-key"), "mine:poor": key("poor-key"), "mine:busy": key("busy-key"),
        "mine:down": key("down-key"), "mine:slow": key("slow-key"), "mine:bad": key("bad-key"), "mine:mute": key("mute-key"),
        "mine:old": {"type": "token", "provider": "mine", "token": "good-key", "expires": 1}}),
    );
    let store = || std::fs::read(gateway.state_dir().join("agents/main/agent/auth-profiles.json")).unwrap();
    let before = store();
    let args = [
        "models",
        "status",
        "--probe",
        "--json",
        "--probe-timeout",
        "5000",
        "--probe-concurrency",
        "8",
        "--probe-max-tokens",
        "3",
    ];
    let ended = openclaw(&gateway, &args).await;
    let status: Value = serde_json::from_str(&ended.out).unwrap();
    let probes = &status["auth"]["probes"];
    let results: Vec<Value> = probes["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["label"], row["source"], row["mode"], row["model"], row["status"]]))
        .collect();
    assert_eq!(
        json!(results),
        json!([
            ["models.json", "models.json", "api_key", null, "no_model"],
            ["mine:bad", "profile", "api_key", "mine/m1", "auth"],
            ["mine:busy", "profile", "api_key", "mine/m1", "rate_limit"],
            ["mine:down", "profile", "api_key", "mine/m1", "unavailable"],
            ["mine:good", "profile", "api_key", "mine/m1", "ok"],
            ["mine:mute", "profile", "api_key", "mine/m1", "empty"],
            ["mine:old", "profile", "token", "mine/m1", "unknown"],
            ["mine:poor", "profile", "api_key", "mine/m1", "billing"],
            ["mine:slow", "profile", "api_key", "mine/m1", "timeout"],
            ["models.json", "models.json", "api_key", "other/o1", "ok"],
        ])
    );
    assert_eq!(probes["totalTargets"], 8);
    assert_eq!(
        probes["options"],
        json!({"profileIds": [], "timeoutMs": 5000, "concurrency": 8, "maxTokens": 3})
    );
    assert!(!ended.out.contains("poor-key"), "a key in an error is taken out");
    assert_eq!(server.requests().len(), 8, "one question a credential, and none again");
    let asked = server.requests()[0].clone();
    assert_eq!(asked.last_user_text(), "Reply with OK. Do not use tools.");
    assert_eq!(asked.body.get("max_completion_tokens").or(asked.body.get("max_tokens")), Some(&json!(3)));
    assert_eq!(store(), before, "a probe is not remembered");

    let text =
        openclaw(&gateway, &["models", "status", "--probe", "--probe-profile", "mine:good,mine:bad"]).await;
    let lines: Vec<&str> = text.out.lines().skip_while(|line| *line != "Auth probes").collect();
    assert!(
        lines[2].starts_with("mine/m1")
            && lines[2].contains("mine:bad (api_key)")
            && lines[2].contains("auth · "),
        "{text:?}"
    );
    assert!(lines[3].starts_with("  ↳ 401"), "{text:?}");
    assert!(lines[4].contains("mine:good (api_key)") && lines[4].contains("ok · "), "{text:?}");
    assert!(lines[5].starts_with("Probed 2 targets in "), "{text:?}");
}

#[tokio::test]
async fn probes_that_make_no_sense_are_refused() {
    let gateway = gateway().fake_model("http://127.0.0.1:1/v1").prepare().unwrap();
    let rows: [(&[&str], &str); 5] = [
        (&["--plain"], "--probe cannot be used with --plain output."),
        (&["--probe-profile", "nobody"], "No credentials found for profile \"nobody\"."),
        (&["--probe-timeout", "0"], "--probe-timeout must be a positive number (ms)."),
        (&["--probe-concurrency", "-1"], "--probe-concurrency must be > 0."),
        (&["--probe-max-tokens", "many"], "--probe-max-tokens must be > 0."),
    ];
    for (args, words) in rows {
        openclaw(&gateway, &[&["models", "status", "--probe"], args].concat()).await.failed(&[words]);
    }
    let none = openclaw(&gateway, &["models", "status", "--probe", "--probe-provider", "nobody"]).await;
    assert!(
        none.code == Some(0)
            && none
                .out
                .contains("Auth probes\n- none\nNo probe targets.\nnobody is not set up. There is: fake.\n"),
        "{none:?}"
    );
}

/// OpenRouter as this test has it: two free models that call tools, one that does not, one that costs.
async fn openrouter() -> ModelServer {
    let server = ModelServer::answering(|request| {
        let wants_tool = !request.tool_names().is_empty();
        match request.body["model"].as_str().unwrap_or_default() {
            "a/dumb:free" => Reply::text("ping? I don't know."),
            _ if wants_tool => Reply::tool("c1", "ping", &json!({})),
            _ => Reply::text("OK"),
        }
    })
    .await;
    server.page("/v1/models", 200, &json!({"data": [
        {"id": "a/able-70b:free", "name": "Able", "context_length": 8192, "created": 1_700_000_000, "supported_parameters": ["tools"]},
        {"id": "b/sees:free", "name": "Sees", "context_length": 4096, "architecture": {"modality": "text+image->text"}},
        {"id": "a/dumb:free", "name": "Dumb 7B"},
        {"id": "a/paid", "name": "Paid", "pricing": {"prompt": "1", "completion": "1"}}]}));
    server
}

fn scanning(server: &ModelServer, key: &str) -> GatewayUnderTest {
    let mut entry = json!({"baseUrl": server.v1(), "models": []});
    if !key.is_empty() {
        entry["apiKey"] = json!(key);
    }
    let config = json!({"agents": {"defaults": {"model": "openai/gpt-5.2"}}, "models": {"providers": {"openrouter": entry}}});
    gateway().whole_config(config).prepare().unwrap()
}

async fn scan(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    openclaw(gateway, &[&["models", "scan"], args].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn free_models_are_tried_and_the_best_become_fallbacks() {
    let server = openrouter().await;
    let gateway = scanning(&server, "router-key");
    let applied = scan(&gateway, &["--yes", "--set-image"]).await;
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(
        applied
            .out
            .starts_with("Scan results: tested 3, tool ok 2, image ok 1, tool+image ok 1, image only 0\n"),
        "{applied:?}"
    );
    assert!(applied.out.ends_with(
        "Updated ~/.openclaw/openclaw.json\nFallbacks: openrouter/b/sees:free\nImage fallbacks: openrouter/b/sees:free\nImage model: openrouter/b/sees:free\n"
    ), "{applied:?}");
    let defaults = &config(&gateway)["agents"]["defaults"];
    assert_eq!(
        defaults["model"],
        json!({"primary": "openai/gpt-5.2", "fallbacks": ["openrouter/b/sees:free"]})
    );
    assert_eq!(defaults["imageModel"]["primary"], "openrouter/b/sees:free");
    // Tool for each of the three, image for the one that takes images; never the one that costs.
    let asked = server.requests();
    let asked: Vec<&Captured> = asked.iter().filter(|request| request.method == "POST").collect();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|request| request.header("authorization") == Some("Bearer router-key")));
    assert!(asked.iter().any(|request| request.body.to_string().contains("image_url")));

    let json =
        scan(&gateway, &["--json", "--yes", "--set-default", "--provider", "a", "--max-candidates", "1"])
            .await;
    let document: Value = serde_json::from_str(&json.out).unwrap();
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["selected", "selectedImages", "setDefault", "setImage", "results", "warnings"]);
    assert_eq!(document["selected"], json!(["openrouter/a/able-70b:free"]));
    let row = &document["results"][0];
    assert_eq!(
        (&row["inferredParamB"], &row["tool"]["ok"], &row["image"]),
        (&json!(70.0), &json!(true), &json!({"ok": false, "latencyMs": null, "skipped": true}))
    );
    assert_eq!(config(&gateway)["agents"]["defaults"]["model"]["primary"], "openrouter/a/able-70b:free");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_without_consent_or_when_nothing_was_tried() {
    let server = openrouter().await;
    let gateway = scanning(&server, "router-key");
    let before = config(&gateway);
    let listed = scan(&gateway, &["--no-probe", "--min-params", "8"]).await;
    assert!(listed.out.starts_with("Found 1 OpenRouter free models (metadata only).\nModel "), "{listed:?}");
    assert!(listed.out.contains("openrouter/a/able-70b:free") && listed.out.contains(" skip "), "{listed:?}");
    let asked_nobody = server.requests().iter().all(|request| request.method == "GET");
    assert!(asked_nobody);
    let json = scan(&gateway, &["--json"]).await;
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&document["selected"], document["results"].as_array().map(Vec::len)), (&json!([]), Some(3)));
    assert!(document["warnings"][0].as_str().unwrap().contains("--yes"));
    scan(&gateway, &[]).await.failed(&["Non-interactive scan: pass --yes to apply defaults."]);
    scan(&gateway, &["--no-probe", "--set-default"]).await.failed(&["models that were not tried"]);
    scan(&gateway, &["--max-candidates", "0"]).await.failed(&["--max-candidates must be a positive integer"]);
    scan(&gateway, &["--min-params", "-1"]).await.failed(&["--min-params must be >= 0"]);
    scan(&gateway, &["--yes", "--provider", "a", "--set-image"])
        .await
        .failed(&["No image-capable models selected"]);
    assert_eq!(config(&gateway), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_is_told_in_words() {
    let server = ModelServer::queue([]).await;
    let gateway = scanning(&server, "router-key");
    scan(&gateway, &["--yes"]).await.failed(&["OpenRouter /models failed: HTTP 404"]);
    server.page("/v1/models", 200, &json!({"data": [{"id": "a/x:free"}]}));
    let ended = scan(&gateway, &["--yes"]).await;
    ended.failed(&["No tool-capable OpenRouter free models found.", "--no-probe"]);
}
