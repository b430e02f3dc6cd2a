//! Usage commands through the real binary: quotas as providers report them, and what was spent.

use openclaw_testkit::model_server::{ModelServer, Reply, ScriptedUsage};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::conversation::turn;

/// A server that stands in for the providers that are asked for quotas.
async fn quotas() -> ModelServer {
    let server = ModelServer::queue([]).await;
    server.page("/api/oauth/usage", 200, &json!({
        "five_hour": {"utilization": 25, "resets_at": "2099-01-01T00:00:00Z"}, "seven_day": {"utilization": 40}}));
    server.page("/backend-api/wham/usage", 401, &json!({"error": {"message": "sk-codex-secret is over"}}));
    server.page("/api/monitor/usage/quota/limit", 200, &json!({"success": true, "code": 200, "data": {
        "planName": "Pro", "limits": [{"type": "TOKENS_LIMIT", "percentage": 42.5, "unit": 3, "number": 5}]}}));
    server
}

/// An installation with credentials of four providers, one of which rests and one of which has a key alone.
fn installation(server: &ModelServer) -> GatewaySetup {
    gateway()
        .fake_model(&server.v1())
        .env("OPENCLAW_QUOTA_SERVER", server.url())
        .env("ZAI_API_KEY", "zai-secret-key")
}

fn store(gateway: &GatewayUnderTest) {
    let dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    let store = json!({"version": 1, "profiles": {
        "anthropic:manual": {"type": "token", "provider": "anthropic", "token": "sk-ant-oat01-secret"},
        "openai-codex:me": {"type": "oauth", "provider": "openai-codex", "access": "sk-codex-secret", "refresh": "r",
            "expires": 4_000_000_000_000_i64, "accountId": "acc-1"},
        "github-copilot:github": {"type": "api_key", "provider": "github-copilot", "key": "k"}},
        "usageStats": {"anthropic:manual": {"disabledUntil": 4_000_000_000_000_i64, "disabledReason": "billing"}}});
    std::fs::write(dir.join("auth-profiles.json"), store.to_string()).unwrap();
}

/// Expected quotas, times aside.
fn expected() -> Value {
    json!([
        {"provider": "anthropic", "displayName": "Claude", "windows": [
            {"label": "5h", "usedPercent": 25, "resetAt": 4_070_908_800_000_i64}, {"label": "Week", "usedPercent": 40}]},
        {"provider": "openai-codex", "displayName": "Codex", "windows": [], "error": "Token expired"},
        {"provider": "zai", "displayName": "z.ai", "windows": [{"label": "Tokens (5h)", "usedPercent": 42.5}], "plan": "Pro"},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_told_for_every_provider_and_errors_in_their_own_row() {
    let server = quotas().await;
    let mut gateway = installation(&server).prepare().unwrap();
    store(&gateway);
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let answer = client.request("usage.status", json!({})).await.unwrap();
    assert_eq!(answer["providers"].to_string(), expected().to_string());
    assert!(answer["updatedAt"].as_i64().is_some_and(|at| at > 1_700_000_000_000));

    let asked = server.requests();
    assert_eq!(asked.len(), 3, "one question a provider");
    let of = |path: &str| asked.iter().find(|request| request.path == path).unwrap();
    let claude = of("/api/oauth/usage");
    assert_eq!(claude.header("authorization"), Some("Bearer sk-ant-oat01-secret"));
    assert_eq!(claude.header("anthropic-beta"), Some("oauth-2025-04-20"));
    assert!(
        claude.header("user-agent").is_some_and(|name| name.starts_with("openclaw/")),
        "we say who we are"
    );
    assert_eq!(of("/backend-api/wham/usage").header("chatgpt-account-id"), Some("acc-1"));
    assert_eq!(of("/api/monitor/usage/quota/limit").header("authorization"), Some("Bearer zai-secret-key"));
    assert!(!gateway.log().contains("secret"), "{}", gateway.log());

    let text = openclaw(&gateway, &["status", "--usage"]).await;
    for line in [
        "Usage:\n",
        "  Claude\n    5h: 75% left · resets Jan 1\n    Week: 60% left\n",
        "  Codex: Token expired\n",
        "  z.ai (Pro)\n",
    ] {
        assert!(text.out.contains(line), "no {line:?} in {}", text.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_asked_for_by_the_command_itself_where_no_gateway_answers() {
    let server = quotas().await;
    let gateway = installation(&server).prepare().unwrap();
    store(&gateway);
    let mut command = gateway.command();
    command
        .args(["status", "--usage", "--json"])
        .env("OPENCLAW_QUOTA_SERVER", server.url())
        .env("ZAI_API_KEY", "zai-secret-key");
    let ended = crate::support::command::Ended::of(command).await;
    let status: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(status["usage"]["providers"].to_string(), expected().to_string());
    for secret in ["oat01-secret", "codex-secret", "zai-secret-key"] {
        assert!(!ended.out.contains(secret), "{}", ended.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_nobody_is_asked() {
    let server = quotas().await;
    let gateway =
        gateway().fake_model(&server.v1()).env("OPENCLAW_QUOTA_SERVER", server.url()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let answer = client.request("usage.status", json!({})).await.unwrap();
    assert_eq!(answer["providers"], json!([]));
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spent_is_told_in_exactly_the_days_asked_for() {
    let used = ScriptedUsage { input: 1_000, output: 5, ..ScriptedUsage::default() };
    let model = ModelServer::answering(move |_| Reply::text("Hello.").usage(used)).await;
    let prices = json!({"models": {"providers": {"fake": {"models": [{"id": "fake-1", "name": "Fake One",
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 32000, "maxTokens": 4096}]}}}});
    let gateway = gateway().fake_model(&model.v1()).config(prices).start().await.unwrap();
    let nothing = openclaw(&gateway, &["gateway", "usage-cost"]).await;
    assert_eq!(
        nothing.out, "Usage cost (30 days)\nTotal: $0.0000 · 0 tokens\nNothing was used in this time.\n",
        "{nothing:?}"
    );
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;

    let json = openclaw(&gateway, &["gateway", "usage-cost", "--days", "2", "--json"]).await;
    let cost: Value = serde_json::from_str(&json.out).unwrap();
    let keys: Vec<&String> = cost.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["updatedAt", "days", "daily", "totals"]);
    assert_eq!(
        (&cost["days"], &cost["totals"]["totalTokens"], &cost["totals"]["totalCost"]),
        (&json!(2), &json!(1005), &json!(0.00101))
    );
    let day = cost["daily"][0]["date"].as_str().unwrap().to_owned();
    let text = openclaw(&gateway, &["gateway", "usage-cost"]).await;
    // As recorded, apart from the date.
    assert_eq!(
        text.out,
        format!(
            "Usage cost (30 days)\nTotal: $0.0010 · 1.0k tokens\nLatest day: {day} · $0.0010 · 1.0k tokens\n"
        )
    );
    openclaw(&gateway, &["gateway", "usage-cost", "--days", "x"])
        .await
        .failed(&["--days must be a positive integer"]);
    openclaw(&gateway, &["gateway", "usage-cost", "--days", "100000000000"])
        .await
        .failed(&["of at most 4294967295, not \"100000000000\""]);
}
