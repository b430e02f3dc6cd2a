//! Row updates from an inbound message: origin, kind of chat, group names (spec `sessions.md` §3.6,
//! §3.7).
//!
//! Every message updates the row, even one that is only recorded and not answered. The route for
//! replies is another matter: see [`super::delivery::update_last_route`].

use openclaw_config::registry::{self, Rooms};

use super::group_name::GroupNaming;
use super::origin::conversation_label;
use super::{ChatType, Origin, SessionEntry, ThreadId};
use crate::key::group::{GroupRef, InboundContext, group_of, surface};
use crate::key::{PeerKind, SessionKey};

/// Facts that a channel reports of a message. Blank texts count as absent.
#[derive(Debug, Clone, Default)]
pub struct InboundFacts<'a> {
    /// `OriginatingChannel`: where the message was first said.
    pub originating_channel: Option<&'a str>,
    /// `Surface`: the user interface it came through.
    pub surface: Option<&'a str>,
    /// `Provider`: the channel that brought it.
    pub provider: Option<&'a str>,
    /// `ChatType`
    pub chat_type: Option<ChatType>,
    /// `From`
    pub from: Option<&'a str>,
    /// `To`
    pub to: Option<&'a str>,
    /// `OriginatingTo`
    pub originating_to: Option<&'a str>,
    /// `AccountId`
    pub account_id: Option<&'a str>,
    /// `MessageThreadId`
    pub thread_id: Option<ThreadId>,
    /// `ConversationLabel`
    pub conversation_label: Option<&'a str>,
    /// `ThreadLabel`
    pub thread_label: Option<&'a str>,
    /// `SenderName`
    pub sender_name: Option<&'a str>,
    /// `GroupChannel`
    pub group_channel: Option<&'a str>,
    /// `GroupSubject`
    pub group_subject: Option<&'a str>,
    /// `GroupSpace`
    pub group_space: Option<&'a str>,
}

pub(super) fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

