//! Values that the configuration gains in memory (spec `config.md` §5.3). Nothing of this is ever written to the file.

use serde_json::{Map, Value, json};

use crate::check::schema::{accepted, fill_defaults};
use crate::legacy::object_at;
use crate::settings::{AgentDefaults, SubagentDefaults, is_session_name};
use crate::value_path::texts;
use crate::{Environment, registry};

/// Names that listed models get without asking, and what they stand for (spec `models.md` §1.2).
pub const MODEL_ALIASES: &[(&str, &str)] = &[
    ("opus", "anthropic/claude-opus-4-6"),
    ("sonnet", "anthropic/claude-sonnet-4-5"),
    ("gpt", "openai/gpt-5.2"),
    ("gpt-mini", "openai/gpt-5-mini"),
    ("gemini", "google/gemini-3-pro-preview"),
    ("gemini-flash", "google/gemini-3-flash-preview"),
];

const DEFAULT_CONTEXT_WINDOW: f64 = 200_000.0;
const DEFAULT_MAX_TOKENS: f64 = 8_192.0;

/// The document as `config.get` shows it: the schema's defaults and the few that always hold.
pub(crate) fn for_display(document: &Value) -> Value {
    let mut config = document.clone();
    fill_schema_defaults(&mut config);
    normalize_sections(&mut config);
    let Value::Object(root) = &mut config else { return config };
    if let Some(defaults) = object_at(root, &["agents", "defaults"]) {
        defaults.entry("maxConcurrent").or_insert_with(|| json!(AgentDefaults::MAX_CONCURRENT));
        if let Some(subagents) = object_at(defaults, &["subagents"]) {
            subagents.entry("maxConcurrent").or_insert_with(|| json!(SubagentDefaults::MAX_CONCURRENT));
        }
        model_aliases(defaults);
    }
    if let Some(messages) = object_at(root, &["messages"]) {
        messages.entry("ackReactionScope").or_insert_with(|| json!("group-mentions"));
    }
    if let Some(logging) = root.get_mut("logging").and_then(Value::as_object_mut) {
        logging.entry("redactSensitive").or_insert_with(|| json!("tools"));
    }
    provider_models(root);
    config
}

/// The document as the product uses it.
pub(crate) fn for_use(document: &Value, env: &Environment) -> Value {
    let mut config = for_display(document);
    let Value::Object(root) = &mut config else { return config };
    let mode = document.pointer("/agents/defaults").and_then(|_| anthropic_mode(document, env));
    if let Some(defaults) = object_at(root, &["agents", "defaults"]) {
        if let Some(mode) = mode {
            anthropic_defaults(defaults, mode);
        }
        if let Some(compaction) = object_at(defaults, &["compaction"]) {
            compaction.entry("mode").or_insert_with(|| json!("safeguard"));
        }
    }
    expand_paths(&mut config, None, env);
    config
}

/// Warnings about values that are not used as written.
pub(crate) fn overridden(document: &Value) -> Option<String> {
    let name = document.pointer("/session/mainKey").and_then(Value::as_str)?.trim();
    (!name.is_empty() && !is_session_name(&name.to_lowercase())).then(|| {
        format!(
            "{name:?} cannot name a session and \"main\" is used; write at most 64 characters without blanks or colons, and not \
             \"global\" or \"unknown\""
        )
    })
}

/// Sections of channels and `commands` carry the schema's defaults; plugins keep their own. Accounts of channels have none: a default
/// of theirs would hide what is set for the whole channel (spec `channels.md` §1.3). So would the schema's group policy hide the one that is
/// set for all channels.
fn fill_schema_defaults(config: &mut Value) {
    const FILLED: [&str; 2] = ["commands", "channels"];
    let Value::Object(root) = config else { return };
    root.entry("commands").or_insert_with(|| json!({}));
    let for_all = root.get("channels").and_then(|channels| channels.pointer("/defaults/groupPolicy"));
    let is_policy_set = for_all.is_some();
    let mut schema = accepted(|path| match path {
        [section] => FILLED.contains(section) && root.contains_key(*section),
        [section, channel] => root.get(*section).is_some_and(|section| section.get(channel).is_some()),
        _ => false,
    });
    let channels = schema.pointer_mut("/properties/channels/properties").and_then(Value::as_object_mut);
    for (_, channel) in channels.into_iter().flatten() {
        let Some(keys) = channel.get_mut("properties").and_then(Value::as_object_mut) else { continue };
        keys.remove("accounts");
        if is_policy_set {
            keys.remove("groupPolicy");
        }
    }
    for key in FILLED {
        if let (Some(value), Some(part)) = (root.get_mut(key), schema.pointer(&format!("/properties/{key}")))
        {
            fill_defaults(part, value);
        }
    }
}

