//! Telegram's row, and what its section in the configuration means beyond the schema.

use serde_json::{Value, json};

use super::section_rules::{account_dm_policy, dm_policy};
use super::{ChannelInfo, PeopleLists, PolicyPlace, ReplyDefaults, Rooms, ThreadStyle, core};
use crate::Issue;
use crate::document_rule::{DocumentPlace, has_text};
use crate::reply_to_mode::ReplyToMode;
use crate::value_path::{items, join};

/// Row of Telegram.
pub const TELEGRAM: ChannelInfo = ChannelInfo {
    is_built: true,
    entry_prefixes: &["tg"],
    credentials: &["TELEGRAM_BOT_TOKEN"],
    shell_credentials: &["TELEGRAM_BOT_TOKEN"],
    credential_keys: &["botToken", "tokenFile"],
    native_commands: true,
    rooms: Rooms::Some,
    group_threads: ThreadStyle::Topic,
    private_policy: PolicyPlace::Section,
    replies: ReplyDefaults {
        reply_to: ReplyToMode::First,
        follows_block_default: true,
        draft_limit: Some(4096),
        ..ReplyDefaults::OTHER
    },
    keys: include_str!("../../data/acted_on/telegram.txt"),
    rules: &[("accounts.*", account), ("", custom_commands), ("", dm_policy), ("", webhook)],
    people: Some(PeopleLists {
        lists: &["allowFrom", "groupAllowFrom", "groups.*.allowFrom", "groups.*.topics.*.allowFrom"],
        fault: entry_fault,
    }),
    normalize: Some(normalize_commands),
    ..core("telegram", "Telegram", "Telegram Bot", "paperplane")
};

/// Longest command name that Telegram takes.
const MAX_COMMAND_LENGTH: usize = 32;

/// The ids of channels and supergroups, which may write in their own names, are not above this; those of other groups are.
const HIGHEST_SPEAKING_CHAT: i64 = -1_000_000_000_000;

/// Rules of an account.
fn account(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    account_dm_policy(value, place, out);
    custom_commands(value, place, out);
}

/// A webhook needs a secret.
fn webhook(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
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
fn command_name(text: &str) -> String {
    let trimmed = text.trim();
    trimmed.strip_prefix('/').unwrap_or(trimmed).trim().to_lowercase()
}

/// Commands of the owner's own for the menu are well formed, described, and there once.
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

/// Names of commands are used in lower case and without slash.
fn normalize_commands(section: &mut Value) {
    let entries = section.get_mut("customCommands").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(name) = entry.get("command").and_then(Value::as_str) {
            let name = command_name(name);
            entry.insert("command".to_owned(), json!(name));
        }
        if let Some(text) = entry.get("description").and_then(Value::as_str) {
            let text = text.trim().to_owned();
            entry.insert("description".to_owned(), json!(text));
        }
    }
}

/// Returns the reason why an entry of a list of people can match nobody, now or after names were
/// looked up.
fn entry_fault(text: &str) -> Option<String> {
    let bare = TELEGRAM.bare_entry(text);
    let why = match bare.parse::<i64>() {
        _ if text.is_empty() => "an empty entry can match nobody".to_owned(),
        Ok(id) if (HIGHEST_SPEAKING_CHAT + 1..0).contains(&id) => {
            format!(
                "\"{text}\" is the id of a group, and can match nobody in a list of people; groups stand in groups"
            )
        }
        Ok(_) | Err(_) if may_mean_somebody(bare) => return None,
        Ok(_) | Err(_) => format!("\"{text}\" can match nobody on Telegram"),
    };
    Some(format!(
        "{why}; write the numeric id of the person (it stands in openclaw pairing list telegram, and in the answer to /whoami)"
    ))
}

/// `*`, a number, or what can be the name of a person or a chat.
fn may_mean_somebody(rest: &str) -> bool {
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    if !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()) {
        return digits.parse::<i64>().is_ok_and(|id| id != 0);
    }
    let name = rest.strip_prefix('@').unwrap_or(rest);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    rest == "*" || is_name
}
