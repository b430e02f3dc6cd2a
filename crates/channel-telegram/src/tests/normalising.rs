//! Tests of the events made from updates, and that no update does harm.

use openclaw_channels::{
    ConversationKind, Forwarded, Inbound, InboundEvent, InboundMessage, Location, MediaKind, Mentions, Quoted,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::events_of;

const NOW: i64 = 99_000;

fn events(update: &Value) -> Vec<Inbound> {
    events_of(update, "work", (7, Some("our_bot")), NOW)
}

/// The only event of an update with such a message.
fn one(kind: &str, message: Value) -> Inbound {
    let mut base = json!({
        "message_id": 11,
        "date": 50,
        "chat": {"id": 5, "type": "private"},
        "from": {"id": 5, "first_name": "Ada", "username": "ada"},
    });
    let Value::Object(fields) = message else { panic!("{message} is no object") };
    for (key, value) in fields {
        base[key] = value;
    }
    let found = events(&json!({"update_id": 3, kind: &base}));
    assert_eq!(found.len(), 1, "{base}");
    found.into_iter().next().unwrap()
}

fn message(content: Value) -> InboundMessage {
    match one("message", content).event {
        InboundEvent::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_says_who_where_and_when() {
    let inbound = one("message", json!({"text": "hi"}));
    assert_eq!((inbound.native_id.as_str(), inbound.at), ("update:3", 50_000));
    let address = &inbound.address;
    assert_eq!((address.channel.as_str(), address.account.as_str()), ("telegram", "work"));
    assert_eq!((address.target.as_str(), address.thread.as_deref()), ("5", None));
    assert_eq!((inbound.sender.id.as_str(), inbound.sender.name.as_deref()), ("5", Some("Ada")));
    assert_eq!(inbound.conversation.kind, ConversationKind::Direct);
}

#[test]
fn chats_are_told_apart() {
    let rows = [
        (json!({"id": 5, "type": "private"}), ConversationKind::Direct, "5"),
        (json!({"id": -5, "type": "group", "title": "G"}), ConversationKind::Group, "-5"),
        (json!({"id": -1001, "type": "supergroup", "title": "G"}), ConversationKind::Group, "-1001"),
        (json!({"id": -1001, "type": "channel", "title": "G"}), ConversationKind::Channel, "-1001"),
        (json!({"id": -1, "type": "of tomorrow"}), ConversationKind::Group, "-1"),
    ];
    for (chat, kind, target) in rows {
        let inbound = one("message", json!({"chat": chat, "text": "hi"}));
        assert_eq!((inbound.conversation.kind, inbound.address.target.as_str()), (kind, target), "{chat}");
    }
    let post = one(
        "channel_post",
        json!({"chat": {"id": -1001, "type": "channel", "title": "News"}, "from": null, "text": "hi"}),
    );
    assert_eq!((post.sender.id.as_str(), post.sender.name.as_deref()), ("-1001", Some("News")));
}

#[test]
fn a_topic_has_its_name_and_its_first_message_is_no_answer() {
    let chat = json!({"id": -1001, "type": "supergroup", "is_forum": true});
    let root = json!({"message_id": 99, "from": {"id": 7}, "forum_topic_created": {"name": "Plans"}});
    let inbound = one(
        "message",
        json!({"chat": chat, "message_thread_id": 99, "reply_to_message": root, "text": "hi"}),
    );
    assert_eq!(inbound.address.thread.as_deref(), Some("99"));
    assert_eq!(inbound.conversation.thread_title.as_deref(), Some("Plans"));
    let InboundEvent::Message(message) = inbound.event else { panic!() };
    assert_eq!(message.reply_to, None);
}

#[test]
fn files_are_kept_to_be_fetched() {
    let file = json!({"file_id": "F", "mime_type": "a/b", "file_name": "n", "file_size": 9});
    let rows = [
        ("animation", MediaKind::Animation),
        ("video", MediaKind::Video),
        ("video_note", MediaKind::VideoNote),
        ("voice", MediaKind::Voice),
        ("audio", MediaKind::Audio),
        ("document", MediaKind::Document),
    ];
    for (field, kind) in rows {
        let found = message(json!({field: file, "caption": "look"}));
        let media = &found.media[0];
        assert_eq!((media.kind, media.handle.as_str(), media.size), (kind, "F", Some(9)), "{field}");
        assert_eq!((media.mime.as_deref(), media.name.as_deref()), (Some("a/b"), Some("n")), "{field}");
        assert_eq!(found.text, "look");
    }
    let animation = message(json!({"animation": file, "document": file}));
    assert_eq!((animation.media.len(), animation.media[0].kind), (1, MediaKind::Animation));
    let sizes = json!([
        {"file_id": "s", "width": 90, "height": 90},
        {"file_id": "l", "width": 1280, "height": 720, "file_size": 5},
        {"width": 9000, "height": 9000},
    ]);
    let photo = message(json!({"photo": sizes, "media_group_id": "A"}));
    assert_eq!((photo.media[0].handle.as_str(), photo.media[0].kind), ("l", MediaKind::Image));
    assert_eq!(photo.album.as_deref(), Some("A"));
}

#[test]
fn stickers_say_what_they_are_without_being_seen() {
    let rows = [
        (
            json!({"file_id": "S", "emoji": "👋", "set_name": "Set"}),
            "[Sticker 👋 from \"Set\"]",
            "image/webp",
        ),
        (
            json!({"file_id": "S", "is_animated": true, "emoji": "👋"}),
            "[Sticker 👋]",
            "application/x-tgsticker",
        ),
        (json!({"file_id": "S", "is_video": true}), "[Sticker]", "video/webm"),
    ];
    for (sticker, description, mime) in rows {
        let media = message(json!({"sticker": sticker})).media.remove(0);
        assert_eq!((media.description.as_deref(), media.mime.as_deref()), (Some(description), Some(mime)));
    }
}

#[test]
fn places_are_places() {
    let pin = json!({"latitude": 48.858_844, "longitude": 2.294_351, "horizontal_accuracy": 12.0});
    let place = Location {
        latitude: 48.858_844,
        longitude: 2.294_351,
        accuracy: Some(12.0),
        name: None,
        address: None,
        is_live: false,
    };
    assert_eq!(message(json!({"location": pin})).location, Some(place.clone()));
    let live = json!({"latitude": 1.0, "longitude": 2.0, "live_period": 60});
    assert!(message(json!({"location": live})).location.unwrap().is_live);
    let venue = json!({"location": pin, "title": "Eiffel Tower", "address": "Champ de Mars, Paris"});
    let named = Location {
        name: Some("Eiffel Tower".to_owned()),
        address: Some("Champ de Mars, Paris".to_owned()),
        ..place
    };
    assert_eq!(message(json!({"venue": venue, "location": pin})).location, Some(named));
    let nowhere = json!({"update_id": 1, "message": {"message_id": 1, "chat": {"id": 5}, "from": {"id": 5}, "location": {"latitude": 1000.0, "longitude": 0.0}}});
    assert_eq!(events(&nowhere), Vec::new());
}

#[test]
fn what_has_no_words_is_put_in_words() {
    let rows = [
        (
            json!({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}),
            "📊 Tea?\n1. yes\n2. no",
        ),
        (json!({"contact": {"first_name": "Ada", "phone_number": "+1555"}}), "👤 Ada +1555"),
        (json!({"dice": {"emoji": "🎯", "value": 6}}), "🎯 6"),
        (
            json!({"checklist": {"title": "Buy", "tasks": [{"text": "tea"}, {"text": "jam", "completion_date": 5}]}}),
            "Buy\n[ ] tea\n[x] jam",
        ),
    ];
    for (content, expect) in rows {
        let read = message(content);
        assert_eq!(
            (read.notes.join("\n").as_str(), read.text.as_str()),
            (expect, ""),
            "no word of its sender"
        );
    }
    let voted = json!({"update_id": 3, "edited_message": {
        "message_id": 11, "date": 50, "chat": {"id": 5, "type": "private"}, "from": {"id": 5, "first_name": "Ada"},
        "poll": {"question": "Tea?"},
    }});
    assert_eq!(events(&voted), Vec::new());
}

#[test]
fn answers_say_to_what() {
    let replied = json!({"message_id": 4, "from": {"id": 7, "is_bot": true, "first_name": "Bot"}, "text": "how are you"});
    let whole = Quoted {
        message_id: Some("4".to_owned()),
        sender: Some("Bot".to_owned()),
        text: Some("how are you".to_owned()),
        is_excerpt: false,
        is_ours: true,
        is_placeholder: false,
    };
    assert_eq!(message(json!({"text": "hi", "reply_to_message": replied})).reply_to, Some(whole.clone()));
    let quote =
        json!({"text": "hi", "reply_to_message": replied, "quote": {"text": "are you", "position": 4}});
    let excerpt = Quoted { text: Some("are you".to_owned()), is_excerpt: true, ..whole };
    assert_eq!(message(quote).reply_to, Some(excerpt));
    let photo = json!({"message_id": 4, "from": {"id": 8, "username": "bob"}, "photo": [{"file_id": "p"}]});
    let of_photo = message(json!({"text": "hi", "reply_to_message": photo})).reply_to.unwrap();
    assert_eq!(
        (of_photo.text.as_deref(), of_photo.sender.as_deref(), of_photo.is_ours),
        (Some("<media:image>"), Some("@bob"), false)
    );
    assert!(of_photo.is_placeholder);
    let typed = json!({"message_id": 4, "from": {"id": 8}, "text": "<media:image>"});
    let of_words = message(json!({"text": "hi", "reply_to_message": typed})).reply_to.unwrap();
    assert_eq!((of_words.text, of_words.is_placeholder), (of_photo.text, false));
    let external = json!({"origin": {"type": "channel", "chat": {"id": -1, "title": "News"}}, "message_id": 9, "document": {"file_id": "d"}});
    let of_other = message(json!({"text": "hi", "external_reply": external})).reply_to.unwrap();
    assert_eq!(
        (of_other.sender.as_deref(), of_other.text.as_deref()),
        (Some("News"), Some("<media:document>"))
    );
}

#[test]
fn what_is_passed_on_says_from_whom() {
    let origin = json!({"type": "hidden_user", "sender_user_name": "Hid Den", "date": 4});
    let forwarded = message(json!({"text": "hi", "forward_origin": origin})).forwarded;
    assert_eq!(forwarded, Some(Forwarded { from: "Hid Den".to_owned(), at: Some(4000) }));
}

#[test]
fn commands_and_mentions_of_captions_count_too() {
    let entity = |kind: &str, length: usize| json!([{"type": kind, "offset": 0, "length": length}]);
    let found = message(json!({"text": "/status@our_bot", "entities": entity("bot_command", 15)}));
    assert_eq!((found.text.as_str(), found.is_native_command), ("/status", true));
    let caption = message(
        json!({"photo": [{"file_id": "p"}], "caption": "@our_bot", "caption_entities": entity("mention", 8)}),
    );
    assert_eq!(caption.mentions, Mentions { ours: true, any: true, can_tell: true });
}

#[test]
fn long_texts_go_on_but_commands_do_not() {
    let rows =
        [("x".repeat(4000), true), ("x".repeat(3999), false), (format!("/x{}", "y".repeat(4000)), false)];
    for (text, expect) in rows {
        assert_eq!(message(json!({"text": text})).goes_on, expect, "{}", text.len());
    }
    assert!(message(json!({"text": "😀".repeat(2000)})).goes_on, "counted as Telegram's programs count");
}

#[test]
fn edits_moves_and_presses_are_what_they_are() {
    let edit = one("edited_message", json!({"text": "new", "edit_date": 60}));
    assert_eq!(edit.event, InboundEvent::Edited { message_id: "11".to_owned(), text: "new".to_owned() });
    assert_eq!(edit.at, 60_000);
    let moved = one("message", json!({"chat": {"id": -5, "type": "group"}, "migrate_to_chat_id": -1005}));
    assert_eq!(
        (moved.address.target.as_str(), moved.event),
        ("-5", InboundEvent::Moved { to: "-1005".to_owned() })
    );
    let press = json!({"update_id": 1, "callback_query": {
        "id": "q", "from": {"id": 6}, "data": "d",
        "message": {"message_id": 4, "date": 0, "chat": {"id": -5, "type": "group"}},
    }});
    let press = events(&press);
    assert_eq!(press[0].event, InboundEvent::Button { message_id: "4".to_owned(), data: "d".to_owned() });
    assert_eq!((press[0].sender.id.as_str(), press[0].at), ("6", NOW));
}

/// The number of an update may also be used by another bot, or be used again.
#[test]
fn an_update_is_known_by_its_bot_and_by_what_it_is_about() {
    let message = |id: i64, date: i64| json!({"message_id": id, "date": date, "chat": {"id": 5}, "from": {"id": 5}, "text": "x"});
    let edit = |at: i64| {
        let mut edit = message(11, 50);
        edit["edit_date"] = json!(at);
        json!({"update_id": 3, "edited_message": edit})
    };
    let press = |id: &str| json!({"update_id": 3, "callback_query": {"id": id, "from": {"id": 5}, "data": "d", "message": message(11, 50)}});
    let emoji = |emoji: &str| json!([{"type": "emoji", "emoji": emoji}]);
    let reaction = json!({"update_id": 3, "message_reaction": {
        "chat": {"id": 5}, "message_id": 11, "user": {"id": 5}, "date": 60, "old_reaction": emoji("👍"), "new_reaction": emoji("👎"),
    }});
    let rows = [
        (json!({"update_id": 3, "message": message(11, 50)}), "7:message:5:11"),
        (json!({"update_id": 3, "message": message(12, 50)}), "7:message:5:12"),
        (json!({"update_id": 3, "channel_post": message(11, 51)}), "7:message:5:11"),
        (edit(60), "7:update:3:5:11:60"),
        (press("77"), "7:update:3:77"),
        (reaction, "7:update:3:5:11:60 7:update:3:1:5:11:60"),
        (json!({"update_id": 3, "message": {}}), "7:update:3:unknown"),
    ];
    for (update, expect) in rows {
        let ids: Vec<String> = events(&update).into_iter().filter_map(|event| event.unique_id).collect();
        assert_eq!(ids.join(" "), expect, "{update}");
        let of_another = events_of(&update, "work", (8, Some("our_bot")), NOW).remove(0).unique_id.unwrap();
        assert!(of_another.starts_with("8:"), "{of_another}");
    }
}

#[test]
fn reactions_are_those_that_changed() {
    let change = |actor: Value, old: Value, new: Value| {
        let mut change = json!({"chat": {"id": -5, "type": "group"}, "message_id": 4, "date": 8, "old_reaction": old, "new_reaction": new});
        for (key, value) in actor.as_object().unwrap() {
            change[key] = value.clone();
        }
        let told = events(&json!({"update_id": 1, "message_reaction": change}));
        let told = told.into_iter().map(|inbound| match inbound.event {
            InboundEvent::Reaction { emoji, removed, .. } => {
                format!("{}{emoji} {}", if removed { '-' } else { '+' }, inbound.sender.id)
            }
            other => panic!("{other:?}"),
        });
        told.collect::<Vec<_>>()
    };
    let emoji = |emoji: &str| json!({"type": "emoji", "emoji": emoji});
    let user = json!({"user": {"id": 6}});
    assert_eq!(change(user.clone(), json!([]), json!([emoji("👍")])), ["+👍 6"]);
    assert_eq!(change(user.clone(), json!([emoji("👍")]), json!([])), ["-👍 6"]);
    assert_eq!(change(user.clone(), json!([emoji("👍")]), json!([emoji("👍"), {"type": "paid"}])), ["+⭐ 6"]);
    let custom = json!([{"type": "custom_emoji", "custom_emoji_id": "9"}, {"type": "of tomorrow"}]);
    assert_eq!(change(user, json!([]), custom), ["+custom:9 6"]);
    assert_eq!(change(json!({"actor_chat": {"id": -9}}), json!([]), json!([emoji("👍")])), ["+👍 -9"]);
    assert_eq!(change(json!({}), json!([]), json!([emoji("👍")])), Vec::<String>::new());
}

#[test]
fn what_says_nothing_brings_nothing() {
    let chat = json!({"id": -5, "type": "group"});
    let service = [
        json!({"new_chat_members": [{"id": 6}]}),
        json!({"left_chat_member": {"id": 6}}),
        json!({"pinned_message": {"message_id": 1}}),
        json!({"migrate_from_chat_id": -4}),
        json!({"forum_topic_created": {"name": "x"}}),
    ];
    for mut each in service {
        each["message_id"] = json!(1);
        each["chat"] = chat.clone();
        each["from"] = json!({"id": 6});
        assert_eq!(events(&json!({"update_id": 1, "message": each})), Vec::new(), "{each}");
    }
    let whole = [
        json!({"update_id": 1, "my_chat_member": {"chat": chat, "new_chat_member": {"status": "kicked"}}}),
        json!({"update_id": 1, "business_message": {"message_id": 1}}),
        json!({"update_id": 1}),
    ];
    for update in whole {
        assert_eq!(events(&update), Vec::new(), "{update}");
    }
}

#[test]
fn what_can_not_be_read_is_an_event_too() {
    let message = |update_id: Value, message: Value| json!({"update_id": update_id, "message": message});
    let chat = json!({"id": -5, "type": "group"});
    let whole = json!({"message_id": 1, "chat": chat, "from": {"id": 1}, "text": "x"});
    let rows = [
        (message(json!(-1), whole.clone()), None),
        (message(json!(1.5), whole), None),
        (json!([]), None),
        (json!(null), None),
        (message(json!(7), json!("no object")), Some("update:7")),
        (message(json!(7), json!({"message_id": 1, "chat": []})), Some("update:7")),
        (message(json!(7), json!({"message_id": "x", "chat": chat})), Some("update:7")),
    ];
    for (update, id) in rows {
        let [event] = events(&update).try_into().unwrap();
        assert!(matches!(event.event, InboundEvent::Unreadable { .. }), "{update}");
        match id {
            Some(id) => assert_eq!(event.native_id, id, "{update}"),
            None => assert_eq!(event.native_id, events(&update)[0].native_id, "the same each time: {update}"),
        }
    }
}

/// Generates any value, with keys that mean something.
fn anything() -> impl Strategy<Value = Value> {
    let key = proptest::sample::select(
        &[
            "message",
            "callback_query",
            "message_reaction",
            "edited_message",
            "channel_post",
            "chat",
            "id",
            "from",
            "text",
            "caption",
            "entities",
            "offset",
            "length",
            "type",
            "url",
            "user",
            "message_id",
            "date",
            "photo",
            "sticker",
            "location",
            "latitude",
            "poll",
            "options",
            "reply_to_message",
            "quote",
            "forward_origin",
            "sender_chat",
            "message_thread_id",
            "data",
            "new_reaction",
            "emoji",
            "media_group_id",
            "file_id",
        ][..],
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z@/😀é ]{0,12}".prop_map(Value::from),
        Just(json!("private")),
        Just(json!("text_link")),
    ];
    leaf.prop_recursive(5, 40, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..8).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn no_update_does_harm(content in anything(), kind in 0_usize..5) {
        let kind = ["message", "callback_query", "message_reaction", "edited_message", "channel_post"][kind];
        let mut full = json!({"message_id": 1, "chat": {"id": -5, "type": "group"}, "from": {"id": 6}, "text": "hi"});
        let broken = content.as_object().into_iter().flatten();
        for (key, value) in broken {
            full[key] = value.clone();
        }
        for update in [json!({"update_id": 1, kind: content}), json!({"update_id": 1, kind: full})] {
            for event in events(&update) {
                // A stored event is read back unchanged.
                let text = serde_json::to_string(&event).unwrap();
                let again: Inbound = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(serde_json::to_string(&again).unwrap(), text);
                prop_assert!(event.native_id.starts_with("update:1"));
            }
        }
    }
}
