//! Actions of agents besides sending: react, edit, delete, pin, topics, stickers (spec
//! `channels.md` §6.2, §7.5).
//!
//! Anything that makes a new message (text, poll, sticker) is not an action here: it is a part, and
//! passes through the outbox.

use openclaw_channels::{ActionError, Address, Button, Pressers, Reacting, Target};
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::failure::{ApiRefusal, BotApiError};
use crate::outgoing::keyboard;
use crate::params::{chat_id, set};
use crate::settings::{AccountSettings, ActionGates, InlineButtons, ReactionLevel};
use crate::wire::Wire as _;
use crate::{parts, reactions, stickers, target, thread};

/// An acknowledgement by the gateway itself, which agents can't ask for and their gates do not concern.
const ACKNOWLEDGE: &str = "acknowledge";
/// The gateway's own edit of what it has sent, such as the next page of a list.
const REPLACE: &str = "replace";

/// Characters of a topic's name.
const TOPIC_NAME: usize = 128;

/// Gate of an action: its key in `channels.telegram.actions`.
struct ActionGate {
    action: &'static str,
    key: &'static str,
    is_on: fn(&ActionGates) -> bool,
}

const fn gate(action: &'static str, key: &'static str, is_on: fn(&ActionGates) -> bool) -> ActionGate {
    ActionGate { action, key, is_on }
}

/// Every action, sorted.
const GATES: &[ActionGate] = &[
    gate("delete", "deleteMessage", |gates| gates.delete_message),
    gate("edit", "editMessage", |gates| gates.edit_message),
    gate("list-pins", "pins", |gates| gates.pins),
    gate("pin", "pins", |gates| gates.pins),
    gate("poll", "poll", |gates| gates.poll && gates.send_message),
    gate("react", "reactions", |gates| gates.reactions),
    gate("send", "sendMessage", |gates| gates.send_message),
    gate("sticker", "sticker", |gates| gates.sticker),
    gate("sticker-search", "sticker", |gates| gates.sticker),
    gate("thread-create", "createForumTopic", |gates| gates.create_forum_topic),
    gate("thread-reply", "sendMessage", |gates| gates.send_message),
    gate("unpin", "pins", |gates| gates.pins),
];

/// The actions that are switched on, sorted.
pub(super) fn offered(settings: &AccountSettings) -> Vec<&'static str> {
    let is_on = |gate: &&ActionGate| permit(settings, gate.action).is_ok();
    GATES.iter().filter(is_on).map(|gate| gate.action).collect()
}

/// Checks that agents may do the action.
pub(super) fn permit(settings: &AccountSettings, action: &str) -> Result<(), ActionError> {
    let Some(gate) = GATES.iter().find(|gate| gate.action == action) else {
        return Err(ActionError::Unsupported(action.to_owned()));
    };
    if !(gate.is_on)(&settings.actions) {
        let key = if settings.actions.send_message || action != "poll" { gate.key } else { "sendMessage" };
        return Err(ActionError::Invalid(format!(
            "Telegram {key} is disabled; set channels.telegram.actions.{key} to true to enable it."
        )));
    }
    if action == "react" && !agent_may_react(settings) {
        return Err(ActionError::Invalid(level_text(settings.reaction_level)));
    }
    Ok(())
}

/// Checks that buttons may be shown in a chat.
pub(super) fn permit_buttons(settings: &AccountSettings, at: &Address) -> Result<(), ActionError> {
    let text = match settings.inline_buttons() {
        InlineButtons::Off => {
            "Telegram inline buttons are disabled; set channels.telegram.capabilities.inlineButtons to dm, group, all or allowlist to enable them."
        }
        InlineButtons::Dm if !thread::is_private(at) => {
            "Telegram inline buttons are limited to DMs when inlineButtons=\"dm\"."
        }
        InlineButtons::Group if thread::is_private(at) => {
            "Telegram inline buttons are limited to groups when inlineButtons=\"group\"."
        }
        InlineButtons::Dm | InlineButtons::Group | InlineButtons::All | InlineButtons::Allowlist => {
            return Ok(());
        }
    };
    Err(ActionError::Invalid(text.to_owned()))
}

/// Returns the people who may press buttons in a chat.
pub(super) fn pressers(settings: &AccountSettings, at: &Address) -> Result<Pressers, ActionError> {
    permit_buttons(settings, at)?;
    Ok(match settings.inline_buttons() {
        InlineButtons::Allowlist => Pressers::Listed,
        InlineButtons::Off | InlineButtons::Dm | InlineButtons::Group | InlineButtons::All => Pressers::Heard,
    })
}

