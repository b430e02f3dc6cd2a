//! The parameters, in the names and the order of OpenClaw 2026.2.9. All but `action` may be left out; which of them an action reads is told
//! by their names. The list is long, and the same for as long as the settings are: it is made once.

use std::sync::LazyLock;

use openclaw_models::ToolSchema;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::MessageSetup;

/// Schemas that are kept; each differs by what platforms can do.
const KEPT: usize = 8;

/// Parameter: its name, its type, and its description for the model.
type Parameter = (&'static str, ParameterType, &'static str);

#[derive(Debug, Clone, Copy)]
enum ParameterType {
    Text,
    Flag,
    Number,
    Texts,
}

use ParameterType::{Flag, Number, Text, Texts};

const PARAMETERS: &[Parameter] = &[
    ("channel", Text, "Platform; the one this conversation is on where absent."),
    ("target", Text, "Target channel/user id or name; this conversation where absent."),
    ("targets", Texts, "Targets of a broadcast, written as target is."),
    ("accountId", Text, ""),
    ("dryRun", Flag, "Only say what would be done."),
    ("message", Text, "Markdown."),
    ("effectId", Text, "Message effect of sendWithEffect, by name or id (e.g., invisible ink)."),
    ("effect", Text, "Alias for effectId (e.g., invisible-ink, balloons)."),
    ("media", Text, "Media URL or local path. data: URLs are not supported here, use buffer."),
    ("filename", Text, ""),
    ("buffer", Text, "Base64 payload for attachments (optionally a data: URL)."),
    ("contentType", Text, ""),
    ("mimeType", Text, ""),
    ("caption", Text, ""),
    ("path", Text, ""),
    ("filePath", Text, ""),
    ("replyTo", Text, "Id of the message to answer."),
    ("threadId", Text, ""),
    ("asVoice", Flag, "Send audio as a voice message."),
    ("silent", Flag, ""),
    ("quoteText", Text, "Words of the answered message to quote (Telegram)."),
    ("bestEffort", Flag, "Some parts may fail."),
    ("gifPlayback", Flag, ""),
];

const MORE: &[Parameter] = &[
    ("messageId", Text, ""),
    ("emoji", Text, "With react; empty takes the reactions of the bot back."),
    ("remove", Flag, "With react: take this emoji back."),
    ("targetAuthor", Text, ""),
    ("targetAuthorUuid", Text, ""),
    ("groupId", Text, ""),
    ("limit", Number, ""),
    ("before", Text, ""),
    ("after", Text, ""),
    ("around", Text, ""),
    ("fromMe", Flag, ""),
    ("includeArchived", Flag, ""),
    ("pollQuestion", Text, ""),
    ("pollOption", Texts, ""),
    ("pollDurationHours", Number, ""),
    ("pollMulti", Flag, ""),
    ("channelId", Text, "Channel id (of search, channel and event actions)."),
    ("channelIds", Texts, ""),
    ("guildId", Text, ""),
    ("userId", Text, ""),
    ("authorId", Text, ""),
    ("authorIds", Texts, ""),
    ("roleId", Text, ""),
    ("roleIds", Texts, ""),
    ("participant", Text, ""),
    ("emojiName", Text, ""),
    ("stickerId", Texts, ""),
    ("stickerName", Text, ""),
    ("stickerDesc", Text, ""),
    ("stickerTags", Text, ""),
    ("threadName", Text, ""),
    ("autoArchiveMin", Number, ""),
    ("query", Text, ""),
    ("eventName", Text, ""),
    ("eventType", Text, ""),
    ("startTime", Text, ""),
    ("endTime", Text, ""),
    ("desc", Text, ""),
    ("location", Text, ""),
    ("durationMin", Number, ""),
    ("until", Text, ""),
    ("reason", Text, ""),
    ("deleteDays", Number, ""),
    ("gatewayUrl", Text, "Not used: messages go through this gateway."),
    ("gatewayToken", Text, "Not used."),
    ("timeoutMs", Number, ""),
    ("name", Text, ""),
    ("type", Number, ""),
    ("parentId", Text, ""),
    ("topic", Text, ""),
    ("position", Number, ""),
    ("nsfw", Flag, ""),
    ("rateLimitPerUser", Number, ""),
    ("categoryId", Text, ""),
    ("clearParent", Flag, "Take the channel out of its category."),
    ("activityType", Text, ""),
    ("activityName", Text, ""),
    ("activityUrl", Text, ""),
    ("activityState", Text, ""),
    ("status", Text, ""),
];

