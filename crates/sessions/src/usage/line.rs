//! Transcript line, read just far enough to count it: no text of a message is ever held.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::sums::{Costs, TokenSums};
use crate::time;

/// Meaning of a line for counting.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum UsageLine<'a> {
    /// The header of a file that begins with a copy of another one; when it was made, where it says so.
    ForkHeader(Option<i64>),
    /// A message.
    Message(Counted<'a>),
    /// Anything else, damaged lines included.
    Other,
}

/// A message for counting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counted<'a> {
    /// Time at which the line was written, Unix milliseconds.
    pub(super) written_at: Option<i64>,
    /// Time of the message, as it says itself.
    pub(super) said_at: Option<i64>,
    /// Speaker.
    pub(super) said: CountedRole<'a>,
}

/// Speaker of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CountedRole<'a> {
    /// A person or channel.
    User,
    /// A model, or words in its name.
    Assistant(AnswerUsage<'a>),
    /// A tool.
    ToolResult {
        /// True if the tool call failed.
        failed: bool,
    },
    /// Usage of the model that summarised the conversation so far. A summary is no message.
    Summary(AnswerUsage<'a>),
}

/// Usage of one answer of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AnswerUsage<'a> {
    pub(super) provider: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    /// Tokens used; `None` when the answer does not say.
    pub(super) tokens: Option<TokenSums>,
    /// Costs; `None` when the answer does not say.
    pub(super) costs: Option<Costs>,
    /// Names of the tools it calls.
    pub(super) tools: Vec<String>,
    pub(super) failed: bool,
}

impl AnswerUsage<'_> {
    /// True if a model made it: words that were put in its name say who did, and used nothing.
    pub(super) fn is_of_a_model(&self) -> bool {
        self.provider.as_deref() != Some("openclaw") || self.tokens.is_some_and(|tokens| tokens.total > 0)
    }
}

#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(rename = "parentSession", borrow, default)]
    parent_session: Option<&'a RawValue>,
    #[serde(borrow, default)]
    details: Option<&'a RawValue>,
}

/// `details` of a compaction.
#[derive(Deserialize)]
struct RawDetails<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    is_error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawBlock<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
}

/// Reads a line. Fields of wrong types count as absent.
pub(super) fn read(line: &[u8]) -> UsageLine<'_> {
    let Ok(raw) = serde_json::from_slice::<RawLine<'_>>(line) else { return UsageLine::Other };
    let kind = text(raw.kind);
    match kind.as_deref() {
        Some("session") if text(raw.parent_session).is_some() => UsageLine::ForkHeader(moment(raw.timestamp)),
        Some("message") => raw
            .message
            .and_then(|message| counted(&raw, message))
            .map_or(UsageLine::Other, UsageLine::Message),
        Some("compaction") => summary(&raw).map_or(UsageLine::Other, UsageLine::Message),
        Some(_) | None => UsageLine::Other,
    }
}

/// Usage of the calls for a summary, where it says so (`Compaction::USAGE`).
fn summary<'a>(line: &RawLine<'a>) -> Option<Counted<'a>> {
    let details: RawDetails<'a> = serde_json::from_str(line.details?.get()).ok()?;
    // The summary names its model as an answer does.
    let named: RawMessage<'a> = serde_json::from_str(details.usage?.get()).ok()?;
    let said = CountedRole::Summary(answer(&RawMessage { usage: details.usage, ..named }));
    let written_at = moment(line.timestamp);
    Some(Counted { written_at, said_at: written_at, said })
}

fn counted<'a>(line: &RawLine<'a>, message: &'a RawValue) -> Option<Counted<'a>> {
    let raw: RawMessage<'a> = serde_json::from_str(message.get()).ok()?;
    let said = match text(raw.role).as_deref() {
        Some("user") => CountedRole::User,
        Some("assistant") => CountedRole::Assistant(answer(&raw)),
        Some("toolResult" | "tool") => CountedRole::ToolResult { failed: is_true(raw.is_error) },
        Some(_) | None => return None,
    };
    Some(Counted { written_at: moment(line.timestamp), said_at: moment(raw.timestamp), said })
}

