use super::*;
use crate::frame_text::FrameText;
use crate::handshake::shared_auth::SecretProblem;
use crate::secret_digest::SecretDigest;
use openclaw_config::settings::AuthKind;

use serde_json::Value;
use std::net::SocketAddr;

const MISMATCH: AuthFailure = AuthFailure { kind: AuthKind::Token, problem: SecretProblem::Mismatch };
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");

fn door(secret: SharedSecret) -> Door {
    Door {
        secret,
        addresses: AddressBook::default(),
        control_ui: ControlUi::default(),
        pages: PageRules::default(),
    }
}

fn token_door() -> Door {
    door(SharedSecret { kind: AuthKind::Token, digest: Some(SecretDigest::of("<TOKEN>")) })
}

fn local(origin: Option<&str>) -> Origination {
    let peer: SocketAddr = "127.0.0.1:40000".parse().unwrap();
    let mut origination = Origination::bare(peer, "127.0.0.1:18789".parse().unwrap());
    origination.host = Some("127.0.0.1:18789".to_owned());
    origination.origin = origin.map(str::to_owned);
    origination
}

fn judge_at(
    door: &Door,
    origination: &Origination,
    nonce: &str,
    now: i64,
    text: &str,
) -> Result<Claim, Box<ConnectRefusal>> {
    let address = ClientAddress::of(origination, &door.addresses);
    judge(door, &ConnectAttempt { origination, address, nonce, locked_for: None, now }, text)
}

/// Socket traffic from a recording.
struct Recorded {
    nonce: String,
    ts: i64,
    sent: String,
    response: Option<Value>,
    code: u64,
    reason: String,
}

/// Splits a recording by socket and keeps the refused ones.
fn recorded(file: &str) -> Vec<Recorded> {
    let text = std::fs::read_to_string(format!("{GOLDEN}/{file}.jsonl")).unwrap();
    let mut sockets: Vec<(String, Recorded)> = Vec::new();
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let label = line["conn"].as_str().unwrap_or_default().to_owned();
        if line["frame"]["event"] == "connect.challenge" {
            let payload = &line["frame"]["payload"];
            let nonce = payload["nonce"].as_str().unwrap().to_owned();
            let ts = payload["ts"].as_i64().unwrap();
            sockets.push((
                label,
                Recorded { nonce, ts, sent: String::new(), response: None, code: 0, reason: String::new() },
            ));
            continue;
        }
        let (_, socket) = sockets.iter_mut().rev().find(|(own, _)| *own == label).unwrap();
        if line["dir"] == "out" && socket.sent.is_empty() {
            socket.sent = line["raw"].as_str().map_or_else(|| line["frame"].to_string(), str::to_owned);
        } else if line["frame"]["type"] == "res" && socket.response.is_none() {
            socket.response = Some(line["frame"].clone());
        } else if let Some(code) = line["close"]["code"].as_u64() {
            socket.code = code;
            socket.reason = line["close"]["reason"].as_str().unwrap().to_owned();
        }
    }
    sockets.into_iter().map(|(_, socket)| socket).filter(|socket| socket.code != 1005).collect()
}

fn check(door: &Door, file: &str, origin: Option<&str>) {
    let cases = recorded(file);
    assert!(!cases.is_empty(), "{file} shows a refusal");
    for case in cases {
        let refusal = judge_at(door, &local(origin), &case.nonce, case.ts, &case.sent).expect_err(file);
        let response = refusal
            .response
            .map(|response| serde_json::from_str(&FrameText::response(response).to_string()).unwrap());
        assert_eq!(response, case.response, "{file}");
        // KB-5: the reference closes some without saying why.
        let (code, reason) = if case.code == 1000 {
            (1008, "invalid request frame")
        } else {
            (case.code, case.reason.as_str())
        };
        assert_eq!(
            (u64::from(refusal.closing.code), refusal.closing.reason.as_str()),
            (code, reason),
            "{file}"
        );
    }
}