/// Builds the schema for the abilities of the configured platforms.
pub(super) fn schema(setup: Option<&MessageSetup>) -> ToolSchema {
    type SchemaKey = (Vec<&'static str>, bool);
    static MADE: LazyLock<Mutex<Vec<(SchemaKey, ToolSchema)>>> = LazyLock::new(Mutex::default);
    let key = setup.map(|setup| (setup.actions.clone(), setup.has_buttons)).unwrap_or_default();
    let mut made = MADE.lock();
    if let Some((_, schema)) = made.iter().find(|(own, _)| *own == key) {
        return schema.clone();
    }
    let schema: ToolSchema = of(&key.0, key.1).into();
    if made.len() >= KEPT {
        made.remove(0);
    }
    made.push((key, schema.clone()));
    schema
}

fn of(actions: &[&str], has_buttons: bool) -> Value {
    let actions = if actions.is_empty() { &["send"] } else { actions };
    let mut properties = Map::new();
    properties.insert("action".to_owned(), json!({"type": "string", "enum": actions}));
    properties.extend(PARAMETERS.iter().map(property));
    if has_buttons {
        properties.insert("buttons".to_owned(), buttons());
    }
    properties.extend(MORE.iter().map(property));
    json!({"type": "object", "properties": properties, "required": ["action"]})
}

fn property((name, kind, description): &Parameter) -> (String, Value) {
    let mut schema = match kind {
        Text => json!({"type": "string"}),
        Flag => json!({"type": "boolean"}),
        Number => json!({"type": "number"}),
        Texts => json!({"type": "array", "items": {"type": "string"}}),
    };
    if let Some(fields) = schema.as_object_mut()
        && !description.is_empty()
    {
        fields.insert("description".to_owned(), json!(description));
    }
    ((*name).to_owned(), schema)
}

fn buttons() -> Value {
    let button = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "callback_data": {"type": "string"}},
        "required": ["text", "callback_data"],
    });
    json!({
        "description": "Rows of buttons below the message; a press comes back as a message with the callback data.",
        "type": "array",
        "items": {"type": "array", "items": button},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of spec `tools.md` for a gateway without channels.
    #[test]
    fn the_parameters_are_those_of_the_reference() {
        const NAMES: &str = "action channel target targets accountId dryRun message effectId effect media filename buffer \
            contentType mimeType caption path filePath replyTo threadId asVoice silent quoteText bestEffort gifPlayback \
            messageId emoji remove targetAuthor targetAuthorUuid groupId limit before after around fromMe includeArchived \
            pollQuestion pollOption pollDurationHours pollMulti channelId channelIds guildId userId authorId authorIds \
            roleId roleIds participant emojiName stickerId stickerName stickerDesc stickerTags threadName autoArchiveMin \
            query eventName eventType startTime endTime desc location durationMin until reason deleteDays gatewayUrl \
            gatewayToken timeoutMs name type parentId topic position nsfw rateLimitPerUser categoryId clearParent \
            activityType activityName activityUrl activityState status";
        let schema = of(&["broadcast", "send"], false);
        let properties = schema["properties"].as_object().unwrap();
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(names.join(" "), NAMES.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!((names.len(), &schema["required"]), (84, &json!(["action"])));
        assert_eq!(properties["action"]["enum"], json!(["broadcast", "send"]));
        assert_eq!(of(&[], false)["properties"]["action"]["enum"], json!(["send"]));
        assert!(of(&["send"], true)["properties"].get("buttons").is_some());
    }

    #[test]
    fn what_platforms_can_do_makes_one_schema() {
        let setup = MessageSetup { actions: vec!["send"], ..MessageSetup::default() };
        assert_eq!(*schema(Some(&setup)), *schema(Some(&setup)));
        assert_ne!(
            *schema(Some(&setup)),
            *schema(Some(&MessageSetup { has_buttons: true, ..setup.clone() }))
        );
    }
}
