//! First steps of somebody who has just installed it: every command says what is, and what to do
//! next.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use nix::pty::openpty;
use openclaw_testkit::{DEADLINE, GatewayUnderTest, TOKEN};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::process::Child;
use tokio::time::timeout;

use crate::gateway;
use crate::support::command::{Ended, openclaw, unaware};

/// A home in which nothing has been done yet.
fn fresh() -> GatewayUnderTest {
    let gateway = gateway().whole_config(Value::Null).prepare().unwrap();
    std::fs::remove_dir(gateway.state_dir()).unwrap();
    gateway
}

/// A port on which nobody listens, while the socket is kept.
fn dead_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

#[tokio::test]
async fn secrets_of_channels_are_redacted_in_config_get() {
    let account =
        json!({"type": "service_account", "private_key": "-----BEGIN KEY-----\nc2VjcmV0\n-----END KEY-----"});
    let channels = json!({
        "nostr": {"privateKey": "nsec1c2VjcmV0"},
        "googlechat": {"serviceAccount": account, "accounts": {"work": {"serviceAccount": "{\"private_key\": \"c2VjcmV0\"}"}}},
    });
    let gateway = gateway().config(json!({ "channels": channels })).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let shown = client.request("config.get", json!({})).await.unwrap();
    assert_eq!(shown["config"]["channels"]["nostr"]["privateKey"], "__OPENCLAW_REDACTED__");
    assert!(!shown.to_string().contains("c2VjcmV0"), "{shown}");
    let ended = openclaw(&gateway, &["config", "get", "channels.googlechat.serviceAccount"]).await;
    assert!(ended.code == Some(0) && !ended.out.contains("c2VjcmV0"), "{ended:?}");
}

/// Starts a gateway whose standard output is a terminal, and gives what it printed until `text` came.
async fn on_a_terminal(gateway: &GatewayUnderTest, text: &'static str) -> (Child, String) {
    let pty = openpty(None, None).unwrap();
    let child = gateway
        .command()
        .args(["gateway", "run", "--port", "0"])
        .stdout(Stdio::from(pty.slave))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut screen = std::fs::File::from(pty.master);
    // Ends with an error when the process is gone.
    let reading = tokio::task::spawn_blocking(move || {
        let (mut printed, mut bytes) = (String::new(), [0_u8; 4096]);
        while !printed.contains(text) {
            let count = screen.read(&mut bytes).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
            printed.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        printed
    });
    (child, timeout(DEADLINE, reading).await.unwrap().unwrap())
}

#[tokio::test]
async fn a_terminal_is_shown_the_address_of_the_web_chat_and_the_log_is_not() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("gateway.log");
    let mut gateway =
        gateway().config(json!({"logging": {"file": log, "level": "trace"}})).prepare().unwrap();
    let (mut child, printed) = on_a_terminal(&gateway, "It is not in the log.").await;
    let address = printed.split("Web chat: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{printed}");
    assert!(address.trim_end().ends_with(&format!("/#token={TOKEN}")), "{printed}");
    child.kill().await.unwrap();

    // Readers of a pipe or the file are not shown it.
    gateway.start().await.unwrap();
    gateway.terminate().await.unwrap();
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("listening on ws://"), "{logged}");
    assert!(!logged.contains(TOKEN) && !gateway.log().contains(TOKEN), "{}", gateway.log());
}