/// §3.11, but for those that are about time, size (the driver's) and KB-10 (below).
#[test]
fn recorded_refusals_are_repeated() {
    let page = Some("http://127.0.0.1:18789");
    let rows = [
        ("gw-connect-fail-bad-token", None),
        ("gw-connect-fail-bad-token-cli", None),
        ("gw-connect-fail-control-ui-no-device", page),
        ("gw-connect-fail-control-ui-no-origin", None),
        ("gw-connect-fail-device-bad-signature", None),
        ("gw-connect-fail-device-id-mismatch", None),
        ("gw-connect-fail-device-no-token", None),
        ("gw-connect-fail-device-nonce-mismatch", None),
        ("gw-connect-fail-device-stale", None),
        ("gw-connect-fail-first-frame-not-connect", None),
        ("gw-connect-fail-invalid-frame", None),
        ("gw-connect-fail-invalid-params", None),
        ("gw-connect-fail-invalid-role", None),
        ("gw-connect-fail-no-device-no-auth", None),
        ("gw-connect-fail-non-json", None),
        ("gw-connect-fail-password-given-in-token-mode", None),
        ("gw-connect-fail-protocol-too-new", None),
        ("gw-connect-fail-protocol-too-old", None),
    ];
    for (file, origin) in rows {
        check(&token_door(), file, origin);
    }
    let password =
        door(SharedSecret { kind: AuthKind::Password, digest: Some(SecretDigest::of("<PASSWORD>")) });
    check(&password, "gw-auth-password-mode", None);
}

fn connect(extra: &Value) -> String {
    let mut params = json!({
        "minProtocol": 3, "maxProtocol": 3,
        "client": {"id": "test", "version": "1", "platform": "x", "mode": "test"},
    });
    params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"type": "req", "id": "c1", "method": "connect", "params": params}).to_string()
}

fn reason(outcome: Result<Claim, Box<ConnectRefusal>>) -> String {
    outcome.map_or_else(
        |refusal| refusal.closing.reason,
        |claim| format!("{:?} {:?}", claim.proof, claim.device),
    )
}

/// KB-10: the reference breaks on this token.
#[test]
fn a_token_of_other_characters_is_a_mismatch() {
    let text = connect(&json!({"auth": {"token": "é".repeat(19)}}));
    let refusal = judge_at(&token_door(), &local(None), "n", 0, &text).unwrap_err();
    assert_eq!(refusal.closing.reason, "unauthorized: gateway token mismatch (provide gateway auth token)");
    assert!(refusal.is_guess);
}

#[test]
fn only_wrong_secrets_count_as_guesses() {
    let rows = [
        (json!({"auth": {"token": "wrong"}}), true),
        (json!({"auth": {"password": "wrong"}}), false),
        (json!({}), false),
        (json!({"role": "admin"}), false),
    ];
    for (extra, expect) in rows {
        let refusal = judge_at(&token_door(), &local(None), "n", 0, &connect(&extra)).unwrap_err();
        assert_eq!(refusal.is_guess, expect, "{extra}");
    }
}

#[test]
fn who_guessed_too_often_has_to_wait_even_with_the_right_secret() {
    let (door, origination) = (token_door(), local(None));
    let address = ClientAddress::of(&origination, &door.addresses);
    let attempt =
        ConnectAttempt { origination: &origination, address, nonce: "n", locked_for: Some(1_500), now: 0 };
    let refusal = judge(&door, &attempt, &connect(&json!({"auth": {"token": "<TOKEN>"}}))).unwrap_err();
    let error = refusal.response.unwrap().error.unwrap();
    assert_eq!(error.message, "unauthorized: too many failed attempts, try again in 2 s");
    assert_eq!((error.retryable, error.retry_after_ms), (Some(true), Some(1_500)));
}

#[test]
fn a_control_ui_needs_no_device_only_when_the_config_waives_it() {
    let ui = |auth: Value| {
        connect(&json!({
            "client": {"id": "openclaw-control-ui", "version": "1", "platform": "web", "mode": "webchat"},
            "auth": auth,
        }))
    };
    let waived = |allow_insecure_auth, dangerously_disable_device_auth| {
        let control_ui =
            ControlUi { allow_insecure_auth, dangerously_disable_device_auth, ..ControlUi::default() };
        Door { control_ui, ..token_door() }
    };
    let right = json!({"token": "<TOKEN>"});
    let needs = "control ui requires HTTPS or localhost (secure context)";
    let hint = "unauthorized: gateway token mismatch (open the dashboard URL and paste the token in Control UI settings)";
    let rows = [
        (waived(false, false), right.clone(), needs),
        (waived(true, false), right.clone(), "Shared None"),
        (waived(false, true), right, "Shared None"),
        (waived(true, false), json!({"token": "wrong"}), hint),
        (waived(true, false), json!({}), "device identity required"),
    ];
    for (door, auth, expect) in rows {
        let outcome = judge_at(&door, &local(Some("http://localhost:5173")), "n", 0, &ui(auth));
        assert_eq!(reason(outcome), expect, "{:?}", door.control_ui);
    }
}