impl InboundFacts<'_> {
    /// The origin they amount to.
    pub fn origin(&self) -> Origin {
        let provider =
            given(self.originating_channel).or_else(|| given(self.surface)).or_else(|| given(self.provider));
        let provider = provider.map(|name| surface(name).map_or_else(|| name.to_lowercase(), str::to_owned));
        Origin {
            label: conversation_label(self).map(Box::from),
            provider: provider.map(Box::from),
            surface: given(self.surface).map(|surface| Box::from(surface.to_lowercase())),
            chat_type: self.chat_type,
            from: given(self.from).map(Box::from),
            to: given(self.originating_to).or_else(|| given(self.to)).map(Box::from),
            account_id: given(self.account_id).map(Box::from),
            thread_id: self.thread_id.clone(),
            ..Origin::default()
        }
    }

    /// The group they name, if they name one.
    pub fn group(&self) -> Option<GroupRef> {
        group_of(&InboundContext {
            session_key: None,
            from: self.from,
            chat_type: self.chat_type.map(ChatType::as_str),
            provider: self.provider,
        })
    }

    /// Lets a row learn all of it. Fields that the message does not give stay.
    pub fn note(&self, key: &SessionKey, entry: &mut SessionEntry) {
        let origin = self.origin();
        if origin != Origin::default() {
            entry.origin.get_or_insert_default().merge(&origin);
        }
        match self.group() {
            Some(group) => self.note_group(&group, key, entry),
            None => {
                let kind = self.chat_type.or(entry.chat_type).unwrap_or(ChatType::Direct);
                entry.chat_type = Some(kind);
            }
        }
        if let Some(label) = given(self.thread_label) {
            entry.display_name = Some(label.into());
        }
    }

    fn note_group(&self, group: &GroupRef, key: &SessionKey, entry: &mut SessionEntry) {
        let is_room = group.kind == PeerKind::Channel;
        entry.chat_type = Some(if is_room { ChatType::Channel } else { ChatType::Group });
        entry.channel = Some(group.channel.as_str().into());
        entry.group_id = Some(group.id.as_str().into());
        let subject = given(self.group_subject);
        // A subject like `#ops` is the name of a room where there are rooms.
        let has_rooms =
            is_room || registry::by_id(&group.channel).is_some_and(|row| row.rooms != Rooms::None);
        let room =
            given(self.group_channel).or_else(|| subject.filter(|text| has_rooms && text.starts_with('#')));
        match (room, subject) {
            (Some(room), _) => entry.group_channel = Some(room.into()),
            (None, Some(subject)) => entry.subject = Some(subject.into()),
            (None, None) => {}
        }
        if let Some(space) = given(self.group_space) {
            entry.space = Some(space.into());
        }
        let naming = GroupNaming {
            channel: &group.channel,
            subject: entry.subject.as_deref(),
            group_channel: entry.group_channel.as_deref(),
            space: entry.space.as_deref(),
            id: Some(&group.id),
            key: key.as_str(),
        };
        entry.display_name = Some(naming.display_name().into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(facts: &InboundFacts<'_>, before: Value, after: Value) {
        let mut entry: SessionEntry = serde_json::from_value(before).unwrap();
        facts.note(&SessionKey::parse("agent:main:k").unwrap(), &mut entry);
        let expect: SessionEntry = serde_json::from_value(after).unwrap();
        assert_eq!(entry, expect, "{facts:?}");
        facts.note(&SessionKey::parse("agent:main:k").unwrap(), &mut entry);
        assert_eq!(entry, expect, "the same message teaches nothing new: {facts:?}");
    }

    #[test]
    fn a_direct_message_leaves_its_origin() {
        let facts = InboundFacts {
            surface: Some("Telegram"),
            provider: Some("telegram"),
            chat_type: Some(ChatType::Direct),
            from: Some("telegram:1"),
            to: Some("telegram:bot"),
            originating_to: Some(" telegram:1 "),
            account_id: Some("biz"),
            thread_id: Some(ThreadId::Number(5)),
            sender_name: Some("Al"),
            ..InboundFacts::default()
        };
        let origin = json!({
            "label": "Al", "provider": "telegram", "surface": "telegram", "chatType": "direct", "from": "telegram:1",
            "to": "telegram:1", "accountId": "biz", "threadId": 5,
        });
        check(&facts, json!({}), json!({"chatType": "direct", "origin": origin}));
        let bare = InboundFacts { provider: Some("GChat"), from: Some("2"), ..InboundFacts::default() };
        let learnt = json!({"label": "2", "provider": "googlechat", "from": "2", "novel": 1});
        let before = json!({"chatType": "channel", "origin": {"label": "old", "provider": "x", "novel": 1}});
        check(&bare, before, json!({"chatType": "channel", "origin": learnt}));
    }

    #[test]
    fn a_message_that_says_nothing_makes_a_direct_row() {
        check(&InboundFacts::default(), json!({}), json!({"chatType": "direct"}));
    }

    /// Rules of `sessions.md` §3.6.
    #[test]
    fn a_group_message_names_its_group() {
        let group = |from, subject| InboundFacts {
            from: Some(from),
            chat_type: Some(ChatType::Group),
            group_subject: subject,
            ..InboundFacts::default()
        };
        let origin = |label: &str, from: &str| json!({"label": label, "chatType": "group", "from": from});
        check(
            &group("whatsapp:group:12@g.us", Some("Family Chat")),
            json!({}),
            json!({
                "chatType": "group", "channel": "whatsapp", "groupId": "12@g.us", "subject": "Family Chat",
                "displayName": "whatsapp:g-family-chat", "origin": origin("Family Chat id:12@g.us", "whatsapp:group:12@g.us"),
            }),
        );
        // Slack has rooms: its subject is the room's name. WhatsApp has none.
        check(
            &group("slack:group:G1", Some("#ops")),
            json!({}),
            json!({
                "chatType": "group", "channel": "slack", "groupId": "g1", "groupChannel": "#ops",
                "displayName": "slack:#ops", "origin": origin("#ops", "slack:group:G1"),
            }),
        );
        check(
            &group("whatsapp:group:1@g.us", Some("#ops")),
            json!({}),
            json!({
                "chatType": "group", "channel": "whatsapp", "groupId": "1@g.us", "subject": "#ops",
                "displayName": "whatsapp:g-ops", "origin": origin("#ops", "whatsapp:group:1@g.us"),
            }),
        );
        // Names that a later message does not give stay.
        check(
            &group("telegram:group:-1", None),
            json!({"subject": "Old name", "displayName": "x"}),
            json!({
                "chatType": "group", "channel": "telegram", "groupId": "-1", "subject": "Old name",
                "displayName": "telegram:g-old-name", "origin": origin("telegram:group:-1", "telegram:group:-1"),
            }),
        );
    }

    #[test]
    fn a_room_has_space_and_name_and_a_thread_its_own_label() {
        let facts = InboundFacts {
            from: Some("discord:channel:99"),
            chat_type: Some(ChatType::Channel),
            group_channel: Some("#general"),
            group_space: Some("friends"),
            ..InboundFacts::default()
        };
        let row = json!({
            "chatType": "channel", "channel": "discord", "groupId": "99", "groupChannel": "#general", "space": "friends",
            "displayName": "discord:friends#general",
            "origin": {"label": "#general", "chatType": "channel", "from": "discord:channel:99"},
        });
        check(&facts, json!({}), row.clone());
        let thread = InboundFacts { thread_label: Some(" Release talk "), ..facts };
        let mut named = row;
        named["displayName"] = json!("Release talk");
        named["origin"]["label"] = json!("Release talk");
        check(&thread, json!({}), named);
    }

    /// Rules of `sessions.md` §3.7.
    #[test]
    fn the_channel_of_a_message_is_where_it_was_first_said() {
        let facts = |originating_channel, surface| InboundFacts {
            originating_channel,
            surface,
            provider: Some("x"),
            ..InboundFacts::default()
        };
        let rows = [
            (facts(Some("slack"), Some("WebChat")), json!({"provider": "slack", "surface": "webchat"})),
            (facts(Some(" "), Some("WebChat")), json!({"provider": "webchat", "surface": "webchat"})),
            (facts(None, None), json!({"provider": "x"})),
        ];
        for (facts, origin) in rows {
            check(&facts, json!({}), json!({"chatType": "direct", "origin": origin}));
        }
    }
}