fn answer<'a>(raw: &RawMessage<'a>) -> AnswerUsage<'a> {
    let usage: Option<Map<String, Value>> =
        raw.usage.and_then(|usage| serde_json::from_str(usage.get()).ok());
    AnswerUsage {
        provider: text(raw.provider).filter(|name| !name.is_empty()),
        model: text(raw.model).filter(|name| !name.is_empty()),
        tokens: usage.as_ref().and_then(tokens),
        costs: usage.as_ref().and_then(|usage| costs(usage.get("cost")?)),
        tools: tool_names(raw.content),
        failed: text(raw.stop_reason).as_deref() == Some("error"),
    }
}

/// The spellings servers and old versions have for tokens (spec `models.md` §7).
const INPUT: &[&str] = &["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens"];
const OUTPUT: &[&str] = &["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens"];
const CACHE_READ: &[&str] = &["cacheRead", "cache_read", "cache_read_input_tokens"];
const CACHE_WRITE: &[&str] = &["cacheWrite", "cache_write", "cache_creation_input_tokens"];
const TOTAL: &[&str] = &["total", "totalTokens", "total_tokens"];

/// Tokens of a `usage` object; the total is the one it says, else the sum.
fn tokens(usage: &Map<String, Value>) -> Option<TokenSums> {
    let find = |names: &[&str]| names.iter().find_map(|name| count(usage.get(*name)?));
    let parts = [find(INPUT), find(OUTPUT), find(CACHE_READ), find(CACHE_WRITE)];
    let total = find(TOTAL);
    if parts.iter().chain([&total]).all(Option::is_none) {
        return None;
    }
    let [input, output, cache_read, cache_write] = parts.map(Option::unwrap_or_default);
    let sum = || [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
    Some(TokenSums { input, output, cache_read, cache_write, total: total.unwrap_or_else(sum) })
}

/// Limit on the tokens of one answer: more is a mistake; sums of such stay exact.
const MOST_TOKENS: f64 = 1e12;

fn count(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| (0.0..=MOST_TOKENS).contains(number))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked right above")]
    Some(number as u64)
}

/// Costs of a `usage.cost` object; known once it says a total, or parts of it.
fn costs(value: &Value) -> Option<Costs> {
    let part = |name: &str| value.get(name)?.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
    let parts = [part("input"), part("output"), part("cacheRead"), part("cacheWrite")];
    let total = part("total").or_else(|| {
        parts.iter().any(Option::is_some).then(|| parts.iter().map(|part| part.unwrap_or(0.0)).sum())
    })?;
    let [input, output, cache_read, cache_write] = parts.map(|part| part.unwrap_or(0.0));
    Some(Costs { input, output, cache_read, cache_write, total })
}

fn tool_names(content: Option<&RawValue>) -> Vec<String> {
    let Some(blocks) = content.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok()) else {
        return Vec::new();
    };
    let name = |block: &RawValue| {
        let block: RawBlock<'_> = serde_json::from_str(block.get()).ok()?;
        let is_call = matches!(text(block.kind).as_deref(), Some("toolCall" | "toolUse" | "functionCall"));
        text(block.name).filter(|name| is_call && !name.is_empty()).map(Cow::into_owned)
    };
    blocks.into_iter().filter_map(name).collect()
}

fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<JsonText<'_>>(raw?.get()).ok().map(|text| text.0)
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// A time as a number of milliseconds or as ISO text.
fn moment(raw: Option<&RawValue>) -> Option<i64> {
    let ms = match raw?.get().as_bytes().first()? {
        b'"' => time::parse_iso(&text(raw)?)?,
        _ => {
            let number = serde_json::from_str::<f64>(raw?.get()).ok()?;
            #[expect(clippy::cast_possible_truncation, reason = "what it saturates to is no day")]
            let ms = number as i64;
            ms
        }
    };
    super::Day::of(ms).map(|_| ms)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(line: &str) -> AnswerUsage<'_> {
        match read(line.as_bytes()) {
            UsageLine::Message(Counted { said: CountedRole::Assistant(answer), .. }) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_says_what_it_used() {
        let line = r#"{"type":"message","id":"a","timestamp":"2026-11-21T00:00:00.005Z","message":{"role":"assistant",
            "content":[{"type":"text","text":"[{\"type\":\"toolCall\",\"name\":\"no\"}]"},{"type":"toolCall","name":"exec","arguments":{"name":"no"}},{"type":"toolUse","name":"read"}],
            "provider":"p","model":"m","stopReason":"error","timestamp":1795219200001,
            "usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":11,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.5}}}}"#;
        let UsageLine::Message(counted) = read(line.as_bytes()) else { panic!("a message") };
        assert_eq!((counted.written_at, counted.said_at), (Some(1_795_219_200_005), Some(1_795_219_200_001)));
        let expect = AnswerUsage {
            provider: Some("p".into()),
            model: Some("m".into()),
            tokens: Some(TokenSums { input: 1, output: 2, cache_read: 3, cache_write: 4, total: 11 }),
            costs: Some(Costs { input: 0.1, output: 0.2, cache_read: 0.0, cache_write: 0.0, total: 0.5 }),
            tools: vec!["exec".into(), "read".into()],
            failed: true,
        };
        assert_eq!(counted.said, CountedRole::Assistant(expect));
    }

    #[test]
    fn a_summary_says_what_it_used() {
        let line = r#"{"type":"compaction","timestamp":"2026-11-21T00:00:00.005Z","summary":"s","details":{"readFiles":[],
            "usage":{"input":1,"output":2,"totalTokens":3,"provider":"p","model":"m"}}}"#;
        let UsageLine::Message(counted) = read(line.as_bytes()) else { panic!("a summary") };
        let tokens = TokenSums { input: 1, output: 2, total: 3, ..TokenSums::default() };
        let expect = AnswerUsage {
            provider: Some("p".into()),
            model: Some("m".into()),
            tokens: Some(tokens),
            ..AnswerUsage::default()
        };
        assert_eq!(
            (counted.written_at, counted.said),
            (Some(1_795_219_200_005), CountedRole::Summary(expect))
        );
        for other in ["", r#","details":5"#, r#","details":{}"#, r#","details":{"usage":"much"}"#] {
            assert_eq!(
                read(format!(r#"{{"type":"compaction"{other}}}"#).as_bytes()),
                UsageLine::Other,
                "{other}"
            );
        }
    }

    #[test]
    fn wrong_types_count_as_absent() {
        let line = r#"{"type":"message","timestamp":{},"message":{"role":"assistant","content":"x","provider":5,"model":null,
            "timestamp":"soon","usage":{"input":-1,"output":"2","total":1e300,"cost":"free"}}}"#;
        assert_eq!(answer(line), AnswerUsage::default());
        let partial = r#"{"type":"message","message":{"role":"assistant","usage":{"prompt_tokens":5.0,"cost":{"output":0.5}}}}"#;
        let costs = Costs { output: 0.5, total: 0.5, ..Costs::default() };
        let tokens = TokenSums { input: 5, total: 5, ..TokenSums::default() };
        assert_eq!(
            answer(partial),
            AnswerUsage { tokens: Some(tokens), costs: Some(costs), ..AnswerUsage::default() }
        );
        for other in [
            "",
            "{",
            "[]",
            "5",
            "{}",
            r#"{"type":"custom"}"#,
            r#"{"type":"message","message":{"role":"system"}}"#,
        ] {
            assert_eq!(read(other.as_bytes()), UsageLine::Other, "{other}");
        }
    }

    /// Checks every alias of `models.md` §7, alone and with a total beside it.
    #[test]
    fn every_alias_means_the_same() {
        for (at, names) in [INPUT, OUTPUT, CACHE_READ, CACHE_WRITE].into_iter().enumerate() {
            for name in names {
                let said = |fields: Value| tokens(fields.as_object().unwrap()).unwrap();
                let mut expect = [0; 5];
                (expect[at], expect[4]) = (7, 7);
                let of = |t: TokenSums| [t.input, t.output, t.cache_read, t.cache_write, t.total];
                assert_eq!(of(said(json!({ *name: 7 }))), expect, "{name}");
                for total in TOTAL {
                    expect[4] = 9;
                    assert_eq!(of(said(json!({ *name: 7, *total: 9 }))), expect, "{name} {total}");
                }
            }
        }
        assert_eq!(INPUT.len() + OUTPUT.len() + CACHE_READ.len() + CACHE_WRITE.len() + TOTAL.len(), 19);
    }

    #[test]
    fn texts_javascript_cut_in_the_middle_are_counted() {
        let line = r#"{"type":"message","message":{"role":"user","content":"\ud83d"}}"#;
        assert!(matches!(read(line.as_bytes()), UsageLine::Message(Counted { said: CountedRole::User, .. })));
    }
}