/// Does one.
pub(super) async fn act(bot: &Bot, action: &str, params: &Value) -> Result<Value, ActionError> {
    if !matches!(action, ACKNOWLEDGE | REPLACE) {
        permit(&bot.settings, action)?;
    }
    match action {
        ACKNOWLEDGE if params.flag("remove") && bot.has_reacted(params) => {
            Ok(json!({"ok": true, "replaced": true}))
        }
        ACKNOWLEDGE => react(bot, params).await,
        REPLACE => edit(bot, params).await,
        "react" => {
            let done = react(bot, params).await?;
            bot.note_reaction(params);
            Ok(done)
        }
        "edit" => edit(bot, params).await,
        "delete" => delete(bot, params).await,
        "pin" => pin(bot, params).await,
        "unpin" => unpin(bot, params).await,
        "list-pins" => pins(bot, params).await,
        "thread-create" => create_topic(bot, params).await,
        "sticker-search" => search(bot, params).await,
        _ => Err(ActionError::Unsupported(action.to_owned())),
    }
}

/// Checks everything that an action refuses by itself, before Telegram is asked.
pub(super) fn check(bot: &Bot, action: &str, params: &Value) -> Result<(), ActionError> {
    let place = || ChatTopic::of(bot, params);
    match action {
        "react" => place()?.message(params).and_then(|_| wanted_reaction(params)).map(|_| ()),
        "edit" => place()?.message(params).and_then(|_| edited(params)).map(|_| ()),
        "delete" | "pin" => place()?.message(params).map(|_| ()),
        "unpin" => place()?.pin(params).map(|_| ()),
        "list-pins" => place().map(|_| ()),
        "thread-create" => place().and_then(|_| topic_name(params)).map(|_| ()),
        "sticker-search" => query(params).map(|_| ()),
        _ => Ok(()),
    }
}

fn agent_may_react(settings: &AccountSettings) -> bool {
    reacting(settings).is_some()
}

/// Returns how freely the agent may react to messages; `None` if it may not.
pub(super) fn reacting(settings: &AccountSettings) -> Option<Reacting> {
    match settings.reaction_level {
        ReactionLevel::Off | ReactionLevel::Ack => None,
        ReactionLevel::Minimal => Some(Reacting::Seldom),
        ReactionLevel::Extensive => Some(Reacting::Often),
    }
}

fn level_text(level: ReactionLevel) -> String {
    let level = level.as_str();
    format!(
        "Telegram agent reactions disabled (reactionLevel=\"{level}\"). Set channels.telegram.reactionLevel to \"minimal\" or \"extensive\" to enable."
    )
}

async fn react(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let message = place.message(params)?;
    let (emoji, known) = wanted_reaction(params)?;
    let is_removal = known.is_none();
    let reaction = known.map_or_else(|| json!([]), |known| json!([{"type": "emoji", "emoji": known}]));
    let call = json!({"chat_id": place.chat, "message_id": message, "reaction": reaction});
    match bot.call("setMessageReaction", &call).await {
        Ok(_) if is_removal => Ok(json!({"ok": true, "removed": true})),
        Ok(_) => Ok(json!({"ok": true, "added": emoji})),
        Err(error) if error.refusal() == Some(ApiRefusal::Reaction) => Err(ActionError::Invalid(format!(
            "This chat does not allow the reaction {emoji}. Telegram knows: {}",
            reactions::list()
        ))),
        Err(error) => Err(place.failed(bot, error)),
    }
}

/// The emoji as it was written, and as Telegram knows it; `None` takes reactions back.
fn wanted_reaction(params: &Value) -> Result<(&str, Option<&'static str>), ActionError> {
    let emoji = params.at("emoji").as_str().ok_or_else(|| invalid("emoji is required"))?.trim();
    // A bot has one reaction on a message: to take back any is to take back all.
    if emoji.is_empty() || params.flag("remove") {
        return Ok((emoji, None));
    }
    let known = reactions::allowed(emoji).ok_or_else(|| unknown_reaction(emoji))?;
    Ok((emoji, Some(known)))
}

/// The new words of a message.
fn edited(params: &Value) -> Result<&str, ActionError> {
    let text = params.text("message").or_else(|| params.text("content"));
    text.ok_or_else(|| invalid("message is required"))
}

async fn edit(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let message = place.message(params)?;
    let text = edited(params)?;
    let words = parts::words(text, &bot.settings);
    let mut call = json!({"chat_id": place.chat, "message_id": message, "text": words.plain});
    // Telegram takes away the keyboard that an edit does not name, so the one that is there is named again.
    let asked = params.get("buttons").filter(|buttons| !buttons.is_null());
    let wanted = match asked {
        Some(buttons) => keyboard(&read_buttons(buttons)),
        None => bot.keyboards.of(&place.id, &message.to_string()).await,
    };
    if asked.is_some() || wanted.is_some() {
        set(&mut call, "reply_markup", wanted.clone().unwrap_or_else(|| json!({"inline_keyboard": []})));
    }
    if !bot.settings.shows_link_previews() {
        set(&mut call, "link_preview_options", json!({"is_disabled": true}));
    }
    let mut marked = call.clone();
    if let Some(formatted) = &words.formatted {
        set(&mut marked, "text", formatted.as_str());
        set(&mut marked, "parse_mode", "HTML");
    }
    let mut done = bot.call("editMessageText", &marked).await;
    let refusal = done.as_ref().err().and_then(BotApiError::refusal);
    if words.formatted.is_some() && matches!(refusal, Some(ApiRefusal::Markup | ApiRefusal::TooLong)) {
        done = bot.call("editMessageText", &call).await;
    }
    match done {
        Err(error) if error.refusal() != Some(ApiRefusal::NotModified) => Err(place.failed(bot, error)),
        Ok(_) | Err(_) => {
            if asked.is_some() {
                bot.keyboards.put(&place.id, &message.to_string(), wanted).await;
            }
            Ok(json!({"ok": true, "messageId": message.to_string(), "chatId": place.id}))
        }
    }
}

