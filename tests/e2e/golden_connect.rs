//! The recorded handshakes (spec `gateway-protocol.md` §3, §15), good and bad.

use openclaw_testkit::golden::{Deviation, LineChange, Replay};
use openclaw_testkit::{GatewaySetup, SocketOptions};
use serde_json::json;

use crate::gateway;
use crate::support::golden::{differs, recording};

async fn replay(setup: GatewaySetup, name: &str, adapt: impl FnOnce(Replay<'_>) -> Replay<'_>) {
    let gateway = setup.start().await.unwrap();
    if let Err(error) = adapt(Replay::new(&gateway)).play(&recording(name)).await {
        panic!("{name}: {error:#}");
    }
}

async fn as_recorded(name: &str) {
    replay(gateway(), name, |replay| replay).await;
}

async fn with(name: &str, deviations: impl IntoIterator<Item = Deviation>) {
    replay(gateway(), name, |replay| replay.deviations(deviations)).await;
}

/// A page on this host.
fn local_page(_: &str) -> SocketOptions {
    SocketOptions {
        headers: vec![("Origin".into(), "http://127.0.0.1:18789".into())],
        ..SocketOptions::default()
    }
}

/// `remote…` connections come through a name that is not local.
fn by_name(label: &str) -> SocketOptions {
    let host = ("Host".into(), "gateway.example.net:18789".into());
    let headers = if label.starts_with("remote") { vec![host] } else { Vec::new() };
    SocketOptions { headers, ..SocketOptions::default() }
}

macro_rules! as_recorded {
    ($($name:ident $file:literal),* $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            as_recorded($file).await;
        })*
    };
}

as_recorded! {
    a_wrong_token_is_refused "gw-connect-fail-bad-token",
    a_wrong_token_of_the_cli_is_refused_with_its_hint "gw-connect-fail-bad-token-cli",
    a_control_ui_without_origin_is_refused "gw-connect-fail-control-ui-no-origin",
    a_bad_signature_is_refused "gw-connect-fail-device-bad-signature",
    an_id_that_is_not_the_keys_is_refused "gw-connect-fail-device-id-mismatch",
    a_device_without_token_is_refused "gw-connect-fail-device-no-token",
    a_nonce_of_another_socket_is_refused "gw-connect-fail-device-nonce-mismatch",
    an_old_signature_is_refused "gw-connect-fail-device-stale",
    another_request_before_connect_is_refused "gw-connect-fail-first-frame-not-connect",
    a_frame_of_wrong_shape_is_refused "gw-connect-fail-invalid-frame",
    wrong_connect_params_are_refused "gw-connect-fail-invalid-params",
    an_unknown_role_is_refused "gw-connect-fail-invalid-role",
    nothing_to_show_is_refused "gw-connect-fail-no-device-no-auth",
    a_password_in_token_mode_is_refused "gw-connect-fail-password-given-in-token-mode",
    a_newer_protocol_is_refused "gw-connect-fail-protocol-too-new",
    an_older_protocol_is_refused "gw-connect-fail-protocol-too-old",
}

#[tokio::test]
async fn a_control_ui_without_device_is_refused() {
    replay(gateway(), "gw-connect-fail-control-ui-no-device", |replay| replay.sockets(local_page)).await;
}

#[tokio::test]
async fn text_that_is_no_json_is_refused() {
    // The reference closes 1000 without a reason.
    with(
        "gw-connect-fail-non-json",
        [differs(3, "KB-5", LineChange::CloseWith(1008, "invalid request frame"))],
    )
    .await;
}

#[tokio::test]
async fn silence_is_ended() {
    // The reference closes 1000 without a reason.
    let end = differs(2, "KB-5", LineChange::CloseWith(1008, "handshake timeout"));
    with("gw-connect-fail-handshake-timeout", [end]).await;
}

