//! `session-memory`: what is kept of a conversation that starts anew (spec `agent-runtime.md` §8.3).

use openclaw_protocol::message::{Block, Message, UserContent};
use openclaw_sessions::time::{iso, utc_date};
use openclaw_sessions::transcript::inject::INJECTED_MODEL;
use serde_json::{Map, Value};

/// Messages that are kept where the settings do not say.
const DEFAULT_MESSAGES: usize = 15;
/// Largest number of messages that are kept.
const MAX_MESSAGES: usize = 1_000;
/// Bytes of a file. Of longer conversations the end is kept.
const MAX_FILE: usize = 64 * 1024;
/// Characters that a model is shown to find a name for the file.
const SLUG_SOURCE: usize = 2_000;
/// Characters of such a name.
const MAX_SLUG: usize = 30;

/// Returns the number of messages to keep.
pub fn message_count(settings: &Map<String, Value>) -> usize {
    let set = settings.get("messages").and_then(Value::as_u64).filter(|count| *count > 0);
    set.and_then(|count| usize::try_from(count).ok()).unwrap_or(DEFAULT_MESSAGES).min(MAX_MESSAGES)
}

/// The last things that were said, one line each: the first text of a message, without commands.
pub fn lines<'a>(messages: impl Iterator<Item = &'a Message>, count: usize) -> Vec<String> {
    let line = |message: &'a Message| {
        let (role, text) = match message {
            Message::User(said) => match &said.content {
                UserContent::Text(text) => ("user", Some(text.as_str())),
                UserContent::Blocks(blocks) => ("user", first_text(blocks)),
            },
            // Answers to commands are the gateway's words.
            Message::Assistant(said) if said.model == INJECTED_MODEL => return None,
            Message::Assistant(said) => ("assistant", first_text(&said.content)),
            Message::ToolResult(_) => return None,
        };
        let text = text?.trim();
        (!text.is_empty() && !text.starts_with('/')).then(|| format!("{role}: {text}"))
    };
    let all: Vec<String> = messages.filter_map(line).collect();
    all.get(all.len().saturating_sub(count)..).unwrap_or_default().to_vec()
}

fn first_text(blocks: &[Block]) -> Option<&str> {
    blocks.iter().find_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    })
}

/// Returns the question that asks a model for a file name.
pub fn slug_question(lines: &[String]) -> String {
    let text: String = lines.join("\n").chars().take(SLUG_SOURCE).collect();
    format!(
        "Name the subject of this conversation in one or two words for a file name: lower case, joined with hyphens, no \
         extension. Answer with the name and nothing else, such as vendor-pitch or api-design.\n\n{text}"
    )
}

/// The name that a model gives, fit for a file; `None` where nothing of it is.
pub fn slug(answer: &str) -> Option<String> {
    let mut slug = String::new();
    for letter in answer.trim().to_lowercase().chars() {
        let letter = if letter.is_ascii_lowercase() || letter.is_ascii_digit() { letter } else { '-' };
        if letter != '-' || (!slug.is_empty() && !slug.ends_with('-')) {
            slug.push(letter);
        }
    }
    slug.truncate(MAX_SLUG);
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

/// The name where no model gives one: `HHMM`, UTC.
pub fn time_slug(ms: i64) -> String {
    let time = iso(ms);
    time.chars().skip_while(|c| *c != 'T').filter(char::is_ascii_digit).take(4).collect()
}

/// The file's name; `number` counts from 1 those of the same day and name.
pub fn file_name(ms: i64, slug: &str, number: u32) -> String {
    let date = utc_date(ms);
    if number <= 1 { format!("{date}-{slug}.md") } else { format!("{date}-{slug}-{number}.md") }
}

/// Data of the saved file besides the messages.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// Unix milliseconds.
    pub at: i64,
    /// The session.
    pub session_key: &'a str,
    /// The conversation that was left.
    pub session_id: &'a str,
    /// Channel from which the command came.
    pub source: &'a str,
}

