//! Descriptions of message content that is neither words nor a file: a table of the kinds of messages. A kind that is not known yet is
//! described by its name, so that nothing a person sends is dropped silently.

use serde_json::Value;

use crate::wire::Wire as _;

/// Longest data of a web app, in characters.
const WEB_APP_DATA: usize = 4096;
/// Largest number of people or prizes that are listed.
const MOST_LISTED: usize = 20;

/// Function that describes the content of one kind.
type Tell = fn(&Value) -> String;

/// Known kinds, by the field of a message that holds them.
const KINDS: &[(&str, Tell)] = &[
    ("poll", poll),
    ("contact", contact),
    ("dice", |dice| {
        format!("{} {}", dice.text("emoji").unwrap_or("🎲"), dice.int("value").unwrap_or_default())
    }),
    ("checklist", checklist),
    ("story", |story| with("📖 Story", chat(story.at("chat")))),
    ("game", |game| joined("🎮 Game", &[game.text("title"), game.text("description")])),
    ("invoice", |invoice| {
        joined("🧾 Invoice", &[invoice.text("title"), price(invoice).as_deref(), invoice.text("description")])
    }),
    ("successful_payment", |paid| with("💳 Paid", price(paid))),
    ("refunded_payment", |paid| with("💳 Refunded", price(paid))),
    ("paid_media", paid_media),
    ("web_app_data", |data| {
        let sent: String = data.text("data").unwrap_or_default().chars().take(WEB_APP_DATA).collect();
        joined(
            "🧩 Web app",
            &[data.text("button_text"), Some(&sent).filter(|sent| !sent.is_empty()).map(String::as_str)],
        )
    }),
    ("users_shared", |shared| with("👥 Shared", people(shared.list("users")))),
    ("user_shared", |shared| with("👥 Shared", shared.int("user_id").map(|id| id.to_string()))),
    ("chat_shared", |shared| {
        let id = shared.int("chat_id").map(|id| format!("({id})"));
        joined("👥 Shared chat", &[shared.text("title"), id.as_deref()])
    }),
    ("gift", |gift| joined("🎁 Gift", &[gift.at("gift").at("sticker").text("emoji"), gift.text("text")])),
    ("unique_gift", |gift| {
        let gift = gift.at("gift");
        let number = gift.int("number").map(|number| format!("#{number}"));
        joined("🎁 Gift", &[gift.text("base_name"), number.as_deref()])
    }),
    ("giveaway", |giveaway| {
        let winners = giveaway.int("winner_count").map(|count| format!("winners: {count}"));
        joined("🎉 Giveaway", &[giveaway.text("prize_description"), winners.as_deref()])
    }),
    ("giveaway_winners", |giveaway| {
        let winners = people(giveaway.list("winners"));
        joined("🎉 Winners of a giveaway", &[giveaway.text("prize_description"), winners.as_deref()])
    }),
    ("giveaway_completed", |giveaway| {
        with("🎉 Giveaway completed", giveaway.int("winner_count").map(|count| format!("winners: {count}")))
    }),
    ("passport_data", |_| "🛂 Telegram Passport data, which only its bot's own program can read".to_owned()),
];

/// Fields that hold facts about a message (sender, chat, time …) or content that is read elsewhere: words, files, locations.
const ABOUT: &[&str] = &[
    "message_id",
    "message_thread_id",
    "direct_messages_topic",
    "from",
    "sender_chat",
    "sender_boost_count",
    "sender_business_bot",
    "sender_tag",
    "date",
    "edit_date",
    "business_connection_id",
    "chat",
    "is_topic_message",
    "is_automatic_forward",
    "is_from_offline",
    "is_paid_post",
    "reply_to_message",
    "external_reply",
    "quote",
    "reply_to_story",
    "reply_to_checklist_task_id",
    "via_bot",
    "has_protected_content",
    "media_group_id",
    "author_signature",
    "paid_star_count",
    "entities",
    "caption_entities",
    "link_preview_options",
    "suggested_post_info",
    "effect_id",
    "show_caption_above_media",
    "has_media_spoiler",
    "reply_markup",
    "text",
    "caption",
    "photo",
    "sticker",
    "animation",
    "video",
    "video_note",
    "voice",
    "audio",
    "document",
    "location",
    "venue",
];
/// Fields of service messages, with which Telegram reports what happened in a chat: nobody wrote them.
const HAPPENED: &[&str] = &[
    "new_chat_members",
    "new_chat_member",
    "new_chat_participant",
    "left_chat_member",
    "left_chat_participant",
    "new_chat_title",
    "new_chat_photo",
    "delete_chat_photo",
    "group_chat_created",
    "supergroup_chat_created",
    "channel_chat_created",
    "message_auto_delete_timer_changed",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "pinned_message",
    "connected_website",
    "write_access_allowed",
    "proximity_alert_triggered",
    "boost_added",
    "chat_background_set",
    "chat_owner_left",
    "chat_owner_changed",
    "checklist_tasks_done",
    "checklist_tasks_added",
    "direct_message_price_changed",
    "paid_message_price_changed",
    "giveaway_created",
    "gift_upgrade_sent",
];
/// Prefixes of further such fields.
const HAPPENED_BEGIN: &[&str] =
    &["forum_topic_", "general_forum_topic_", "video_chat_", "voice_chat_", "suggested_post_"];
