//! TranscriptSource as a source of memory: what of them is indexed, and when a growing one is indexed again. Where they lie,
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
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SaidContent {
    Text(String),
    Blocks(Vec<serde_json::Value>),
}

/// Returns what of a transcript is indexed: what people and the model said, without thoughts, tools and commands.
pub(crate) fn render(jsonl: &str, redact: impl Fn(&str) -> String) -> RenderedTranscript {
    let mut rendered = RenderedTranscript::default();
    for (index, line) in jsonl.split('\n').enumerate() {
        let Ok(TranscriptLine { kind, message: Some(message) }) =
            serde_json::from_str::<TranscriptLine>(line)
        else {
            continue;
        };
        let speaker = match message.role.as_str() {
            "user" => "User",
            "assistant" => "Assistant",
            _ => continue,
        };
        if kind != "message" {
            continue;
        }
        let text = match message.content {
            SaidContent::Text(text) => one_line(&redact(&text)),
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
        };
        let is_command = text.starts_with('/') && !text.contains(' ');
        if text.is_empty() || is_command {
            continue;
        }
        if !rendered.lines.is_empty() {
            rendered.text.push('\n');
        }
        rendered.text.push_str(speaker);
        rendered.text.push_str(": ");
        rendered.text.push_str(&text);
        rendered.lines.push(u32::try_from(index + 1).unwrap_or(u32::MAX));
    }
    rendered
}

/// Returns what people and the model said in a transcript, one line a message, with secrets removed by `redact`.
pub fn transcript_text(jsonl: &str, redact: impl Fn(&str) -> String) -> String {
    render(jsonl, redact).text
}

impl RenderedTranscript {
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
