//! `security audit --fix`: closes what can be closed without asking (spec `cli.md` §8).

use openclaw_config::write::{Actor, write};
use openclaw_config::{Config, value_path};
use serde::Serialize;
use serde_json::{Value, json};

use super::files;
use crate::context::CliContext;

/// Result of the fixes, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fixed {
    pub(super) ok: bool,
    state_dir: String,
    config_path: String,
    config_written: bool,
    /// Changes made to the configuration.
    pub(super) changes: Vec<String>,
    /// Changes made to the modes of files.
    pub(super) actions: Vec<ModeFix>,
    pub(super) errors: Vec<String>,
}

/// Change made to the mode of one file.
#[derive(Debug, Serialize)]
pub(super) struct ModeFix {
    pub(super) kind: &'static str,
    pub(super) path: String,
    pub(super) mode: String,
    pub(super) ok: bool,
}

pub(super) fn run(context: &CliContext, config: &Config) -> Fixed {
    let mut fixed = Fixed {
        ok: true,
        state_dir: context.paths().state_dir().display().to_string(),
        config_path: context.paths().config_path().display().to_string(),
        config_written: false,
        changes: Vec::new(),
        actions: Vec::new(),
        errors: Vec::new(),
    };
    if context.config().is_ok() {
        change_config(context, &mut fixed);
    }
    for open in files::open_to_others(context, config) {
        let path = open.path.display().to_string();
        let done = restrict(&open.path, open.least);
        fixed.errors.extend(done.as_ref().err().map(|error| format!("{path}: {error}")));
        fixed.actions.push(ModeFix {
            kind: "chmod",
            path,
            mode: format!("{:o}", open.least),
            ok: done.is_ok(),
        });
    }
    fixed.ok = fixed.errors.is_empty();
    fixed
}

fn change_config(context: &CliContext, fixed: &mut Fixed) {
    let mut document = context.loaded.snapshot.parsed.clone();
    let changes = closed(&mut document);
    if changes.is_empty() {
        return;
    }
    match write(&context.loaded, &document, Actor::Cli) {
        Ok(_) => {
            fixed.config_written = true;
            fixed.changes = changes;
        }
        Err(error) => fixed.errors.push(error.to_string()),
    }
}

/// Closes what the document leaves open, and says what that was.
fn closed(document: &mut Value) -> Vec<String> {
    let mut changes = Vec::new();
    let redact = ["logging", "redactSensitive"].map(str::to_owned);
    if value_path::get(document, &redact).and_then(Value::as_str) == Some("off") {
        value_path::set(document, &redact, json!("tools"));
        changes.push("logging.redactSensitive: off → tools".to_owned());
    }
    if let Some(channels) = document.get_mut("channels") {
        close_groups(channels, "channels", &mut changes);
    }
    changes
}

/// Finds every `groupPolicy: "open"` below a section: of platforms, accounts, groups and topics.
fn close_groups(node: &mut Value, path: &str, changes: &mut Vec<String>) {
    let Some(map) = node.as_object_mut() else { return };
    for (key, value) in map {
        let path = format!("{path}.{key}");
        if key == "groupPolicy" && value == "open" {
            *value = json!("allowlist");
            changes.push(format!("{path}: open → allowlist"));
        } else {
            close_groups(value, &path, changes);
        }
    }
}

#[cfg(unix)]
fn restrict(path: &std::path::Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_path: &std::path::Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_groups_are_closed_wherever_they_stand() {
        let mut document = json!({
            "logging": {"redactSensitive": "off"},
            "channels": {"telegram": {
                "groupPolicy": "open",
                "accounts": {"a": {"groups": {"-1": {"groupPolicy": "open", "topics": {"2": {"groupPolicy": "disabled"}}}}}},
            }},
        });
        let expect = [
            "logging.redactSensitive: off → tools",
            "channels.telegram.groupPolicy: open → allowlist",
            "channels.telegram.accounts.a.groups.-1.groupPolicy: open → allowlist",
        ];
        assert_eq!(closed(&mut document), expect);
        assert_eq!(closed(&mut document), [""; 0]);
    }
}