/// Prefix of the fields that name the first author of a forwarded message.
const PASSED_ON: &str = "forward_";

/// Describes the content of a message that is neither words nor a file; nothing for a service message.
pub(super) fn told(message: &Value) -> Vec<String> {
    let known = KINDS.iter().filter_map(|(key, tell)| Some(tell(message.object(key)?)));
    let known: Vec<String> = known.collect();
    if !known.is_empty() {
        return known;
    }
    unknown(message)
        .map(|kind| format!("🔹 {kind} (a kind of message that is not known here)"))
        .into_iter()
        .collect()
}

/// Returns the name of an unknown kind: a field that holds an object and is none of the known ones.
fn unknown(message: &Value) -> Option<String> {
    let fields = message.as_object()?;
    let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
    let has_content = has(&["text", "caption", "photo", "sticker", "location", "venue"])
        || has(&["animation", "video", "video_note", "voice", "audio", "document"]);
    if has_content || fields.keys().any(|key| happened(key)) {
        return None;
    }
    let is_new = |key: &&String| {
        let is_known = ABOUT.contains(&key.as_str()) || key.starts_with(PASSED_ON);
        !is_known && fields.get(*key).is_some_and(Value::is_object)
    };
    let key = fields.keys().find(is_new)?;
    let name: String = key.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
    Some(name.replace('_', " ")).filter(|name| !name.is_empty())
}

fn happened(key: &str) -> bool {
    HAPPENED.contains(&key) || HAPPENED_BEGIN.iter().any(|begin| key.starts_with(begin))
}

fn with(what: &str, which: Option<String>) -> String {
    which.map_or_else(|| what.to_owned(), |which| joined(what, &[Some(&which)]))
}

/// `🎮 Game: Chess: a game for two`.
fn joined(what: &str, parts: &[Option<&str>]) -> String {
    std::iter::once(what).chain(parts.iter().copied().flatten()).collect::<Vec<_>>().join(": ")
}

fn poll(poll: &Value) -> String {
    let question = poll.text("question").unwrap_or("(no question)");
    let options = poll.list("options").iter().filter_map(|option| option.text("text"));
    let lines = options.enumerate().map(|(at, option)| format!("{}. {option}", at + 1));
    std::iter::once(format!("📊 {question}")).chain(lines).collect::<Vec<_>>().join("\n")
}

fn contact(contact: &Value) -> String {
    let parts = ["first_name", "last_name", "phone_number"].iter().filter_map(|key| contact.text(key));
    format!("👤 {}", parts.collect::<Vec<_>>().join(" "))
}

fn checklist(list: &Value) -> String {
    let tasks = list.list("tasks").iter().filter_map(|task| {
        let mark = if task.int("completion_date").is_some_and(|at| at > 0) { "x" } else { " " };
        Some(format!("[{mark}] {}", task.text("text")?))
    });
    let title = list.text("title").unwrap_or_default().to_owned();
    std::iter::once(title).chain(tasks).collect::<Vec<_>>().join("\n")
}

fn paid_media(paid: &Value) -> String {
    let kinds: Vec<&str> = paid.list("paid_media").iter().filter_map(|one| one.text("type")).collect();
    let stars = paid.int("star_count").map(|stars| format!("{stars} stars"));
    let kinds = Some(kinds.join(", ")).filter(|kinds| !kinds.is_empty());
    joined("⭐ Paid media", &[kinds.as_deref(), stars.as_deref()])
}

