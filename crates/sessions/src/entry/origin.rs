//! Source of a conversation, for people (spec `sessions.md` §3.7).

use super::inbound::{InboundFacts, given};
use super::{ChatType, ThreadId};
use crate::ordered::ordered_object;

ordered_object! {
    /// Known facts of a conversation's source.
    pub struct Origin : OriginField {
        /// Conversation label.
        label: Box<str> => "label",
        /// Channel id.
        provider: Box<str> => "provider",
        /// User interface within it.
        surface: Box<str> => "surface",
        /// Kind of chat.
        chat_type: ChatType => "chatType",
        /// Sender.
        from: Box<str> => "from",
        /// Target.
        to: Box<str> => "to",
        /// Account.
        account_id: Box<str> => "accountId",
        /// Thread.
        thread_id: ThreadId => "threadId",
    }
}

impl Origin {
    /// Takes over every field that `new` knows.
    pub fn merge(&mut self, new: &Self) {
        let text = |old: &mut Option<Box<str>>, new: &Option<Box<str>>| {
            if let Some(text) = new.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
                *old = Some(Box::from(text));
            }
        };
        text(&mut self.label, &new.label);
        text(&mut self.provider, &new.provider);
        text(&mut self.surface, &new.surface);
        text(&mut self.from, &new.from);
        text(&mut self.to, &new.to);
        text(&mut self.account_id, &new.account_id);
        self.chat_type = new.chat_type.or(self.chat_type);
        if new.thread_id.is_some() {
            self.thread_id.clone_from(&new.thread_id);
        }
    }
}

/// A name for the conversation a message belongs to.
pub fn conversation_label(facts: &InboundFacts<'_>) -> Option<String> {
    if let Some(label) = given(facts.conversation_label).or_else(|| given(facts.thread_label)) {
        return Some(label.to_owned());
    }
    let grouped = matches!(facts.chat_type, Some(ChatType::Group | ChatType::Channel));
    if !grouped {
        return given(facts.sender_name).or_else(|| given(facts.from)).map(str::to_owned);
    }
    let named = given(facts.group_channel)
        .or_else(|| given(facts.group_subject))
        .or_else(|| given(facts.group_space));
    let base = named.or_else(|| given(facts.from))?;
    match facts.from.and_then(|from| id_worth_showing(base, from)) {
        Some(id) => Some(format!("{base} id:{id}")),
        None => Some(base.to_owned()),
    }
}

/// The last part of `from`, when it is a plain id that the label does not show yet.
fn id_worth_showing<'a>(base: &str, from: &'a str) -> Option<&'a str> {
    let id = from.trim().rsplit(':').next()?;
    let plain = !id.is_empty() && (id.chars().all(|c| c.is_ascii_digit()) || id.contains("@g.us"));
    let shown = base.contains(id) || base.contains(" id:") || base.starts_with(['#', '@']);
    (plain && !shown).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `sessions.md` §3.7.
    #[test]
    fn labels_name_the_conversation() {
        let group = |subject, from| InboundFacts {
            chat_type: Some(ChatType::Group),
            group_subject: Some(subject),
            from: Some(from),
            ..InboundFacts::default()
        };
        let rows = [
            (
                InboundFacts {
                    chat_type: Some(ChatType::Direct),
                    sender_name: Some("Al"),
                    from: Some("telegram:1"),
                    ..InboundFacts::default()
                },
                "Al",
            ),
            (group("Fam", "whatsapp:group:1@g.us"), "Fam id:1@g.us"),
            (group("Ops", "telegram:group:42"), "Ops id:42"),
            (group("Ops", "telegram:group:-100123"), "Ops"),
            (
                InboundFacts {
                    chat_type: Some(ChatType::Channel),
                    group_channel: Some("#general"),
                    from: Some("discord:channel:9"),
                    ..InboundFacts::default()
                },
                "#general",
            ),
        ];
        for (facts, expect) in rows {
            assert_eq!(conversation_label(&facts).as_deref(), Some(expect), "{facts:?}");
        }
    }

    /// Rules of `sessions.md` §3.7: what comes first, and when an id is appended.
    #[test]
    fn labels_take_the_best_name_and_show_an_id_once() {
        let group = InboundFacts {
            chat_type: Some(ChatType::Group),
            from: Some("telegram:group:42"),
            ..InboundFacts::default()
        };
        let called = |subject| InboundFacts { group_subject: Some(subject), ..group.clone() };
        let rows = [
            (
                InboundFacts {
                    conversation_label: Some("Talk"),
                    thread_label: Some("Thread"),
                    sender_name: Some("Al"),
                    ..group.clone()
                },
                "Talk",
            ),
            (InboundFacts { thread_label: Some("Thread"), ..called("Ops") }, "Thread"),
            (InboundFacts { group_space: Some("Work"), ..group.clone() }, "Work id:42"),
            (InboundFacts { group_space: Some("Work"), ..called("Ops") }, "Ops id:42"),
            (InboundFacts { group_channel: Some("room"), ..called("Ops") }, "room id:42"),
            (group.clone(), "telegram:group:42"),
            (InboundFacts { chat_type: None, ..group.clone() }, "telegram:group:42"),
            (called("Ops 42"), "Ops 42"),
            (called("Ops id:7"), "Ops id:7"),
            (called("#ops"), "#ops"),
            (called("@ops"), "@ops"),
        ];
        for (facts, expect) in rows {
            assert_eq!(conversation_label(&facts).as_deref(), Some(expect), "{facts:?}");
        }
    }

    #[test]
    fn newer_facts_replace_older_ones_and_blanks_do_not() {
        let mut origin: Origin = serde_json::from_str(r#"{"label":"a","from":"1","x":true}"#).unwrap();
        origin.merge(&serde_json::from_str(r#"{"label":" ","from":"2","threadId":5}"#).unwrap());
        let expect = r#"{"label":"a","from":"2","x":true,"threadId":5}"#;
        assert_eq!(serde_json::to_string(&origin).unwrap(), expect);
    }
}
