//! Credentials are added from the command line, and used by what runs already.

use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openclaw_testkit::login_server::{LoginServer, Scripted};
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use crate::gateway;
use crate::support::command::{Ended, openclaw};
use crate::support::config::config;
use crate::support::conversation::turn;

/// Runs a command and gives it this on standard input.
async fn given(gateway: &GatewayUnderTest, args: &[&str], input: &str) -> Ended {
    let mut command = gateway.command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn store(gateway: &GatewayUnderTest) -> Value {
    let path = gateway.state_dir().join("agents/main/agent/auth-profiles.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_token_is_used_by_a_gateway_that_runs_already() {
    let server = ModelServer::queue([Reply::text("here I am")]).await;
    let without_key = json!({
        "agents": {"defaults": {"model": {"primary": "groq/llama"}}},
        "models": {"providers": {"groq": {"baseUrl": server.v1(), "api": "openai-completions",
            "models": [{"id": "llama", "name": "Llama"}]}}}});
    let gateway = gateway().config(without_key).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();

    let args = ["models", "auth", "paste-token", "--provider", "Groq", "--expires-in", "365d"];
    let pasted = given(&gateway, &args, "  gsk-secret-0123\n456 \n").await;
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    assert!(pasted.out.contains("Auth profile: groq:manual (groq/token)"), "{pasted:?}");
    assert!(!format!("{pasted:?}").contains("gsk-secret"), "a secret is never echoed");
    assert_eq!(store(&gateway)["profiles"]["groq:manual"]["token"], "gsk-secret-0123456");
    assert_eq!(
        config(&gateway)["auth"]["profiles"]["groq:manual"],
        json!({"provider": "groq", "mode": "token"})
    );

    assert_eq!(turn(&mut client, "main", "hello", "run-1").await, "here I am");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer gsk-secret-0123456"));
}

#[tokio::test]
async fn an_order_is_set_shown_and_cleared() {
    let gateway = gateway().prepare().unwrap();
    for id in ["groq:a", "groq:b"] {
        let args = ["models", "auth", "paste-token", "--provider", "groq", "--profile-id", id];
        assert_eq!(given(&gateway, &args, id).await.code, Some(0));
    }
    let order = ["models", "auth", "order"];
    let run = async |words: &[&str]| {
        openclaw(&gateway, &[&order[..], words, &["--provider", "groq"]].concat()).await
    };
    run(&["set", "groq:a", "groq:nobody"]).await.failed(&["Auth profile \"groq:nobody\" not found in"]);
    let set = run(&["set", "groq:b", "groq:a", "groq:b"]).await;
    assert!(set.out.ends_with("Order override: groq:b, groq:a\n"), "{set:?}");
    let shown: Value = serde_json::from_str(&run(&["get", "--json"]).await.out).unwrap();
    let keys: Vec<&String> = shown.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["agentId", "agentDir", "provider", "authStorePath", "order"]);
    assert_eq!((&shown["agentId"], &shown["order"]), (&json!("main"), &json!(["groq:b", "groq:a"])));
    let cleared = run(&["clear"]).await;
    assert!(cleared.out.ends_with("Order override: (none)\n"), "{cleared:?}");
    assert_eq!(store(&gateway).get("order"), None);
    openclaw(&gateway, &["models", "auth", "order", "get"]).await.failed(&["Missing --provider."]);
}

/// A key that was refused does not keep the next source of a key from being used.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_makes_room_for_the_key_of_the_configuration() {
    let server = ModelServer::answering(|request| match request.header("authorization") {
        Some("Bearer wrong") => Reply::openai_error(401, "invalid_request_error", "bad key"),
        _ => Reply::text("here I am"),
    })
    .await;
    let gateway = gateway().fake_model(&server.v1()).start().await.unwrap();
    let paste = ["models", "auth", "paste-token", "--provider", "fake"];
    let pasted = given(&gateway, &paste, "wrong").await;
    assert!(pasted.code == Some(0) && pasted.err.is_empty(), "{pasted:?}");
    let ask = ["agent", "--agent", "main", "--message", "hello"];
    openclaw(&gateway, &ask).await.failed(&["bad key", "credential fake:manual"]);
    assert_eq!(openclaw(&gateway, &ask).await.out, "here I am\n");
    // Without another source the error says which credential it is, and the step.
    openclaw(&gateway, &["config", "unset", "models.providers.fake.apiKey"]).await;
    openclaw(&gateway, &ask).await.failed(&[
        "Error: No available auth profile for fake (all in cooldown or unavailable). fake:manual is not tried before",
        "(auth). `openclaw models auth paste-token --provider fake` stores another credential",
    ]);
}