async fn delete(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let call = json!({"chat_id": place.chat, "message_id": place.message(params)?});
    let done = bot.call("deleteMessage", &call).await;
    done.map(|_| json!({"ok": true, "deleted": true})).map_err(|error| place.failed(bot, error))
}

async fn pin(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let message = place.message(params)?;
    let quietly = params.flag("silent");
    let call = json!({"chat_id": place.chat, "message_id": message, "disable_notification": quietly});
    let done = bot.call("pinChatMessage", &call).await;
    done.map(|_| json!({"ok": true, "pinned": true, "messageId": message.to_string()}))
        .map_err(|error| place.failed(bot, error))
}

/// Unpins a message, or the newest pin if none is named.
async fn unpin(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let mut call = json!({"chat_id": place.chat});
    let done = match place.pin(params)? {
        Some(message) => {
            set(&mut call, "message_id", message);
            bot.call("unpinChatMessage", &call).await
        }
        // A second call would take the next one.
        None => bot.make("unpinChatMessage", &call).await,
    };
    done.map(|_| json!({"ok": true, "unpinned": true})).map_err(|error| place.failed(bot, error))
}

/// Bots are shown the newest pin alone.
async fn pins(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let call = json!({"chat_id": place.chat});
    let chat = bot.call("getChat", &call).await.map_err(|error| place.failed(bot, error))?;
    let shown = |pin: &Value| {
        json!({
            "messageId": pin.int("message_id").map(|id| id.to_string()),
            "text": pin.text("text").or_else(|| pin.text("caption")),
            "date": pin.int("date"),
        })
    };
    let pins: Vec<Value> = chat.object("pinned_message").map(shown).into_iter().collect();
    Ok(
        json!({"ok": true, "chatId": place.id, "pins": pins, "note": "Telegram shows bots the newest pin alone."}),
    )
}

async fn create_topic(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let place = ChatTopic::of(bot, params)?;
    let name: String = topic_name(params)?.chars().take(TOPIC_NAME).collect();
    let call = json!({"chat_id": place.chat, "name": name});
    let made = bot.make("createForumTopic", &call).await.map_err(|error| place.failed(bot, error))?;
    let thread = made.int("message_thread_id").map(|id| id.to_string());
    Ok(json!({"ok": true, "threadId": thread, "threadName": name, "chatId": place.id}))
}

fn topic_name(params: &Value) -> Result<&str, ActionError> {
    let name = params.text("threadName").or_else(|| params.text("name")).map(str::trim);
    name.filter(|name| !name.is_empty()).ok_or_else(|| invalid("threadName is required"))
}

fn query(params: &Value) -> Result<String, ActionError> {
    params.text("query").map(str::to_owned).ok_or_else(|| invalid("query is required"))
}

async fn search(bot: &Bot, params: &Value) -> Result<Value, ActionError> {
    let query = query(params)?;
    let limit = number(params, "limit").and_then(|limit| usize::try_from(limit).ok());
    let dir = bot.state_dir.clone();
    let found = tokio::task::spawn_blocking(move || stickers::search(&dir, &query, limit)).await;
    let found: Vec<Value> = found.unwrap_or_default().iter().map(stickers::Sticker::to_json).collect();
    Ok(json!({"ok": true, "count": found.len(), "stickers": found}))
}

/// Chat and topic in which an action is done.
struct ChatTopic {
    id: String,
    chat: Value,
}

impl ChatTopic {
    fn of(bot: &Bot, params: &Value) -> Result<Self, ActionError> {
        let keys = ["to", "target", "chatId", "channelId"];
        let written = keys.iter().find_map(|key| match params.at(key) {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let written = written.ok_or_else(|| invalid("Action requires a target."))?;
        let Target { id, .. } = target::read(&written).map_err(|error| invalid(&error.0))?;
        let id = bot.current(&id);
        Ok(Self { chat: chat_id(&id), id })
    }

    fn message(&self, params: &Value) -> Result<i64, ActionError> {
        number(params, "messageId").ok_or_else(|| invalid("messageId is required, as a number"))
    }

    /// The message that is not to be pinned any more; `None`: the newest.
    fn pin(&self, params: &Value) -> Result<Option<i64>, ActionError> {
        match params.at("messageId").is_null() {
            true => Ok(None),
            false => self.message(params).map(Some),
        }
    }

    fn failed(&self, bot: &Bot, error: BotApiError) -> ActionError {
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