#[tokio::test]
async fn a_token_as_long_in_characters_but_not_in_bytes_is_a_wrong_token() {
    const TEXT: &str = "unauthorized: gateway token mismatch (provide gateway auth token)";
    // The reference falls over its comparison and closes 1000 without an answer.
    let refused = || json!({"type": "res", "id": "c1", "ok": false, "error": {"code": "INVALID_REQUEST", "message": TEXT}});
    with(
        "gw-connect-fail-token-multibyte",
        [
            differs(2, "KB-10", LineChange::Then(refused)),
            differs(3, "KB-10", LineChange::CloseWith(1008, TEXT)),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_request_right_behind_connect_is_answered_after_it() {
    // The reference takes the second frame for a first one and closes.
    let hello = || json!({"type": "res", "id": "c1", "ok": true, "payload": {"type": "hello-ok", "…": "…"}});
    let health = || json!({"type": "res", "id": "h1", "ok": true, "payload": {"ok": true, "…": "…"}});
    with(
        "gw-connect-pipelined",
        [
            differs(4, "KB-3", LineChange::Instead(hello)),
            differs(4, "KB-3", LineChange::Then(health)),
            differs(5, "KB-3", LineChange::Skip),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_client_with_the_token_is_greeted() {
    let greeting = LineChange::Edit(|frame| {
        // Methods come with their issues; `features_are_those_of_the_reference_that_are_there` looks at what there is.
        frame["payload"]["features"] = json!({"methods": ["…"], "events": ["…"]});
    });
    with("gw-connect-ok", [differs(3, "issue by issue", greeting)]).await;
}

#[tokio::test]
async fn features_are_those_of_the_reference_that_are_there_in_its_order() {
    let gateway = gateway().start().await.unwrap();
    let login = openclaw_testkit::Login::token(openclaw_testkit::TOKEN);
    let (_, hello) = openclaw_testkit::WsClient::connect(gateway.port(), login).await.unwrap();
    let recorded: serde_json::Value =
        serde_json::from_str(recording("gw-connect-ok").lines().nth(2).unwrap()).unwrap();
    for part in ["methods", "events"] {
        let list = |value: &serde_json::Value| -> Vec<String> {
            serde_json::from_value(value["features"][part].clone()).unwrap()
        };
        let (ours, all) = (list(&hello), list(&recorded["frame"]["payload"]));
        let in_order: Vec<_> = all.iter().filter(|name| ours.contains(name)).cloned().collect();
        assert_eq!(ours, in_order, "{part}");
    }
    let events = hello["features"]["events"].as_array().unwrap();
    for missing in ["cron", "talk.mode", "voicewake.changed", "node.invoke.request", "node.pair.requested"] {
        assert!(!events.contains(&json!(missing)), "{missing} is never sent");
    }
    assert!(events.contains(&json!("device.pair.requested")));
    assert_eq!(hello.get("canvasHostUrl"), None, "there is no canvas");
    let methods = hello["features"]["methods"].as_array().unwrap();
    for method in ["health", "status", "chat.send", "agent", "sessions.list", "config.get", "logs.tail"] {
        assert!(methods.contains(&json!(method)), "{method}");
    }
}

#[tokio::test]
async fn a_browser_page_of_this_host_is_greeted() {
    replay(gateway(), "gw-connect-control-ui-ok", |replay| replay.sockets(local_page)).await;
}

#[tokio::test]
async fn a_device_on_this_host_is_paired_silently_and_comes_back_with_its_token() {
    // Managing devices comes with a later issue.
    let stop = Deviation { lines: 31..=49, why: "device.pair.list", change: LineChange::Stop };
    with("gw-connect-ok-device", [stop]).await;
}

#[tokio::test]
async fn a_device_from_elsewhere_needs_a_nonce_and_a_person() {
    let stop = Deviation { lines: 18..=80, why: "device.pair.list", change: LineChange::Stop };
    replay(gateway(), "gw-connect-pairing-remote", |replay| replay.sockets(by_name).deviations([stop])).await;
}