#[tokio::test]
async fn a_token_for_a_provider_that_nobody_knows_is_stored_with_a_warning() {
    let gateway = gateway().prepare().unwrap();
    let pasted = given(&gateway, &["models", "auth", "paste-token", "--provider", "anthropc"], "t").await;
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    assert!(pasted.err.contains("Provider anthropc is not known"), "{pasted:?}");
    assert!(pasted.err.contains("Did you mean anthropic?"), "{pasted:?}");
}

#[tokio::test]
async fn what_cannot_be_done_says_what_to_do_instead() {
    let gateway = gateway().prepare().unwrap();
    let rows: [(&[&str], &str, &[&str]); 8] = [
        (&["login"], "", &["Missing --provider.", "openai-codex"]),
        (&["login", "--provider", "anthropic"], "", &["There is no login", "setup-token"]),
        (&["login", "--provider", "google-gemini-cli"], "", &["provider plugin", "GEMINI_API_KEY"]),
        (&["login", "--provider", "openai-codex", "--method", "x"], "", &["Unknown auth method \"x\""]),
        (&["setup-token"], "sk-ant-api03-secret", &["begins with sk-ant-oat01-"]),
        (&["setup-token"], "", &["No token was given."]),
        (&["paste-token"], "t", &["Missing --provider."]),
        (&["add"], "", &["no terminal"]),
    ];
    for (args, input, words) in rows {
        let ended = given(&gateway, &[&["models", "auth"], args].concat(), input).await;
        ended.failed(words);
        assert!(!format!("{ended:?}").contains("api03"), "{ended:?}");
    }
    assert!(!gateway.state_dir().join("agents/main/agent/auth-profiles.json").exists());
}

#[tokio::test]
async fn a_damaged_file_is_kept_aside_when_a_token_is_added() {
    let gateway = gateway().prepare().unwrap();
    let dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("auth-profiles.json"), "{oops").unwrap();
    let setup = given(&gateway, &["models", "auth", "setup-token"], "sk-ant-oat01-abc").await;
    assert_eq!(setup.code, Some(0), "{setup:?}");
    assert!(setup.err.contains("it is kept as"), "{setup:?}");
    assert_eq!(store(&gateway)["profiles"]["anthropic:manual"]["token"], "sk-ant-oat01-abc");
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 2);
}

/// A parameter of an address.
fn parameter<'p>(page: &'p str, name: &str) -> &'p str {
    let from = page.split(&format!("&{name}=")).nth(1).unwrap();
    from.split('&').next().unwrap()
}

