//! The findings about security that `status` shows first. A part of the checks of `security audit` (spec `cli.md` §8).

use openclaw_config::clock::now_ms;
use openclaw_config::gateway_options::{GatewayFlags, gateway_options};
use openclaw_config::settings::{AuthKind, BindMode, GatewayMode};
use openclaw_config::{Config, Unmet, unmet_protections};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::context::Context;

/// Tokens shorter than this are called short.
const GOOD_TOKEN_LENGTH: usize = 24;

/// `{ts, summary, findings}`.
pub(super) fn report(context: &Context, config: &Config) -> Value {
    let mut findings = Vec::new();
    findings.extend(unmet_protections(config).iter().map(unmet));
    if context.config().is_err() {
        findings.push(unusable_config(context));
    } else if config.gateway.mode != Some(GatewayMode::Remote) {
        gateway(context, config, &mut findings);
    }
    files(context, &mut findings);
    let count = |severity: &str| {
        findings
            .iter()
            .filter(|finding| finding.get("severity").and_then(Value::as_str) == Some(severity))
            .count()
    };
    let summary = json!({ "critical": count("critical"), "warn": count("warn"), "info": count("info") });
    json!({ "ts": now_ms(), "summary": summary, "findings": findings })
}

fn finding(id: &str, severity: &str, title: &str, detail: &str, remediation: Option<String>) -> Value {
    let mut out = json!({ "checkId": id, "severity": severity, "title": title, "detail": detail });
    if let (Some(remediation), Some(out)) = (remediation, out.as_object_mut()) {
        out.insert("remediation".to_owned(), json!(remediation));
    }
    out
}

fn unmet(unmet: &Unmet) -> Value {
    let title = format!("{} asks for a protection that is missing", unmet.key);
    let remedy = Some(unmet.remedy().to_owned());
    finding("config.protection_missing", "critical", &title, &unmet.detail(), remedy)
}

/// What else is wrong with it is not known: the settings in the file are not the ones that were checked.
fn unusable_config(context: &Context) -> Value {
    finding(
        "config.unusable",
        "critical",
        "The config cannot be used, so its settings were not checked",
        &format!("{}.", context.unusable_config()),
        Some(format!("{}.", context.config_fix())),
    )
}

fn gateway(context: &Context, config: &Config, findings: &mut Vec<Value>) {
    let flags = GatewayFlags { allow_unconfigured: true, ..GatewayFlags::default() };
    let bind = config.gateway.bind.unwrap_or_default();
    match gateway_options(config, context.env(), &flags) {
        Ok(options) => {
            let length = options.auth.token.as_ref().map(|token| token.expose_secret().chars().count());
            if let Some(length) =
                length.filter(|length| options.auth.mode == AuthKind::Token && *length < GOOD_TOKEN_LENGTH)
            {
                findings.push(finding(
                    "gateway.token_too_short",
                    "warn",
                    "Gateway token looks short",
                    &format!("gateway auth token is {length} chars; prefer a long random token."),
                    None,
                ));
            }
        }
        Err(_) => findings.push(no_auth(bind)),
    }
    let control_ui = &config.gateway.control_ui;
    if control_ui.dangerously_disable_device_auth {
        findings.push(finding(
            "gateway.control_ui.device_auth_disabled",
            "critical",
            "Control UI device auth is disabled",
            "gateway.controlUi.dangerouslyDisableDeviceAuth=true lets browsers connect without a device identity.",
            Some("Set it to false.".to_owned()),
        ));
    }
    if control_ui.allow_insecure_auth {
        findings.push(finding(
            "gateway.control_ui.insecure_auth",
            "critical",
            "Control UI accepts insecure auth",
            "gateway.controlUi.allowInsecureAuth=true lets browsers on plain HTTP connect with the token alone.",
            Some("Set it to false and use HTTPS or localhost.".to_owned()),
        ));
    }
}

fn no_auth(bind: BindMode) -> Value {
    let (id, title) = if bind == BindMode::Loopback {
        ("gateway.loopback_no_auth", "Gateway auth missing on loopback")
    } else {
        ("gateway.bind_no_auth", "Gateway binds beyond loopback without auth")
    };
    finding(
        id,
        "critical",
        title,
        &format!("gateway.bind={} and no usable secret is configured.", bind.as_str()),
        Some("Set gateway.auth.token, or run openclaw setup.".to_owned()),
    )
}

#[cfg(unix)]
fn files(context: &Context, findings: &mut Vec<Value>) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).ok().map(|file| file.permissions().mode() & 0o777);
    let state = context.paths().state_dir();
    let shown = state.display();
    if let Some(mode) = mode(state) {
        let row = match mode {
            _ if mode & 0o002 != 0 => {
                Some(("fs.state_dir.perms_world_writable", "State dir is world-writable"))
            }
            _ if mode & 0o020 != 0 => {
                Some(("fs.state_dir.perms_group_writable", "State dir is group-writable"))
            }
            _ if mode & 0o055 != 0 => {
                Some(("fs.state_dir.perms_readable", "State dir is readable by others"))
            }
            _ => None,
        };
        findings.extend(row.map(|(id, title)| {
            let severity = if id.ends_with("world_writable") { "critical" } else { "warn" };
            let detail = format!("{shown} mode={mode:o}; consider restricting to 700.");
            finding(id, severity, title, &detail, Some(format!("chmod 700 {shown}")))
        }));
    }
    let config = context.paths().config_path();
    let shown = config.display();
    if let Some(mode) = mode(config) {
        let row = match mode {
            _ if mode & 0o022 != 0 => {
                Some(("fs.config.perms_writable", "critical", "Config file is writable by others"))
            }
            _ if mode & 0o004 != 0 => {
                Some(("fs.config.perms_world_readable", "critical", "Config file is world-readable"))
            }
            _ if mode & 0o040 != 0 => {
                Some(("fs.config.perms_group_readable", "warn", "Config file is group-readable"))
            }
            _ => None,
        };
        findings.extend(row.map(|(id, severity, title)| {
            let detail = format!("{shown} mode={mode:o}; config can contain tokens and private settings.");
            finding(id, severity, title, &detail, Some(format!("chmod 600 {shown}")))
        }));
    }
}

#[cfg(not(unix))]
fn files(_context: &Context, _findings: &mut Vec<Value>) {}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn open_files_and_missing_secrets_are_found() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join(".openclaw");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("openclaw.json"), "{ gateway: { mode: 'local' } }").unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(state.join("openclaw.json"), std::fs::Permissions::from_mode(0o644))
            .unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let context = Context::new(&env, true);
        let report = report(&context, context.config().unwrap());
        let ids: Vec<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["checkId"].as_str().unwrap())
            .collect();
        assert_eq!(
            ids,
            ["gateway.loopback_no_auth", "fs.state_dir.perms_readable", "fs.config.perms_world_readable"]
        );
        assert_eq!(report["summary"], json!({ "critical": 2, "warn": 1, "info": 0 }));
    }
}
