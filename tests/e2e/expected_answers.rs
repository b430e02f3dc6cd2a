//! Expectations of people on the command line: errors say what went wrong and what to do, and obvious things need no flag.

use std::process::Stdio;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, GatewayUnderTest, ReservedPort};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::gateway;
use crate::support::command::{Ended, has, json_of, ok, openclaw};
use crate::support::conversation::turn;
use crate::support::telegram::bot;

/// Runs a command to which a text is piped.
async fn piped(gateway: &GatewayUnderTest, args: &[&str], text: &str) -> Ended {
    let mut command = gateway.command();
    command.args(args).env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let output = timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[tokio::test]
async fn a_method_that_nobody_has_blames_no_other_program() {
    let gateway = gateway().start().await.unwrap();
    for (method, hint) in
        [("nosuch", "There is no such method"), ("sesions.list", "Did you mean sessions.list?")]
    {
        let refused = openclaw(&gateway, &["gateway", "call", method]).await;
        refused.failed(&[&format!("unknown method: {method}"), hint]);
        assert!(!refused.err.contains("That gateway is OpenClaw"), "{refused:?}");
    }
}

#[tokio::test]
async fn the_log_does_not_tell_of_the_commands_that_read_it() {
    let gateway = gateway().start().await.unwrap();
    for _ in 0..2 {
        ok(&gateway, &["health"]).await;
    }
    let logs = ok(&gateway, &["logs"]).await;
    has(&logs, &["gateway started"]);
    assert!(!logs.contains("connected"), "{logs}");
    // Others are told of.
    let _client = gateway.client().await.unwrap();
    gateway.logged("connected").await.unwrap();
}

#[tokio::test]
async fn a_model_that_its_provider_does_not_list_is_told_with_those_it_has() {
    let gateway = gateway().fake_model("http://127.0.0.1:1/v1").prepare().unwrap();
    let set = openclaw(&gateway, &["models", "set", "fake/fake-2"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    has(&set.err, &["fake does not list \"fake-2\"", "has: fake-1", "Did you mean fake/fake-1?"]);
    let right = openclaw(&gateway, &["models", "set", "fake/fake-1"]).await;
    assert_eq!((right.code, right.err.as_str()), (Some(0), ""), "{right:?}");
    let gateway = crate::gateway().fake_model("http://127.0.0.1:1/v1").start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let told = turn(&mut client, "main", "/model fake/other", "r1").await;
    has(
        &told,
        &[
            "Model set to fake/other.",
            "fake does not list \"other\" (models.providers.fake.models has: fake-1)",
        ],
    );
    let told = turn(&mut client, "main", "/model fake/fake-1", "r2").await;
    assert_eq!(told, "Model reset to default (fake/fake-1).");
}

#[tokio::test]
async fn who_adds_a_bot_hears_whether_the_platform_takes_its_token() {
    let server = TelegramServer::start().await;
    let gateway = gateway().env("OPENCLAW_TELEGRAM_API_ROOT", server.root()).prepare().unwrap();
    let token = server.token();
    let add = ["channels", "add", "--channel", "telegram", "--token", &token];
    has(&ok(&gateway, &add).await, &["Telegram takes the token: it is @"]);
    server.revoke(true);
    let file = || std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let before = file();
    let refused = openclaw(&gateway, &[&add[..5], &["222222:AA-a-token-of-a-test"]].concat()).await;
    has(&refused.err, &["Telegram does not take this token", "404", "stored all the same"]);
    assert_ne!(file(), before);
    std::fs::write(gateway.state_dir().join("openclaw.json"), &before).unwrap();
    let refused = openclaw(&gateway, &[&add[..], &["--account", "second"]].concat()).await;
    refused.failed(&["has this token already"]);
    let refused = openclaw(&gateway, &add).await;
    refused.failed(&["Telegram does not take this token", "401", "nothing was changed"]);
    assert!(!refused.err.contains(&token), "{refused:?}");
    assert_eq!(file(), before);
}

#[tokio::test]
async fn what_models_say_is_logged_where_a_flag_asks_for_it() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("named.jsonl");
    let path = ["--raw-stream-path", named.to_str().unwrap()];
    for arguments in [&["--raw-stream"][..], &["--raw-stream", path[0], path[1]]] {
        let setup = gateway().fake_model(&model.v1());
        let setup = arguments.iter().fold(setup, |setup, argument| setup.arg(*argument));
        let mut gateway = setup.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "hi", "r1").await, "hello");
        gateway.terminate().await.unwrap();
        let by_default = gateway.state_dir().join("logs/raw-stream.jsonl");
        let file = if arguments.len() == 1 { &by_default } else { &named };
        assert!(std::fs::read_to_string(file).unwrap().contains("hello"), "{arguments:?}");
        assert_eq!(by_default.exists(), arguments.len() == 1, "{arguments:?}");
    }
}