/// Values that platforms use in another form than they are written in.
fn normalize_sections(config: &mut Value) {
    for platform in registry::CHANNELS {
        let section = config.get_mut("channels").and_then(|channels| channels.get_mut(platform.id));
        let (Some(normalize), Some(section)) = (platform.normalize, section) else { continue };
        normalize(section);
        let accounts = section.get_mut("accounts").and_then(Value::as_object_mut);
        accounts.into_iter().flatten().for_each(|(_, account)| normalize(account));
    }
}

fn model_aliases(defaults: &mut Map<String, Value>) {
    let Some(models) = defaults.get_mut("models").and_then(Value::as_object_mut) else { return };
    for (alias, model) in MODEL_ALIASES {
        if let Some(entry) = models.get_mut(*model).and_then(Value::as_object_mut) {
            entry.entry("alias").or_insert_with(|| json!(alias));
        }
    }
}

fn provider_models(root: &mut Map<String, Value>) {
    let providers = root.get_mut("models").and_then(|models| models.get_mut("providers")?.as_object_mut());
    for provider in providers.into_iter().flatten() {
        let models = provider.1.get_mut("models").and_then(Value::as_array_mut);
        for model in models.into_iter().flatten().filter_map(Value::as_object_mut) {
            provider_model(model);
        }
    }
}

fn provider_model(model: &mut Map<String, Value>) {
    model.entry("reasoning").or_insert(Value::Bool(false));
    let input = model.entry("input").or_insert_with(|| json!([]));
    if input.as_array().is_some_and(Vec::is_empty) {
        *input = json!(["text"]);
    }
    if let Some(cost) = object_at(model, &["cost"]) {
        for key in ["input", "output", "cacheRead", "cacheWrite"] {
            cost.entry(key).or_insert_with(|| json!(0));
        }
    }
    let window = model.entry("contextWindow").or_insert_with(|| json!(200_000)).clone();
    let window_size = window.as_f64().unwrap_or(DEFAULT_CONTEXT_WINDOW);
    let longest = if window_size < DEFAULT_MAX_TOKENS { window } else { json!(8192) };
    let max_tokens = model.entry("maxTokens").or_insert_with(|| longest);
    if max_tokens.as_f64().is_some_and(|tokens| tokens > window_size) {
        *max_tokens = json!(window_size);
    }
}

/// Authentication with Anthropic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnthropicMode {
    ApiKey,
    Oauth,
}

fn anthropic_mode(document: &Value, env: &Environment) -> Option<AnthropicMode> {
    let profiles = document.pointer("/auth/profiles").and_then(Value::as_object);
    let mode_of = |profile: &Value| match profile.get("mode").and_then(Value::as_str) {
        Some("api_key") => Some(AnthropicMode::ApiKey),
        Some("oauth" | "token") => Some(AnthropicMode::Oauth),
        _ => None,
    };
    let head = texts(document.pointer("/auth/order/anthropic")).find_map(|id| profiles?.get(id));
    if let Some(mode) = head.and_then(mode_of) {
        return Some(mode);
    }
    let mut modes = profiles
        .into_iter()
        .flatten()
        .map(|(_, profile)| profile)
        .filter(|profile| profile.get("provider").and_then(Value::as_str) == Some("anthropic"))
        .filter_map(mode_of);
    if let Some(first) = modes.next()
        && modes.all(|mode| mode == first)
    {
        return Some(first);
    }
    if env.get_nonblank("ANTHROPIC_OAUTH_TOKEN").is_some() {
        return Some(AnthropicMode::Oauth);
    }
    env.get_nonblank("ANTHROPIC_API_KEY").map(|_| AnthropicMode::ApiKey)
}

