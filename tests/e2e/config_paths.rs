//! `openclaw config` with keys that have dots, and with values that are no JSON5.

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, ok, openclaw};

fn with_models() -> GatewayUnderTest {
    let models = json!({"openai/gpt-5.2": {"alias": "gpt"}, "openai/gpt-4o": {"alias": "four"}});
    gateway().config(json!({"agents": {"defaults": {"models": models}}})).prepare().unwrap()
}

fn file(gateway: &GatewayUnderTest) -> Value {
    serde_json::from_slice(&std::fs::read(gateway.state_dir().join("openclaw.json")).unwrap()).unwrap()
}

#[tokio::test]
async fn keys_with_dots_are_read_set_and_removed() {
    let gateway = with_models();
    let written = [
        r"agents.defaults.models.openai/gpt-5\.2.alias",
        "agents.defaults.models[openai/gpt-5.2].alias",
        r#"agents.defaults.models["openai/gpt-5.2"].alias"#,
        "agents.defaults.models['openai/gpt-5.2'].alias",
    ];
    for (at, path) in written.into_iter().enumerate() {
        let alias = format!("new{at}");
        ok(&gateway, &["config", "set", path, &alias]).await;
        assert_eq!(ok(&gateway, &["config", "get", path]).await, format!("{alias}\n"), "{path}");
        assert_eq!(
            file(&gateway)["agents"]["defaults"]["models"]["openai/gpt-5.2"],
            json!({"alias": alias}),
            "{path}"
        );
    }
    ok(&gateway, &["config", "unset", written[0]]).await;
    let models = file(&gateway)["agents"]["defaults"]["models"].clone();
    assert_eq!(models, json!({"openai/gpt-4o": {"alias": "four"}}), "what became empty goes too");
    let provider = json!({"baseUrl": "http://127.0.0.1:1/v1", "models": []}).to_string();
    ok(&gateway, &["config", "set", r"models.providers.llama\.cpp", &provider]).await;
    assert_eq!(file(&gateway)["models"]["providers"]["llama.cpp"]["baseUrl"], "http://127.0.0.1:1/v1");
    let meant = "Did you mean: models.providers[\"llama.cpp\"].baseUrl";
    openclaw(&gateway, &["config", "get", "models.providers.llama.cpp.baseUrl"])
        .await
        .failed(&["not found", meant]);
    openclaw(&gateway, &["config", "get", "agents.defaults.models[openai"]).await.failed(&["Invalid path"]);
}

#[tokio::test]
async fn broken_json5_is_refused_and_a_plain_word_is_a_text() {
    let gateway = with_models();
    let before = file(&gateway);
    for broken in ["{primary: 'openai/gpt-5.2'", "[1, 2", "\"half", "'half"] {
        let refused = openclaw(&gateway, &["config", "set", "messages.responsePrefix", broken]).await;
        refused.failed(&[
            "Failed to parse JSON5 value: SyntaxError: ",
            "If it is meant as text: openclaw config set",
        ]);
    }
    assert_eq!(file(&gateway), before);
    ok(&gateway, &["config", "set", "ui.assistant.name", "Clawd"]).await;
    assert_eq!(file(&gateway)["ui"]["assistant"]["name"], "Clawd");
    ok(&gateway, &["config", "set", "messages.responsePrefix", "\"[{model}]\""]).await;
    assert_eq!(file(&gateway)["messages"]["responsePrefix"], "[{model}]");
}

/// The first line is OpenClaw's, which scripts match.
#[tokio::test]
async fn a_key_that_is_not_there_comes_with_the_default_that_is_in_force() {
    let gateway = gateway().prepare().unwrap();
    for (path, told) in [
        ("gateway.port", "The config does not have it; in force is 18789 (the default).\n"),
        ("gateway.bind", "The config does not have it; in force is loopback (the default).\n"),
        (
            "agents.defaults.workspace",
            "The config does not have it; in force is ~/.openclaw/workspace (the default).\n",
        ),
        ("gateway.nope", ""),
    ] {
        let mut command = gateway.command();
        command.args(["config", "get", path]);
        let ended = Ended::of(command).await;
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
        assert_eq!(ended.err, format!("Config path not found: {path}\n{told}"));
    }
}

