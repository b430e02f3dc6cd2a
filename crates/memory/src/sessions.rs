//! Transcripts as a source of memory: what of them is indexed, and when a growing one is indexed again. Where they lie,
//! and what is a secret in them, is handed in.

use std::collections::HashMap;
use std::io;

use serde::Deserialize;

use crate::chunk::Chunk;

/// Access to the transcripts of one agent. All calls block.
pub trait TranscriptSource: Send + Sync + 'static {
    /// Lists the transcripts that may be indexed.
    ///
    /// # Errors
    ///
    /// The directory can't be read; nothing is taken for deleted then.
    fn list(&self) -> io::Result<Vec<TranscriptFile>>;

    /// Returns the text of a transcript, in lines of JSON.
    ///
    /// # Errors
    ///
    /// The file can't be read; it is left out this time.
    fn read(&self, name: &str) -> io::Result<String>;

    /// Removes secrets from one message. Only what this returns is stored.
    fn redact(&self, text: &str) -> String;
}

/// A transcript that may be indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Name of the file, such as `4f1c….jsonl`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified: i64,
}

/// A transcript as text: one line a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RenderedTranscript {
    pub(crate) text: String,
    /// For each line of `text` its line in the file, counted from one.
    lines: Vec<u32>,
}

/// Beginning of the message with which a cron job begins a conversation.
const CRON: &str = "[cron:";

/// Answers of the model that say nothing to anybody: of a heartbeat without news, and where no reply is wanted.
const HEARTBEAT_ACKNOWLEDGED: &str = "HEARTBEAT_OK";
const SILENT: &str = "NO_REPLY";

#[derive(Deserialize)]
struct TranscriptLine {
    #[serde(rename = "type")]
    kind: String,
    message: Option<SaidMessage>,
}

#[derive(Deserialize)]
struct SaidMessage {
    role: String,
    content: SaidContent,
    provenance: Option<SaidBy>,
}