/// Logs in and pastes the code; the page that was shown, and what else was printed on standard output.
async fn logged_in_to_codex(gateway: &GatewayUnderTest, server: &LoginServer) -> (String, String) {
    let mut command = gateway.command();
    command
        .args(["models", "auth", "login", "--provider", "openai-codex", "--set-default"])
        .env("OPENCLAW_LOGIN_SERVER", server.url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let page = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(page.starts_with(&format!("{}/oauth/authorize?", server.url())), "{page}");
    let input = format!("code-1#{}\n", parameter(&page, "state"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{err}");
    let mut out = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        out.push_str(&line);
    }
    assert!(!format!("{out}{err}").contains("opaque"), "{out}{err}");
    (page, out)
}

/// Spec `models.md` §8.4.
#[tokio::test]
async fn codex_is_logged_in_with_a_pasted_code() {
    let claims = json!({"https://api.openai.com/profile": {"email": "me@example.com"}});
    let named = format!("opaque.{}.opaque", URL_SAFE_NO_PAD.encode(claims.to_string()));
    for (access, name) in [("opaque-access", "default"), (named.as_str(), "me@example.com")] {
        let server = LoginServer::start().await;
        server.script([Scripted::tokens(access, "opaque-refresh", 3_600)]);
        let gateway = gateway().prepare().unwrap();
        let (page, out) = logged_in_to_codex(&gateway, &server).await;
        let id = format!("openai-codex:{name}");
        assert!(out.contains(&format!("Auth profile: {id} (openai-codex/oauth)")), "{out}");
        let asked = &server.requests()[0];
        assert_eq!(asked.path, "/oauth/token");
        for (field, expect) in [
            ("grant_type", "authorization_code"),
            ("client_id", "app_EMoamEEZ73f0CkXaXp7hrann"),
            ("code", "code-1"),
            ("redirect_uri", "http://localhost:1455/auth/callback"),
        ] {
            assert_eq!(asked.field(field), expect, "{field}");
        }
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(asked.field("code_verifier")));
        assert_eq!(challenge, parameter(&page, "code_challenge"));
        assert_eq!(store(&gateway)["profiles"][&id]["refresh"], "opaque-refresh");
        assert_eq!(config(&gateway)["agents"]["defaults"]["model"]["primary"], "openai-codex/gpt-5.3-codex");
    }
}

#[tokio::test]
async fn copilot_is_logged_in_with_a_code_for_another_device() {
    let server = LoginServer::start().await;
    let code = json!({"device_code": "d", "user_code": "ABCD-1234", "verification_uri": "https://x/device",
        "expires_in": 900, "interval": 1});
    server.script([
        Scripted::status(200, &code.to_string()),
        Scripted::status(200, r#"{"error":"authorization_pending"}"#),
        Scripted::status(200, r#"{"access_token":"gho-secret"}"#),
    ]);
    let gateway = gateway().prepare().unwrap();
    let mut command = gateway.command();
    command.args(["models", "auth", "login-github-copilot"]).env("OPENCLAW_LOGIN_SERVER", server.url());
    let ended = Ended::of(command).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("Code: ABCD-1234") && !ended.out.contains("gho-secret"), "{ended:?}");
    assert_eq!(store(&gateway)["profiles"]["github-copilot:github"]["token"], "gho-secret");
    let asked = server.requests();
    let paths: Vec<_> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(paths, ["/login/device/code", "/login/oauth/access_token", "/login/oauth/access_token"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_need_the_same_login_renew_it_once() {
    let logins = LoginServer::start().await;
    // A second question would be answered with status 500.
    logins.script([Scripted::tokens("new-access", "new-refresh", 3_600)]);
    let server = ModelServer::answering(|_| Reply::text("here I am")).await;
    let elsewhere = json!({
        "agents": {"defaults": {"model": {"primary": "openai-codex/gpt-5.3-codex"}}},
        "models": {"providers": {"openai-codex": {"baseUrl": server.v1(), "models": []}}}});
    let gateway = gateway().config(elsewhere).prepare().unwrap();
    let dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    let expired = json!({"version": 1, "profiles": {"openai-codex:default": {"type": "oauth",
        "provider": "openai-codex", "access": "old", "refresh": "r1", "expires": 1, "accountId": "acc"}}});
    std::fs::write(dir.join("auth-profiles.json"), expired.to_string()).unwrap();
    let run = |session: &str| {
        let mut command = gateway.command();
        command
            .args(["agent", "--local", "--session-id", session, "-m", "hello"])
            .env("OPENCLAW_LOGIN_SERVER", logins.url());
        Ended::of(command)
    };
    let (one, two) = tokio::join!(run("first-session"), run("second-session"));
    for ended in [one, two] {
        assert!(ended.code == Some(0) && ended.out.contains("here I am"), "{ended:?}");
    }
    assert_eq!(logins.requests().len(), 1);
    assert_eq!(store(&gateway)["profiles"]["openai-codex:default"]["refresh"], "new-refresh");
    let authorized = server.requests().iter().all(|r| r.header("authorization") == Some("Bearer new-access"));
    assert!(authorized && server.requests().len() == 2);
}