#[tokio::test]
async fn a_variable_and_an_included_file_that_are_missing_are_what_is_to_be_mended() {
    let home = gateway().prepare().unwrap();
    let path = home.state_dir().join("openclaw.json");
    let rows = [
        (
            r#"{"gateway": {"auth": {"token": "${NO_SUCH_VARIABLE}"}}}"#,
            "NO_SUCH_VARIABLE",
            "Set what is named above in the",
        ),
        (r#"{"gateway": {"$include": "./none.json5"}}"#, "none.json5", "Put the included file in order"),
    ];
    for (text, name, fix) in rows {
        std::fs::write(&path, text).unwrap();
        let start = openclaw(&home, &["gateway"]).await;
        start.failed(&[name, fix]);
        assert!(!start.err.contains("Fix what is named above"), "{start:?}");
    }
}

#[tokio::test]
async fn several_mistakes_are_mended_one_by_one() {
    let gateway = gateway().prepare().unwrap();
    let (path, mut broken) = (gateway.state_dir().join("openclaw.json"), file(&gateway));
    broken["gateway"]["port"] = json!("abc");
    broken["foo"] = json!(1);
    broken["agent"] = json!({"skipBootstrap": true});
    let port = "\n  - gateway.port: Invalid input: expected number, received string";
    let foo = "\n  - <root>: Unrecognized key: \"foo\"";
    let moved = "Keys of older versions move by themselves after that: agent.";
    let rows: [(&[&str], &str, &str, &[&str]); 4] = [
        (&["doctor", "--remove-unknown"], port, foo, &["config", "unset", "gateway.port"]),
        (&["config", "unset", "foo"], port, foo, &["config", "set", "gateway.port", "18950"]),
        (&["config", "set", "gateway.port", "18950"], foo, port, &["config", "unset", "foo"]),
        (&["config", "unset", "gateway.port"], foo, port, &["doctor", "--remove-unknown"]),
    ];
    for (first, left, mended, then) in rows {
        std::fs::write(&path, broken.to_string()).unwrap();
        let start = openclaw(&gateway, &["gateway", "run"]).await;
        start.failed(&[port, foo, moved, "Fix what is named above"]);
        assert!(!start.err.contains("  - agent"), "{start:?}");
        // What mends nothing is refused, and so is another mistake in the place of one.
        let worse: [&[&str]; 4] = [
            &["config", "set", "logging.level", "info"],
            &["config", "set", "gateway.port", "xyz"],
            &["config", "set", "gateway", "{prt: 1}"],
            &["config", "set", "bar", "1"],
        ];
        for change in worse {
            openclaw(&gateway, change).await.failed(&["Config validation failed:"]);
        }
        let told = ok(&gateway, first).await;
        assert!(told.contains(left) && told.contains(moved) && !told.contains(mended), "{told}");
        openclaw(&gateway, &["agents", "list"]).await.failed(&[left]);
        ok(&gateway, then).await;
        ok(&gateway, &["agents", "list"]).await;
    }
}

#[tokio::test]
async fn unknown_keys_are_named_and_taken_out_where_somebody_asks() {
    let rows = [
        (json!({"aliases": {"1": "anthropic/claude-opus-4-5"}}), "aliases"),
        (json!({"agents": {"list": [{"id": "main", "thinking": "adaptive"}]}}), "agents.list.0.thinking"),
        (json!({"agents": {"defaults": {"nope": 1}}}), "agents.defaults.nope"),
        (json!({"channels": {"telegram": {"botTokn": "x", "enabled": false}}}), "channels.telegram.botTokn"),
    ];
    for (more, key) in rows {
        let gateway = gateway().config(more).prepare().unwrap();
        let before = file(&gateway);
        let fixed = ok(&gateway, &["doctor", "--fix"]).await;
        let told =
            format!("Unknown keys are kept: {key}. To take them out: openclaw doctor --remove-unknown.");
        assert!(fixed.contains(&told), "{fixed}");
        assert!(!fixed.contains("does not act on"), "nobody will ever act on it: {fixed}");
        assert_eq!(file(&gateway), before);
        openclaw(&gateway, &["agents", "list"]).await.failed(&["openclaw doctor --remove-unknown"]);

        let removed = ok(&gateway, &["doctor", "--remove-unknown"]).await;
        assert!(removed.contains(&format!("Removed from the config: {key}\n")), "{removed}");
        ok(&gateway, &["agents", "list"]).await;
        let backup = std::fs::read(gateway.state_dir().join("openclaw.json.bak")).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&backup).unwrap(), before, "{key}");
        let again = ok(&gateway, &["doctor", "--remove-unknown"]).await;
        assert!(again.contains("The config has no unknown keys."), "{again}");
    }
}
