use openclaw_config::Environment;
use openclaw_config::clock::now_ms;
use serde_json::{Value, json};

use super::*;
/// Output for a home directory with this config, these credentials and these variables.
struct Said {
    document: Value,
    text: Vec<String>,
    code: u8,
}

fn said(config: &str, store: &Value, vars: &[(&str, &str)]) -> Said {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join(".openclaw");
    let agent_dir = state.join("agents/main/agent");
    std::fs::create_dir_all(&agent_dir).unwrap();
    std::fs::write(state.join("openclaw.json"), config).unwrap();
    if !store.is_null() {
        std::fs::write(agent_dir.join("auth-profiles.json"), store.to_string()).unwrap();
    }
    let mut env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
    vars.iter().for_each(|(name, value)| env.set(*name, *value));
    let context = CliContext::new(&env, true);
    let status = ModelsStatus::of(&ModelView::new(&context, None).unwrap(), &context);
    Said {
        text: text::lines(&status, &context),
        code: check_code(&status),
        document: serde_json::to_value(&status).unwrap(),
    }
}

const MOCK: &str = "{ agents: { defaults: { model: { primary: 'mock/mock-1', fallbacks: ['openai/gpt-5.2'] },
        models: { 'mock/mock-1': { alias: 'mk' } } } },
    models: { providers: { mock: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'sk-mock-0123456789abcdef',
        models: [{ id: 'mock-1', name: 'Mock One', contextWindow: 32000 }] } } } }";

#[test]
fn without_any_credential_the_offline_guide_answers() {
    let said = said("{}", &Value::Null, &[]);
    assert_eq!((&said.document["resolvedDefault"], said.code), (&json!("offline/guide"), 0));
}

#[test]
fn a_key_in_the_environment_counts() {
    let said = said(MOCK, &Value::Null, &[("OPENAI_API_KEY", "sk-0123456789-0123456789")]);
    assert_eq!((&said.document["auth"]["missingProvidersInUse"], said.code), (&json!([]), 0));
    let openai = json!({
        "provider": "openai", "effective": {"kind": "env", "detail": "...6789"},
        "profiles": {"count": 0, "oauth": 0, "token": 0, "apiKey": 0, "labels": []},
        "env": {"value": "...6789", "source": "env: OPENAI_API_KEY"},
    });
    assert_eq!(said.document["auth"]["providers"][1], openai);
}

