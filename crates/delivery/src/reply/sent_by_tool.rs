//! Messages that the agent has sent by a tool in this turn, so that its answer does not repeat them
//! (spec `messages.md` §10.4).

use openclaw_agent::ReplyPayload;

use super::pipeline::media;

/// Sends that are kept.
const MAX_KEPT: usize = 200;
/// Characters below which texts are too short to be compared.
const MIN_CHARS: usize = 10;
/// Share of the longer text that the shorter one has to be. A sentence that occurs in a long answer
/// is no reason to drop the answer.
const MIN_SHARE: f64 = 0.6;

/// Conversation that something was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentTo {
    /// Channel id.
    pub channel: String,
    /// Account; `None` is the default one.
    pub account: Option<String>,
    /// The platform's id of the conversation.
    pub target: String,
}

/// Texts that tools have sent in one turn. Forgotten when the turn is tried again with a summary of
/// the conversation.
#[derive(Debug, Clone, Default)]
pub struct SentByTool {
    texts: Vec<String>,
    targets: Vec<SentTo>,
}

impl SentByTool {
    /// Records a message of a tool: a text, or files without one.
    pub fn add(&mut self, text: &str, to: SentTo) {
        let text = comparable(text);
        if !text.is_empty() && self.texts.len() < MAX_KEPT {
            self.texts.push(text);
        }
        if self.targets.len() < MAX_KEPT && !self.targets.contains(&to) {
            self.targets.push(to);
        }
    }

    /// Forgets everything, as the turn begins again.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// True if a text was sent, word by word or nearly so.
    pub fn has_said(&self, text: &str) -> bool {
        let text = comparable(text);
        self.texts.iter().any(|sent| are_alike(sent, &text))
    }

    /// True if anything was sent to this conversation.
    pub fn has_sent_to(&self, place: &SentTo) -> bool {
        let is_same = |sent: &&SentTo| {
            let accounts = sent.account.as_ref().zip(place.account.as_ref());
            sent.channel.eq_ignore_ascii_case(&place.channel)
                && bare(&sent.target, &sent.channel) == bare(&place.target, &place.channel)
                && accounts.is_none_or(|(a, b)| a.eq_ignore_ascii_case(b))
        };
        self.targets.iter().find(is_same).is_some()
    }

    /// Returns the part of a payload that is still to be sent to the conversation that asked: only
    /// errors and media if a tool has answered there already, else whatever no tool has said. A
    /// tool's failure is told in place of an answer, so it is dropped if there is one.
    pub fn left_of(&self, payload: ReplyPayload, asked_from: &SentTo) -> Option<ReplyPayload> {
        let has_answered = self.has_sent_to(asked_from);
        if payload.is_fallback {
            return (!has_answered).then_some(payload);
        }
        if payload.is_error || !(has_answered || self.has_said(&payload.text)) {
            return Some(payload);
        }
        let has_media = !media(&payload).is_empty();
        has_media.then(|| ReplyPayload { text: String::new(), ..payload })
    }
}

/// A target without the channel's name before it.
fn bare<'a>(target: &'a str, channel: &str) -> &'a str {
    let target = target.trim();
    let named = target.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case(channel));
    named.map_or(target, |(_, id)| id)
}

fn are_alike(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let share = short.chars().count() as f64 / long.chars().count().max(1) as f64;
    short.chars().count() >= MIN_CHARS && long.contains(short) && share >= MIN_SHARE
}

/// Returns a text without differences of writing: case, blanks, emoji.
fn comparable(text: &str) -> String {
    let is_emoji = |c: char| matches!(c, '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' | '\u{FE0F}' | '\u{200D}');
    let plain: String = text.to_lowercase().chars().filter(|c| !is_emoji(*c)).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(channel: &str, account: Option<&str>, target: &str) -> SentTo {
        SentTo { channel: channel.to_owned(), account: account.map(str::to_owned), target: target.to_owned() }
    }

    /// Spec `messages.md` §10.4, with the share that it asks for.
    #[test]
    fn texts_are_compared_by_what_they_say() {
        let long = format!("{} Hello there friend", "word ".repeat(40));
        let rows = [
            ("Hello there friend", "hello there friend!!", true),
            ("short", "short", false),
            ("This is a longer reply text", "a longer reply text", true),
            ("Hello  there 👋 friend", "hello there friend", true),
            ("Hello there friend", long.as_str(), false),
            ("Hello there friend", "something else entirely", false),
        ];
        for (sent, text, expect) in rows {
            let mut tools = SentByTool::default();
            tools.add(sent, place("telegram", None, "1"));
            assert_eq!(tools.has_said(text), expect, "{sent:?} {text:?}");
        }
    }

    #[test]
    fn an_answer_by_tool_is_the_answer() {
        let text = |text: &str| ReplyPayload { text: text.to_owned(), ..ReplyPayload::default() };
        let error = ReplyPayload { is_error: true, ..text("it broke") };
        let image = ReplyPayload { media_urls: vec!["./a.png".to_owned()], ..text("see") };
        let bare_image = ReplyPayload { text: String::new(), ..image.clone() };
        let fallback = ReplyPayload { is_fallback: true, ..error.clone() };
        let finals = || vec![text("I have sent it."), error.clone(), image.clone(), fallback.clone()];
        let left = |tools: &SentByTool| -> Vec<ReplyPayload> {
            let here = place("telegram", Some("work"), "7");
            finals().into_iter().filter_map(|payload| tools.left_of(payload, &here)).collect()
        };
        let rows = [
            (place("telegram", None, "telegram:7"), vec![error.clone(), bare_image.clone()]),
            (place("Telegram", Some("Work"), "7"), vec![error.clone(), bare_image]),
            (place("telegram", Some("home"), "7"), finals()),
            (place("slack", None, "7"), finals()),
            (place("telegram", None, "8"), finals()),
        ];
        for (sent_to, expect) in rows {
            for words in ["the message that was asked for", ""] {
                let mut tools = SentByTool::default();
                tools.add(words, sent_to.clone());
                assert_eq!(left(&tools), expect, "{words:?} {sent_to:?}");
            }
        }
        let mut tools = SentByTool::default();
        tools.add("I have sent it.", place("slack", None, "C1"));
        assert_eq!(left(&tools), finals()[1..]);
        tools.clear();
        assert_eq!(left(&tools), finals());
    }
}
