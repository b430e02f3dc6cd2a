//! Telegram's marks in a text. Their places are counted in UTF-16 units; a mark whose place is not in the text, or inside a character, is
//! ignored.

use std::ops::Range;

use openclaw_channels::Mentions;
use serde_json::{Value, json};

use crate::failure::BotApiError;
use crate::wire::Wire as _;

/// Marks of one message that are looked at; Telegram has at most a hundred.
const MOST: usize = 200;

/// Identity of the bot, for mentions and for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Me {
    pub(super) id: i64,
    pub(super) username: Option<String>,
    /// Rights of the bot, where `getMe` tells them.
    pub(super) rights: Rights,
}

/// Rights of a bot that BotFather gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rights {
    pub(super) joins_groups: Option<bool>,
    pub(super) reads_all_of_groups: Option<bool>,
    pub(super) takes_inline_queries: Option<bool>,
}

impl Me {
    /// Reads the answer to `getMe`.
    ///
    /// # Errors
    /// [`BotApiError::Lost`] for an answer without an id.
    pub(super) fn read(user: &Value) -> Result<Self, BotApiError> {
        let id = user.int("id").ok_or_else(|| BotApiError::Lost("getMe names no bot".to_owned()))?;
        let rights = Rights {
            joins_groups: user.at("can_join_groups").as_bool(),
            reads_all_of_groups: user.at("can_read_all_group_messages").as_bool(),
            takes_inline_queries: user.at("supports_inline_queries").as_bool(),
        };
        Ok(Self { id, username: user.text("username").map(str::to_owned), rights })
    }

    /// The member `bot` of an account's status, under the names that clients know.
    pub(super) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "username": self.username,
            "canJoinGroups": self.rights.joins_groups,
            "canReadAllGroupMessages": self.rights.reads_all_of_groups,
            "supportsInlineQueries": self.rights.takes_inline_queries,
        })
    }

    /// Returns true if this is the bot's name, with or without `@`.
    fn is_named(&self, name: &str) -> bool {
        let ours = self.username.as_deref();
        ours.is_some_and(|ours| ours.eq_ignore_ascii_case(name.trim_start_matches('@')))
    }
}

/// A text as it is kept, and what its marks say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EntityText {
    /// Links whose words hide the address are written `[words](address)`; our name is taken off a command at the start.
    pub(super) text: String,
    pub(super) mentions: Mentions,
    /// The words that name us, each once, but for those behind a command at the start.
    pub(super) named_as: Vec<String>,
    /// True if the text begins with a command that is not for another bot.
    pub(super) is_command: bool,
}

/// Reads a text with its marks.
pub(super) fn read(text: &str, marks: &[Value], me: &Me) -> EntityText {
    let places = Utf16Index::of(text);
    let mut marks: Vec<(Range<usize>, &Value)> =
        marks.iter().take(MOST).filter_map(|mark| Some((places.range(mark)?, mark))).collect();
    marks.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut mentions = Mentions { can_tell: me.username.is_some(), ..Mentions::default() };
    let (mut is_command, mut named_as) = (false, Vec::<String>::new());
    let mut name_us = |words: &str| {
        if !named_as.iter().any(|known| known == words) {
            named_as.push(words.to_owned());
        }
    };
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for (range, mark) in marks {
        let words = text.get(range.clone()).unwrap_or_default();
        match mark.text("type").unwrap_or_default() {
            "mention" => {
                mentions.any = true;
                if me.is_named(words) {
                    mentions.ours = true;
                    name_us(words);
                }
            }
            "text_mention" => {
                mentions.any = true;
                if mark.at("user").int("id") == Some(me.id) {
                    mentions.ours = true;
                    name_us(words);
                }
            }
            "bot_command" => {
                let addressee = words.find('@').and_then(|at| words.get(at..));
                let is_ours = addressee.is_some_and(|name| me.is_named(name));
                mentions.any |= addressee.is_some();
                mentions.ours |= is_ours;
                if range.start == 0 && (is_ours || addressee.is_none()) {
                    is_command = true;
                    let name = words.split('@').next().unwrap_or_default();
                    changes.push((range, name.to_owned()));
                } else if let Some(name) = addressee.filter(|_| is_ours) {
                    name_us(name);
                }
            }
            "text_link" => {
                let is_apart = changes.last().is_none_or(|(last, _)| last.end <= range.start);
                if let Some(url) = mark.text("url").filter(|_| is_apart) {
                    changes.push((range, format!("[{words}]({url})")));
                }
            }
            // Looks only.
            _ => {}
        }
    }
    EntityText { text: changed(text, &changes), mentions, named_as, is_command }
}

