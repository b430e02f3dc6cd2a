//! Moving values of older versions to where they belong now (spec `config.md` §6.2).
//!
//! Every step leaves values that are already at the target alone and says what it did. Steps run until none finds work.

use serde_json::{Map, Value, json};

use super::routing;
use crate::value_path::texts;

/// Channels whose sections stood at the root once.
const ROOT_CHANNELS: &[&str] = &["whatsapp", "telegram", "discord", "slack", "signal", "imessage", "msteams"];
/// Steps need at most two rounds; more would be a cycle.
const MAX_ROUNDS: usize = 4;

type MigrationStep = fn(&mut Map<String, Value>, &mut Vec<String>);

/// Migration steps in the order of the specification; later steps rely on earlier ones.
const STEPS: &[MigrationStep] = &[
    bindings,
    send_policy,
    root_channels,
    routing::allow_from,
    routing::require_mention,
    gateway_token,
    telegram_require_mention,
    agent_models,
    routing::agents,
    routing::rest,
    claude_cli_profile,
    tools_bash,
    tts_enabled,
    agent,
    identity,
];

/// The document with all known old keys moved, and one line a move; `None` when there was nothing to move.
pub(crate) fn migrate(document: &Value) -> Option<(Value, Vec<String>)> {
    let mut root = document.as_object()?.clone();
    let mut changes = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let before = changes.len();
        for step in STEPS {
            step(&mut root, &mut changes);
        }
        if changes.len() == before {
            break;
        }
    }
    for key in ["routing", "channels", "tools", "agents", "messages"] {
        let is_new = document.get(key).is_none() || key == "routing";
        if is_new && root.get(key).and_then(Value::as_object).is_some_and(Map::is_empty) {
            root.shift_remove(key);
        }
    }
    (!changes.is_empty()).then_some((Value::Object(root), changes))
}

/// The object at a key, made if absent. `None` when something else is there.
pub(super) fn object<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.entry(key).or_insert_with(|| json!({})).as_object_mut()
}

/// The object at a path, made if absent.
pub(crate) fn object_at<'a>(
    map: &'a mut Map<String, Value>,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(map, |node, key| object(node, key))
}

/// Puts a value where it belongs now, unless there is one already, and says which of the two.
pub(super) fn place(
    root: &mut Map<String, Value>,
    value: Value,
    source: &str,
    target: &[&str],
    changes: &mut Vec<String>,
) {
    let Some((key, parents)) = target.split_last() else { return };
    let Some(parent) = object_at(root, parents) else { return };
    let shown = target.join(".").replace('*', "\"*\"");
    if parent.contains_key(*key) {
        changes.push(format!("Removed {source} ({shown} already set)."));
    } else {
        parent.insert((*key).to_owned(), value);
        changes.push(format!("Moved {source} → {shown}."));
    }
}

/// Fills gaps of `target` from `source`, recursively. Existing values stay.
pub(super) fn fill_gaps(target: &mut Map<String, Value>, source: Map<String, Value>) {
    for (key, value) in source {
        match (target.get_mut(&key), value) {
            (Some(Value::Object(present)), Value::Object(more)) => fill_gaps(present, more),
            (Some(_), _) => {}
            (None, value) => {
                target.insert(key, value);
            }
        }
    }
}

fn rename(map: &mut Map<String, Value>, from: &str, to: &str) -> bool {
    match map.shift_remove(from) {
        Some(value) => {
            map.entry(to).or_insert(value);
            true
        }
        None => false,
    }
}

fn each_match(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get_mut("match")?.as_object_mut())
}

fn bindings(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let mut provider = false;
    let mut account = false;
    for matches in each_match(root.get_mut("bindings")) {
        provider |= rename(matches, "provider", "channel");
        account |= rename(matches, "accountID", "accountId");
    }
    if provider {
        changes.push("Moved bindings[].match.provider → bindings[].match.channel.".to_owned());
    }
    if account {
        changes.push("Moved bindings[].match.accountID → bindings[].match.accountId.".to_owned());
    }
}

