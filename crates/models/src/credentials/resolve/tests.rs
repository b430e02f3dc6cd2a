use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_000_000;

/// Looks a provider's keys up and shows `source=key` of each, and where it is good for if not everywhere.
async fn check(
    profiles: Value,
    providers: Value,
    variables: &[(&str, &str)],
    asked: (&str, Option<&str>),
    expect: Result<&[&str], &str>,
) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), profiles.to_string()).unwrap();
    let Value::Object(providers) = providers else { panic!() };
    let settings = ModelSettings {
        providers: providers.into_iter().map(|(id, p)| (id, serde_json::from_value(p).unwrap())).collect(),
        ..ModelSettings::default()
    };
    let keyring = Keyring {
        chosen_at: None,
        store: &AuthStore::load(dir.path()).unwrap(),
        catalog: &Catalog::new(&settings),
        settings: &settings,
        variables: &variables.iter().copied().collect(),
        commands: &KeyCommands::default(),
        logins: &Logins::default(),
        agent_dir: Path::new("/agents/main/agent"),
        agent: AgentFlag::default(),
        now: NOW,
    };
    let found = keyring
        .keys(&ProviderId::normalize(asked.0), asked.1.map_or(ProfileWish::Any, ProfileWish::Only))
        .await;
    let shown = found.map(|keys| {
        let show = |key: &ResolvedKey| {
            let secret = key.secret.as_ref().map_or("-", ExposeSecret::expose_secret);
            let place = key.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
            format!("{} {}={secret}{place}", key.label.mode, key.label.source)
        };
        keys.iter().map(show).collect::<Vec<_>>()
    });
    let expect = expect.map(|rows| rows.iter().map(|row| (*row).to_owned()).collect()).map_err(str::to_owned);
    assert_eq!(shown.map_err(|error| error.to_string()), expect, "{asked:?}");
}

fn profile(id: &str, provider: &str, key: &str) -> Value {
    json!({"profiles": {id: {"type": "api_key", "provider": provider, "key": key}}})
}

#[tokio::test]
async fn profiles_come_before_variables_before_the_configuration() {
    let configured = json!({"groq": {"baseUrl": "https://g", "apiKey": "from-config", "models": []}});
    let env = [("GROQ_API_KEY", "from-env")];
    let none = json!({});
    check(
        profile("groq:a", "groq", "from-profile"),
        configured.clone(),
        &env,
        ("groq", None),
        Ok(&["api-key profile:groq:a=from-profile"]),
    )
    .await;
    check(
        none.clone(),
        configured.clone(),
        &env,
        ("groq", None),
        Ok(&["api-key env: GROQ_API_KEY=from-env"]),
    )
    .await;
    check(none.clone(), configured, &[], ("groq", None), Ok(&["api-key models.json=from-config"])).await;
    let both = [("ANTHROPIC_API_KEY", "key"), ("ANTHROPIC_OAUTH_TOKEN", "token")];
    check(none, json!({}), &both, ("anthropic", None), Ok(&["oauth env: ANTHROPIC_OAUTH_TOKEN=token"])).await;
}

#[tokio::test]
async fn a_configured_key_may_be_a_literal_a_variable_a_reference_or_a_command() {
    let env = [("MY_KEY", "from-env"), ("PATH", "/usr/bin:/bin")];
    let rows: [(&str, Result<&[&str], &str>); 6] = [
        ("literal", Ok(&["api-key models.json=literal"])),
        ("MY_KEY", Ok(&["api-key models.json=from-env"])),
        ("${MY_KEY}", Ok(&["api-key models.json=from-env"])),
        ("!echo from-command", Ok(&["api-key models.json=from-command"])),
        ("!exit 2", Err("the apiKey command of provider \"mine\" failed with exit status: 2")),
        ("OTHER_KEY", Ok(&["api-key models.json=OTHER_KEY"])),
    ];
    for (written, expect) in rows {
        let providers = json!({"mine": {"baseUrl": "https://m", "apiKey": written, "models": []}});
        check(json!({}), providers, &env, ("mine", None), expect).await;
    }
}

