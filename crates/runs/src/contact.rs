//! Facts that a session's row learns from a message about its sender and place (spec `sessions.md`
//! §3.6-3.8).

use openclaw_journal::inbox::InboxRow;
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::request::WEBCHAT;
use openclaw_journal::rights::Rights;
use openclaw_journal::source::RequestSource;
use openclaw_sessions::entry::delivery::{INTERNAL_CHANNELS, update_last_route};
use openclaw_sessions::entry::{ChatType, DeliveryContext, Origin};
use openclaw_sessions::send_policy::chat_type_of;
use openclaw_sessions::store::Edit;
use openclaw_sessions::{SessionEntry, SessionKey, SessionStore};

use crate::not_begun::NotBegun;

/// The contact through which a message came.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Contact {
    /// A person at a client of the gateway's own protocol.
    Person {
        /// Kind of the conversation they take part in.
        chat_type: ChatType,
        /// Name that the client gives itself.
        name: Option<String>,
    },
    /// A sender on a chat platform.
    Platform(Box<MessageOrigin>, SessionKey),
    /// A program; nothing is learnt.
    Unknown,
}

impl Contact {
    pub(super) fn of(row: &InboxRow, key: &SessionKey) -> Self {
        match &row.payload.source {
            RequestSource::Platform(platform) => Self::Platform(platform.origin.clone(), key.clone()),
            RequestSource::Client(client) => {
                Self::Person { chat_type: chat_type(key), name: client.name.clone() }
            }
            RequestSource::Program(_)
            | RequestSource::Heartbeat(_)
            | RequestSource::MemoryFlush
            | RequestSource::SubagentTask(_)
            | RequestSource::SubagentMessage(_)
            | RequestSource::Announcement(_)
            | RequestSource::Talk(_) => Self::Unknown,
        }
    }

    /// True if a row has all of it already.
    pub(super) fn is_known(&self, entry: &SessionEntry) -> bool {
        let mut noted = entry.clone();
        self.note(&mut noted);
        noted == *entry
    }

    /// Makes a row say it. What is known of a chat platform stays: such a conversation is only looked in on from here.
    pub(super) fn note(&self, entry: &mut SessionEntry) {
        let (chat_type, name) = match self {
            Self::Person { chat_type, name } => (chat_type, name),
            Self::Platform(origin, key) => return note_platform(origin, key, entry),
            Self::Unknown => return,
        };
        let chat_type = *entry.chat_type.get_or_insert(*chat_type);
        let known = entry.origin.as_deref().and_then(|origin| origin.provider.as_deref());
        if known.is_none_or(|provider| INTERNAL_CHANNELS.contains(&provider)) {
            let origin = Origin {
                label: name.as_deref().map(Box::from),
                provider: Some(WEBCHAT.into()),
                surface: Some(WEBCHAT.into()),
                chat_type: Some(chat_type),
                ..Origin::default()
            };
            entry.origin.get_or_insert_default().merge(&origin);
        }
        let route = DeliveryContext { channel: Some(WEBCHAT.into()), ..DeliveryContext::default() };
        update_last_route(entry, &route);
    }
}

/// Makes the owner's private chat the last route of the agent's main session, where that is another session than the chat's own (spec
/// `sessions.md` §3.8). What others say in theirs leads nothing of the owner's there.
pub(super) async fn lead_main(store: &dyn SessionStore, row: &InboxRow) -> Result<(), NotBegun> {
    let is_owners = || row.payload.rights.as_ref().is_some_and(Rights::see_other_sessions);
    let Some(origin) = row.payload.source.origin().filter(|origin| origin.is_direct() && is_owners()) else {
        return Ok(());
    };
    let rules = store.rules();
    let main = rules.main(&rules.agent_of(&row.session_key));
    if main == row.session_key {
        return Ok(());
    }
    let route = origin.route();
    if let Some(found) = store.get(&main).await? {
        let mut led = SessionEntry::clone(&found.entry);
        update_last_route(&mut led, &route);
        if led == *found.entry {
            return Ok(());
        }
    }
    // Somebody used the chat, not the main session: that expires when it would have.
    let change = Box::new(move |Edit { entry, is_new, now }: Edit<'_>| {
        update_last_route(entry, &route);
        if is_new {
            entry.touch(now);
        }
        Ok(())
    });
    store.update(&main, change).await?;
    Ok(())
}

/// Notes a platform's place. The route for answers is learnt from direct chats, and in a group's
/// own session from the group: a group's message does not lead a person's messages there.
fn note_platform(origin: &MessageOrigin, key: &SessionKey, entry: &mut SessionEntry) {
    origin.note(key, entry);
    if origin.is_direct() || chat_type_of(key).is_some_and(|kind| kind != ChatType::Direct) {
        update_last_route(entry, &origin.route());
    }
}

/// Returns the kind of conversation that a person who writes to a session takes part in.
fn chat_type(key: &SessionKey) -> ChatType {
    chat_type_of(key).unwrap_or(ChatType::Direct)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn person(chat_type: ChatType) -> Contact {
        Contact::Person { chat_type, name: Some("golden".to_owned()) }
    }

    #[test]
    fn the_kind_of_a_conversation_is_that_of_its_key() {
        let rows = [
            ("agent:main:main", ChatType::Direct),
            ("agent:main:telegram:dm:7", ChatType::Direct),
            ("agent:main:discord:channel:9", ChatType::Channel),
            ("agent:main:telegram:group:-1:topic:5", ChatType::Group),
        ];
        for (key, expect) in rows {
            assert_eq!(chat_type(&SessionKey::parse(key).unwrap()), expect, "{key}");
        }
    }

    /// The row of `agent:main:abort` in `golden/gw-sessions.jsonl`, and rows of other origin.
    #[test]
    fn a_row_learns_who_talks_unless_it_knows_a_place_that_can_be_delivered_to() {
        let here = json!({"channel": "webchat"});
        let golden =
            json!({"label": "golden", "provider": "webchat", "surface": "webchat", "chatType": "direct"});
        let there = json!({"channel": "telegram", "to": "1"});
        let cases: [(&str, Value, Contact, Value); 4] = [
            (
                "a new one",
                json!({}),
                person(ChatType::Direct),
                json!({"chatType": "direct", "origin": golden, "deliveryContext": here, "lastChannel": "webchat"}),
            ),
            (
                "another client",
                json!({"chatType": "direct", "origin": {"label": "phone", "provider": "webchat", "from": "x"}}),
                person(ChatType::Direct),
                json!({"chatType": "direct", "deliveryContext": here, "lastChannel": "webchat", "origin": {
                    "label": "golden", "provider": "webchat", "surface": "webchat", "chatType": "direct", "from": "x",
                }}),
            ),
            (
                "one of a platform",
                json!({"origin": {"label": "Al", "provider": "telegram"}, "deliveryContext": there, "lastChannel": "telegram", "lastTo": "1"}),
                person(ChatType::Group),
                json!({"chatType": "group", "origin": {"label": "Al", "provider": "telegram"}, "deliveryContext": there,
                       "lastChannel": "telegram", "lastTo": "1"}),
            ),
            ("a program's", json!({}), Contact::Unknown, json!({})),
        ];
        for (name, before, contact, after) in cases {
            let mut entry: SessionEntry = serde_json::from_value(before.clone()).unwrap();
            assert_eq!(contact.is_known(&entry), before == after, "{name}");
            contact.note(&mut entry);
            assert_eq!(entry, serde_json::from_value(after).unwrap(), "{name}");
            assert!(contact.is_known(&entry), "{name}: nothing is new the second time");
        }
    }
}