fn changed(text: &str, changes: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, words) in changes {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(words);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Byte position of each UTF-16 unit of a text.
struct Utf16Index {
    /// Byte position of each unit; `None` for ASCII text, where both positions are the same.
    units: Option<Vec<Option<usize>>>,
    length: usize,
}

impl Utf16Index {
    fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self { units: None, length: text.len() };
        }
        let mut units = Vec::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            units.push(Some(at));
            if c.len_utf16() == 2 {
                // Inside a character.
                units.push(None);
            }
        }
        units.push(Some(text.len()));
        Self { units: Some(units), length: text.len() }
    }

    fn byte(&self, unit: usize) -> Option<usize> {
        match &self.units {
            Some(units) => units.get(unit).copied().flatten(),
            None => (unit <= self.length).then_some(unit),
        }
    }

    fn range(&self, mark: &Value) -> Option<Range<usize>> {
        let offset = usize::try_from(mark.int("offset")?).ok()?;
        let length = usize::try_from(mark.int("length")?).ok().filter(|length| *length > 0)?;
        Some(self.byte(offset)?..self.byte(offset.checked_add(length)?)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn me() -> Me {
        Me { id: 7, username: Some("Our_Bot".to_owned()), ..Me::default() }
    }

    fn check(text: &str, marks: &Value, expect: &str) -> EntityText {
        let read = read(text, marks.as_array().unwrap(), &me());
        assert_eq!(read.text, expect, "{text} {marks}");
        read
    }

    #[test]
    fn links_show_their_address() {
        let link = |offset: i64, length: i64| json!({"type": "text_link", "offset": offset, "length": length, "url": "https://a.b"});
        check("see docs now", &json!([link(4, 4)]), "see [docs](https://a.b) now");
        check("😀 docs", &json!([link(3, 4)]), "😀 [docs](https://a.b)");
        check("ab", &json!([link(1, 1), link(0, 1)]), "[a](https://a.b)[b](https://a.b)");
        check("abc", &json!([link(0, 3), link(1, 1)]), "[abc](https://a.b)");
    }

    #[test]
    fn broken_marks_are_ignored() {
        let rows = [
            json!({"type": "text_link", "offset": 1, "length": 1, "url": "u"}),
            json!({"type": "text_link", "offset": 0, "length": 1, "url": "u"}),
            json!({"type": "text_link", "offset": 0, "length": 99, "url": "u"}),
            json!({"type": "text_link", "offset": -1, "length": 2, "url": "u"}),
            json!({"type": "text_link", "offset": 0, "length": 0, "url": "u"}),
            json!({"type": "text_link", "offset": 9_223_372_036_854_775_807_i64, "length": 9_223_372_036_854_775_807_i64, "url": "u"}),
            json!({"type": "text_link", "offset": "0", "length": 2, "url": "u"}),
            json!({"type": "text_link", "offset": 0, "length": 2}),
            json!({"type": "new_kind", "offset": 0, "length": 2}),
            json!("no mark"),
        ];
        for mark in rows {
            check("😀x", &json!([mark]), "😀x");
        }
    }

    #[test]
    fn mentions_of_us_are_told_from_others() {
        let rows = [
            ("hi @our_bot", json!({"type": "mention", "offset": 3, "length": 8}), (true, true)),
            ("hi @our_bott", json!({"type": "mention", "offset": 3, "length": 9}), (false, true)),
            (
                "hi you",
                json!({"type": "text_mention", "offset": 3, "length": 3, "user": {"id": 7}}),
                (true, true),
            ),
            (
                "hi you",
                json!({"type": "text_mention", "offset": 3, "length": 3, "user": {"id": 8}}),
                (false, true),
            ),
            ("hi @our_bot", json!({"type": "bold", "offset": 3, "length": 8}), (false, false)),
        ];
        for (text, mark, (ours, any)) in rows {
            let found = check(text, &json!([mark]), text).mentions;
            assert_eq!(found, Mentions { ours, any, can_tell: true }, "{text} {mark}");
        }
    }

    #[test]
    fn the_words_that_name_us_are_told_as_they_are_written() {
        let mark = |kind: &str, offset: i64, length: i64| json!({"type": kind, "offset": offset, "length": length, "user": {"id": 7}});
        let rows = [
            (
                "@our_BOT hi @our_BOT",
                json!([mark("mention", 0, 8), mark("mention", 12, 8)]),
                vec!["@our_BOT"],
            ),
            ("😀 Clawd", json!([mark("text_mention", 3, 5)]), vec!["Clawd"]),
            ("hey /stop@our_bot", json!([mark("bot_command", 4, 13)]), vec!["@our_bot"]),
            ("hi @bob", json!([mark("mention", 3, 4)]), vec![]),
        ];
        for (text, marks, expect) in rows {
            assert_eq!(check(text, &marks, text).named_as, expect, "{text}");
        }
        let behind_command = json!([mark("bot_command", 0, 13)]);
        assert!(check("/stop@our_bot", &behind_command, "/stop").named_as.is_empty());
    }

    #[test]
    fn commands_lose_our_name_and_keep_those_of_others() {
        let at_start = |length: usize| json!([{"type": "bot_command", "offset": 0, "length": length}]);
        let rows = [
            ("/status", 7, "/status", true, false),
            ("/status@our_BOT now", 15, "/status now", true, true),
            ("/status@other now", 13, "/status@other now", false, false),
        ];
        for (text, length, expect, is_command, ours) in rows {
            let read = check(text, &at_start(length), expect);
            assert_eq!((read.is_command, read.mentions.ours), (is_command, ours), "{text}");
        }
        let later = json!([{"type": "bot_command", "offset": 3, "length": 5}]);
        assert!(!check("hi /stop", &later, "hi /stop").is_command);
    }

    proptest! {
        #[test]
        fn no_marks_break_a_text(text in "[a-z@/😀é ]{0,20}", marks in proptest::collection::vec((0_i64..25, -1_i64..25, 0_usize..4), 0..6)) {
            let kinds = ["text_link", "mention", "bot_command", "text_mention"];
            let marks: Vec<Value> = marks.iter().map(|(offset, length, kind)| json!({"type": kinds[*kind], "offset": offset, "length": length, "url": "u"})).collect();
            let read = read(&text, &marks, &me());
            if !marks.iter().any(|mark| matches!(mark.text("type"), Some("text_link" | "bot_command"))) {
                prop_assert_eq!(read.text, text);
            } else {
                prop_assert!(read.text.len() + 20 * 8 >= text.len());
            }
        }
    }
}