#[test]
fn every_profile_is_shown_with_how_it_is_and_without_its_secret() {
    let hour = 3_600_000;
    let now = now_ms();
    let store = json!({"version": 1, "profiles": {
        "openai:work": {"type": "api_key", "provider": "openai", "key": "sk-secret-0123456789abcd"},
        "anthropic:manual": {"type": "token", "provider": "anthropic", "token": "sk-ant-oat01-secret-0123456789wxyz", "expires": now + 3 * hour + 1000},
        "openai-codex:me@x": {"type": "oauth", "provider": "openai-codex", "access": "secret", "refresh": "secret", "expires": now + 240 * hour, "email": "me@x"},
    }, "usageStats": {
        "openai:work": {"errorCount": 1, "lastFailureAt": now, "cooldownUntil": now + 5 * 60_000},
        "anthropic:manual": {"lastFailureAt": now, "disabledUntil": now + 4 * hour, "disabledReason": "billing"},
    }});
    let said = said(MOCK, &store, &[]);
    assert!(!said.document.to_string().contains("secret") && !said.text.join("\n").contains("secret"));
    let auth = &said.document["auth"];
    assert_eq!(auth["providersWithOAuth"], json!(["anthropic (1)", "openai-codex (1)"]));
    let labels: Vec<&Value> =
        auth["providers"].as_array().unwrap().iter().map(|it| &it["profiles"]["labels"]).collect();
    assert_eq!(
        json!(labels),
        json!([
            ["anthropic:manual=token:...wxyz [disabled:billing 4h]"],
            [],
            ["openai:work=...abcd [cooldown 5m]"],
            ["openai-codex:me@x=OAuth (me@x)"]
        ])
    );
    let unusable: Vec<_> =
        auth["unusableProfiles"].as_array().unwrap().iter().map(|it| &it["profileId"]).collect();
    assert_eq!(json!(unusable), json!(["openai:work", "anthropic:manual"]), "the soonest back first");
    let statuses: Vec<_> =
        auth["oauth"]["profiles"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(json!(statuses), json!(["expiring", "static", "ok"]));
    let at = said.text.iter().position(|line| line == "OAuth/token status").unwrap();
    assert_eq!(
        said.text[at + 1..],
        [
            "- anthropic",
            "  - anthropic:manual expiring expires in 3h",
            "- openai-codex",
            "  - openai-codex:me@x ok expires in 10d"
        ]
    );
    assert!(said.text.iter().any(|line| line.starts_with("- anthropic:manual disabled (billing) until 20")));
    assert_eq!(said.code, 2, "one expires within a day");
}

#[test]
fn the_check_says_the_worst() {
    let token = |expires: i64| json!({"profiles": {"openai:t": {"type": "token", "provider": "openai", "token": "t", "expires": expires}}});
    let day = 86_400_000;
    let rows = [
        (Value::Null, 1),
        (token(now_ms() - 1), 1),
        (token(now_ms() + day - 10_000), 2),
        (token(now_ms() + day + 60_000), 0),
    ];
    for (store, expect) in rows {
        assert_eq!(said(MOCK, &store, &[]).code, expect, "{store}");
    }
}

#[test]
fn how_long_prompts_are_kept_is_what_a_call_would_ask_for() {
    let model = "'anthropic/claude-opus-4-6'";
    let key = [("ANTHROPIC_API_KEY", "k")];
    let token =
        json!({"profiles": {"anthropic:t": {"type": "token", "provider": "anthropic", "token": "t"}}});
    let written = |params: &str| {
        format!(
            "{{ agents: {{ defaults: {{ model: {model}, models: {{ {model}: {{ params: {{ {params} }} }} }} }} }} }}"
        )
    };
    let rows = [
        (written(""), Value::Null, &key[..], json!({"anthropic/claude-opus-4-6": "long"})),
        (written("cacheRetention: 'none'"), Value::Null, &key, json!({"anthropic/claude-opus-4-6": "none"})),
        (written("cacheControlTtl: '5m'"), Value::Null, &key, json!({"anthropic/claude-opus-4-6": "short"})),
        (written(""), token, &[], json!({"anthropic/claude-opus-4-6": "short"})),
        (MOCK.to_owned(), Value::Null, &[], Value::Null),
    ];
    for (config, store, vars, expect) in rows {
        assert_eq!(said(&config, &store, vars).document["cacheRetention"], expect, "{config}");
    }
}

#[test]
fn keys_of_the_login_shell_are_named() {
    let shell = tempfile::tempdir().unwrap();
    let path = shell.path().join("shell");
    std::fs::write(&path, "#!/bin/sh\nprintf 'OPENAI_API_KEY=sk-0123456789-0123456789\\0'\n").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let asked = MOCK.replacen('{', "{ env: { shellEnv: { enabled: true } },", 1);
    let said = said(&asked, &Value::Null, &[("SHELL", path.to_str().unwrap())]);
    let auth = &said.document["auth"];
    assert_eq!(auth["shellEnvFallback"], json!({"enabled": true, "appliedKeys": ["OPENAI_API_KEY"]}));
    let env = json!({"value": "...6789", "source": "shell env: OPENAI_API_KEY"});
    assert_eq!(auth["providers"][1]["env"], env);
    assert!(said.text.iter().any(|line| line.ends_with("on (applied: OPENAI_API_KEY)")), "{:?}", said.text);
}
