//! `openclaw security audit`, and what `status` says of it.

use std::os::unix::fs::PermissionsExt as _;

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{has, json_of, ok, openclaw};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A directory whose files are for their owner alone, with Telegram open to everybody.
fn open_to_everybody() -> GatewayUnderTest {
    let telegram =
        json!({"botToken": "1:TEST-token-x", "dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open"});
    let gateway = gateway()
        .whole_config(json!({
            "gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}},
            "channels": {"telegram": telegram},
        }))
        .prepare()
        .unwrap();
    for (path, mode) in [(gateway.state_dir(), 0o700), (gateway.state_dir().join("openclaw.json"), 0o600)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    gateway
}

fn ids<'a>(report: &'a Value, severity: &str) -> Vec<&'a str> {
    let findings =
        report["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] == severity);
    findings.map(|finding| finding["checkId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn doors_that_are_open_to_everybody_are_no_all_clear() {
    let gateway = open_to_everybody();
    let report = json_of(&gateway, &["security", "audit", "--json"]).await;
    let critical = ids(&report, "critical");
    for id in [
        "channels.telegram.dm.open",
        "channels.telegram.groups.allowFrom.wildcard",
        "security.exposure.open_groups_with_elevated",
    ] {
        assert!(critical.contains(&id), "no {id} in {report}");
    }
    assert_eq!(report["summary"]["critical"], json!(critical.len()));
    assert!(ids(&report, "info").contains(&"summary.not_audited"), "{report}");

    let status = ok(&gateway, &["status"]).await;
    has(
        &status,
        &[
            &format!("Summary: {} critical · ", critical.len()),
            "CRITICAL Telegram DMs are open",
            "Not audited: the programs and texts of skills and hooks",
            "Full report: openclaw security audit",
        ],
    );
    let text = ok(&gateway, &["security", "audit"]).await;
    has(
        &text,
        &[
            "OpenClaw security audit\n",
            "\nCRITICAL\n",
            "channels.telegram.dm.open Telegram DMs are open",
            "Fix: ",
        ],
    );
}

#[tokio::test]
async fn the_audit_closes_what_it_can_and_ends_with_one_where_a_script_asks() {
    let gateway = open_to_everybody();
    let config = gateway.state_dir().join("openclaw.json");
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    for (least, code) in [("critical", 1), ("warn", 1), ("info", 1)] {
        let ended = openclaw(&gateway, &["security", "audit", "--json", "--fail-on", least]).await;
        assert_eq!(ended.code, Some(code), "{least}: {ended:?}");
    }
    openclaw(&gateway, &["security", "audit", "--fail-on", "bad"]).await.failed(&["critical, warn or info"]);

    let done = json_of(&gateway, &["security", "audit", "--fix", "--json"]).await;
    assert_eq!(done["fix"]["changes"], json!(["channels.telegram.groupPolicy: open → allowlist"]));
    assert_eq!(done["fix"]["errors"], json!([]));
    assert_eq!(std::fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
    let left = ids(&done["report"], "critical");
    assert!(
        !left.contains(&"fs.config.perms_world_readable") && left.contains(&"channels.telegram.dm.open"),
        "{done}"
    );
    assert_eq!(ok(&gateway, &["config", "get", "channels.telegram.groupPolicy"]).await, "allowlist\n");
}

#[tokio::test]
async fn a_gateway_that_does_not_answer_is_a_finding_of_a_deep_audit() {
    let gateway = open_to_everybody();
    let report = json_of(&gateway, &["security", "audit", "--deep", "--json"]).await;
    assert_eq!(report["deep"]["gateway"]["ok"], false);
    assert!(ids(&report, "warn").contains(&"gateway.probe_failed"), "{report}");
}
