//! Commands whose gateway is away or does not let them in: they say so, say what to do, and exit with 1.

use openclaw_testkit::GatewayUnderTest;

use crate::gateway;
use crate::support::command::openclaw;

/// Commands that can't do without a gateway.
const COMMANDS: [&[&str]; 4] = [
    &["health"],
    &["gateway", "health"],
    &["gateway", "call", "health"],
    &["gateway", "call", "sessions.list"],
];

/// A gateway that has gone, on whose port nobody listens.
async fn gone() -> GatewayUnderTest {
    let mut gateway = gateway().start().await.unwrap();
    gateway.terminate().await.unwrap();
    gateway
}

#[tokio::test]
async fn commands_without_a_gateway_say_where_they_looked_and_how_to_start_one() {
    let gateway = gone().await;
    let target = format!("Gateway target: ws://127.0.0.1:{}", gateway.port());
    for args in COMMANDS {
        let failed = openclaw(&gateway, args).await;
        failed.failed(&["gateway closed (1006", &target, "Connection refused", "openclaw gateway"]);
        assert_eq!(failed.out, "", "{args:?}");
        assert!(!failed.err.contains(openclaw_testkit::TOKEN), "{args:?}");
    }
}

#[tokio::test]
async fn a_failed_command_answers_json_with_json() {
    let gateway = gone().await;
    for args in [&["health", "--json"][..], &["gateway", "call", "health", "--json"]] {
        let failed = openclaw(&gateway, args).await;
        failed.failed(&["gateway closed (1006"]);
        let out: serde_json::Value = serde_json::from_str(&failed.out).unwrap();
        assert_eq!(out["error"]["code"], "unreachable", "{out}");
    }
}

#[tokio::test]
async fn commands_that_only_read_files_need_no_gateway() {
    let gateway = gone().await;
    for args in [
        &["status"][..],
        &["sessions"],
        &["models", "list"],
        &["agents", "list"],
        &["config", "get", "gateway.mode"],
    ] {
        let ended = openclaw(&gateway, args).await;
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_without_being_repeated() {
    let gateway = gateway().start().await.unwrap();
    let wrong = "not-the-token-0815";
    for args in COMMANDS {
        let args: Vec<&str> = args.iter().copied().chain(["--token", wrong]).collect();
        let failed = openclaw(&gateway, &args).await;
        failed.failed(&["unauthorized", "gateway token mismatch", "gateway.auth"]);
        let said = format!("{}{}{}", failed.out, failed.err, gateway.log());
        assert!(!said.contains(wrong) && !said.contains(openclaw_testkit::TOKEN), "{said}");
    }
    // The right one still works.
    assert_eq!(openclaw(&gateway, &["health"]).await.code, Some(0));
}