#[tokio::test]
async fn a_list_without_skills_says_where_they_are_looked_for() {
    let gateway = gateway().config(json!({"skills": {"allowBundled": []}})).prepare().unwrap();
    let listed = ok(&gateway, &["skills", "list"]).await;
    has(
        &listed,
        &["No skills found.", "workspace/skills (this agent)", "~/.openclaw/skills (all agents)", "SKILL.md"],
    );
}

#[tokio::test]
async fn the_doctor_says_that_all_is_well_after_a_new_conversation() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    ok(&gateway, &["doctor", "--fix"]).await;
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hi", "r1").await;
    turn(&mut client, "main", "/new", "r2").await;
    turn(&mut client, "main", "hi again", "r3").await;
    let doctor = ok(&gateway, &["doctor"]).await;
    has(
        &doctor,
        &[
            "State is in order.",
            "runs and answers.",
            "Agent main uses fake/fake-1. Its server can be reached.",
            "Kept from earlier conversations",
        ],
    );

    gateway.terminate().await.unwrap();
    let doctor = ok(&gateway, &["doctor"]).await;
    has(
        &doctor,
        &[
            "State is in order.",
            "No gateway runs here now, so nobody is answered. To start one: openclaw gateway",
        ],
    );
    drop(model);
}

#[tokio::test]
async fn the_doctor_says_that_a_model_is_down_or_has_no_credential() {
    let port = ReservedPort::any().unwrap();
    let url = format!("http://127.0.0.1:{}/v1", port.number().unwrap());
    let down = gateway().fake_model(&url).prepare().unwrap();
    has(
        &ok(&down, &["doctor"]).await,
        &["The model fake/fake-1 of agent main is down: nothing answers at http://127.0.0.1:"],
    );
    let chosen = json!({"agents": {"defaults": {"model": {"primary": "anthropic/claude-opus-4-6"}}}});
    let keyless = gateway().config(chosen).prepare().unwrap();
    let told = ok(&keyless, &["doctor"]).await;
    has(
        &told,
        &["there is no credential for anthropic", "openclaw models auth paste-token --provider anthropic"],
    );
    assert!(!told.contains("State is in order"), "{told}");
}

#[tokio::test]
async fn json_is_taken_before_the_command_too() {
    let gateway = gateway().prepare().unwrap();
    let status = json_of(&gateway, &["--json", "status"]).await;
    assert!(status["gateway"]["reachable"] == json!(false), "{status}");
    openclaw(&gateway, &["--json"]).await.failed(&["unknown option '--json'"]);
}

#[tokio::test]
async fn pairing_needs_neither_a_channel_nor_to_be_told_who_waits() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("unused")).await;
    let gateway = bot(&server, &model, json!({}), json!({})).await;
    has(&ok(&gateway, &["pairing", "list"]).await, &["No pending telegram pairing requests."]);
    for words in [&["pairing", "approve"][..], &["pairing", "approve", "telegram"]] {
        openclaw(&gateway, words).await.failed(&["Whose code?", "Nobody waits on telegram now."]);
    }
    server.push(private_message(5, "hi"));
    let told = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
    let code = told.split("Pairing code: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    has(&ok(&gateway, &["pairing", "list"]).await, &[&code]);
    let command = format!("openclaw pairing approve telegram {code}");
    openclaw(&gateway, &["pairing", "approve"]).await.failed(&["Who waits:", &command]);
    has(&ok(&gateway, &["pairing", "approve", &code]).await, &["Approved telegram sender 5."]);
}

#[tokio::test]
async fn a_login_without_a_channel_says_what_there_is_instead() {
    let gateway = gateway().prepare().unwrap();
    openclaw(&gateway, &["channels", "login"]).await.failed(&[
        "Channel telegram does not support login",
        "openclaw channels add --channel telegram --token <token>",
    ]);
}

#[tokio::test]
async fn a_message_is_piped_in() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("read")).await;
    let gateway = bot(&server, &model, json!({}), json!({})).await;
    let ended = piped(&gateway, &["agent", "--agent", "main", "-m", "-"], "line one\nline two\n").await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "read\n"), "{ended:?}");
    assert!(model.requests()[0].last_user_text().contains("line one\nline two"));
    let ended = piped(&gateway, &["message", "send", "--target", "5", "-m", "-"], "from a pipe\n").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(server.nth_call("sendMessage", 1).await.params["text"], "from a pipe");
    piped(&gateway, &["agent", "--agent", "main", "-m", "-"], "\n")
        .await
        .failed(&["Message (--message) is required"]);
}

#[tokio::test]
async fn the_help_has_examples() {
    let gateway = gateway().prepare().unwrap();
    for (words, example) in [
        (&["--help"][..], "openclaw channels add --channel telegram --token <token>"),
        (&["agent", "--help"], "git diff | openclaw agent --agent main -m -"),
        (&["help", "config", "set"], "openclaw config set gateway.port 19001"),
        (&["pairing", "approve", "--help"], "openclaw pairing approve telegram ABCD2345"),
    ] {
        has(&ok(&gateway, words).await, &["Examples:\n", example]);
    }
}
