//! The user message as the model sees it: envelope, hints, message id (spec `agent-runtime.md` §1.3, `sessions.md` §5.5, §5.6).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use openclaw_agent::user_time::with_timestamp;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::origin::{MessageFrame, MessageOrigin};
use openclaw_journal::source::{RequestKind, RequestSource};
use openclaw_protocol::message::{Block, Provenance, ProvenanceKind, UserContent, UserMessage};
use openclaw_sessions::display::{ABORT_NOTE, GREETING};

/// Facts besides the message that its text depends on.
#[derive(Debug, Clone)]
pub(crate) struct Circumstances {
    /// The user's time zone.
    pub zone: TimeZone,
    /// True if a person stopped the run before.
    pub after_abort: bool,
    /// True if nothing was said in its session before.
    pub is_first: bool,
    /// Rest of the text behind a reset trigger, if there was one.
    pub reset: Option<String>,
    /// Further lines that the agent is to know, with a blank line at their end; or empty.
    pub system_block: String,
}

impl Circumstances {
    /// A message with nothing added, from a user in this time zone.
    pub(crate) fn plain(zone: TimeZone) -> Self {
        Self { zone, after_abort: false, is_first: false, reset: None, system_block: String::new() }
    }
}

/// The message for the model. Its timestamp is that of acceptance: the same after a restart.
pub(crate) fn message(row: &InboxRow, circumstances: &Circumstances) -> UserMessage {
    let mut content = vec![Block::text(text(row, circumstances))];
    content.extend(row.payload.images.iter().cloned());
    let is_internal = matches!(row.payload.source, RequestSource::MemoryFlush);
    let internal = Provenance {
        kind: ProvenanceKind::InternalSystem,
        source_session_key: None,
        source_channel: None,
        source_tool: None,
    };
    UserMessage {
        content: UserContent::Blocks(content),
        timestamp: row.accepted_at,
        provenance: row.payload.source.provenance().cloned().or(is_internal.then_some(internal)),
        ..UserMessage::default()
    }
}

/// Shows pictures behind those that came with the message.
pub(crate) fn show(message: &mut UserMessage, pictures: Vec<Block>) {
    if let UserContent::Blocks(blocks) = &mut message.content {
        blocks.extend(pictures);
    }
}

/// Puts a hook's text before the message.
pub(crate) fn put_before(message: &mut UserMessage, preface: &str) {
    match &mut message.content {
        UserContent::Text(text) => *text = format!("{preface}\n\n{text}"),
        UserContent::Blocks(blocks) => match blocks.first_mut() {
            Some(Block::Text(first)) => first.text = format!("{preface}\n\n{}", first.text),
            _ => blocks.insert(0, Block::text(preface)),
        },
    }
}

/// Text that the agent reads of a message that waited, in one text with others.
pub(crate) fn queued(row: &InboxRow, zone: TimeZone) -> String {
    text(row, &Circumstances::plain(zone))
}

fn text(row: &InboxRow, circumstances: &Circumstances) -> String {
    if let Some(gathered) = &row.payload.gathered {
        let note = if circumstances.after_abort { ABORT_NOTE } else { "" };
        return format!("{}{note}{}", circumstances.system_block, gathered.text);
    }
    if let Some(origin) = row.payload.source.origin() {
        return platform_text(row, origin, circumstances);
    }
    let body = match &circumstances.reset {
        Some(rest) if rest.trim().is_empty() => GREETING.to_owned(),
        Some(rest) => stamped(rest, row.accepted_at, &circumstances.zone),
        None => {
            let words = row.payload.words();
            stamped(words, row.accepted_at, &circumstances.zone)
        }
    };
    let told = &circumstances.system_block;
    match row.payload.source.kind() {
        RequestKind::Agent => format!("{told}{body}"),
        RequestKind::Chat => {
            let note = if circumstances.after_abort { ABORT_NOTE } else { "" };
            format!("{told}{note}{body}\n[message_id: {}]", row.run_id)
        }
    }
}

/// Text of a message from a chat platform, which is framed already, with the time.
fn platform_text(row: &InboxRow, origin: &MessageOrigin, circumstances: &Circumstances) -> String {
    let MessageFrame { lead, before, after, starter, untrusted } = &origin.frame;
    let starter = if circumstances.is_first { starter.as_str() } else { "" };
    let told = &circumstances.system_block;
    let note = if circumstances.after_abort { ABORT_NOTE } else { "" };
    let body = match &circumstances.reset {
        Some(rest) if rest.trim().is_empty() => GREETING.to_owned(),
        Some(rest) => format!("{before}{rest}{after}"),
        None => format!("{before}{}{after}", row.payload.words()),
    };
    format!("{lead}{starter}{told}{note}{body}\n[message_id: {}]{untrusted}", origin.message_id)
}