fn anthropic_defaults(defaults: &mut Map<String, Value>, mode: AnthropicMode) {
    if let Some(pruning) = object_at(defaults, &["contextPruning"])
        && !pruning.contains_key("mode")
    {
        pruning.insert("mode".to_owned(), json!("cache-ttl"));
        pruning.entry("ttl").or_insert_with(|| json!("1h"));
    }
    let every = match mode {
        AnthropicMode::Oauth => "1h",
        AnthropicMode::ApiKey => "30m",
    };
    if let Some(heartbeat) = object_at(defaults, &["heartbeat"]) {
        heartbeat.entry("every").or_insert_with(|| json!(every));
    }
    if mode == AnthropicMode::ApiKey {
        cache_parameters(defaults);
    }
}

/// Listed Anthropic models cache for an hour unless they say otherwise. Unlike the reference no entry is made for a primary
/// model that is not listed: a list with one entry would forbid all other models.
fn cache_parameters(defaults: &mut Map<String, Value>) {
    let Some(models) = defaults.get_mut("models").and_then(Value::as_object_mut) else { return };
    for (_, entry) in models.iter_mut().filter(|(name, _)| name.starts_with("anthropic/")) {
        let Some(params) = entry.as_object_mut().and_then(|entry| object_at(entry, &["params"])) else {
            continue;
        };
        if !params.contains_key("cacheRetention") {
            params.entry("cacheControlTtl").or_insert_with(|| json!("1h"));
        }
    }
}

/// Keys whose value is a path, by their ending.
const PATH_ENDINGS: &[&str] = &["dir", "path", "paths", "file", "root", "workspace"];
/// Keys whose items are paths.
const PATH_LISTS: &[&str] = &["paths", "pathPrepend"];

/// Expands `~` in values that are paths. Other values with a `~` are expanded where they are used.
fn expand_paths(value: &mut Value, key: Option<&str>, env: &Environment) {
    match value {
        Value::Object(map) => {
            for (key, each) in map {
                expand_paths(each, Some(key.as_str()), env);
            }
        }
        Value::Array(items) => {
            let are_paths = key.is_some_and(|key| PATH_LISTS.contains(&key));
            for item in items {
                match item {
                    Value::String(text) if are_paths => expand(text, env),
                    other => expand_paths(other, None, env),
                }
            }
        }
        Value::String(text) => {
            let lower = key.unwrap_or_default().to_ascii_lowercase();
            if PATH_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
                expand(text, env);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expand(text: &mut String, env: &Environment) {
    if text.trim_start().starts_with('~') {
        *text = env.expand_tilde(text).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heartbeat, pruning and the lifetime of a listed model's cache, by the kind of credential in the environment (spec
    /// `models.md` §6).
    #[test]
    fn what_anthropic_is_paid_with_sets_the_pace() {
        const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");
        const LOGIN: (&str, &str) = ("ANTHROPIC_OAUTH_TOKEN", "t");
        let of = |vars: &[(&str, &str)], params: Value| {
            let env = Environment::new(vars.iter().copied(), "/home/x");
            let models = json!({"anthropic/claude-opus-4-6": {"params": params}, "openai/gpt-5.2": {}});
            let document = json!({"agents": {"defaults": {"models": models}}});
            let used = for_use(&document, &env);
            let at = |pointer: &str| used.pointer(pointer).cloned().unwrap_or_default();
            [
                at("/agents/defaults/heartbeat/every"),
                at("/agents/defaults/contextPruning/ttl"),
                at("/agents/defaults/models/anthropic~1claude-opus-4-6/params"),
                at("/agents/defaults/models/openai~1gpt-5.2/params"),
            ]
        };
        let nothing = Value::Null;
        let login = [json!("1h"), json!("1h"), json!({}), nothing.clone()];
        assert_eq!(of(&[LOGIN], json!({})), login);
        assert_eq!(of(&[KEY, LOGIN], json!({})), login);
        assert_eq!(
            of(&[KEY], json!({})),
            [json!("30m"), json!("1h"), json!({"cacheControlTtl": "1h"}), nothing]
        );
        for own in [
            json!({"cacheRetention": "none"}),
            json!({"cacheRetention": "short"}),
            json!({"cacheControlTtl": "5m"}),
        ] {
            assert_eq!(of(&[KEY], own.clone())[2], own);
        }
        assert_eq!(of(&[], json!({}))[0], Value::Null);
    }
}
