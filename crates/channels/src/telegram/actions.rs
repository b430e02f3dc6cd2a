//! What agents may do besides sending: react, edit, delete, stickers (spec `channels.md` §6.2, §7.5).

use serde_json::{Value, json};

use super::account::{Bot, chat_id, set};
use super::failure::{ApiError, Refusal};
use super::outgoing::keyboard;
use super::settings::{AccountSettings, ReactionLevel};
use super::wire::Wire as _;
use super::{reactions, stickers, target};
use crate::{ActionError, Address, Button, Target};

/// An acknowledgement by the gateway itself, which agents can't ask for and their gates do not concern.
const ACKNOWLEDGE: &str = "acknowledge";
/// The gateway's own edit of what it has sent, such as the next page of a list.
const REPLACE: &str = "replace";

/// The actions that are switched on, sorted.
pub(super) fn offered(settings: &AccountSettings) -> Vec<&'static str> {
    let gates = settings.actions;
    let rows = [
        ("delete", gates.delete_message),
        ("edit", gates.edit_message),
        ("react", gates.reactions && agent_may_react(settings)),
        ("send", gates.send_message),
        ("sticker", gates.sticker),
        ("sticker-search", gates.sticker),
    ];
    rows.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

/// Does one.
pub(super) async fn act(bot: &Bot, action: &str, params: &Value) -> Result<Value, ActionError> {
    let gates = bot.settings.actions;
    match action {
        ACKNOWLEDGE => react(bot, params).await,
        REPLACE => edit(bot, params).await,
        "react" => {
            gate(gates.reactions, "reactions")?;
            if !agent_may_react(&bot.settings) {
                return Err(ActionError::Invalid(level_text(bot.settings.reaction_level)));
            }
            react(bot, params).await
        }
        "edit" => {
            gate(gates.edit_message, "editMessage")?;
            edit(bot, params).await
        }
        "delete" => {
            gate(gates.delete_message, "deleteMessage")?;
            delete(bot, params).await
        }
        "sticker" => {
            gate(gates.sticker, "sticker")?;
            sticker(bot, params).await
        }
        "sticker-search" => {
            gate(gates.sticker, "sticker")?;
            search(bot, params).await
        }
        _ => Err(ActionError::Unsupported(action.to_owned())),
    }
}

fn agent_may_react(settings: &AccountSettings) -> bool {
    matches!(settings.reaction_level, ReactionLevel::Minimal | ReactionLevel::Extensive)
}

fn level_text(level: ReactionLevel) -> String {
    let level = level.as_str();
    format!(
        "Telegram agent reactions disabled (reactionLevel=\"{level}\"). Set channels.telegram.reactionLevel to \"minimal\" or \"extensive\" to enable."
    )
}

fn gate(is_on: bool, name: &str) -> Result<(), ActionError> {
    if is_on {
        return Ok(());
    }
    let text =
        format!("Telegram {name} is disabled; set channels.telegram.actions.{name} to true to enable it.");
    Err(ActionError::Invalid(text))
}

async fn react(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = Place::of(bot, params)?;
    let message = place.message(params)?;
    let emoji = params.at("emoji").as_str().ok_or_else(|| invalid("emoji is required"))?.trim();
    // A bot has one reaction on a message: to take back any is to take back all.
    let is_removal = emoji.is_empty() || params.flag("remove");
    let reaction = if is_removal {
        json!([])
    } else {
        let known = reactions::allowed(emoji).ok_or_else(|| unknown_reaction(emoji))?;
        json!([{"type": "emoji", "emoji": known}])
    };
    let call = json!({"chat_id": place.chat, "message_id": message, "reaction": reaction});
    match bot.client.call("setMessageReaction", &call).await {
        Ok(_) if is_removal => Ok(json!({"ok": true, "removed": true})),
        Ok(_) => Ok(json!({"ok": true, "added": emoji})),
        Err(error) if error.refusal() == Some(Refusal::Reaction) => Err(ActionError::Invalid(format!(
            "This chat does not allow the reaction {emoji}. Telegram knows: {}",
            reactions::list()
        ))),
        Err(error) => Err(place.failed(bot, error)),
    }
}

