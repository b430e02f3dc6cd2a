//! Finding keys of older versions.

use serde_json::Value;

use crate::Issue;
use crate::snapshot::MOVED;

/// Keys that are old only where they hold a text.
const OLD_AS_TEXT: &[&str] = &["agent.model", "agent.imageModel"];

/// Path and what to say; every text ends in [`MOVED`].
const RULES: &[(&str, &str)] = &[
    ("whatsapp", "whatsapp config moved to channels.whatsapp"),
    ("telegram", "telegram config moved to channels.telegram"),
    ("discord", "discord config moved to channels.discord"),
    ("slack", "slack config moved to channels.slack"),
    ("signal", "signal config moved to channels.signal"),
    ("imessage", "imessage config moved to channels.imessage"),
    ("msteams", "msteams config moved to channels.msteams"),
    ("routing.allowFrom", "routing.allowFrom was removed; use channels.whatsapp.allowFrom instead"),
    ("routing.bindings", "routing.bindings was moved; use top-level bindings instead"),
    ("routing.agents", "routing.agents was moved; use agents.list instead"),
    ("routing.defaultAgentId", "routing.defaultAgentId was moved; use agents.list[].default instead"),
    ("routing.agentToAgent", "routing.agentToAgent was moved; use tools.agentToAgent instead"),
    (
        "routing.groupChat.requireMention",
        "routing.groupChat.requireMention was removed; use channels.whatsapp/telegram/imessage groups defaults (e.g. channels.whatsapp.groups.\"*\".requireMention) instead",
    ),
    (
        "routing.groupChat.mentionPatterns",
        "routing.groupChat.mentionPatterns was moved; use agents.list[].groupChat.mentionPatterns or messages.groupChat.mentionPatterns instead",
    ),
    ("routing.queue", "routing.queue was moved; use messages.queue instead"),
    ("routing.transcribeAudio", "routing.transcribeAudio was moved; use tools.media.audio.models instead"),
    (
        "telegram.requireMention",
        "telegram.requireMention was removed; use channels.telegram.groups.\"*\".requireMention instead",
    ),
    ("identity", "identity was moved; use agents.list[].identity instead"),
    ("agent", "agent.* was moved; use agents.defaults (and tools.* for tool/elevated/exec settings) instead"),
    ("tools.bash", "tools.bash was removed; use tools.exec instead"),
    (
        "agent.model",
        "agent.model string was replaced by agents.defaults.model.primary/fallbacks and agents.defaults.models",
    ),
    (
        "agent.imageModel",
        "agent.imageModel string was replaced by agents.defaults.imageModel.primary/fallbacks",
    ),
    ("agent.allowedModels", "agent.allowedModels was replaced by agents.defaults.models"),
    ("agent.modelAliases", "agent.modelAliases was replaced by agents.defaults.models.*.alias"),
    ("agent.modelFallbacks", "agent.modelFallbacks was replaced by agents.defaults.model.fallbacks"),
    (
        "agent.imageModelFallbacks",
        "agent.imageModelFallbacks was replaced by agents.defaults.imageModel.fallbacks",
    ),
    ("messages.tts.enabled", "messages.tts.enabled was replaced by messages.tts.auto"),
    ("gateway.token", "gateway.token is ignored; use gateway.auth.token instead"),
];

/// All legacy keys of a document.
pub(crate) fn detect(document: &Value) -> Vec<Issue> {
    RULES
        .iter()
        .filter(|(path, _)| {
            let value = path.split('.').try_fold(document, |node, key| node.get(key));
            value.is_some_and(|value| value.is_string() || !OLD_AS_TEXT.contains(path))
        })
        .map(|(path, text)| Issue::new(*path, format!("{text}{MOVED}")))
        .collect()
}
