//! Turns the answers of a run into the replies that are delivered (spec `agent-runtime.md` §2.7).

use openclaw_protocol::message::{AssistantMessage, Block, ToolResultMessage};

use crate::event::RunEnd;
use crate::reasoning_visibility::ReasoningVisibility;
use crate::reply::{NO_ANSWER, ReplyPayload, RunError, RunErrorKind};
use crate::text::directive;
use crate::text::silent::{is_silent, spoken};
use crate::text::tags::{TagRules, strip};
use crate::text::thoughts;
use crate::tool::Catalogue;
use crate::tool::summary;
use crate::tool_event::failed_status;

/// Content that an assistant message contributes to the replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerContent {
    text: String,
    thinking: String,
    /// [`ReplyPayload::said_to`]
    said_to: usize,
}

impl AnswerContent {
    pub(crate) fn of(message: &AssistantMessage) -> Self {
        let thinking: Vec<&str> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Thinking(thinking) => Some(thinking.thinking.trim()),
                Block::Text(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
            })
            .filter(|text| !text.is_empty())
            .collect();
        Self { text: message.text(), thinking: thinking.join("\n"), said_to: 0 }
    }

    /// Returns the same answer, as the reply to the steered-in message of this number.
    pub(crate) fn to(self, said_to: usize) -> Self {
        Self { said_to, ..self }
    }

    /// True for two answers to one message.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.said_to == other.said_to
    }

    /// True for anything to read or to see, and for the silent token: the model has decided something.
    pub(crate) fn says_something(&self, final_only: bool) -> bool {
        if !final_only && !self.text.contains(['<', '[']) {
            return !self.text.trim().is_empty();
        }
        let found = directive::parse(&strip(&self.text, TagRules { final_only, complete: true }).visible);
        !found.text.trim().is_empty() || !found.media.is_empty()
    }

    /// Returns the model's thinking as shown to people.
    pub(crate) fn reasoning(&self, final_only: bool) -> Option<String> {
        self.thought(&strip(&self.text, TagRules { final_only, complete: true }).thinking)
    }

    /// Returns the thinking as shown to people: the provider's own thinking, or else the text
    /// between tags.
    fn thought(&self, between_tags: &str) -> Option<String> {
        thoughts::shown(if self.thinking.is_empty() { between_tags } else { &self.thinking })
    }
}

/// A tool that failed and may have to be mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolFailure {
    name: String,
    meta: Option<String>,
    error: String,
}

impl ToolFailure {
    /// The failure in a result, if it is one.
    pub(crate) fn of(result: &ToolResultMessage, meta: Option<&str>) -> Option<Self> {
        if !result.is_error && !failed_status(result) {
            return None;
        }
        let text: String = result
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(text.text.as_str()),
                Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
            })
            .collect::<Vec<_>>()
            .join("\n");
        let detail =
            result.details.as_ref().and_then(|details| details.get("error")).and_then(|error| error.as_str());
        let error = detail.unwrap_or(&text).lines().next().unwrap_or_default().trim().to_owned();
        Some(Self { name: result.tool_name.clone(), meta: meta.map(str::to_owned), error })
    }
}

/// Input from which the replies of a run are built.
pub(crate) struct Replies<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) answers: &'a [AnswerContent],
    /// Messages that were steered into the run.
    pub(crate) steered: usize,
    pub(crate) error: Option<&'a RunError>,
    pub(crate) end: &'a RunEnd,
    pub(crate) tool_failure: Option<&'a ToolFailure>,
    pub(crate) reasoning: ReasoningVisibility,
    pub(crate) final_only: bool,
}