/// A device may come in by a token of its own, which is looked up later.
#[test]
fn an_unknown_token_of_a_genuine_device_is_left_to_the_pairing_book() {
    // The published v2 vector is signed over the token `tok-123`.
    let text = json!({"type": "req", "id": "c1", "method": "connect", "params": {
        "minProtocol": 3, "maxProtocol": 3,
        "client": {"id": "cli", "version": "1", "platform": "x", "mode": "cli"},
        "scopes": ["operator.admin", "operator.approvals", "operator.pairing"],
        "auth": {"token": "tok-123"},
        "device": {
            "id": "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e",
            "publicKey": "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w",
            "signature": "nQpG9J9MSX7Xm5z6H2TRD-hk-0ekpHaAOpAm2VsSevxsZHnNdBnmp70wMRQk4kwaDkW3Lovx8ruJqcr86T-oAA",
            "signedAt": 1_770_000_000_000_i64, "nonce": "11111111-2222-4333-8444-555555555555",
        },
    }});
    let nonce = "11111111-2222-4333-8444-555555555555";
    let claim = judge_at(&token_door(), &local(None), nonce, 1_770_000_000_000, &text.to_string()).unwrap();
    let expect = Proof::DeviceToken { token: "tok-123".to_owned(), otherwise: MISMATCH };
    assert_eq!(claim.proof, expect);
}

/// DNS rebinding: to the browser such a page is one of this gateway. No secret helps it.
#[test]
fn a_page_that_addresses_the_gateway_by_a_strange_name_stays_outside() {
    let text = connect(&json!({"auth": {"token": "<TOKEN>"}}));
    let from = |origin: Option<&str>, host: Option<&str>| Origination {
        host: host.map(str::to_owned),
        ..local(origin)
    };
    let page = Some("http://evil.example:18789");
    for (origination, expect) in [
        (from(page, Some("evil.example:18789")), origin::REFUSAL),
        (from(page, None), origin::REFUSAL),
        (from(Some("http://localhost:18789"), Some("localhost:18789")), "Shared None"),
        // No page: a proxy, perhaps, that passes on the name that the public knows.
        (from(None, Some("evil.example:18789")), "device identity required"),
        (from(None, None), "device identity required"),
        (from(None, Some("127.0.0.2:18789")), "Shared None"),
    ] {
        let outcome = reason(judge_at(&token_door(), &origination, "n", 0, &text));
        let expect: String = expect.chars().take(120).collect();
        assert_eq!(outcome, expect, "{origination:?}");
    }
}

#[test]
fn who_comes_through_a_proxy_needs_a_device_whatever_it_knows() {
    let text = connect(&json!({"auth": {"token": "<TOKEN>"}}));
    let trusting = Door {
        addresses: AddressBook {
            trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
            ..AddressBook::default()
        },
        ..token_door()
    };
    for door in [token_door(), trusting] {
        for address in ["203.0.113.9", "127.0.0.1"] {
            let mut proxied = local(None);
            proxied.forwarded_for = Some(address.to_owned());
            let outcome = reason(judge_at(&door, &proxied, "n", 0, &text));
            assert_eq!(outcome, "device identity required", "{address}");
        }
        let mut named = local(None);
        named.has_forwarding_headers = true;
        assert_eq!(reason(judge_at(&door, &named, "n", 0, &text)), "device identity required");
        assert_eq!(reason(judge_at(&door, &local(None), "n", 0, &text)), "Shared None");
    }
}

#[test]
fn a_node_needs_a_device_and_says_what_it_can_do() {
    let node = |declared: Value| {
        let mut params = json!({"role": "node", "auth": {"token": "<TOKEN>"}});
        params.as_object_mut().unwrap().extend(declared.as_object().unwrap().clone());
        params
    };
    let judged = |params: &Value| reason(judge_at(&token_door(), &local(None), "n", 0, &connect(params)));
    for declared in [json!({}), json!({"caps": ["system"]}), json!({"commands": ["system.run"]})] {
        assert_eq!(judged(&node(declared)), "device identity required");
    }
    let ui = json!({"client": {"id": "openclaw-control-ui", "version": "1", "platform": "web", "mode": "webchat"}});
    let control_ui = ControlUi { allow_insecure_auth: true, ..ControlUi::default() };
    let waiving = Door { control_ui, ..token_door() };
    let page = local(Some("http://127.0.0.1:18789"));
    let mut as_node = node(json!({"caps": ["system"]}));
    as_node.as_object_mut().unwrap().extend(ui.as_object().unwrap().clone());
    let outcome = reason(judge_at(&waiving, &page, "n", 0, &connect(&as_node)));
    assert_eq!(outcome, "device identity required", "what is waived is a page's device");
}
