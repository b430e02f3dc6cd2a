//! Targets that people, models and files write (spec `channels.md` §6.1), and entries of allowlists (§2.3).

use openclaw_channels::{ConversationKind, Target, TargetError};
use openclaw_config::registry;

/// Shortest word that is taken for a name without being marked as one.
const SHORTEST_WORD: usize = 5;
/// Form of a target, as clients know it. `<chatId>:topic:<topicId>` and `@name` are read too.
pub(super) const HINT: &str = "<chatId>";
/// Forms of a target, for people.
pub(super) const FORMS: &str =
    "123456789 (a person), -1001234567890 (a group), -1001234567890:topic:42 (a topic of it), @channel";

/// Reads a target.
pub(super) fn read(written: &str) -> Result<Target, TargetError> {
    let text = registry::TELEGRAM.bare_entry(written.trim());
    let text = strip_ci(text, "group:").unwrap_or(text);
    let refuse = || TargetError(format!("Unknown target \"{}\" for Telegram. Hint: {HINT}", written.trim()));
    if let Some(name) = link(text) {
        return named(name).ok_or_else(refuse);
    }
    let (id, thread) = match split_topic(text) {
        Some((_, thread)) if natural(thread, "topic", "42").is_err() => return Err(refuse()),
        Some((id, thread)) => (id, Some(thread.to_owned())),
        None => (text, None),
    };
    if let Some(number) = number(id) {
        let kind = if number > 0 { ConversationKind::Direct } else { ConversationKind::Group };
        // A channel looks like a group.
        let kind = (number > 0 || thread.is_some()).then_some(kind);
        return Ok(Target { id: number.to_string(), thread, kind });
    }
    let name = id.strip_prefix('@').or((id.len() >= SHORTEST_WORD).then_some(id));
    let target = name.and_then(named).ok_or_else(refuse)?;
    Ok(Target { thread, ..target })
}

/// The id of a message or a topic. `example` is one.
pub(super) fn natural(written: &str, what: &str, example: &str) -> Result<i64, TargetError> {
    match written.trim().parse::<i64>() {
        Ok(number) if number > 0 => Ok(number),
        Ok(_) | Err(_) => {
            let written: String = written.trim().chars().filter(|c| !c.is_control()).take(64).collect();
            let text =
                format!("\"{written}\" is no id of a Telegram {what}: that is a number, such as {example}");
            Err(TargetError(text))
        }
    }
}

/// An entry as ids are compared: a number, or `*`. Names can be given up and taken by others, so they match nobody.
pub(super) fn allow_entry(written: &str) -> Option<String> {
    let text = registry::TELEGRAM.bare_entry(written.trim());
    if text == "*" {
        return Some(text.to_owned());
    }
    number(text).map(|number| number.to_string())
}

/// The id of a person or a group. A telephone number is none, though it reads like one: it would be that of a stranger.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number != 0 && !text.starts_with('+'))
}

/// An entry that is a name, as names are looked up: `@name`, in lower case.
pub(super) fn allow_name(written: &str) -> Option<String> {
    let text = registry::TELEGRAM.bare_entry(written.trim());
    let target = named(text.strip_prefix('@').unwrap_or(text))?;
    Some(target.id.to_lowercase())
}

fn strip_ci<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| text.get(prefix.len()..).unwrap_or_default())
}

fn link(text: &str) -> Option<&str> {
    let rest = strip_ci(text, "https://").or_else(|| strip_ci(text, "http://")).unwrap_or(text);
    let rest = strip_ci(rest, "t.me/").or_else(|| strip_ci(rest, "telegram.me/"))?;
    Some(rest.split(['/', '?']).next().unwrap_or_default())
}

/// `<chat>:topic:<thread>` or `<chat>:<thread>`.
fn split_topic(text: &str) -> Option<(&str, &str)> {
    let (id, thread) = text.rsplit_once(':')?;
    let id = id.strip_suffix(":topic").unwrap_or(id);
    let is_number = !thread.is_empty() && thread.chars().all(|c| c.is_ascii_digit());
    is_number.then_some((id, thread))
}

fn named(name: &str) -> Option<Target> {
    let is_name = name.len() <= 32
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name.then(|| Target { id: format!("@{name}"), thread: None, kind: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_the_table_says() {
        let rows = [
            ("123", Some(("123", None))),
            ("-100123", Some(("-100123", None))),
            ("@name", Some(("@name", None))),
            ("telegram:group:-1001:topic:42", Some(("-1001", Some("42")))),
            ("tg:telegram:-1001:42", Some(("-1001", Some("42")))),
            ("-1001:topic:7", Some(("-1001", Some("7")))),
            ("123:45", Some(("123", Some("45")))),
            ("https://t.me/foo", Some(("@foo", None))),
            ("t.me/foo", Some(("@foo", None))),
            ("name12", Some(("@name12", None))),
            ("group:-1001", Some(("-1001", None))),
            (" TELEGRAM:@Alice ", Some(("@Alice", None))),
            ("", None),
            ("telegram:", None),
            ("two words", None),
            ("-1001:topic:", None),
            ("1:2:x", None),
            ("-1001:topic:0", None),
            ("-1001:0", None),
            ("-1001:topic:-1", None),
            ("-1001:topic:99999999999999999999", None),
            ("ab", None),
            ("0", None),
            ("99999999999999999999", None),
            // Telephone numbers.
            ("+15551234567", None),
            ("tg:+15551234567", None),
            ("+15551234567:topic:7", None),
            ("+15551234567:7", None),
            ("group:+15551234567", None),
        ];
        for (written, expect) in rows {
            let found = read(written).ok();
            let found = found.as_ref().map(|target| (target.id.as_str(), target.thread.as_deref()));
            assert_eq!(found, expect, "{written}");
        }
    }

    #[test]
    fn the_kind_is_said_where_the_id_tells() {
        assert_eq!(read("5").unwrap().kind, Some(ConversationKind::Direct));
        assert_eq!(read("-100:topic:4").unwrap().kind, Some(ConversationKind::Group));
        assert_eq!(read("-100").unwrap().kind, None);
    }

    #[test]
    fn names_are_told_from_ids_and_from_words() {
        let rows = [
            ("@Ada_L", Some("@ada_l")),
            (" tg:@ada ", Some("@ada")),
            ("ada", Some("@ada")),
            ("*", None),
            ("5", None),
            ("@", None),
            ("Ada Lovelace", None),
            ("", None),
        ];
        for (written, expect) in rows {
            assert_eq!(allow_name(written).as_deref(), expect, "{written}");
        }
    }

    #[test]
    fn entries_are_ids() {
        let rows = [
            ("123", Some("123")),
            (" tg:123 ", Some("123")),
            ("Telegram:-100123", Some("-100123")),
            ("*", Some("*")),
            ("@alice", None),
            ("alice", None),
            // A telephone number.
            ("+5", None),
            ("0", None),
            ("", None),
        ];
        for (written, expect) in rows {
            assert_eq!(allow_entry(written).as_deref(), expect, "{written}");
        }
    }
}