impl Replies<'_> {
    /// The replies in order: error, reasoning, answers, tool failure. Empty and silent ones are left
    /// out. A limit of ours ended the run behind what was answered.
    pub(crate) fn payloads(&self) -> Vec<ReplyPayload> {
        let mut out: Vec<ReplyPayload> = Vec::new();
        let (limit, error) = match self.error {
            Some(error) if error.kind == RunErrorKind::Limit => (Some(error), None),
            error => (None, error),
        };
        if let Some(error) = error {
            // The error is not a provider's, for which people would be told other words.
            let sign = if *self.end == RunEnd::TimedOut { "⚠️ " } else { "" };
            out.push(self.failure(format!("{sign}{}", error.message)));
        }
        for answer in self.answers {
            out.extend(self.answer(answer).into_iter().filter(|reply| !self.echoes_error(reply)));
        }
        if let Some(tool) = self.tool_failure.filter(|_| self.has_no_answer(&out)) {
            let error = if tool.error.is_empty() { String::new() } else { format!(": {}", tool.error) };
            let call = summary(&self.catalogue.canonical_name(&tool.name), tool.meta.as_deref());
            let told = self.failure(format!("⚠️ {call} failed{error}"));
            out.push(ReplyPayload { is_fallback: true, ..told });
        }
        out.extend(limit.map(|error| self.failure(error.message.clone())));
        out
    }

    fn answer(&self, answer: &AnswerContent) -> Vec<ReplyPayload> {
        let stripped = strip(&answer.text, TagRules { final_only: self.final_only, complete: true });
        let found = directive::parse(&stripped.visible);
        let text = spoken(&found.text);
        let text = if is_silent(text) { String::new() } else { text.to_owned() };
        let mut out = Vec::new();
        if self.reasoning == ReasoningVisibility::On {
            let thought = answer.thought(&stripped.thinking);
            let said_to = answer.said_to;
            out.extend(thought.map(|text| ReplyPayload { text, said_to, ..ReplyPayload::default() }));
        }
        if !text.is_empty() || !found.media.is_empty() {
            out.push(ReplyPayload {
                text,
                media_url: found.media.first().cloned(),
                media_urls: found.media,
                reply_to: found.reply_to,
                voice: found.voice,
                said_to: answer.said_to,
                ..ReplyPayload::default()
            });
        }
        out
    }

    /// The message that was heard last is the one that the run failed at.
    fn failure(&self, text: String) -> ReplyPayload {
        ReplyPayload { text, is_error: true, said_to: self.steered, ..ReplyPayload::default() }
    }

    /// Some providers repeat an error as text.
    fn echoes_error(&self, reply: &ReplyPayload) -> bool {
        self.error.is_some_and(|error| error.message.trim() == reply.text.trim())
    }

    /// A failed tool is mentioned when there is nothing else to say but that the answer was empty, unless the run was stopped anyway.
    fn has_no_answer(&self, so_far: &[ReplyPayload]) -> bool {
        let was_empty = self.error.is_some_and(|error| error.message.starts_with(NO_ANSWER));
        (*self.end == RunEnd::Completed && so_far.is_empty()) || (was_empty && so_far.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{ThinkingBlock, ToolCall};
    use serde_json::json;

    use super::*;
    use crate::reply::ReplyTo;
    use crate::toolbox::Toolbox;

    fn answer(content: Vec<Block>) -> AnswerContent {
        AnswerContent::of(&AssistantMessage { content, ..AssistantMessage::default() })
    }

    fn replies<'a>(answers: &'a [AnswerContent], tool_failure: Option<&'a ToolFailure>) -> Replies<'a> {
        Replies {
            catalogue: <&Toolbox>::default().catalogue(),
            answers,
            steered: 0,
            error: None,
            end: &RunEnd::Completed,
            tool_failure,
            reasoning: ReasoningVisibility::Off,
            final_only: false,
        }
    }

    fn text(text: &str) -> ReplyPayload {
        ReplyPayload { text: text.into(), ..ReplyPayload::default() }
    }

    fn failure(text: String) -> ReplyPayload {
        ReplyPayload { text, is_error: true, ..ReplyPayload::default() }
    }

    #[test]
    fn a_reply_knows_which_message_of_its_run_it_answers() {
        let said = |words: &str| AssistantMessage {
            content: vec![Block::text(words)],
            ..AssistantMessage::default()
        };
        let answers =
            [AnswerContent::of(&said("to the first")), AnswerContent::of(&said("to the last")).to(2)];
        let error = RunError { kind: RunErrorKind::Other, message: "boom".into() };
        let all = Replies { steered: 2, error: Some(&error), ..replies(&answers, None) };
        let found: Vec<(String, usize)> =
            all.payloads().into_iter().map(|reply| (reply.text, reply.said_to)).collect();
        let expect = [("boom", 2), ("to the first", 0), ("to the last", 2)];
        assert_eq!(found, expect.map(|(text, to)| (text.to_owned(), to)));
    }

    #[test]
    fn each_answer_is_a_reply_and_silence_is_none() {
        let answers = [
            "Working.",
            "  ",
            "NO_REPLY",
            "[[reply_to_current]] Done\n\nNO_REPLY",
            "MEDIA:https://e.com/a.png\nlook",
        ]
        .map(|text| answer(vec![Block::text(text)]));
        let media = vec!["https://e.com/a.png".to_owned()];
        let expect = [
            text("Working."),
            ReplyPayload { reply_to: Some(ReplyTo::Current), ..text("Done") },
            ReplyPayload { media_url: media.first().cloned(), media_urls: media, ..text("look") },
        ];
        assert_eq!(replies(&answers, None).payloads(), expect);
    }

    #[test]
    fn the_error_comes_first_and_its_echo_is_dropped() {
        let error = RunError { kind: RunErrorKind::Other, message: "boom".into() };
        let answers = [answer(vec![Block::text("part")]), answer(vec![Block::text(" boom ")])];
        let all =
            Replies { error: Some(&error), end: &RunEnd::Failed("boom".into()), ..replies(&answers, None) };
        assert_eq!(all.payloads(), [failure("boom".into()), text("part")]);
        let limit = RunError { kind: RunErrorKind::Limit, message: "Stopped: enough.".into() };
        let end = RunEnd::Failed(limit.message.clone());
        let all = Replies { error: Some(&limit), end: &end, ..replies(&answers[..1], None) };
        assert_eq!(all.payloads(), [text("part"), failure("Stopped: enough.".into())], "what ended it");
    }

    /// Vector of spec `streaming.md` §6 "Reasoning visibility".
    #[test]
    fn reasoning_is_a_message_before_the_answer_when_it_is_on() {
        let block = Block::Thinking(ThinkingBlock { thinking: "a\n\nb ".into(), ..ThinkingBlock::default() });
        let answers =
            [answer(vec![block, Block::text("Answer")]), answer(vec![Block::text("<think>c</think>More")])];
        let on = Replies { reasoning: ReasoningVisibility::On, ..replies(&answers, None) };
        let expect = [text("Reasoning:\n_a_\n\n_b_"), text("Answer"), text("Reasoning:\n_c_"), text("More")];
        assert_eq!(on.payloads(), expect);
        let helps = ThinkingBlock { thinking: "Because it helps".into(), ..ThinkingBlock::default() };
        let helpful = [answer(vec![Block::Thinking(helps), Block::text("Final answer")])];
        let on = Replies { reasoning: ReasoningVisibility::On, ..replies(&helpful, None) };
        assert_eq!(on.payloads(), [text("Reasoning:\n_Because it helps_"), text("Final answer")]);
        assert_eq!(replies(&answers, None).payloads(), [text("Answer"), text("More")]);
    }

    #[test]
    fn a_tool_failure_is_mentioned_only_when_nobody_else_does() {
        let failed = |error: &str| {
            let result = ToolResultMessage {
                tool_name: "exec".into(),
                details: Some(json!({"status": "error", "error": error})),
                ..ToolResultMessage::default()
            };
            ToolFailure::of(&result, Some("ls /x")).unwrap()
        };
        let disk = failed("disk full");
        let expect =
            ReplyPayload { is_fallback: true, ..failure("⚠️ Exec: ls /x failed: disk full".into()) };
        assert_eq!(replies(&[], Some(&disk)).payloads(), [expect]);
        let said = [answer(vec![Block::text("It failed.")])];
        assert_eq!(replies(&said, Some(&disk)).payloads(), [text("It failed.")]);
        let wrong = failed("path required");
        let expect =
            ReplyPayload { is_fallback: true, ..failure("⚠️ Exec: ls /x failed: path required".into()) };
        assert_eq!(replies(&[], Some(&wrong)).payloads(), [expect]);
        let call = Block::ToolCall(ToolCall { id: "c".into(), ..ToolCall::default() });
        let ended_with_call = [answer(vec![Block::text("Trying."), call])];
        assert_eq!(replies(&ended_with_call, Some(&disk)).payloads(), [text("Trying.")]);
    }

    #[test]
    fn a_successful_result_is_no_failure() {
        assert_eq!(ToolFailure::of(&ToolResultMessage::default(), None), None);
    }
}
