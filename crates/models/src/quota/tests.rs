use serde_json::{Value, json};

use super::*;

/// Reads answers to a compact form: `[label, used percent, reset]` for each window, and the plan;
/// or the error.
fn read(provider: &str, answers: &[Value]) -> Value {
    let found = PROVIDERS.iter().find(|known| known.id == provider).unwrap();
    match (found.read)(answers) {
        Err(error) => json!(error),
        Ok(quota) => {
            let windows: Vec<Value> = quota
                .windows
                .iter()
                .map(|window| json!([window.label, window.used_percent, window.reset_at]))
                .collect();
            json!([windows, quota.plan])
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn answers_of_every_provider_are_read() {
    let noon = 1_769_616_000_000_i64;
    let rows = [
        (
            "anthropic",
            vec![json!({
                "five_hour": {"utilization": 25, "resets_at": "2026-01-28T16:00:00Z"},
                "seven_day": {"utilization": 40.5, "resets_at": null},
                "seven_day_opus": {"utilization": 0}, "seven_day_sonnet": null,
                "extra_usage": {"is_enabled": false, "utilization": null}})],
            json!([[["5h", 25.0, noon], ["Week", 40.5, null], ["Opus", 0.0, null]], null]),
        ),
        ("anthropic", vec![json!({})], json!([[], null])),
        (
            "openai-codex",
            vec![json!({"plan_type": "pro", "rate_limit": {
                "primary_window": {"used_percent": 3, "limit_window_seconds": 18000, "reset_at": noon / 1000},
                "secondary_window": {"used_percent": 101, "limit_window_seconds": 604_800, "reset_at": noon / 1000}}})],
            json!([[["5h", 3.0, noon], ["Week", 100.0, noon]], "pro"]),
        ),
        (
            "openai-codex",
            vec![json!({"rate_limit": {
                "primary_window": {"used_percent": 1, "reset_at": 1000},
                "secondary_window": {"used_percent": 2, "limit_window_seconds": 86400, "reset_at": 1000 + 4 * 86400}}})],
            json!([[["3h", 1.0, 1_000_000], ["Week", 2.0, 346_600_000]], null]),
        ),
        (
            "openai-codex",
            vec![json!({"rate_limit": {"primary_window": null, "secondary_window": {"used_percent": 2}}})],
            json!([[["Day", 2.0, null]], null]),
        ),
        (
            "github-copilot",
            vec![json!({"copilot_plan": "individual_pro", "quota_reset_date": "2026-01-28",
                "quota_snapshots": {"premium_interactions": {"percent_remaining": 87.5}, "chat": {"percent_remaining": null, "unlimited": true}}})],
            json!([[["Premium", 12.5, noon - 16 * 3_600_000]], "individual_pro"]),
        ),
        (
            "google-gemini-cli",
            vec![json!({"buckets": [
                {"modelId": "gemini-3-pro-preview", "remainingFraction": 0.9},
                {"modelId": "gemini-2.5-pro", "remainingFraction": 0.4, "resetTime": "2026-01-28T16:00:00Z"},
                {"modelId": "gemini-3-flash-preview", "remainingFraction": 0.8}, {"modelId": "other"}]})],
            json!([[["Pro", 60.0, noon], ["Flash", 20.0, null]], null]),
        ),
        (
            "google-antigravity",
            vec![
                json!({"availablePromptCredits": "250", "planInfo": {"monthlyPromptCredits": 1000}, "currentTier": {"name": "Pro"}}),
                json!({"models": {
                    "gemini-3-pro": {"quotaInfo": {"remainingFraction": 0.5, "resetTime": "2026-01-28T16:00:00Z"}},
                    "claude": {"quotaInfo": {"remainingFraction": "0.25"}},
                    "tab_flash": {"quotaInfo": {"remainingFraction": 0}}, "plain": {}}}),
            ],
            json!([[["Credits", 75.0, null], ["claude", 75.0, null], ["gemini-3-pro", 50.0, noon]], "Pro"]),
        ),
        (
            "google-antigravity",
            vec![Value::Null, json!({"models": {"m": {"quotaInfo": {"remainingFraction": 1}}}})],
            json!([[["m", 0.0, null]], null]),
        ),
        (
            "minimax",
            vec![json!({"base_resp": {"status_code": 0}, "model_remains": [
                {"model_name": "speech", "current_interval_total_count": 10, "current_interval_usage_count": 1},
                {"model_name": "MiniMax-M*", "current_interval_total_count": 1500, "current_interval_usage_count": 1200,
                 "start_time": noon - 5 * 3_600_000, "end_time": noon}]})],
            json!([[["5h", 20.0, noon]], null]),
        ),
        (
            "minimax-cn",
            vec![
                json!({"model_remains": [{"model_name": "general", "current_interval_remaining_percent": 90,
                "current_weekly_remaining_percent": 55, "weekly_end_time": noon}]}),
            ],
            json!([[["5h", 10.0, null], ["Week", 45.0, noon]], null]),
        ),
        (
            "minimax",
            vec![json!({"base_resp": {"status_code": 1004, "status_msg": "log in again"}})],
            json!("log in again"),
        ),
        ("minimax", vec![json!({"base_resp": {"status_code": 0}})], json!("the answer names no plan")),
        ("xiaomi", vec![], json!([[], null])),
        (
            "zai",
            vec![json!({"success": true, "code": 200, "data": {"planName": "Pro", "limits": [
                {"type": "TOKENS_LIMIT", "percentage": 42.5, "unit": 3, "number": 5, "nextResetTime": noon},
                {"type": "TOKENS_LIMIT", "percentage": 7, "unit": 6, "number": 1},
                {"type": "TIME_LIMIT", "percentage": 10, "unit": 5, "number": 1, "nextResetTime": "2026-01-28T16:00:00Z"},
                {"type": "NEW"}]}})],
            json!([
                [["Tokens (5h)", 42.5, noon], ["Tokens (1w)", 7.0, null], ["Monthly", 10.0, noon]],
                "Pro"
            ]),
        ),
        ("zai", vec![json!({"success": false, "code": 401, "msg": " no plan "})], json!("no plan")),
        ("zai", vec![json!({"success": true, "code": 500})], json!("API error")),
    ];
    for (provider, answers, expect) in rows {
        assert_eq!(read(provider, &answers), expect, "{provider} {answers:?}");
    }
}

#[test]
fn nonsense_is_no_window_and_no_panic() {
    let nonsense = [
        json!({"five_hour": 3, "rate_limit": [], "quota_snapshots": "x", "buckets": {}, "models": [], "model_remains": [1]}),
        json!({"five_hour": {"utilization": "many"}, "rate_limit": {"primary_window": "x"}, "buckets": [1, null],
            "models": {"m": null}, "model_remains": [{}], "success": true, "data": {"limits": [1, {"type": 2}]}}),
        Value::Null,
    ];
    for provider in PROVIDERS {
        for answer in &nonsense {
            for answers in [vec![], vec![answer.clone()], vec![answer.clone(), answer.clone()]] {
                let windows = (provider.read)(&answers).map(|quota| quota.windows.len()).unwrap_or_default();
                assert_eq!(windows, 0, "{} {answer}", provider.id);
            }
        }
    }
}
