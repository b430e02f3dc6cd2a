//! Updates to push.

use serde_json::{Value, json};

/// The id of a message that a test has not numbered.
pub(super) const UNNUMBERED: i64 = 11;

/// Now, in seconds.
fn date() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}

/// A person.
pub fn person(id: i64) -> Value {
    json!({"id": id, "is_bot": false, "first_name": "Ada", "last_name": "Lovelace", "username": format!("user{id}")})
}

/// The bot of this id.
pub fn bot(id: i64) -> Value {
    json!({
        "id": id,
        "is_bot": true,
        "first_name": "Fake",
        "username": "fake_test_bot",
        "can_join_groups": true,
        "can_read_all_group_messages": false,
        "supports_inline_queries": false,
    })
}

fn message(chat: &Value, from: i64, text: &str) -> Value {
    json!({"message": {"message_id": UNNUMBERED, "date": date(), "chat": chat, "from": person(from), "text": text}})
}

/// A message to the bot.
pub fn private_message(from: i64, text: &str) -> Value {
    message(&json!({"id": from, "type": "private", "first_name": "Ada"}), from, text)
}

/// A message in a group.
pub fn group_message(group: i64, from: i64, text: &str) -> Value {
    message(&json!({"id": group, "type": "supergroup", "title": "Team"}), from, text)
}

/// A message in a topic of a forum.
pub fn forum_message(group: i64, topic: i64, from: i64, text: &str) -> Value {
    let mut update =
        message(&json!({"id": group, "type": "supergroup", "title": "Team", "is_forum": true}), from, text);
    update["message"]["message_thread_id"] = json!(topic);
    update["message"]["is_topic_message"] = json!(true);
    update
}

/// A pressed button.
pub fn button(from: i64, message: i64, data: &str) -> Value {
    let chat = json!({"id": from, "type": "private", "first_name": "Ada"});
    json!({"callback_query": {
        "id": "77",
        "from": person(from),
        "message": {"message_id": message, "date": date(), "chat": chat, "from": bot(super::TelegramServer::BOT), "text": "?"},
        "chat_instance": "1",
        "data": data,
    }})
}

/// A reaction in place of another.
pub fn reaction(chat: i64, from: i64, message: i64, old: &[&str], new: &[&str]) -> Value {
    let list = |emoji: &[&str]| -> Vec<Value> {
        emoji.iter().map(|emoji| json!({"type": "emoji", "emoji": emoji})).collect()
    };
    let kind = if chat > 0 { "private" } else { "supergroup" };
    json!({"message_reaction": {
        "chat": {"id": chat, "type": kind, "title": "Team"},
        "message_id": message,
        "user": person(from),
        "date": date(),
        "old_reaction": list(old),
        "new_reaction": list(new),
    }})
}
