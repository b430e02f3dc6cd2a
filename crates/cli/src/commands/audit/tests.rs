use openclaw_config::Environment;
use serde_json::{Value, json};

use super::*;
use crate::testing;

#[cfg(unix)]
#[test]
fn open_files_and_missing_secrets_are_found() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = tempfile::tempdir().unwrap();
    let state = home.path().join(".openclaw");
    let sessions = state.join("agents/main/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let mode = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let file = |name: &str, text: &str, bits: u32| {
        std::fs::write(state.join(name), text).unwrap();
        mode(&state.join(name), bits);
    };
    file("openclaw.json", "{ gateway: { mode: 'local', controlUi: { enabled: false } } }", 0o644);
    file("openclaw.json.bak", "{}", 0o644);
    file("openclaw.json.bak.1", "{}", 0o600);
    file("agents/main/sessions/sessions.json", "{}", 0o640);
    mode(&state, 0o755);
    let home_dir = home.path().to_str().unwrap();
    let env = Environment::new([("HOME", home_dir), ("TMPDIR", home_dir)], home.path());
    let context = CliContext::new(&env, true);
    let report = report(&context, context.config().unwrap());
    let found: Vec<&str> = report.findings.iter().map(|finding| finding.check_id.as_str()).collect();
    let expect = [
        "summary.attack_surface",
        "summary.not_audited",
        "gateway.loopback_no_auth",
        "fs.state_dir.perms_readable",
        "fs.config.perms_world_readable",
        "fs.config_backup.secrets",
        "fs.sessions_store.perms_readable",
    ];
    assert_eq!(found, expect);
    assert_eq!(report.summary, SeverityCounts { critical: 3, warn: 2, info: 2 });
}

const SAFE: [&str; 2] = ["summary.attack_surface", "summary.not_audited"];

/// The findings of a config beside [`SAFE`] ones, with their severity.
fn found(more: &Value) -> Vec<(String, Severity)> {
    let mut config = json!({
        "gateway": {"mode": "local", "trustedProxies": ["10.0.0.1"], "auth": {"token": "0123456789abcdef0123456789abcdef"}},
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let context = testing::context(&config.to_string(), &[]);
    let report = report(&context, context.config().unwrap());
    let findings = report.findings.into_iter().map(|finding| (finding.check_id, finding.severity));
    findings.filter(|(id, _)| !SAFE.contains(&id.as_str())).collect()
}

#[test]
fn doors_that_a_config_opens_are_found() {
    use Severity::{Critical, Info, Warn};
    let telegram = |keys: Value| {
        let mut section = json!({"botToken": "1:TEST-token-x"});
        section.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        json!({"channels": {"telegram": section}, "tools": {"exec": {"ask": "always"}}})
    };
    let outside = |settings: Value| {
        let mut config = json!({"channels": {"telegram": {"botToken": "1:TEST-token-x"}}});
        config.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        config
    };
    let non_main = json!({"defaults": {"sandbox": {"mode": "non-main"}}});
    let rows: [(Value, &[(&str, Severity)]); 19] = [
        (json!({}), &[]),
        (telegram(json!({})), &[]),
        (
            telegram(json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open"})),
            &[
                ("channels.telegram.dm.open", Critical),
                ("channels.telegram.dm.scope_main_multiuser", Warn),
                ("channels.telegram.warning.1", Warn),
                ("channels.telegram.groups.allowFrom.wildcard", Critical),
                ("security.exposure.open_groups_with_elevated", Critical),
            ],
        ),
        (
            telegram(
                json!({"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open", "enabled": false}),
            ),
            &[],
        ),
        (
            telegram(json!({"allowFrom": ["*"], "groupPolicy": "disabled"})),
            &[("channels.telegram.dm.open", Critical), ("channels.telegram.dm.scope_main_multiuser", Warn)],
        ),
        (
            telegram(json!({"accounts": {"b": {"groups": {"-1": {"groupPolicy": "open"}}}}})),
            &[
                ("channels.telegram.warning.1", Warn),
                ("security.exposure.open_groups_with_elevated", Critical),
            ],
        ),
        (
            telegram(json!({"dmPolicy": "open", "allowFrom": ["*"], "accounts": {"b": {"allowFrom": [5]}}})),
            &[("channels.telegram.dm.open_invalid", Warn)],
        ),
        (telegram(json!({"dmPolicy": "disabled"})), &[("channels.telegram.dm.disabled", Info)]),
        (telegram(json!({"allowFrom": [5, 6]})), &[("channels.telegram.dm.scope_main_multiuser", Warn)]),
        (
            json!({"channels": {"telegram": {"botToken": "1:TEST-token-x"}}}),
            &[("exec.full_without_sandbox", Warn)],
        ),
        // Private chats are the main session, which non-main leaves out, unless they are told apart.
        (outside(json!({"agents": non_main})), &[("exec.full_without_sandbox", Warn)]),
        (outside(json!({"agents": non_main, "session": {"dmScope": "per-channel-peer"}})), &[]),
        (
            outside(
                json!({"agents": non_main, "session": {"dmScope": "per-channel-peer", "scope": "global"}}),
            ),
            &[("exec.full_without_sandbox", Warn)],
        ),
        (outside(json!({"agents": {"defaults": {"sandbox": {"mode": "all"}}}})), &[]),
        (
            outside(json!({"tools": {"exec": {"ask": "always"}}, "approvals": {"exec": {"enabled": true}}})),
            &[],
        ),
        (
            json!({"tools": {"elevated": {"allowFrom": {"telegram": ["*"], "discord": (0..26).collect::<Vec<_>>()}}}}),
            &[
                ("tools.elevated.allowFrom.discord.large", Warn),
                ("tools.elevated.allowFrom.telegram.wildcard", Critical),
            ],
        ),
        (json!({"logging": {"redactSensitive": "off"}}), &[("logging.redact_off", Warn)]),
        (
            json!({"agents": {"defaults": {"model": {"primary": "openai/gpt-4o", "fallbacks": ["ollama/llama3:8b"]}}}}),
            &[("models.weak_tier", Warn), ("models.small_params", Critical)],
        ),
        (
            json!({"agents": {"defaults": {"model": "ollama/llama3:8b", "sandbox": {"mode": "all"}}}}),
            &[("models.small_params", Info)],
        ),
    ];
    for (config, expect) in rows {
        let expect: Vec<(String, Severity)> =
            expect.iter().map(|(id, how)| ((*id).to_owned(), *how)).collect();
        assert_eq!(found(&config), expect, "{config}");
    }
}

#[test]
fn a_platform_that_is_not_there_is_named_as_not_audited() {
    let context =
        testing::context("{channels: {discord: {token: 'x'}, telegram: {botToken: '1:TEST-token-x'}}}", &[]);
    let report = report(&context, context.config().unwrap());
    let told = report.findings.iter().find(|finding| finding.check_id == "summary.not_audited").unwrap();
    assert!(
        told.detail.contains("Discord (not in this version") && !told.detail.contains("Telegram"),
        "{told:?}"
    );
}