fn send_policy(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let rules = root.get_mut("session").and_then(|session| session.pointer_mut("/sendPolicy/rules"));
    let mut moved = false;
    for matches in each_match(rules) {
        moved |= rename(matches, "provider", "channel");
    }
    if moved {
        changes.push("Moved session.sendPolicy.rules[].match.provider → match.channel.".to_owned());
    }
    let queue = root.get_mut("messages").and_then(|messages| messages.get_mut("queue")?.as_object_mut());
    if queue.is_some_and(|queue| rename(queue, "byProvider", "byChannel")) {
        changes.push("Moved messages.queue.byProvider → messages.queue.byChannel.".to_owned());
    }
}

fn root_channels(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let is_free =
        |root: &Map<String, Value>, id: &str| root.get("channels").is_none_or(|c| c.get(id).is_none());
    // Plain moves are reported before merges.
    let (moves, merges): (Vec<&str>, Vec<&str>) = ROOT_CHANNELS.iter().partition(|id| is_free(root, id));
    for (ids, verb) in [(moves, "Moved"), (merges, "Merged")] {
        for id in ids {
            let Some(Value::Object(section)) = root.get(id).cloned() else { continue };
            let Some(target) = object_at(root, &["channels", id]) else { continue };
            fill_gaps(target, section);
            root.shift_remove(id);
            changes.push(format!("{verb} {id} → channels.{id}."));
        }
    }
}

fn gateway_token(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(gateway) = root.get_mut("gateway").and_then(Value::as_object_mut) else { return };
    let Some(token) = gateway.shift_remove("token") else { return };
    let Some(auth) = object(gateway, "auth") else { return };
    if auth.contains_key("token") {
        changes.push("Removed gateway.token (gateway.auth.token already set).".to_owned());
        return;
    }
    auth.insert("token".to_owned(), token);
    auth.entry("mode").or_insert_with(|| json!("token"));
    changes.push("Moved gateway.token → gateway.auth.token.".to_owned());
}

fn telegram_require_mention(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(section) = root.get_mut("channels").and_then(|c| c.get_mut("telegram")?.as_object_mut()) else {
        return;
    };
    let Some(value) = section.shift_remove("requireMention") else { return };
    if let Some(group) = object_at(section, &["groups", "*"]) {
        group.entry("requireMention").or_insert(value);
    }
    changes.push("Moved telegram.requireMention → channels.telegram.groups.\"*\".requireMention.".to_owned());
}

/// `agent.model` and its companions take their present shape; `agent` itself moves later.
fn agent_models(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(agent) = root.get_mut("agent").and_then(Value::as_object_mut) else { return };
    let old_model = agent.get("model").and_then(Value::as_str).map(str::to_owned);
    let old_image = agent.get("imageModel").and_then(Value::as_str).map(str::to_owned);
    for (key, list_key) in [("model", "modelFallbacks"), ("imageModel", "imageModelFallbacks")] {
        if let Some(Value::String(primary)) = agent.get(key) {
            let choice = json!({ "primary": primary });
            agent.insert(key.to_owned(), choice);
            changes.push(format!("Migrated agent.{key} string → agent.{key}.primary."));
        }
        if let Some(list) = agent.shift_remove(list_key) {
            let has_items = list.as_array().is_some_and(|items| !items.is_empty());
            if let Some(choice) = object(agent, key) {
                choice.entry("fallbacks").or_insert(list);
            }
            if has_items {
                changes.push(format!("Migrated agent.{list_key} → agent.{key}.fallbacks."));
            }
        }
    }
    let allowed = agent.shift_remove("allowedModels");
    let aliases = agent.shift_remove("modelAliases");
    let had_lists = allowed.is_some() || aliases.is_some();
    if let Some(models) = had_lists.then(|| object(agent, "models")).flatten() {
        for name in texts(allowed.as_ref()).map(str::to_owned).chain(old_model).chain(old_image) {
            models.entry(name).or_insert_with(|| json!({}));
        }
        for (alias, target) in aliases.as_ref().and_then(Value::as_object).into_iter().flatten() {
            let Some(target) = target.as_str() else { continue };
            if let Some(entry) = object(models, target) {
                entry.entry("alias").or_insert_with(|| json!(alias));
            }
        }
    }
    if allowed.is_some() {
        changes.push("Migrated agent.allowedModels → agent.models.".to_owned());
    }
    if aliases.is_some() {
        changes.push("Migrated agent.modelAliases → agent.models.*.alias.".to_owned());
    }
}

