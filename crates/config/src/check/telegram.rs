//! Rules of `channels.telegram`.

use serde_json::Value;

use super::rules::{DocumentPlace, account_dm_policy, has_text};
use super::schema::join;
use crate::Issue;
use crate::value_path::items;

/// Longest command name that Telegram takes.
const MAX_COMMAND_LENGTH: usize = 32;

/// Rules of an account.
pub(super) fn account(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    account_dm_policy(value, place, out);
    custom_commands(value, place, out);
}

/// Rules of the section.
pub(super) fn channel(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    custom_commands(value, place, out);
}

/// A webhook needs a secret.
pub(super) fn webhook(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let shared_secret = has_text(value, "webhookSecret");
    if has_text(value, "webhookUrl") && !shared_secret {
        out.push(Issue::new(
            join(&place.path, "webhookSecret"),
            "channels.telegram.webhookUrl requires channels.telegram.webhookSecret",
        ));
    }
    for (id, account) in value.get("accounts").and_then(Value::as_object).into_iter().flatten() {
        let is_enabled = account.get("enabled") != Some(&Value::Bool(false));
        let has_secret = shared_secret || has_text(account, "webhookSecret");
        if is_enabled && has_text(account, "webhookUrl") && !has_secret {
            out.push(Issue::new(
                join(&place.path, &format!("accounts.{id}.webhookSecret")),
                "channels.telegram.accounts.*.webhookUrl requires channels.telegram.webhookSecret or channels.telegram.accounts.*.webhookSecret",
            ));
        }
    }
}

/// The name as it is registered: trimmed, lower case, without the slash.
pub(crate) fn command_name(text: &str) -> String {
    let trimmed = text.trim();
    trimmed.strip_prefix('/').unwrap_or(trimmed).trim().to_lowercase()
}

fn custom_commands(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    let mut seen: Vec<String> = Vec::new();
    for (index, entry) in items(value.get("customCommands")).enumerate() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = command_name(text("command"));
        let base = join(&place.path, &format!("customCommands.{index}"));
        let well_formed = name.len() <= MAX_COMMAND_LENGTH
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let problem = if name.is_empty() {
            Some(("command", "Telegram custom command is missing a command name.".to_owned()))
        } else if !well_formed {
            let rule = "is invalid (use a-z, 0-9, underscore; max 32 chars).";
            Some(("command", format!("Telegram custom command \"/{name}\" {rule}")))
        } else if seen.contains(&name) {
            Some(("command", format!("Telegram custom command \"/{name}\" is duplicated.")))
        } else if text("description").trim().is_empty() {
            Some(("description", format!("Telegram custom command \"/{name}\" is missing a description.")))
        } else {
            None
        };
        match problem {
            Some((key, message)) => out.push(Issue::new(join(&base, key), message)),
            None => seen.push(name),
        }
    }
}
