//! Texts for people: user messages without what was added for the model, titles, previews (spec `messages.md` §1.1,
//! `sessions.md` §4.9).

use openclaw_config::registry;
use serde_json::Value;

/// First words, for the model, of the turn after one that a person stopped (spec `sessions.md` §5.6).
pub const ABORT_NOTE: &str =
    "Note: the user stopped the run before this message. Go on with care, or ask what they want.\n\n";

/// The same note in transcripts that OpenClaw wrote.
const OPENCLAW_ABORT_NOTE: &str =
    "Note: The previous agent run was aborted by the user. Resume carefully or ask for clarification.\n\n";

/// Prompt for the model when a session was reset and nothing else was said (spec `sessions.md`
/// §5.5).
pub const GREETING: &str = "The user began a new session with /new or /reset and has said nothing else yet. Welcome them in \
one to three sentences, in the voice and mood of your persona where you have one, and ask what they would like to do. \
Name the default model when the system prompt gives a default_model other than the model you run on. Leave out internal \
steps, files, tools and reasoning.";

/// Beginning of the same prompt in transcripts that OpenClaw wrote, whatever its version. A
/// person's own words have an envelope before them.
const OPENCLAW_GREETING: &str = "A new session was started via /new or /reset. ";

/// Text that people see in place of [`GREETING`]: the command they typed, or a synonym of it.
pub const RESET_COMMAND: &str = "/new";

/// A user's text without system event lines, note about an abort, envelope and message id lines. The question for a
/// greeting is shown as [`RESET_COMMAND`].
pub fn strip_user_text(text: &str) -> String {
    let said = strip_system_block(text);
    let note = [ABORT_NOTE, OPENCLAW_ABORT_NOTE].into_iter().find_map(|note| said.strip_prefix(note));
    let said = note.unwrap_or(said);
    if [GREETING, OPENCLAW_GREETING].iter().any(|greeting| said.starts_with(greeting)) {
        return RESET_COMMAND.to_owned();
    }
    let body = strip_envelope(said);
    let mut out: Vec<&str> = Vec::new();
    let mut removed = false;
    for line in body.split('\n') {
        if is_message_id(line.trim()) {
            removed = true;
        } else {
            out.push(line);
        }
    }
    let joined = out.join("\n");
    if removed { joined.trim_end().to_owned() } else { joined }
}

/// Strips the texts of a stored user message; returns whether anything changed.
pub fn strip_user_message(message: &mut Value) -> bool {
    let strip = |text: &mut String| {
        let stripped = strip_user_text(text);
        let changed = stripped != *text;
        *text = stripped;
        changed
    };
    match message.get_mut("content") {
        Some(Value::String(text)) => strip(text),
        Some(Value::Array(blocks)) => {
            let mut changed = false;
            for block in
                blocks.iter_mut().filter(|block| block.get("type").is_some_and(|kind| kind == "text"))
            {
                if let Some(Value::String(text)) = block.get_mut("text") {
                    changed |= strip(text);
                }
            }
            changed
        }
        _ => false,
    }
}

/// Leading `System: [<time>] …` lines and the blank line after them.
fn strip_system_block(text: &str) -> &str {
    let mut rest = text;
    let mut any = false;
    while let Some(after) = rest.strip_prefix("System: [") {
        let stamped = after.split_once(']').is_some_and(|(stamp, _)| has_date(stamp));
        if !stamped {
            break;
        }
        any = true;
        rest = after.split_once('\n').map_or("", |(_, next)| next);
    }
    if any { rest.trim_start_matches('\n') } else { text }
}

/// A leading `[…]` that holds a date and time, or begins with a channel's label.
fn strip_envelope(text: &str) -> &str {
    let Some((envelope, body)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return text;
    };
    let labelled = registry::envelope_labels()
        .any(|label| envelope.strip_prefix(label).is_some_and(|rest| rest.starts_with(' ')));
    if has_date(envelope) || labelled { body.trim_start() } else { text }
}

/// True if a text contains `YYYY-MM-DD HH:MM` or `YYYY-MM-DDTHH:MM`.
fn has_date(text: &str) -> bool {
    const SHAPE: &[u8] = b"dddd-dd-dd_dd:dd";
    text.as_bytes().windows(SHAPE.len()).any(|window| {
        window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'_' => matches!(byte, b' ' | b'T'),
            sign => byte == sign,
        })
    })
}

fn is_message_id(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("[message_id:") else { return false };
    rest.strip_suffix(']').is_some_and(|id| !id.trim().is_empty() && !id.contains(']'))
}