fn claude_cli_profile(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let mode = root
        .get_mut("auth")
        .and_then(|auth| auth.get_mut("profiles")?.get_mut("anthropic:claude-cli")?.get_mut("mode"));
    if let Some(mode) = mode.filter(|mode| mode.as_str() == Some("token")) {
        *mode = json!("oauth");
        changes.push("Updated auth.profiles[\"anthropic:claude-cli\"].mode → \"oauth\".".to_owned());
    }
}

fn tools_bash(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(bash) = take(root, &["tools", "bash"]) else { return };
    place(root, bash, "tools.bash", &["tools", "exec"], changes);
}

fn tts_enabled(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let tts = root.get_mut("messages").and_then(|messages| messages.get_mut("tts")?.as_object_mut());
    let Some(tts) = tts else { return };
    let Some(enabled) = tts.get("enabled").and_then(Value::as_bool) else { return };
    tts.shift_remove("enabled");
    if tts.contains_key("auto") {
        changes.push("Removed messages.tts.enabled (messages.tts.auto already set).".to_owned());
        return;
    }
    let auto = if enabled { "always" } else { "off" };
    tts.insert("auto".to_owned(), json!(auto));
    changes.push(format!("Moved messages.tts.enabled → messages.tts.auto ({auto})."));
}

/// Parts of `agent` that are tool settings now: source path, target path.
const AGENT_TOOL_PARTS: &[(&[&str], &[&str])] = &[
    (&["tools", "allow"], &["tools", "allow"]),
    (&["tools", "deny"], &["tools", "deny"]),
    (&["elevated"], &["tools", "elevated"]),
    (&["bash"], &["tools", "exec"]),
    (&["sandbox", "tools"], &["tools", "sandbox", "tools"]),
    (&["subagents", "tools"], &["tools", "subagents", "tools"]),
];

fn agent(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(Value::Object(mut agent)) = root.get("agent").cloned() else { return };
    root.shift_remove("agent");
    for (from, to) in AGENT_TOOL_PARTS {
        if let Some(value) = take(&mut agent, from) {
            place(root, value, &format!("agent.{}", from.join(".")), to, changes);
        }
    }
    if agent.get("tools").and_then(Value::as_object).is_some_and(Map::is_empty) {
        agent.shift_remove("tools");
    }
    if let Some(defaults) = object_at(root, &["agents", "defaults"]) {
        fill_gaps(defaults, agent);
    }
    changes.push("Moved agent → agents.defaults.".to_owned());
}

fn take(map: &mut Map<String, Value>, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(map, |node, key| node.get_mut(*key)?.as_object_mut())?;
    parent.shift_remove(*last)
}

fn identity(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    let Some(Value::Object(identity)) = root.get("identity").cloned() else { return };
    root.shift_remove("identity");
    let Some(list) = object(root, "agents").map(|agents| agents.entry("list").or_insert_with(|| json!([])))
    else {
        return;
    };
    let Some(entry) = default_entry(list) else { return };
    let id = entry.get("id").and_then(Value::as_str).unwrap_or("main").to_owned();
    if entry.contains_key("identity") {
        changes.push(format!("Removed identity (agents.list (id \"{id}\").identity already set)."));
    } else {
        entry.insert("identity".to_owned(), Value::Object(identity));
        changes.push(format!("Moved identity → agents.list (id \"{id}\").identity."));
    }
}

/// The default agent's entry; `main` is added to an empty list.
fn default_entry(list: &mut Value) -> Option<&mut Map<String, Value>> {
    let list = list.as_array_mut()?;
    if list.is_empty() {
        list.push(json!({ "id": "main" }));
    }
    let at = list.iter().position(|entry| entry.get("default") == Some(&Value::Bool(true))).unwrap_or(0);
    list.get_mut(at)?.as_object_mut()
}
