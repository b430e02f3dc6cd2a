//! The old `routing` section, taken apart.

use serde_json::{Map, Value, json};

use super::migrate::{fill_gaps, object, object_at, place};
use crate::value_path::texts;

/// Command-line transcribers that may be carried over.
const TRANSCRIBERS: &[&str] = &["whisper"];

fn routing(root: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    root.get_mut("routing")?.as_object_mut()
}

fn take(root: &mut Map<String, Value>, key: &str) -> Option<Value> {
    routing(root)?.shift_remove(key)
}

fn take_group_chat(root: &mut Map<String, Value>, key: &str) -> Option<Value> {
    let group_chat = routing(root)?.get_mut("groupChat")?.as_object_mut()?;
    let value = group_chat.shift_remove(key);
    if group_chat.is_empty() {
        routing(root)?.shift_remove("groupChat");
    }
    value
}

fn has_whatsapp(root: &Map<String, Value>) -> bool {
    root.get("channels").is_some_and(|channels| channels.get("whatsapp").is_some())
}

/// `routing.allowFrom`.
pub(super) fn allow_from(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(list) = take(root, "allowFrom") else { return };
    if !has_whatsapp(root) {
        changes.push("Removed routing.allowFrom (channels.whatsapp not configured).".to_owned());
        return;
    }
    place(root, list, "routing.allowFrom", &["channels", "whatsapp", "allowFrom"], changes);
}

/// `routing.groupChat.requireMention`.
pub(super) fn require_mention(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(value) = take_group_chat(root, "requireMention") else { return };
    let channels = ["whatsapp", "telegram", "imessage"];
    let skipped = if has_whatsapp(root) { 0 } else { 1 };
    for id in channels.into_iter().skip(skipped) {
        let target = ["channels", id, "groups", "*", "requireMention"];
        place(root, value.clone(), "routing.groupChat.requireMention", &target, changes);
    }
}

/// `routing.agents` and `routing.defaultAgentId`.
pub(super) fn agents(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    if let Some(Value::Object(agents)) = take(root, "agents") {
        for (id, entry) in agents {
            let Value::Object(settings) = entry else { continue };
            let settings = reshape(&id, settings, changes);
            if let Some(target) = entry_of(root, &id) {
                fill_gaps(target, settings);
            }
        }
        changes.push("Moved routing.agents → agents.list.".to_owned());
    }
    let Some(Value::String(id)) = take(root, "defaultAgentId") else { return };
    let has_default = root
        .get("agents")
        .and_then(|agents| agents.get("list")?.as_array())
        .is_some_and(|list| list.iter().any(|entry| entry.get("default") == Some(&Value::Bool(true))));
    if has_default {
        changes.push("Removed routing.defaultAgentId (agents.list default already set).".to_owned());
    } else if let Some(entry) = entry_of(root, &id) {
        entry.insert("default".to_owned(), Value::Bool(true));
        changes.push(format!("Moved routing.defaultAgentId → agents.list (id \"{id}\").default."));
    }
}

fn reshape(id: &str, mut settings: Map<String, Value>, changes: &mut Vec<String>) -> Map<String, Value> {
    if let Some(patterns) = settings.shift_remove("mentionPatterns") {
        if let Some(group_chat) = object(&mut settings, "groupChat") {
            group_chat.entry("mentionPatterns").or_insert(patterns);
        }
        changes.push(format!(
            "Moved routing.agents.{id}.mentionPatterns → agents.list (id \"{id}\").groupChat.mentionPatterns."
        ));
    }
    let policy =
        settings.get_mut("sandbox").and_then(|sandbox| sandbox.as_object_mut()?.shift_remove("tools"));
    if let Some(policy) = policy {
        if let Some(sandbox) = object_at(&mut settings, &["tools", "sandbox"]) {
            sandbox.entry("tools").or_insert(policy);
        }
        changes.push(format!(
            "Moved routing.agents.{id}.sandbox.tools → agents.list (id \"{id}\").tools.sandbox.tools."
        ));
    }
    settings
}

/// The entry of an agent in `agents.list`, added if absent.
fn entry_of<'a>(root: &'a mut Map<String, Value>, id: &str) -> Option<&'a mut Map<String, Value>> {
    let list = object(root, "agents")?.entry("list").or_insert_with(|| json!([])).as_array_mut()?;
    let at = list.iter().position(|entry| entry.get("id").and_then(Value::as_str) == Some(id));
    let at = at.unwrap_or_else(|| {
        list.push(json!({ "id": id }));
        list.len() - 1
    });
    list.get_mut(at)?.as_object_mut()
}

/// Moves the remaining old keys: bindings, agentToAgent, queue, group chat, transcription.
pub(super) fn rest(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let moves: [(&str, &[&str]); 3] = [
        ("bindings", &["bindings"]),
        ("agentToAgent", &["tools", "agentToAgent"]),
        ("queue", &["messages", "queue"]),
    ];
    for (key, target) in moves {
        if let Some(value) = take(root, key) {
            place(root, value, &format!("routing.{key}"), target, changes);
        }
    }
    for key in ["historyLimit", "mentionPatterns"] {
        if let Some(value) = take_group_chat(root, key) {
            let target = ["messages", "groupChat", key];
            place(root, value, &format!("routing.groupChat.{key}"), &target, changes);
        }
    }
    if let Some(old) = take(root, "transcribeAudio") {
        transcription(root, &old, changes);
    }
    if routing(root).is_some_and(|routing| routing.is_empty()) {
        root.shift_remove("routing");
    }
}

fn transcription(root: &mut Map<String, Value>, old: &Value, changes: &mut Vec<String>) {
    let words: Vec<&str> = texts(old.get("command")).collect();
    let is_known =
        |program: &&str| program.rsplit(['/', '\\']).next().is_some_and(|n| TRANSCRIBERS.contains(&n));
    let Some((program, args)) = words.split_first().filter(|(program, _)| is_known(program)) else {
        changes.push("Removed routing.transcribeAudio (unsupported transcription CLI).".to_owned());
        return;
    };
    let Some(audio) = object_at(root, &["tools", "media", "audio"]) else { return };
    if audio.contains_key("models") {
        changes.push("Removed routing.transcribeAudio (tools.media.audio.models already set).".to_owned());
        return;
    }
    let mut model = Map::new();
    model.insert("command".to_owned(), json!(program));
    model.insert("type".to_owned(), json!("cli"));
    if !args.is_empty() {
        model.insert("args".to_owned(), json!(args));
    }
    if let Some(seconds) = old.get("timeoutSeconds") {
        model.insert("timeoutSeconds".to_owned(), seconds.clone());
    }
    audio.entry("enabled").or_insert(Value::Bool(true));
    audio.insert("models".to_owned(), json!([model]));
    changes.push("Moved routing.transcribeAudio → tools.media.audio.models.".to_owned());
}
