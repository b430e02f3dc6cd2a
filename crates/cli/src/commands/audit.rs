//! The findings about security that `status` shows first. A part of the checks of `security audit` (spec `cli.md` §8).

use openclaw_config::clock::now_ms;
use openclaw_config::gateway_options::{GatewayFlags, StartRefusal, gateway_options};
use openclaw_config::settings::{AuthKind, BindMode, GatewayMode};
use openclaw_config::{Config, Unmet, unmet_protections};
use secrecy::ExposeSecret as _;
use serde::Serialize;

use crate::context::Context;

/// Tokens shorter than this are called short.
const GOOD_TOKEN_LENGTH: usize = 24;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    ts: i64,
    pub(super) summary: Summary,
    pub(super) findings: Vec<Finding>,
}

/// How many findings there are.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    pub(super) critical: usize,
    pub(super) warn: usize,
    pub(super) info: usize,
}

/// How bad it is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Critical,
    Warn,
}

/// One of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    check_id: &'static str,
    pub(super) severity: Severity,
    pub(super) title: String,
    pub(super) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remediation: Option<String>,
}

pub(super) fn report(context: &Context, config: &Config) -> Report {
    let mut findings = Vec::new();
    findings.extend(unmet_protections(config).iter().map(unmet));
    if context.config().is_err() {
        findings.push(unusable_config(context));
    } else if config.gateway.mode != Some(GatewayMode::Remote) {
        gateway(context, config, &mut findings);
    }
    files(context, &mut findings);
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let summary = Summary { critical: count(Severity::Critical), warn: count(Severity::Warn), info: 0 };
    Report { ts: now_ms(), summary, findings }
}

fn finding(
    check_id: &'static str,
    severity: Severity,
    title: &str,
    detail: &str,
    remediation: Option<String>,
) -> Finding {
    Finding { check_id, severity, title: title.to_owned(), detail: detail.to_owned(), remediation }
}

fn unmet(unmet: &Unmet) -> Finding {
    let title = format!("{} asks for a protection that is missing", unmet.key);
    let remedy = Some(unmet.remedy().to_owned());
    finding("config.protection_missing", Severity::Critical, &title, &unmet.detail(), remedy)
}

/// What else is wrong with it is not known: the settings in the file are not the ones that were checked.
fn unusable_config(context: &Context) -> Finding {
    finding(
        "config.unusable",
        Severity::Critical,
        "The config cannot be used, so its settings were not checked",
        &format!("{}.", context.unusable_config()),
        Some(format!("{}.", context.config_fix())),
    )
}

fn gateway(context: &Context, config: &Config, findings: &mut Vec<Finding>) {
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
                    Severity::Warn,
                    "Gateway token looks short",
                    &format!("gateway auth token is {length} chars; prefer a long random token."),
                    None,
                ));
            }
        }
        Err(refusal) => findings.push(no_auth(context, bind, &refusal)),
    }
    let control_ui = &config.gateway.control_ui;
    if control_ui.dangerously_disable_device_auth {
        findings.push(finding(
            "gateway.control_ui.device_auth_disabled",
            Severity::Critical,
            "Control UI device auth is disabled",
            "gateway.controlUi.dangerouslyDisableDeviceAuth=true lets browsers connect without a device identity.",
            Some("Set it to false.".to_owned()),
        ));
    }
    if control_ui.allow_insecure_auth {
        findings.push(finding(
            "gateway.control_ui.insecure_auth",
            Severity::Critical,
            "Control UI accepts insecure auth",
            "gateway.controlUi.allowInsecureAuth=true lets browsers on plain HTTP connect with the token alone.",
            Some("Set it to false and use HTTPS or localhost.".to_owned()),
        ));
    }
}

fn no_auth(context: &Context, bind: BindMode, refusal: &StartRefusal) -> Finding {
    let (id, title) = if bind == BindMode::Loopback {
        ("gateway.loopback_no_auth", "Gateway auth missing on loopback")
    } else {
        ("gateway.bind_no_auth", "Gateway binds beyond loopback without auth")
    };
    finding(
        id,
        Severity::Critical,
        title,
        &format!("gateway.bind={} and no usable secret is configured.", bind.as_str()),
        Some(match refusal {
            StartRefusal::NoPassword => "Set gateway.auth.password.".to_owned(),
            _ => format!("Set gateway.auth.token, or run {}.", context.hint_command("openclaw setup")),
        }),
    )
}

#[cfg(unix)]
fn files(context: &Context, findings: &mut Vec<Finding>) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).ok().map(|file| file.permissions().mode() & 0o777);
    type Row = (u32, &'static str, Severity, &'static str);
    /// The first row whose bits are set counts.
    const STATE_DIR: &[Row] = &[
        (0o002, "fs.state_dir.perms_world_writable", Severity::Critical, "State dir is world-writable"),
        (0o020, "fs.state_dir.perms_group_writable", Severity::Warn, "State dir is group-writable"),
        (0o055, "fs.state_dir.perms_readable", Severity::Warn, "State dir is readable by others"),
    ];
    const CONFIG: &[Row] = &[
        (0o022, "fs.config.perms_writable", Severity::Critical, "Config file is writable by others"),
        (0o004, "fs.config.perms_world_readable", Severity::Critical, "Config file is world-readable"),
        (0o040, "fs.config.perms_group_readable", Severity::Warn, "Config file is group-readable"),
    ];
    let paths = context.paths();
    for (path, rows, advice, least) in [
        (paths.state_dir(), STATE_DIR, "consider restricting to 700", 700),
        (paths.config_path(), CONFIG, "config can contain tokens and private settings", 600),
    ] {
        let shown = path.display();
        if let Some(mode) = mode(path)
            && let Some((_, id, severity, title)) = rows.iter().find(|(bits, ..)| mode & bits != 0)
        {
            let detail = format!("{shown} mode={mode:o}; {advice}.");
            findings.push(finding(id, *severity, title, &detail, Some(format!("chmod {least} {shown}"))));
        }
    }
}

#[cfg(not(unix))]
fn files(_context: &Context, _findings: &mut Vec<Finding>) {}

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
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.check_id).collect();
        assert_eq!(
            ids,
            ["gateway.loopback_no_auth", "fs.state_dir.perms_readable", "fs.config.perms_world_readable"]
        );
        assert_eq!(report.summary, Summary { critical: 2, warn: 1, info: 0 });
    }
}