/// All text of a message, blocks joined with a newline; thinking and tool calls left out.
pub fn message_text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter(|block| block.get("type").is_some_and(|kind| kind == "text"))
                .filter_map(|block| block.get("text")?.as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Names of the tools a message calls.
pub fn tool_names(message: &Value) -> Vec<&str> {
    let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_call = |block: &&Value| {
        matches!(block.get("type").and_then(Value::as_str), Some("toolCall" | "toolUse" | "functionCall"))
    };
    blocks.iter().filter(is_call).filter_map(|block| block.get("name")?.as_str()).collect()
}

/// `call a, b +1`
pub fn calls_line(names: &[&str]) -> String {
    const SHOWN: usize = 2;
    let shown: Vec<&str> = names.iter().take(SHOWN).copied().collect();
    let more = names.len().saturating_sub(SHOWN);
    let line = format!("call {}", shown.join(", "));
    if more > 0 { format!("{line} +{more}") } else { line }
}

/// Cuts a text to at most `max` characters, the mark included when something was cut.
pub fn cut(text: &str, max: usize, mark: &str) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let keep = max.saturating_sub(mark.chars().count());
    let kept: String = text.chars().take(keep).collect();
    format!("{kept}{mark}")
}

const TITLE_CHARS: usize = 60;

/// A title of at most 60 characters: white space folded, cut at a space in the last two fifths.
pub fn title(text: &str) -> Option<String> {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.is_empty() {
        return None;
    }
    if folded.chars().count() <= TITLE_CHARS {
        return Some(folded);
    }
    let kept: String = folded.chars().take(TITLE_CHARS - 1).collect();
    let space =
        kept.rfind(' ').filter(|at| kept.get(..*at).is_some_and(|s| s.chars().count() * 5 > TITLE_CHARS * 3));
    let kept = space.and_then(|at| kept.get(..at)).unwrap_or(&kept);
    Some(format!("{kept}…"))
}

/// Title of a session without any messages: `<first 8 of the id> (YYYY-MM-DD)`.
pub fn fallback_title(session_id: &str, updated_at: Option<i64>) -> String {
    let short: String = session_id.chars().take(8).collect();
    match updated_at.filter(|at| *at > 0) {
        Some(at) => format!("{short} ({})", crate::time::utc_date(at)),
        None => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of `messages.md` §1.1 and KB-17.
    #[test]
    fn user_texts_lose_what_was_added_for_the_model() {
        let rows = [
            ("[Sat 2026-11-21 02:42 UTC] hi", "hi"),
            ("[WebChat user1 mac 10.0.0.5 Thu 2025-01-02T03:04Z] hello", "hello"),
            ("[Telegram A] x", "x"),
            ("[note] hi", "[note] hi"),
            ("[Telegramish] hi", "[Telegramish] hi"),
            ("[WhatsApp +1] x", "x"),
            ("[Google Chat room] x", "x"),
            ("[Zalo Personal A] x", "x"),
            ("[BlueBubbles A] x", "x"),
            ("hi\n[message_id: run-1]", "hi"),
            ("[Sat 2026-11-21 02:42 UTC] hi\n[message_id: a b]\nmore", "hi\nmore"),
            ("see [message_id: x] here", "see [message_id: x] here"),
            (
                "System: [2026-11-21 02:42:00 UTC] node up\nSystem: [2026-11-21 02:43:00 UTC] x\n\n[Sat 2026-11-21 02:42 UTC] hi",
                "hi",
            ),
            (
                "System: [2026-11-21 02:42:00 UTC] x\n\nNote: The previous agent run was aborted by the user. Resume carefully or ask for clarification.\n\n[Sat 2026-11-21 02:42 UTC] hi\n[message_id: r]",
                "hi",
            ),
            (&format!("{ABORT_NOTE}[Sat 2026-11-21 02:42 UTC] hi"), "hi"),
            ("System: [not a date] x", "System: [not a date] x"),
            (GREETING, "/new"),
            ("A new session was started via /new or /reset. Say hi briefly.\n[message_id: r]", "/new"),
            (
                "System: [2026-11-21 02:42:00 UTC] x\n\nA new session was started via /new or /reset. Greet the user.",
                "/new",
            ),
            (
                "[Sat 2026-11-21 02:42 UTC] A new session was started via /new or /reset. Why?",
                "A new session was started via /new or /reset. Why?",
            ),
            ("[unclosed 2026-11-21 02:42", "[unclosed 2026-11-21 02:42"),
            ("", ""),
        ];
        for (text, expect) in rows {
            assert_eq!(strip_user_text(text), expect, "{text:?}");
        }
    }

    #[test]
    fn titles_are_cut_at_a_space() {
        let long = "This is a longer message that should be truncated at a word boundary for lists";
        assert_eq!(title(long).as_deref(), Some("This is a longer message that should be truncated at a…"));
        assert_eq!(title("  a \n b ").as_deref(), Some("a b"));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"x".repeat(61)), Some(format!("{}…", "x".repeat(59))));
        assert_eq!(title(&"x".repeat(60)), Some("x".repeat(60)));
        assert_eq!(fallback_title("2e158d2b-e08d", Some(1_795_230_095_979)), "2e158d2b (2026-11-21)");
    }

    #[test]
    fn calls_are_named_briefly() {
        assert_eq!(calls_line(&["a"]), "call a");
        assert_eq!(calls_line(&["a", "b", "c"]), "call a, b +1");
        assert_eq!(cut("abcdef", 5, "..."), "ab...");
        assert_eq!(cut("abcde", 5, "..."), "abcde");
    }
}