/// Puts the time at which it was said before a text.
fn stamped(text: &str, at_ms: i64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond(at_ms) {
        Ok(at) => with_timestamp(text, at, zone),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_journal::intent::{Hints, Intent, ModelHint};
    use openclaw_journal::request::{Decisions, RunRequest};
    use openclaw_protocol::{AgentId, RunId, SessionId, SessionKey};

    use super::*;

    fn row(payload: RunRequest) -> InboxRow {
        InboxRow {
            run_id: RunId::new("run-1"),
            session_key: SessionKey::main(&AgentId::default(), "main"),
            payload,
            // 2026-01-29T01:30:00Z
            accepted_at: 1_769_650_200_000,
            entry_id: "00000000".to_owned(),
            fresh_id: SessionId::new("f"),
            session_id: None,
            abort: None,
            answered: None,
            recovered: false,
            gathering: None,
        }
    }

    fn chat(text: &str) -> InboxRow {
        row(RunRequest { text: text.to_owned(), ..RunRequest::default() })
    }

    fn agent(text: &str) -> InboxRow {
        row(RunRequest { source: RequestSource::program(), text: text.to_owned(), ..RunRequest::default() })
    }

    fn circumstances() -> Circumstances {
        Circumstances::plain(TimeZone::get("America/New_York").unwrap())
    }

    #[test]
    fn the_envelope_is_put_before_what_has_none() {
        let cases = [
            ("Is it the weekend?", "[Wed 2026-01-28 20:30 EST] Is it the weekend?"),
            ("[Telegram Bob 2026-01-28 20:30 EST] hi", "[Telegram Bob 2026-01-28 20:30 EST] hi"),
            ("now\nCurrent time: Wed", "now\nCurrent time: Wed"),
            (" ", " "),
            ("[note] ü 2026-01-28 20:3 x", "[Wed 2026-01-28 20:30 EST] [note] ü 2026-01-28 20:3 x"),
            ("see [a 2026-01-28 20:30]", "[Wed 2026-01-28 20:30 EST] see [a 2026-01-28 20:30]"),
        ];
        for (text, expected) in cases {
            assert_eq!(message(&agent(text), &circumstances()).content.to_text(), expected);
        }
    }

    #[test]
    fn a_chat_message_carries_its_id_and_after_an_abort_a_note() {
        let plain = message(&chat("hi"), &circumstances());
        assert_eq!(plain.content.to_text(), "[Wed 2026-01-28 20:30 EST] hi\n[message_id: run-1]");
        assert_eq!(plain.timestamp, 1_769_650_200_000);
        let after = message(&chat("hi"), &Circumstances { after_abort: true, ..circumstances() });
        assert_eq!(
            after.content.to_text(),
            "Note: the user stopped the run before this message. Go on with care, or ask what they want.\n\n\
             [Wed 2026-01-28 20:30 EST] hi\n[message_id: run-1]"
        );
    }

    #[test]
    fn what_was_meant_for_the_gateway_is_not_shown_to_the_agent() {
        let mut asked = chat("hi /model x");
        let choice = ModelHint { model: "x".to_owned(), profile: None };
        asked.payload.decided = Some(Decisions {
            reset: None,
            intent: Intent::PromptFor {
                hints: Hints { model: Some(choice), ..Hints::default() },
                text: "hi".to_owned(),
            },
            queue: openclaw_journal::queue::QueueSettings::default(),
            time_limit: None,
        });
        let said = message(&asked, &circumstances()).content.to_text();
        assert_eq!(said, "[Wed 2026-01-28 20:30 EST] hi\n[message_id: run-1]");
    }

    #[test]
    fn system_events_come_before_everything_else() {
        let system_block = "System: [2026-01-28 20:29:00 EST] x\n\n".to_owned();
        let told = Circumstances { system_block, after_abort: true, ..circumstances() };
        assert_eq!(
            message(&chat("hi"), &told).content.to_text(),
            format!(
                "System: [2026-01-28 20:29:00 EST] x\n\n{ABORT_NOTE}[Wed 2026-01-28 20:30 EST] hi\n[message_id: run-1]"
            )
        );
        assert_eq!(
            message(&agent("hi"), &told).content.to_text(),
            "System: [2026-01-28 20:29:00 EST] x\n\n[Wed 2026-01-28 20:30 EST] hi"
        );
    }

    #[test]
    fn a_thread_tells_how_it_began_once_and_what_strangers_wrote_comes_last() {
        let frame = MessageFrame {
            lead: "[media attached: a.png]\n".to_owned(),
            before: "[Slack #lunch] Ada (7): ".to_owned(),
            after: "\n[from: Ada (7)]".to_owned(),
            starter: "[Thread starter - for context]\nshall we?\n\n".to_owned(),
            untrusted: "\n\nUntrusted context:\ntopic".to_owned(),
        };
        let mut said = chat("yes");
        let origin = MessageOrigin {
            frame,
            message_id: "9".to_owned(),
            ..openclaw_journal::testing::direct("7", None)
        };
        said.payload.source = RequestSource::platform(origin);
        let system_block = "System: [now] x\n\n".to_owned();
        let later = Circumstances { system_block, ..circumstances() };
        let first = Circumstances { is_first: true, ..later.clone() };
        let rest = "System: [now] x\n\n[Slack #lunch] Ada (7): yes\n[from: Ada (7)]\n[message_id: 9]\n\nUntrusted context:\ntopic";
        let starter = "[Thread starter - for context]\nshall we?\n\n";
        assert_eq!(
            message(&said, &first).content.to_text(),
            format!("[media attached: a.png]\n{starter}{rest}")
        );
        assert_eq!(message(&said, &later).content.to_text(), format!("[media attached: a.png]\n{rest}"));
    }

    #[test]
    fn a_bare_reset_asks_for_a_greeting_and_a_reset_with_words_keeps_the_words() {
        let reset = |rest: &str| Circumstances { reset: Some(rest.to_owned()), ..circumstances() };
        let greeting = message(&chat("/new"), &reset("")).content.to_text();
        assert_eq!(greeting, format!("{GREETING}\n[message_id: run-1]"));
        assert_eq!(
            message(&chat("/new take notes"), &reset("take notes")).content.to_text(),
            "[Wed 2026-01-28 20:30 EST] take notes\n[message_id: run-1]"
        );
    }
}