/// A program in `dir` that writes what it is given into a file beside it.
fn helper(dir: &Path, name: &str, body: &str) {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_dashboard_is_printed_copied_and_opened() {
    let bin = tempfile::tempdir().unwrap();
    helper(bin.path(), "xdg-open", "echo \"$1\" > \"${0%/*}/opened\"");
    helper(bin.path(), "xclip", "read -r text; echo \"$text\" > \"${0%/*}/copied\"");
    let gateway = gateway().start().await.unwrap();
    let run = async |args: &[&str]| {
        let mut command = gateway.command();
        command.args(args).env("DISPLAY", ":0").env("PATH", bin.path());
        Ended::of(command).await
    };
    // The gateway's own port, though the config has another.
    let address = format!("http://127.0.0.1:{}/#token={TOKEN}", gateway.port());
    let printed = run(&["dashboard", "--no-open"]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(printed.out.starts_with(&format!("Dashboard URL: {address}\n")), "{printed:?}");
    assert!(!bin.path().join("opened").exists(), "{printed:?}");
    let opened = run(&["dashboard"]).await;
    assert!(opened.out.contains("Copied to clipboard.") && opened.out.contains("Opened"), "{opened:?}");
    for name in ["opened", "copied"] {
        // The clipboard's text has no line end, so that `read` finds the end of the input.
        let text = std::fs::read_to_string(bin.path().join(name)).unwrap();
        assert_eq!(text.trim_end(), address, "{name}");
    }
}

/// The page would refuse the address that it sends people to.
#[tokio::test]
async fn a_token_that_the_running_gateway_does_not_have_yet_is_told() {
    let mut gateway = gateway().start().await.unwrap();
    let dashboard = ["dashboard", "--no-open"];
    let before = openclaw(&gateway, &dashboard).await;
    assert!(!before.err.contains("does not take the token"), "{before:?}");
    openclaw(&gateway, &["config", "set", "gateway.auth.token", "another-token-of-this-test"]).await;
    let restart = format!("stop it (pid {}) and start it again: openclaw gateway", gateway.pid().unwrap());
    let told = openclaw(&gateway, &dashboard).await;
    assert!(told.out.contains("#token=another-token-of-this-test"), "{told:?}");
    let refused = "does not take the token that is configured here";
    let doctor = openclaw(&gateway, &["doctor"]).await;
    for words in [refused, &restart] {
        assert!(told.err.contains(words) && doctor.out.contains(words), "{words}: {told:?} {doctor:?}");
    }
    assert!(!doctor.out.contains("State is in order"), "{doctor:?}");
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let after = openclaw(&gateway, &dashboard).await;
    assert!(!after.err.contains("does not take the token"), "{after:?}");
}

#[tokio::test]
async fn a_token_that_is_made_beside_a_running_gateway_needs_a_restart() {
    let by_variable = json!({"gateway": {"mode": "local"}});
    let gateway =
        gateway().whole_config(by_variable).arg("--token").arg("token-of-the-start").start().await.unwrap();
    let made = openclaw(&gateway, &["doctor", "--generate-gateway-token"]).await;
    let restart = format!("stop it (pid {}) and start it again", gateway.pid().unwrap());
    for words in ["Generated a gateway token", "takes it with a restart", &restart] {
        assert!(made.out.contains(words), "{words}: {made:?}");
    }
}

#[tokio::test]
async fn a_dashboard_without_a_screen_is_reached_through_ssh() {
    let mut gateway = gateway().start().await.unwrap();
    let port = gateway.port();
    gateway.terminate().await.unwrap();
    let shown = openclaw(&gateway, &["dashboard", "--no-open"]).await;
    let expect = format!(
        "Dashboard URL: http://127.0.0.1:{port}/#token={TOKEN}\nCopy to clipboard unavailable.\nNo GUI detected. Open from \
         your computer:\nssh -N -L {port}:127.0.0.1:{port} user@<host>\nThen open:\nhttp://localhost:{port}/\n\
         http://localhost:{port}/#token={TOKEN}\nDocs:\nhttps://docs.openclaw.ai/gateway/remote\n\
         https://docs.openclaw.ai/web/control-ui\n"
    );
    assert_eq!(shown.out, expect);
    assert!(shown.err.contains("No gateway runs here yet"), "{shown:?}");
    let status = openclaw(&gateway, &["status"]).await;
    assert!(status.out.contains(&format!("http://127.0.0.1:{port}/ ")), "{status:?}");
    assert!(status.out.contains("openclaw dashboard") && !status.out.contains(TOKEN), "{status:?}");
}

#[tokio::test]
async fn a_command_that_asks_the_wrong_port_is_told_the_right_one() {
    let (_kept, wrong) = dead_port();
    let gateway = gateway().config(json!({"gateway": {"port": wrong}})).start().await.unwrap();
    let (port, pid) = (gateway.port(), gateway.pid().unwrap());
    let sentence = format!(
        "The gateway of this state directory (pid {pid}) listens on port {port}; this command asked ws://127.0.0.1:{wrong} \
         (port from gateway.port)."
    );
    let pass = format!("OPENCLAW_GATEWAY_PORT={port}");
    let agent = ["agent", "--agent", "main", "--message", "hello"];
    for args in [&agent[..], &["health"], &["gateway", "call", "health"]] {
        let ended = unaware(&gateway, args).await;
        ended.failed(&[&sentence, &pass]);
        for old in ["1006", "lock timeout", "--local", "embedded"] {
            assert!(!ended.err.contains(old), "{args:?}: {ended:?}");
        }
    }
    let status = unaware(&gateway, &["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["gateway"]["error"], sentence);
    // The advice works.
    let set = unaware(&gateway, &["config", "set", "gateway.port", &port.to_string()]).await;
    assert_eq!(set.out, "Updated gateway.port. The running gateway listens there already.\n");
    let answered = unaware(&gateway, &agent).await;
    assert!(answered.code == Some(0) && answered.out.contains("offline guide"), "{answered:?}");
}

#[tokio::test]
async fn a_local_run_beside_a_gateway_is_refused_in_a_sentence() {
    let gateway = gateway().start().await.unwrap();
    let args = ["agent", "--local", "--agent", "main", "--message", "hello"];
    let ended = openclaw(&gateway, &args).await;
    let pid = gateway.pid().unwrap();
    ended.failed(&[&format!("A gateway (pid {pid}) has this state directory"), "Leave out --local"]);
    assert!(!ended.err.contains("lock timeout"), "{ended:?}");
}

#[tokio::test]
async fn a_profile_is_told_to_set_up_its_own_directory() {
    let gateway = fresh();
    let in_profile = async |args: &[&str]| {
        let mut command = gateway.command();
        command.env_remove("OPENCLAW_STATE_DIR").args(args);
        Ended::of(command).await
    };
    in_profile(&["--dev", "gateway"]).await.failed(&["Run `openclaw --dev setup` or set gateway.mode=local"]);
    in_profile(&["--profile", "work", "gateway"]).await.failed(&["Run `openclaw --profile work setup`"]);
    let status = in_profile(&["--dev", "status"]).await;
    assert!(status.out.contains("missing (run openclaw --dev setup)"), "{status:?}");
}

#[tokio::test]
async fn readers_make_nothing_where_nothing_is() {
    let gateway = fresh();
    // Somebody's own gateway may listen on the port that is taken otherwise.
    let (_socket, port) = dead_port();
    for args in [&["status"][..], &["health"], &["logs"], &["gateway", "status"], &["gateway", "probe"]] {
        let mut command = gateway.command();
        command.env("OPENCLAW_GATEWAY_PORT", port.to_string()).args(args);
        Ended::of(command).await;
        assert!(!gateway.state_dir().exists(), "{args:?}");
    }
}

#[tokio::test]
async fn a_setting_that_keeps_the_gateway_from_working_is_told_when_it_is_written() {
    let gateway = fresh();
    assert_eq!(openclaw(&gateway, &["setup"]).await.code, Some(0));
    let rows = [
        ("agents.defaults.model.primary", "x y", "model \"x y\" names no provider"),
        ("agents.defaults.model.primary", "nosuch/foo", "Unknown model: nosuch/foo"),
        ("gateway.auth.token", "", "no token is configured"),
        ("logging.level", "info", ""),
    ];
    for (path, value, expect) in rows {
        let set = openclaw(&gateway, &["config", "set", path, value]).await;
        assert_eq!(set.code, Some(0), "{set:?}");
        assert!(set.err.contains(expect) && set.err.is_empty() == expect.is_empty(), "{set:?}");
    }
    // The gateway's advice works.
    openclaw(&gateway, &["gateway"]).await.failed(&["`openclaw setup` makes one."]);
    assert!(openclaw(&gateway, &["setup"]).await.out.contains("gateway.auth.token"));
    let left = openclaw(&gateway, &["doctor", "--check"]).await;
    assert!(!left.out.contains("no token"), "{left:?}");
}

#[tokio::test]
async fn a_broken_config_is_told_what_to_put_back() {
    let gateway = fresh();
    openclaw(&gateway, &["setup"]).await;
    openclaw(&gateway, &["config", "set", "gateway.port", "18790"]).await;
    let path = gateway.state_dir().join("openclaw.json");
    std::fs::write(&path, "").unwrap();
    openclaw(&gateway, &["agents", "list"]).await.failed(&["Remove the empty file", "openclaw.json.bak"]);
    std::fs::write(&path, "{ agent: { nosuch: 1 } }").unwrap();
    let old = openclaw(&gateway, &["agents", "list"]).await;
    let by_themselves = "Keys of older versions move by themselves after that: agent.";
    old.failed(&[
        "Problem:\n  - agents.defaults: Unrecognized key",
        "Fix what is named above",
        by_themselves,
    ]);
    assert!(!old.err.contains("auto-migrated") && !old.err.contains("Legacy"), "{old:?}");

    // An old key alone would be moved; every surface tells what else keeps the file from use.
    std::fs::write(&path, "{ agent: { skipBootstrap: true, nosuch: 1 }, gateway: { port: 'x' } }").unwrap();
    let mistakes = [
        "agents.defaults: Unrecognized key: \"nosuch\"",
        "gateway.port: Invalid input: expected number, received string",
    ];
    for args in [&["agents", "list"][..], &["gateway", "run"]] {
        let told = openclaw(&gateway, args).await;
        told.failed(&["\nProblem:\n", mistakes[0], mistakes[1], by_themselves]);
    }
    for args in [&["doctor"][..], &["status"], &["gateway", "status"]] {
        let told = openclaw(&gateway, args).await;
        let all = format!("{}{}", told.out, told.err);
        assert!(mistakes.iter().all(|mistake| all.contains(mistake)), "{args:?}: {told:?}");
    }
    let set = openclaw(&gateway, &["config", "set", "logging.level", "info"]).await;
    set.failed(&["Config validation failed:", mistakes[0]]);
}

#[tokio::test]
async fn the_doctor_says_that_there_is_no_config_and_is_content_after_setup() {
    let gateway = fresh();
    let doctor = openclaw(&gateway, &["doctor", "--fix"]).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(doctor.out.contains("Missing config: run openclaw setup first."), "{doctor:?}");
    assert!(!doctor.out.contains("CRITICAL") && !doctor.out.contains("--fix"), "{doctor:?}");
    assert_eq!(openclaw(&gateway, &["doctor", "--check"]).await.code, Some(1));

    assert_eq!(openclaw(&gateway, &["setup"]).await.code, Some(0));
    let doctor = openclaw(&gateway, &["doctor", "--check"]).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(doctor.out.contains("State is in order."), "{doctor:?}");
}

#[tokio::test]
async fn the_doctor_offers_to_fix_only_what_it_can_fix() {
    let gateway = fresh();
    assert_eq!(openclaw(&gateway, &["setup"]).await.code, Some(0));
    let path = gateway.state_dir().join("openclaw.json");
    std::fs::write(&path, "{ gateway: { mode: 'local', } }").unwrap();
    let doctor = openclaw(&gateway, &["doctor"]).await;
    assert!(doctor.out.contains("no token is configured"), "{doctor:?}");
    assert!(!doctor.out.contains("doctor --fix"), "{doctor:?}");

    std::fs::remove_dir(gateway.state_dir().join("credentials")).unwrap();
    let doctor = openclaw(&gateway, &["doctor"]).await;
    assert!(doctor.out.contains("to repair 1 of these 2; the rest is for you to do."), "{doctor:?}");
    let left = openclaw(&gateway, &["doctor", "--fix"]).await;
    assert!(left.out.contains("Fixed.") && left.out.contains("no token is configured"), "{left:?}");
}

#[tokio::test]
async fn a_broken_config_is_named_by_line_column_and_text_and_a_wrong_word_with_the_right_ones() {
    let gateway = gateway().prepare().unwrap();
    let path = gateway.state_dir().join("openclaw.json");
    let rows = [
        (
            "{\n  gateway: {\n    port: ,\n    auth: { token: 's3cr3t' },\n  }\n}",
            &["line 3, column 11, at `port: ,`", "Fix the text at that line in"][..],
        ),
        ("{ gateway: { auth: { token: s3cr3t } } }", &["line 1, column 29", "token: ******"]),
        (
            "{ gateway: { bind: 'public' } }",
            &[
                "gateway.bind: Invalid input",
                "allowed: \"auto\", \"lan\"",
                "found \"public\"",
                "Fix what is named above",
            ],
        ),
    ];
    for (text, words) in rows {
        std::fs::write(&path, text).unwrap();
        let ended = openclaw(&gateway, &["agent", "--agent", "main", "--message", "hello"]).await;
        ended.failed(words);
        assert!(!ended.err.contains("s3cr3t"), "{ended:?}");
    }
    std::fs::write(&path, "{}").unwrap();
    let refused = openclaw(&gateway, &["config", "set", "gateway.bind", "public"]).await;
    refused.failed(&["gateway.bind: Invalid input", "Allowed: \"auto\"", "found \"public\""]);
}

#[tokio::test]
async fn a_change_of_the_config_says_when_it_does_something() {
    let mut gateway = gateway().start().await.unwrap();
    let set = async |gateway: &GatewayUnderTest, key: &str, value: &str| {
        let ended = openclaw(gateway, &["config", "set", key, value]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.out
    };
    assert_eq!(
        set(&gateway, "ui.assistant.name", "Clawd").await,
        "Updated ui.assistant.name. The running gateway applies it within a second.\n"
    );
    assert_eq!(
        set(&gateway, "gateway.auth.allowTailscale", "false").await,
        "Updated gateway.auth.allowTailscale. Restart the gateway to apply.\n"
    );
    assert_eq!(
        set(&gateway, "talk.interruptOnSpeech", "true").await,
        "Updated talk.interruptOnSpeech. This version does not act on talk yet.\n"
    );
    gateway.terminate().await.unwrap();
    assert_eq!(
        set(&gateway, "ui.assistant.name", "Molty").await,
        "Updated ui.assistant.name. A gateway takes it when it starts.\n"
    );
}

#[tokio::test]
async fn choosing_a_model_without_a_credential_says_how_to_add_one() {
    let gateway = gateway().prepare().unwrap();
    let set = openclaw(&gateway, &["models", "set", "anthropic/claude-opus-4-6"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    for words in [
        "There is no credential for anthropic",
        "ANTHROPIC_API_KEY=",
        "restart the gateway if it runs",
        "models auth paste-token --provider anthropic",
    ] {
        assert!(set.err.contains(words), "{set:?}");
    }
    std::fs::write(gateway.state_dir().join(".env"), "ANTHROPIC_API_KEY=k\n").unwrap();
    let set = openclaw(&gateway, &["models", "set", "anthropic/claude-opus-4-6"]).await;
    assert!(!set.err.contains("credential"), "{set:?}");
}

#[tokio::test]
async fn status_claims_nothing_that_does_not_happen() {
    let mut gateway = gateway().start().await.unwrap();
    let asked = openclaw(&gateway, &["status", "--deep"]).await.out;
    assert!(asked.contains("disabled (main)"), "{asked}");
    assert!(asked.contains("asked (channels are probed by the gateway)"), "{asked}");
    gateway.terminate().await.unwrap();
    let alone = openclaw(&gateway, &["status", "--deep"]).await.out;
    assert!(alone.contains("not asked (no gateway to ask)"), "{alone}");
}