#[tokio::test]
async fn only_a_server_on_this_machine_needs_no_key() {
    let local = json!({"mine": {"baseUrl": "http://127.0.0.1:8080/v1", "models": []}});
    check(json!({}), local, &[], ("mine", None), Ok(&["none =-"])).await;
    let remote = json!({"mine": {"baseUrl": "https://example.com/v1", "models": []}});
    let text = "No API key found for provider \"mine\". Auth store: /agents/main/agent/auth-profiles.json (agentDir: \
                /agents/main/agent). Set models.providers.mine.apiKey in the config, or run `openclaw models auth \
                paste-token --provider mine`.";
    check(json!({}), remote, &[], ("mine", None), Err(text)).await;
}

#[tokio::test]
async fn a_profile_asked_for_is_the_only_one() {
    let two = json!({"profiles": {
        "groq:a": {"type": "api_key", "provider": "groq", "key": "a"},
        "groq:b": {"type": "token", "provider": "groq", "token": "b", "expires": NOW + 1},
        "old": {"type": "oauth", "provider": "groq", "access": "x", "refresh": "y", "expires": NOW}}});
    let ask = |id| ("groq", Some(id));
    check(two.clone(), json!({}), &[], ask("groq:b"), Ok(&["token profile:groq:b=b"])).await;
    check(two.clone(), json!({}), &[], ask("gone"), Err("No credentials found for profile \"gone\".")).await;
    check(two.clone(), json!({}), &[], ask("old"), Err("the login of profile \"old\" has expired and can't be renewed; log in again with `openclaw models auth login`, or use an API key")).await;
    check(
        two.clone(),
        json!({}),
        &[],
        ("xai", Some("groq:a")),
        Err("Auth profile \"groq:a\" is for groq, not xai."),
    )
    .await;
    check(two, json!({}), &[], ("groq", None), Ok(&["token profile:groq:b=b", "api-key profile:groq:a=a"]))
        .await;
}

/// `auth: "aws-sdk"` of `models.md` §8.3: whatever else there is, AWS's own chain counts.
#[tokio::test]
async fn a_provider_that_wants_the_chain_of_aws_gets_nothing_else() {
    let wants =
        json!({"groq": {"baseUrl": "https://g", "auth": "aws-sdk", "apiKey": "from-config", "models": []}});
    let (key, aws) = (("GROQ_API_KEY", "from-env"), ("AWS_BEARER_TOKEN_BEDROCK", "b"));
    let stored = || profile("groq:a", "groq", "from-profile");
    let chain = r#"aws-sdk env: AWS_BEARER_TOKEN_BEDROCK={"token":"b","region":"us-east-1"}"#;
    check(stored(), wants.clone(), &[key, aws], ("groq", None), Ok(&[chain])).await;
    let asked = ("groq", Some("groq:a"));
    check(stored(), wants.clone(), &[key, aws], asked, Ok(&["api-key profile:groq:a=from-profile"])).await;
    let text = "No API key found for provider \"groq\". Auth store: /agents/main/agent/auth-profiles.json (agentDir: \
                /agents/main/agent). Set GROQ_API_KEY in ~/.openclaw/.env or in the environment of the gateway's service \
                and restart the gateway; or, without a restart, run `openclaw models auth paste-token --provider groq`.";
    check(stored(), wants, &[key], ("groq", None), Err(text)).await;
}

#[tokio::test]
async fn a_login_of_codex_is_no_key_of_openai() {
    let login = json!({"profiles": {"openai-codex:me@x": {"type": "oauth", "provider": "openai-codex", "access": "a",
        "refresh": "r", "expires": NOW + 1}}});
    let text = "No API key found for provider \"openai\". You are logged in with OpenAI Codex (ChatGPT): use \
                openai-codex/gpt-5.3-codex, or set OPENAI_API_KEY to use openai models.";
    check(login.clone(), json!({}), &[], ("openai", None), Err(text)).await;
    let key = [("OPENAI_API_KEY", "k")];
    check(login, json!({}), &key, ("openai", None), Ok(&["api-key env: OPENAI_API_KEY=k"])).await;
}

