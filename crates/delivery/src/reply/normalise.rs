//! Normalisation of payloads (spec `messages.md` §10.2): removes silent replies, heartbeat tokens
//! and tags, and turns errors into texts that people can act on.

use openclaw_agent::text::heartbeat::{Answering, strip as strip_heartbeat};
use openclaw_agent::text::silent::is_silent;
use openclaw_agent::{NO_ANSWER, ReplyPayload};
use openclaw_channels::markdown::escaped;

use super::pipeline::media;
use super::prefix::with_prefix;

/// Returns the payload as it is sent; `None` for one that says nothing.
pub fn normalised(payload: ReplyPayload, prefix: Option<&str>) -> Option<ReplyPayload> {
    let has_media = !media(&payload).is_empty();
    let text = if is_silent(&payload.text) { None } else { words(&payload) };
    match text {
        Some(text) => Some(ReplyPayload { text: with_prefix(&text, prefix), ..payload }),
        None => has_media.then(|| ReplyPayload { text: String::new(), ..payload }),
    }
}

fn words(payload: &ReplyPayload) -> Option<String> {
    let text = strip_heartbeat(&payload.text, Answering::Message).shown?;
    let text = without_final_tags(&text);
    // Errors have words of their own, which are no Markdown.
    let text = if payload.is_error { escaped(&error_text(&text)) } else { text };
    let text = without_repeats(text.trim_end());
    (!text.trim().is_empty()).then_some(text)
}

/// Bytes of such a tag.
const LONGEST_TAG: usize = 32;