#[derive(Deserialize)]
struct SaidBy {
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SaidContent {
    Text(String),
    Blocks(Vec<serde_json::Value>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
}

impl SaidMessage {
    /// Returns who says it, or `None` if neither a person nor the model does: results of tools, and what the gateway asks.
    fn speaker(&self) -> Option<Speaker> {
        let is_internal = self
            .provenance
            .as_ref()
            .is_some_and(|provenance| provenance.kind.as_deref() == Some("internal_system"));
        match self.role.as_str() {
            "user" if !is_internal => Some(Speaker::User),
            "assistant" => Some(Speaker::Assistant),
            _ => None,
        }
    }

    /// Returns the text in one line.
    fn text(&self, redact: impl Fn(&str) -> String) -> String {
        match &self.content {
            SaidContent::Text(text) => one_line(&redact(text)),
            SaidContent::Blocks(blocks) => {
                let texts =
                    blocks.iter().filter(|block| block.get("type").is_some_and(|kind| kind == "text"));
                let texts = texts.filter_map(|block| block.get("text")?.as_str());
                texts
                    .map(|text| one_line(&redact(text)))
                    .filter(|text| !text.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            }
        }
    }
}

/// Returns what of a transcript is indexed: what people and the model said, without thoughts, tools and commands, and
/// without what the gateway asked the model by itself: cron jobs, heartbeats that had no news, the flush before a
/// compaction.
pub(crate) fn render(jsonl: &str, redact: impl Fn(&str) -> String) -> RenderedTranscript {
    let mut rendered = RenderedTranscript::default();
    let mut last = None;
    for (index, line) in jsonl.split('\n').enumerate() {
        let Ok(TranscriptLine { kind, message: Some(message) }) =
            serde_json::from_str::<TranscriptLine>(line)
        else {
            continue;
        };
        let Some(speaker) = message.speaker().filter(|_| kind == "message") else { continue };
        let text = message.text(&redact);
        let is_command = text.starts_with('/') && !text.contains(' ');
        if text.is_empty() || is_command || (speaker == Speaker::Assistant && text == SILENT) {
            continue;
        }
        if speaker == Speaker::Assistant && is_acknowledgement(&text) {
            if last == Some(Speaker::User) {
                rendered.remove_last();
            }
            last = None;
            continue;
        }
        if rendered.lines.is_empty() && speaker == Speaker::User && text.starts_with(CRON) {
            return RenderedTranscript::default();
        }
        rendered.push(speaker, &text, u32::try_from(index + 1).unwrap_or(u32::MAX));
        last = Some(speaker);
    }
    rendered
}

/// Returns whether an answer is that of a heartbeat without news, in whatever markup.
fn is_acknowledgement(text: &str) -> bool {
    text.match_indices(HEARTBEAT_ACKNOWLEDGED).next().is_some_and(|(at, _)| {
        let (before, after) = text.split_at(at);
        let after = after.get(HEARTBEAT_ACKNOWLEDGED.len()..).unwrap_or_default();
        [before, after].iter().all(|rest| rest.len() <= 4 && !rest.contains(char::is_whitespace))
    })
}

/// Returns what people and the model said in a transcript, one line a message, with secrets removed by `redact`.
pub fn transcript_text(jsonl: &str, redact: impl Fn(&str) -> String) -> String {
    render(jsonl, redact).text
}

impl RenderedTranscript {
    fn push(&mut self, speaker: Speaker, text: &str, line: u32) {
        if !self.lines.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(match speaker {
            Speaker::User => "User: ",
            Speaker::Assistant => "Assistant: ",
        });
        self.text.push_str(text);
        self.lines.push(line);
    }

    /// Returns the text, and for each line of it that of the file.
    pub(crate) fn into_parts(self) -> (String, Vec<u32>) {
        (self.text, self.lines)
    }

    fn remove_last(&mut self) {
        self.text.truncate(self.text.rfind('\n').unwrap_or_default());
        self.lines.pop();
    }

    /// Gives chunks of the text the lines of the file.
    pub(crate) fn with_file_lines(&self, mut chunks: Vec<Chunk>) -> Vec<Chunk> {
        let line =
            |number: u32| self.lines.get((number as usize).saturating_sub(1)).copied().unwrap_or(number);
        for chunk in &mut chunks {
            (chunk.start_line, chunk.end_line) = (line(chunk.start_line), line(chunk.end_line));
        }
        chunks
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Growth of transcripts since they were indexed. Pure.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    files: HashMap<String, FileGrowth>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct FileGrowth {
    size: u64,
    bytes: u64,
    messages: u64,
}

/// Thresholds of [`Growth`]. 0 means that any growth is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thresholds {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
}

impl Growth {
    /// Records that a transcript has `size` bytes now. `count_lines` counts the lines after the given byte; it is asked
    /// only while the bytes are not enough. Returns whether the transcript is to be indexed.
    pub(crate) fn grew(
        &mut self,
        name: &str,
        size: u64,
        thresholds: Thresholds,
        count_lines: impl FnOnce(u64) -> u64,
    ) -> bool {
        let file = self.files.entry(name.to_owned()).or_default();
        let (from, delta) = if size < file.size { (0, size) } else { (file.size, size - file.size) };
        file.size = size;
        if delta == 0 {
            return false;
        }
        file.bytes += delta;
        let reached =
            |value: u64, threshold: u64| if threshold == 0 { value > 0 } else { value >= threshold };
        if !reached(file.bytes, thresholds.bytes) {
            file.messages += count_lines(from);
        }
        let is_due = reached(file.bytes, thresholds.bytes) || reached(file.messages, thresholds.messages);
        if is_due {
            let left =
                |value: u64, threshold: u64| if threshold == 0 { 0 } else { value.saturating_sub(threshold) };
            file.bytes = left(file.bytes, thresholds.bytes);
            file.messages = left(file.messages, thresholds.messages);
        }
        is_due
    }

    /// Records that a transcript was indexed when it had `size` bytes.
    pub(crate) fn indexed(&mut self, name: &str, size: u64) {
        self.files.insert(name.to_owned(), FileGrowth { size, bytes: 0, messages: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{Chunking, chunks};
    use crate::tests::golden;

    #[test]
    fn a_transcript_is_rendered_as_recorded_but_with_lines_of_its_file() {
        let text = golden("memory-text.json");
        let case = &text["session_render"];
        let rendered = render(case["jsonl"].as_str().unwrap(), str::to_owned);
        assert_eq!(rendered.text, case["builtin_2026_2_9"].as_str().unwrap());
        assert_eq!(serde_json::to_value(&rendered.lines).unwrap(), case["jsonl_lines_of_rendered_lines"]);
        let made = rendered.with_file_lines(chunks(&rendered.text, Chunking::default()));
        assert_eq!((made[0].start_line, made[0].end_line), (2, 6));
        for row in text["session_text_normalise"].as_array().unwrap() {
            assert_eq!(one_line(row[0].as_str().unwrap()), row[1].as_str().unwrap_or_default());
        }
    }

    #[test]
    fn secrets_and_commands_are_left_out() {
        let jsonl = r#"{"type":"message","message":{"role":"user","content":"/new"}}
{"type":"message","message":{"role":"user","content":"my key is sk-secret, keep it"}}"#;
        let rendered = render(jsonl, |text| text.replace("sk-secret", "***"));
        assert_eq!(rendered.text, "User: my key is ***, keep it");
        assert_eq!(rendered.lines, [2]);
    }

    #[test]
    fn what_the_gateway_asks_by_itself_is_left_out() {
        let said = |role: &str, text: &str| {
            serde_json::json!({"type": "message", "message": {"role": role, "content": text}}).to_string()
        };
        let lines = [
            said("user", "where is the telescope?"),
            said("assistant", "In the garage."),
            said("user", "Read HEARTBEAT.md if it exists."),
            said("assistant", "**HEARTBEAT_OK**"),
            said("user", "Read HEARTBEAT.md if it exists."),
            said("assistant", "The door is open."),
            r#"{"type":"message","message":{"role":"user","content":"save what matters","provenance":{"kind":"internal_system"}}}"#.to_owned(),
            said("assistant", "NO_REPLY"),
            said("user", "what does HEARTBEAT_OK mean?"),
        ];
        let rendered = render(&lines.join("\n"), str::to_owned);
        assert_eq!(
            rendered.text,
            "User: where is the telescope?\nAssistant: In the garage.\nUser: Read HEARTBEAT.md if it exists.\n\
            Assistant: The door is open.\nUser: what does HEARTBEAT_OK mean?"
        );
        assert_eq!(rendered.lines, [1, 2, 5, 6, 9]);
        let job = [said("user", "[cron:5f2c Daily report] pay"), said("assistant", "Paid.")];
        assert_eq!(render(&job.join("\n"), str::to_owned), RenderedTranscript::default());
    }

    #[test]
    fn growth_is_counted_as_recorded() {
        let thresholds = Thresholds { bytes: 100_000, messages: 50 };
        let mut growth = Growth::default();
        assert!(!growth.grew("a", 60_000, thresholds, |_| 1));
        assert!(growth.grew("a", 120_000, thresholds, |_| 1));
        assert_eq!(growth.files["a"].bytes, 20_000);
        let mut growth = Growth::default();
        for line in 1..50 {
            assert!(!growth.grew("b", line * 10, thresholds, |_| 1), "{line}");
        }
        assert!(growth.grew("b", 500, thresholds, |_| 1));
        let mut growth = Growth::default();
        growth.grew("c", 80_000, thresholds, |_| 1);
        growth.grew("c", 10_000, thresholds, |from| from + 1);
        assert_eq!(growth.files["c"], FileGrowth { size: 10_000, bytes: 90_000, messages: 2 });
        growth.indexed("c", 10_000);
        assert!(!growth.grew("c", 10_000, Thresholds { bytes: 0, messages: 0 }, |_| 0));
        assert!(growth.grew("c", 10_001, Thresholds { bytes: 0, messages: 0 }, |_| 0));
    }
}
