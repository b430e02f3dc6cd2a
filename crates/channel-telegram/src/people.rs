//! People and places: users, chats that speak, origins of forwarded messages.

use openclaw_channels::{ConversationKind, Forwarded, Sender};
use serde_json::Value;

use crate::entities::Me;
use crate::wire::Wire as _;

/// Stands for somebody whom the platform does not name.
const UNKNOWN: &str = "unknown";

/// Returns the author of a message. A chat may write in a group or a channel: then the user
/// Telegram names beside it is a stand-in that all such chats share, and to allow it would allow
/// them all.
pub(super) fn sender(message: &Value, me: &Me) -> Option<Sender> {
    if let Some(speaker) = message.object("sender_chat") {
        return chat(speaker, message.text("author_signature"));
    }
    match message.object("from") {
        Some(from) => user(from, me),
        // A post of a channel.
        None => chat(message.at("chat"), message.text("author_signature")),
    }
}

/// A user.
pub(super) fn user(user: &Value, me: &Me) -> Option<Sender> {
    let id = user.int("id")?;
    Some(Sender {
        id: id.to_string(),
        name: full_name(user),
        first_name: user.text("first_name").map(str::to_owned),
        last_name: user.text("last_name").map(str::to_owned),
        username: user.text("username").map(str::to_owned),
        phone: None,
        is_bot: user.flag("is_bot"),
        is_self: id == me.id,
    })
}

/// A chat that speaks for itself.
pub(super) fn chat(chat: &Value, signature: Option<&str>) -> Option<Sender> {
    let title = chat.text("title").map(str::to_owned);
    let name = match (title, signature) {
        (Some(title), Some(signature)) => Some(format!("{title} ({signature})")),
        (title, signature) => title.or_else(|| signature.map(str::to_owned)),
    };
    let username = chat.text("username").map(str::to_owned);
    Some(Sender { id: chat.int("id")?.to_string(), name, username, ..Sender::default() })
}

/// Returns the kind of conversation of a chat.
pub(super) fn kind_of_chat(chat: &Value) -> ConversationKind {
    match chat.text("type") {
        Some("private") => ConversationKind::Direct,
        Some("channel") => ConversationKind::Channel,
        Some(_) => ConversationKind::Group,
        // Only people have positive ids.
        None if chat.int("id").is_some_and(|id| id > 0) => ConversationKind::Direct,
        None => ConversationKind::Group,
    }
}

/// Returns the origin of a forwarded message, from the current field or from the older ones.
pub(super) fn forwarded(message: &Value) -> Option<Forwarded> {
    let origin = message.at("forward_origin");
    let now = origin_name(origin).map(|from| (from, origin.int("date")));
    let before = || {
        let signature = message.text("forward_signature");
        let from = message
            .object("forward_from_chat")
            .and_then(|chat| chat_name(chat, signature))
            .or_else(|| message.object("forward_from").and_then(user_name))
            .or_else(|| message.text("forward_sender_name").map(str::to_owned))?;
        Some((from, message.int("forward_date")))
    };
    // A forwarded message is not the sender's own, even if its author is unknown.
    let unknown = || {
        let is_forwarded = message.as_object()?.keys().any(|key| key.starts_with("forward_"));
        is_forwarded.then(|| (UNKNOWN.to_owned(), None))
    };
    let (from, at) = now.or_else(before).or_else(unknown)?;
    Some(Forwarded { from, at: at.map(|seconds| seconds.saturating_mul(1000)) })
}

/// The inline bot that wrote a message in its sender's name.
pub(super) fn via(message: &Value) -> Option<String> {
    let bot = message.object("via_bot")?;
    Some(user_name(bot).unwrap_or_else(|| UNKNOWN.to_owned()))
}

/// The name of an origin.
pub(super) fn origin_name(origin: &Value) -> Option<String> {
    let signature = origin.text("author_signature");
    match origin.text("type")? {
        "user" => user_name(origin.at("sender_user")),
        "hidden_user" => origin.text("sender_user_name").map(str::to_owned),
        "chat" => chat_name(origin.at("sender_chat"), signature),
        "channel" => chat_name(origin.at("chat"), signature),
        _ => None,
    }
}

/// Returns the name of a sender, as answers name the person they answer.
pub(super) fn display_name(sender: &Sender) -> Option<String> {
    let username = || sender.username.as_ref().map(|name| format!("@{name}"));
    sender.name.clone().or_else(username)
}