/// Removes the tags that some models are told to put around their answer.
fn without_final_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let near = after.get(..after.floor_char_boundary(LONGEST_TAG)).unwrap_or_default();
        let end = near.find(['<', '>']).filter(|end| {
            let name = near.get(..*end).unwrap_or_default().trim().trim_start_matches('/').trim();
            name.eq_ignore_ascii_case("final") && near.get(*end..).is_some_and(|rest| rest.starts_with('>'))
        });
        match end.and_then(|end| after.get(end + 1..)) {
            Some(behind) => rest = behind,
            None => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Texts of the reference in place of a provider's error, by signs of the error; clients and people
/// know these words. Other errors are shown as they are.
const ERRORS: &[(&[&str], &str)] = &[
    (
        &["incorrect role information", "roles must alternate"],
        "Message ordering conflict - please try again. If this persists, use /new to start a fresh session.",
    ),
    (
        &[
            "context overflow",
            "context length exceeded",
            "context_length_exceeded",
            "maximum context length",
            "prompt is too long",
            "request_too_large",
            "request exceeds the maximum size",
            "exceeds model context window",
        ],
        "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.",
    ),
    (
        &["overloaded", "rate limit", "rate_limit", "too many requests", "429", "quota exceeded"],
        "The AI service is temporarily overloaded. Please try again in a moment.",
    ),
    (&["timed out", "timeout", "deadline exceeded"], "LLM request timed out."),
    (&["no response generated"], NO_ANSWER),
];

/// Text for the owner about a run that failed (spec `messages.md` §10.5).
pub fn failed_run(reason: &str) -> String {
    let reason = reason.trim();
    if is_ours(reason) {
        return reason.to_owned();
    }
    match known_error(reason).filter(|_| !reason.contains(SEVERAL)) {
        Some(known) => known.to_owned(),
        None => {
            let reason = reason.trim_end_matches('.');
            format!("⚠️ Agent failed before reply: {reason}.\nLogs: openclaw logs --follow")
        }
    }
}

/// Beginning of an error that names several models, each with what came of asking it.
const SEVERAL: &str = "All models failed (";

/// True for a text of ours, which already says what to do; sentences about the model may stand behind it.
fn is_ours(text: &str) -> bool {
    text.starts_with('⚠') || ERRORS.iter().any(|(_, said)| text.starts_with(said))
}

fn error_text(text: &str) -> String {
    let known = if is_ours(text) || text.contains(SEVERAL) { None } else { known_error(text) };
    known.unwrap_or(text).to_owned()
}

/// Returns the text for a provider's error that people can act on; `None` for any other.
pub fn known_error(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    // A status is a word of its own: it may stand in ids and keys.
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let is_number = |sign: &str| sign.bytes().all(|byte| byte.is_ascii_digit());
    let is_in = |sign: &&str| if is_number(sign) { words.contains(sign) } else { lower.contains(*sign) };
    ERRORS.iter().find(|(signs, _)| signs.iter().any(is_in)).map(|(_, said)| *said)
}

/// Removes repeated paragraphs that follow each other, keeping the first. Texts with code stay as
/// they are.
fn without_repeats(text: &str) -> String {
    if !text.contains("\n\n") || text.contains("```") || text.contains("~~~") {
        return text.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    for paragraph in text.split("\n\n") {
        let is_repeat = kept.last().is_some_and(|last| last.trim() == paragraph.trim());
        if !is_repeat || paragraph.trim().is_empty() {
            kept.push(paragraph);
        }
    }
    kept.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_says_what_is_worth_saying() {
        let text = |text: &str| ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() };
        let error = |words: &str| ReplyPayload { is_error: true, ..text(words) };
        let image = |words: &str| ReplyPayload { media_urls: vec!["./a.png".to_owned()], ..text(words) };
        let rows = [
            (text("hi"), Some("[M]"), Some("[M] hi")),
            (text(""), Some("[M]"), None),
            (text(" \n"), None, None),
            (text("NO_REPLY"), None, None),
            (image("NO_REPLY"), Some("[M]"), Some("")),
            (image(""), Some("[M]"), Some("")),
            (text("HEARTBEAT_OK"), None, None),
            (text("HEARTBEAT_OK all is well"), None, Some("all is well")),
            (text("<final>hi</ final > <b>"), None, Some("hi <b>")),
            (text("a << final>b <final"), None, Some("a <b <final")),
            (text("same\n\nsame\n\nother\n\nsame"), None, Some("same\n\nother\n\nsame")),
            (text("```\na\n\na\n```"), None, Some("```\na\n\na\n```")),
            (text("about rate limits: overloaded"), None, Some("about rate limits: overloaded")),
            (
                error("529 overloaded_error"),
                None,
                Some("The AI service is temporarily overloaded. Please try again in a moment."),
            ),
            (error("request timed out"), None, Some("LLM request timed out.")),
            (error("⚠️ exec failed: timeout"), None, Some("⚠️ exec failed: timeout")),
            (error("something new"), None, Some("something new")),
            (error("no *such* tool_name"), Some("[M]"), Some("[M] no \\*such\\* tool\\_name")),
            (text("# Title"), Some("[M]"), Some("[M]\n\n# Title")),
        ];
        for (payload, prefix, expect) in rows {
            let said = normalised(payload.clone(), prefix).map(|payload| payload.text);
            assert_eq!(said.as_deref(), expect, "{payload:?}");
        }
        let told = [
            (
                "prompt is too long: 210000 tokens",
                "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.",
            ),
            (
                "messages: roles must alternate",
                "Message ordering conflict - please try again. If this persists, use /new to start a fresh session.",
            ),
            ("429 rate limit", "The AI service is temporarily overloaded. Please try again in a moment."),
        ];
        for (error, expect) in told {
            assert_eq!(error_text(error), expect);
        }
    }

    /// Spec `messages.md` §10.5, `models.md` §9.5: from a provider's words to the owner's chat.
    #[test]
    fn the_owner_is_told_why_a_run_failed() {
        let framed =
            |reason: &str| format!("⚠️ Agent failed before reply: {reason}.\nLogs: openclaw logs --follow");
        let overflow = "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.";
        let ordering = "Message ordering conflict - please try again. If this persists, use /new to start a fresh session.";
        let overloaded = "The AI service is temporarily overloaded. Please try again in a moment.";
        let billing = "⚠️ The API provider returned a billing error: this key is out of credit or its plan has lapsed. \
                       Check the provider's billing dashboard, top up, or switch to another key.";
        let rows = [
            ("prompt is too long: 208423 tokens > 200000 maximum", overflow.to_owned()),
            ("413 Request Entity Too Large: request_too_large", overflow.to_owned()),
            ("400 messages: roles must alternate", ordering.to_owned()),
            ("400 {\"error\":{\"message\":\"bad role\"}}", ordering.to_owned()),
            (
                "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
                overloaded.to_owned(),
            ),
            ("429 rate limit exceeded", overloaded.to_owned()),
            ("402 payment required", billing.to_owned()),
            ("request timed out", "LLM request timed out.".to_owned()),
            ("deadline exceeded", "LLM request timed out.".to_owned()),
            (
                "401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}",
                framed("HTTP 401 authentication_error: invalid x-api-key"),
            ),
            (
                "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no such tool\"}}",
                framed("LLM request rejected: no such tool"),
            ),
            ("", framed("LLM request failed with an unknown error")),
            (
                "⚠️ Context limit exceeded. I've reset our conversation to start fresh - please try again.",
                "⚠️ Context limit exceeded. I've reset our conversation to start fresh - please try again."
                    .to_owned(),
            ),
            ("cannot write the transcript.", framed("cannot write the transcript")),
            (
                "No response generated. Please try again.\nThe answer was empty: p/m.",
                "No response generated. Please try again.\nThe answer was empty: p/m.".to_owned(),
            ),
            (
                "All models failed (2): p/m: 429 rate limit (rate_limit) | q/m: 503 no (unavailable)",
                framed("All models failed (2): p/m: 429 rate limit (rate_limit) | q/m: 503 no (unavailable)"),
            ),
        ];
        for (raw, expect) in rows {
            let said = failed_run(&openclaw_models::failure::user_text(raw));
            assert_eq!(error_text(&said), expect, "{raw}");
        }
    }
}