/// Spec `models.md` §2.3: the address of Cloudflare's gateway; §8.4: the keys of Google's logins.
#[tokio::test]
async fn what_a_profile_says_besides_its_secret_is_used() {
    let cloudflare = |metadata: Value| {
        json!({"profiles": {"cf": {"type": "api_key", "provider": "cloudflare-ai-gateway", "key": "k",
            "metadata": metadata}}})
    };
    let google = |provider: &str, project: Value| {
        json!({"profiles": {"g": {"type": "oauth", "provider": provider, "access": "a", "refresh": "r",
            "expires": NOW + 1, "projectId": project}}})
    };
    let rows = [
        (
            "cloudflare-ai-gateway",
            cloudflare(json!({"accountId": "a", "gatewayId": "g"})),
            "api-key profile:cf=k at https://gateway.ai.cloudflare.com/v1/a/g/anthropic",
        ),
        ("cloudflare-ai-gateway", cloudflare(json!({"accountId": "a"})), "api-key profile:cf=k"),
        (
            "google-gemini-cli",
            google("google-gemini-cli", json!("p")),
            r#"oauth profile:g={"token":"a","projectId":"p"}"#,
        ),
        (
            "google-antigravity",
            google("google-antigravity", json!("p")),
            r#"oauth profile:g={"token":"a","projectId":"p"}"#,
        ),
        ("google-gemini-cli", google("google-gemini-cli", Value::Null), "oauth profile:g=a"),
    ];
    for (provider, profiles, expect) in rows {
        check(profiles, json!({}), &[], (provider, None), Ok(&[expect])).await;
    }
}

#[tokio::test]
async fn when_all_profiles_rest_nobody_is_asked() {
    let cooling_down = json!({
        "profiles": {"groq:a": {"type": "api_key", "provider": "groq", "key": "a"}},
        "usageStats": {"groq:a": {"cooldownUntil": NOW + 1}}});
    let text = "No available auth profile for groq (all in cooldown or unavailable). groq:a is not tried before \
                1970-01-01T00:16:40Z. `openclaw models auth paste-token --provider groq` stores another credential; \
                `openclaw models status` shows them.";
    check(cooling_down, json!({}), &[("GROQ_API_KEY", "k")], ("groq", None), Err(text)).await;
}

#[tokio::test]
async fn profiles_that_were_refused_make_room_for_the_next_source() {
    let refused = |stats: Value| {
        let mut store = profile("groq:a", "groq", "a");
        store["usageStats"] = json!({"groq:a": stats});
        store
    };
    let barred = || refused(json!({"cooldownUntil": NOW + 1, "errorCount": 1, "failureCounts": {"auth": 1}}));
    let env = [("GROQ_API_KEY", "from-env")];
    let configured =
        |key: Value| json!({"groq": {"baseUrl": "http://127.0.0.1:1", "apiKey": key, "models": []}});
    let (ask, by_env, by_config) =
        (("groq", None), "api-key env: GROQ_API_KEY=from-env", "api-key models.json=from-config");
    check(barred(), json!({}), &env, ask, Ok(&[by_env])).await;
    check(barred(), configured(json!("from-config")), &[], ask, Ok(&[by_config])).await;
    // Its cooldown is over: it is tried again, and the next source answers if it is still refused.
    let over = refused(json!({"cooldownUntil": NOW - 1, "failureCounts": {"auth": 1}}));
    check(over, json!({}), &env, ask, Ok(&["api-key profile:groq:a=a", by_env])).await;
    let fine = refused(json!({"lastUsed": 5}));
    check(fine, json!({}), &env, ask, Ok(&["api-key profile:groq:a=a"])).await;
    let text = "No available auth profile for groq (all in cooldown or unavailable). groq:a is not tried before \
                1970-01-01T00:16:40Z (auth). `openclaw models auth paste-token --provider groq` stores another \
                credential; `openclaw models status` shows them.";
    // No key, a server that needs none, and a variable that is not set do not help.
    for providers in [json!({}), configured(Value::Null), configured(json!("${GROQ_API_KEY}"))] {
        check(barred(), providers, &[], ask, Err(text)).await;
    }
    let limited = refused(json!({"cooldownUntil": NOW + 1, "failureCounts": {"rate_limit": 1}}));
    check(limited, json!({}), &env, ask, Err(&text.replace("(auth)", "(rate_limit)"))).await;
}

#[test]
fn labels_show_too_little_of_a_key_to_use_it() {
    let rows = [
        ("sk-mock-0123456789abcdef0123456789abcdef", "sk-mock-...89abcdef", "sk-m…cdef", "sk-moc…abcdef"),
        ("fake-key", "fa...ey", "…", "…"),
        ("lk", "...", "…", "…"),
    ];
    for (key, long, short, card) in rows {
        let label = ResolvedKey::new(SecretString::from(key), "api-key", String::new()).label;
        assert_eq!((label.masked.as_str(), label.snippet.as_str(), label.card.as_str()), (long, short, card));
    }
}