async fn edit(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = Place::of(bot, params)?;
    let message = place.message(params)?;
    let text = params.text("message").or_else(|| params.text("content"));
    let text = text.ok_or_else(|| invalid("message is required"))?;
    let words = super::parts::words(text, &bot.settings);
    let mut call = json!({"chat_id": place.chat, "message_id": message, "text": words.plain});
    if let Some(buttons) = params.get("buttons").filter(|buttons| !buttons.is_null()) {
        // None of them takes the keyboard away.
        let keyboard = keyboard(&read_buttons(buttons)).unwrap_or_else(|| json!({"inline_keyboard": []}));
        set(&mut call, "reply_markup", keyboard);
    }
    if !bot.settings.shows_link_previews() {
        set(&mut call, "link_preview_options", json!({"is_disabled": true}));
    }
    let mut marked = call.clone();
    if let Some(formatted) = &words.formatted {
        set(&mut marked, "text", formatted.as_str());
        set(&mut marked, "parse_mode", "HTML");
    }
    let mut done = bot.client.call("editMessageText", &marked).await;
    let refusal = done.as_ref().err().and_then(ApiError::refusal);
    if words.formatted.is_some() && matches!(refusal, Some(Refusal::Markup | Refusal::TooLong)) {
        done = bot.client.call("editMessageText", &call).await;
    }
    match done {
        Err(error) if error.refusal() != Some(Refusal::NotModified) => Err(place.failed(bot, error)),
        Ok(_) | Err(_) => Ok(json!({"ok": true, "messageId": message.to_string(), "chatId": place.id})),
    }
}

async fn delete(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = Place::of(bot, params)?;
    let call = json!({"chat_id": place.chat, "message_id": place.message(params)?});
    let done = bot.client.call("deleteMessage", &call).await;
    done.map(|_| json!({"ok": true, "deleted": true})).map_err(|error| place.failed(bot, error))
}

async fn sticker(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = Place::of(bot, params)?;
    let listed = || params.list("stickerId").first().and_then(Value::as_str);
    let file = params.text("fileId").or_else(|| params.text("stickerId")).or_else(listed);
    let file = file.ok_or_else(|| invalid("fileId (or stickerId) is required; sticker-search finds one"))?;
    let mut call = json!({"chat_id": place.chat, "sticker": file});
    if let Some(thread) = place.thread {
        set(&mut call, "message_thread_id", thread);
    }
    if let Some(reply) = number(params, "replyTo") {
        set(&mut call, "reply_parameters", json!({"message_id": reply, "allow_sending_without_reply": true}));
    }
    bot.turn(&place.id).await?;
    let sent = bot.client.call("sendSticker", &call).await.map_err(|error| place.failed(bot, error))?;
    let message = sent.int("message_id").map(|id| id.to_string());
    Ok(json!({"ok": true, "messageId": message, "chatId": place.id}))
}

async fn search(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let query = params.text("query").ok_or_else(|| invalid("query is required"))?.to_owned();
    let limit = number(params, "limit").and_then(|limit| usize::try_from(limit).ok());
    let dir = bot.state_dir.clone();
    let found = tokio::task::spawn_blocking(move || stickers::search(&dir, &query, limit)).await;
    let found: Vec<Value> = found.unwrap_or_default().iter().map(stickers::Sticker::to_json).collect();
    Ok(json!({"ok": true, "count": found.len(), "stickers": found}))
}

/// Where an action is done.
struct Place {
    id: String,
    chat: Value,
    thread: Option<i64>,
}

impl Place {
    fn of(bot: &Bot, params: &Value) -> Result<Self, ActionError> {
        let keys = ["to", "target", "chatId", "channelId"];
        let written = keys.iter().find_map(|key| match params.at(key) {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let written = written.ok_or_else(|| invalid("Action requires a target."))?;
        let Target { id, thread, .. } = target::read(&written).map_err(|error| invalid(&error.0))?;
        let id = bot.current(&id);
        let thread = number(params, "threadId").map(|id| id.to_string()).or(thread);
        let address =
            Address { channel: super::ID.to_owned(), account: bot.id.clone(), target: id.clone(), thread };
        Ok(Self { chat: chat_id(&id), thread: super::thread::to_send(&address), id })
    }

    fn message(&self, params: &Value) -> Result<i64, ActionError> {
        number(params, "messageId").ok_or_else(|| invalid("messageId is required, as a number"))
    }

    fn failed(&self, bot: &Bot, error: ApiError) -> ActionError {
        ActionError::Failed(bot.failed(&self.id, error))
    }
}

fn number(params: &Value, key: &str) -> Option<i64> {
    params.int(key).or_else(|| params.text(key)?.trim().parse().ok())
}

fn invalid(text: &str) -> ActionError {
    ActionError::Invalid(text.to_owned())
}

fn unknown_reaction(emoji: &str) -> ActionError {
    ActionError::Invalid(format!("Telegram has no reaction {emoji}. It has: {}", reactions::list()))
}

fn read_buttons(rows: &Value) -> Vec<Vec<Button>> {
    let button = |button: &Value| {
        let data = button.text("callback_data").or_else(|| button.text("data"))?;
        Some(Button { text: button.text("text")?.to_owned(), data: data.to_owned() })
    };
    let row = |row: &Value| row.as_array().into_iter().flatten().filter_map(button).collect();
    rows.as_array().into_iter().flatten().map(row).collect()
}