fn full_name(user: &Value) -> Option<String> {
    let parts: Vec<&str> = ["first_name", "last_name"].iter().filter_map(|key| user.text(key)).collect();
    Some(parts.join(" ").trim().to_owned()).filter(|name| !name.is_empty())
}

fn user_name(user: &Value) -> Option<String> {
    let username = user.text("username").map(|name| format!("@{name}"));
    match (full_name(user), username) {
        (Some(name), Some(username)) => Some(format!("{name} ({username})")),
        (name, username) => name.or(username).or_else(|| Some(format!("user:{}", user.int("id")?))),
    }
}

fn chat_name(chat: &Value, signature: Option<&str>) -> Option<String> {
    let username = || chat.text("username").map(|name| format!("@{name}"));
    let id = || chat.int("id").map(|id| format!("chat:{id}"));
    let name = chat.text("title").map(str::to_owned).or_else(username).or_else(id)?;
    Some(match signature {
        Some(signature) => format!("{name} ({signature})"),
        None => name,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn origins_are_named_now_and_as_before() {
        let ada = json!({"id": 42, "first_name": "Ada", "last_name": "Lovelace", "username": "ada"});
        let news = json!({"id": -1001, "type": "channel", "title": "OpenClaw Updates"});
        let rows = [
            (
                json!({"forward_origin": {"type": "user", "sender_user": ada, "date": 5}}),
                "Ada Lovelace (@ada)",
                Some(5000),
            ),
            (
                json!({"forward_origin": {"type": "hidden_user", "sender_user_name": "Hid Den", "date": 5}}),
                "Hid Den",
                Some(5000),
            ),
            (
                json!({"forward_origin": {"type": "channel", "chat": news, "author_signature": "Stan", "date": 5}}),
                "OpenClaw Updates (Stan)",
                Some(5000),
            ),
            (json!({"forward_origin": {"type": "chat", "sender_chat": {"id": -5, "title": "G"}}}), "G", None),
            (json!({"forward_from": ada, "forward_date": 6}), "Ada Lovelace (@ada)", Some(6000)),
            (json!({"forward_sender_name": "Hid Den", "forward_date": 6}), "Hid Den", Some(6000)),
            (
                json!({"forward_from_chat": news, "forward_signature": "Stan", "forward_date": 6}),
                "OpenClaw Updates (Stan)",
                Some(6000),
            ),
            (json!({"forward_origin": {"type": "user", "sender_user": {"id": 3}}}), "user:3", None),
        ];
        for (message, from, at) in rows {
            assert_eq!(forwarded(&message), Some(Forwarded { from: from.to_owned(), at }), "{message}");
        }
        let unknown = Some(Forwarded { from: UNKNOWN.to_owned(), at: None });
        for message in [
            json!({"forward_origin": {"type": "martian"}}),
            json!({"forward_origin": {"type": "hidden_user", "sender_user_name": "", "date": 5}}),
            json!({"forward_date": 6}),
        ] {
            assert_eq!(forwarded(&message), unknown, "{message}");
        }
        assert_eq!(forwarded(&json!({"text": "forward_date"})), None);
    }

    #[test]
    fn an_inline_bot_is_named() {
        let rows = [
            (
                json!({"via_bot": {"id": 9, "is_bot": true, "first_name": "Gifs", "username": "gif"}}),
                Some("Gifs (@gif)"),
            ),
            (json!({"via_bot": {"id": 9}}), Some("user:9")),
            (json!({"via_bot": {}}), Some(UNKNOWN)),
            (json!({"text": "x"}), None),
        ];
        for (message, expect) in rows {
            assert_eq!(via(&message).as_deref(), expect, "{message}");
        }
    }

    #[test]
    fn a_chat_that_speaks_is_the_sender() {
        let me = Me { id: 7, ..Me::default() };
        let anonymous = json!({"from": {"id": 1_087_968_824, "is_bot": true}, "sender_chat": {"id": -100, "title": "Team"}});
        let found = sender(&anonymous, &me).unwrap();
        assert_eq!((found.id.as_str(), found.name.as_deref()), ("-100", Some("Team")));
        let post =
            json!({"chat": {"id": -1001, "type": "channel", "title": "News"}, "author_signature": "Stan"});
        let found = sender(&post, &me).unwrap();
        assert_eq!((found.id.as_str(), found.name.as_deref()), ("-1001", Some("News (Stan)")));
        assert!(sender(&json!({"from": {"id": 7}}), &me).unwrap().is_self);
        assert_eq!(sender(&json!({}), &me), None);
    }
}
