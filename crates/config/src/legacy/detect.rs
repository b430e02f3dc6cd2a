//! Finding keys of older versions.

use serde_json::Value;

use crate::Issue;

/// When a row applies to the value at its path.
#[derive(Clone, Copy)]
enum When {
    Present,
    Text,
}

/// Path, condition, and what to say; every text ends in ` (auto-migrated on load).`
const RULES: &[(&str, When, &str)] = &[
    ("whatsapp", When::Present, "whatsapp config moved to channels.whatsapp"),
    ("telegram", When::Present, "telegram config moved to channels.telegram"),
    ("discord", When::Present, "discord config moved to channels.discord"),
    ("slack", When::Present, "slack config moved to channels.slack"),
    ("signal", When::Present, "signal config moved to channels.signal"),
    ("imessage", When::Present, "imessage config moved to channels.imessage"),
    ("msteams", When::Present, "msteams config moved to channels.msteams"),
    (
        "routing.allowFrom",
        When::Present,
        "routing.allowFrom was removed; use channels.whatsapp.allowFrom instead",
    ),
    ("routing.bindings", When::Present, "routing.bindings was moved; use top-level bindings instead"),
    ("routing.agents", When::Present, "routing.agents was moved; use agents.list instead"),
    (
        "routing.defaultAgentId",
        When::Present,
        "routing.defaultAgentId was moved; use agents.list[].default instead",
    ),
    ("routing.agentToAgent", When::Present, "routing.agentToAgent was moved; use tools.agentToAgent instead"),
    (
        "routing.groupChat.requireMention",
        When::Present,
        "routing.groupChat.requireMention was removed; use channels.whatsapp/telegram/imessage groups defaults (e.g. channels.whatsapp.groups.\"*\".requireMention) instead",
    ),
    (
        "routing.groupChat.mentionPatterns",
        When::Present,
        "routing.groupChat.mentionPatterns was moved; use agents.list[].groupChat.mentionPatterns or messages.groupChat.mentionPatterns instead",
    ),
    ("routing.queue", When::Present, "routing.queue was moved; use messages.queue instead"),
    (
        "routing.transcribeAudio",
        When::Present,
        "routing.transcribeAudio was moved; use tools.media.audio.models instead",
    ),
    (
        "telegram.requireMention",
        When::Present,
        "telegram.requireMention was removed; use channels.telegram.groups.\"*\".requireMention instead",
    ),
    ("identity", When::Present, "identity was moved; use agents.list[].identity instead"),
    (
        "agent",
        When::Present,
        "agent.* was moved; use agents.defaults (and tools.* for tool/elevated/exec settings) instead",
    ),
    ("tools.bash", When::Present, "tools.bash was removed; use tools.exec instead"),
    (
        "agent.model",
        When::Text,
        "agent.model string was replaced by agents.defaults.model.primary/fallbacks and agents.defaults.models",
    ),
    (
        "agent.imageModel",
        When::Text,
        "agent.imageModel string was replaced by agents.defaults.imageModel.primary/fallbacks",
    ),
    ("agent.allowedModels", When::Present, "agent.allowedModels was replaced by agents.defaults.models"),
    (
        "agent.modelAliases",
        When::Present,
        "agent.modelAliases was replaced by agents.defaults.models.*.alias",
    ),
    (
        "agent.modelFallbacks",
        When::Present,
        "agent.modelFallbacks was replaced by agents.defaults.model.fallbacks",
    ),
    (
        "agent.imageModelFallbacks",
        When::Present,
        "agent.imageModelFallbacks was replaced by agents.defaults.imageModel.fallbacks",
    ),
    ("messages.tts.enabled", When::Present, "messages.tts.enabled was replaced by messages.tts.auto"),
    ("gateway.token", When::Present, "gateway.token is ignored; use gateway.auth.token instead"),
];

/// All legacy keys of a document.
pub(crate) fn detect(document: &Value) -> Vec<Issue> {
    RULES
        .iter()
        .filter(|(path, when, _)| {
            let value = path.split('.').try_fold(document, |node, key| node.get(key));
            match when {
                When::Present => value.is_some(),
                When::Text => value.is_some_and(Value::is_string),
            }
        })
        .map(|(path, _, text)| Issue::new(*path, format!("{text} (auto-migrated on load).")))
        .collect()
}