/// An amount, in the smallest unit of its currency.
fn price(bill: &Value) -> Option<String> {
    let (amount, currency) = (bill.int("total_amount")?, bill.text("currency")?);
    Some(format!("{amount} {currency} (in its smallest unit)"))
}

fn people(list: &[Value]) -> Option<String> {
    let one = |person: &Value| {
        let id = person.int("user_id").or_else(|| person.int("id"))?;
        let name = ["first_name", "last_name"].iter().filter_map(|key| person.text(key));
        let name = name.collect::<Vec<_>>().join(" ");
        Some(if name.is_empty() { id.to_string() } else { format!("{name}, id {id}") })
    };
    let people: Vec<String> = list.iter().filter_map(one).take(MOST_LISTED).collect();
    Some(people.join("; ")).filter(|people| !people.is_empty())
}

fn chat(chat: &Value) -> Option<String> {
    let name = chat.text("title").or_else(|| chat.text("first_name")).or_else(|| chat.text("username"));
    name.map(|name| format!("of {name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_that_a_person_sends_is_told() {
        let rows = [
            (json!({"story": {"chat": {"id": 7, "title": "C"}, "id": 3}}), "📖 Story: of C"),
            (json!({"game": {"title": "G", "description": "d", "photo": []}}), "🎮 Game: G: d"),
            (
                json!({"invoice": {"title": "Tea", "description": "black", "currency": "USD", "total_amount": 500}}),
                "🧾 Invoice: Tea: 500 USD (in its smallest unit): black",
            ),
            (
                json!({"successful_payment": {"currency": "XTR", "total_amount": 5}}),
                "💳 Paid: 5 XTR (in its smallest unit)",
            ),
            (json!({"refunded_payment": {}}), "💳 Refunded"),
            (
                json!({"paid_media": {"star_count": 1, "paid_media": [{"type": "photo"}, {"type": "preview"}]}}),
                "⭐ Paid media: photo, preview: 1 stars",
            ),
            (
                json!({"web_app_data": {"data": "{\"order\":5}", "button_text": "Order"}}),
                "🧩 Web app: Order: {\"order\":5}",
            ),
            (
                json!({"users_shared": {"request_id": 1, "users": [{"user_id": 77, "first_name": "Bo"}, {"user_id": 8}]}}),
                "👥 Shared: Bo, id 77; 8",
            ),
            (json!({"chat_shared": {"chat_id": -5, "title": "T"}}), "👥 Shared chat: T: (-5)"),
            (
                json!({"gift": {"gift": {"sticker": {"emoji": "🧸"}}, "text": "for you"}}),
                "🎁 Gift: 🧸: for you",
            ),
            (json!({"unique_gift": {"gift": {"base_name": "Bear", "number": 9}}}), "🎁 Gift: Bear: #9"),
            (
                json!({"giveaway": {"winner_count": 3, "prize_description": "tea"}}),
                "🎉 Giveaway: tea: winners: 3",
            ),
            (
                json!({"giveaway_winners": {"winners": [{"id": 5, "first_name": "Ada"}]}}),
                "🎉 Winners of a giveaway: Ada, id 5",
            ),
            (json!({"dice": {"emoji": "🎯", "value": 4}}), "🎯 4"),
            (
                json!({"from": {"id": 5}, "chat": {"id": 5}, "hologram": {"size": 3}}),
                "🔹 hologram (a kind of message that is not known here)",
            ),
        ];
        for (message, expect) in rows {
            assert_eq!(told(&message), [expect], "{message}");
        }
    }

    #[test]
    fn what_only_happened_and_what_is_read_elsewhere_is_not_told() {
        for message in [
            json!({"new_chat_members": [{"id": 5}], "new_chat_member": {"id": 5}, "new_chat_participant": {"id": 5}}),
            json!({"left_chat_member": {"id": 5}}),
            json!({"pinned_message": {"message_id": 5}}),
            json!({"forum_topic_created": {"name": "T"}}),
            json!({"video_chat_ended": {"duration": 5}}),
            json!({"text": "hi", "hologram": {"size": 3}}),
            json!({"photo": [], "hologram": {"size": 3}}),
            json!({"forward_origin": {"type": "user"}}),
            json!({"from": {"id": 5}, "chat": {"id": 5}, "is_new": true}),
            json!({}),
        ] {
            assert_eq!(told(&message), Vec::<String>::new(), "{message}");
        }
    }
}