/// The file's text.
pub fn document(kept: &Kept<'_>, lines: &[String]) -> String {
    let time = iso(kept.at);
    let clock = time.split('T').nth(1).and_then(|time| time.split('.').next()).unwrap_or_default();
    let mut text = format!(
        "# Session: {} {clock} UTC\n\n- **Session Key**: {}\n- **Session ID**: {}\n- **Source**: {}\n\n",
        utc_date(kept.at),
        kept.session_key,
        kept.session_id,
        kept.source,
    );
    if lines.is_empty() {
        return text;
    }
    text.push_str("## Conversation Summary\n\n");
    let mut room = MAX_FILE.saturating_sub(text.len());
    let mut fitting: Vec<&str> = Vec::new();
    for line in lines.iter().rev() {
        let Some(left) = room.checked_sub(line.len() + 1) else { break };
        room = left;
        fitting.push(line);
    }
    if let ([], Some(last)) = (fitting.as_slice(), lines.last()) {
        // A single message is too long: keep its beginning.
        let end = last.floor_char_boundary(room.saturating_sub(1));
        fitting.push(last.get(..end).unwrap_or_default());
    }
    for line in fitting.into_iter().rev() {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, ToolResultMessage, UserMessage};
    use serde_json::json;

    use super::*;

    const AT: i64 = 1_770_650_045_678;

    fn said(role: &str, text: &str) -> Message {
        match role {
            "user" => Message::User(UserMessage::text(text, 0)),
            "plain" => {
                Message::User(UserMessage { content: UserContent::Text(text.into()), ..Default::default() })
            }
            "tool" => Message::ToolResult(ToolResultMessage {
                content: vec![Block::text(text)],
                ..Default::default()
            }),
            _ => Message::Assistant(AssistantMessage {
                content: vec![Block::text(text), Block::text("more")],
                ..Default::default()
            }),
        }
    }

    #[test]
    fn the_last_words_are_kept_without_commands_and_tools() {
        let messages = [
            said("user", "/model gpt"),
            said("user", " first "),
            said("assistant", "second"),
            said("tool", "output"),
            said("assistant", "  "),
            said("plain", "third"),
        ];
        assert_eq!(lines(messages.iter(), 15), ["user: first", "assistant: second", "user: third"]);
        assert_eq!(lines(messages.iter(), 2), ["assistant: second", "user: third"]);
        assert_eq!(message_count(json!({"messages": 3}).as_object().unwrap()), 3);
        for bad in [json!({}), json!({"messages": 0}), json!({"messages": "9"}), json!({"messages": -1})] {
            assert_eq!(message_count(bad.as_object().unwrap()), 15, "{bad}");
        }
    }

    #[test]
    fn names_are_fit_for_files() {
        let rows = [
            ("Vendor Pitch", Some("vendor-pitch")),
            ("  api--design!\n", Some("api-design")),
            ("../../etc/passwd", Some("etc-passwd")),
            ("Füße", Some("f-e")),
            ("a-very-long-name-that-goes-on-and-on", Some("a-very-long-name-that-goes-on")),
            ("…", None),
            ("", None),
        ];
        for (answer, expect) in rows {
            assert_eq!(slug(answer).as_deref(), expect, "{answer}");
        }
        assert_eq!(time_slug(AT), "1514");
        assert_eq!(file_name(AT, "api-design", 1), "2026-02-09-api-design.md");
        assert_eq!(file_name(AT, "api-design", 2), "2026-02-09-api-design-2.md");
        let lines = vec!["ü".repeat(5_000)];
        assert_eq!(slug_question(&lines).matches('ü').count(), SLUG_SOURCE);
    }

    #[test]
    fn the_file_says_where_it_comes_from() {
        let kept = Kept { at: AT, session_key: "agent:main:main", session_id: "s1", source: "webchat" };
        let head = "# Session: 2026-02-09 15:14:05 UTC\n\n- **Session Key**: agent:main:main\n- **Session ID**: s1\n- **Source**: webchat\n\n";
        assert_eq!(document(&kept, &[]), head);
        let lines = ["user: a".to_owned(), "assistant: b".to_owned()];
        assert_eq!(
            document(&kept, &lines),
            format!("{head}## Conversation Summary\n\nuser: a\nassistant: b\n")
        );
        let long = vec!["user: ".to_owned() + &"x".repeat(10_000); 10];
        let text = document(&kept, &long);
        assert!(text.len() <= MAX_FILE && text.matches("user: ").count() == 6, "{}", text.len());
        let text = document(&kept, &["user: ".to_owned() + &"ü".repeat(80_000)]);
        assert!(text.len() <= MAX_FILE && text.len() > MAX_FILE - 8, "{}", text.len());
    }
}
