//! Reasoning tags in text: `<think>…</think>` and its kin are hidden, `<final>` tags removed or obeyed
//! (spec `streaming.md` §6). Tags inside code are text. Tool calls that were written as text are taken out too.

use std::borrow::Cow;

use openclaw_protocol::message::{Block, TextBlock, ThinkingBlock};

use super::code_span::CodeSpans;
use super::leaked_call;

/// Rules by which a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagRules {
    /// True if only text inside `<final>` counts, for providers that are told to answer so.
    pub final_only: bool,
    /// True if the text is complete. Otherwise an end that may become a tag is held back.
    pub complete: bool,
}

/// A text taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stripped {
    /// Text that people see.
    pub visible: String,
    /// Text inside thinking tags.
    pub thinking: String,
}

/// Takes a text apart. With [`TagRules::final_only`], a whole text without any `<final>` is shown as it is: an answer in
/// the wrong form is better than none.
pub fn strip(text: &str, rules: TagRules) -> Stripped {
    let scan = Scan::new(text, rules).run();
    let has_no_form = rules.final_only && rules.complete && !scan.saw_final;
    let out = if has_no_form {
        Scan::new(text, TagRules { final_only: false, ..rules }).run().out
    } else {
        scan.out
    };
    let visible = match leaked_call::without(&out.visible, rules.complete) {
        Cow::Owned(visible) => visible,
        Cow::Borrowed(_) => out.visible,
    };
    Stripped { visible, thinking: out.thinking }
}

/// The names of thinking tags.
const THINKING: [&str; 4] = ["thinking", "think", "thought", "antthinking"];
const FINAL: &str = "final";
/// Longest tag, its attributes included, in bytes: longer ones are text.
const MAX_TAG: usize = 128;

struct Scan<'a> {
    text: &'a str,
    rules: TagRules,
    out: Stripped,
    in_final: bool,
    saw_final: bool,
    /// An inline code span is open and its end may still come.
    open_span: bool,
    spans: CodeSpans<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagKind {
    Thinking,
    Final,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagCandidate {
    Tag {
        kind: TagKind,
        close: bool,
        len: usize,
    },
    /// The text ends before it is decided.
    Undecided,
    Text,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, rules: TagRules) -> Self {
        Self {
            text,
            rules,
            out: Stripped::default(),
            in_final: false,
            saw_final: false,
            open_span: false,
            spans: CodeSpans::new(text),
        }
    }

    fn run(mut self) -> Self {
        let mut at = 0;
        while let Some(rest) = self.text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(next) = rest.find(['<', '`', '~']) else {
                self.show(rest);
                break;
            };
            self.show(rest.get(..next).unwrap_or_default());
            at += next;
            match self.special(at) {
                Some(len) => at += len,
                None => break,
            }
        }
        self
    }

    /// Handles the special character at `at`; how many bytes it took, or `None` when the rest is held back or hidden.
    fn special(&mut self, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?;
        if !rest.starts_with('<') {
            return Some(self.code(at, rest));
        }
        match candidate(rest) {
            TagCandidate::Tag { .. } if self.open_span => None,
            TagCandidate::Tag { kind: TagKind::Thinking, close: false, len } => {
                self.hide(at + len).map(|end| end - at)
            }
            TagCandidate::Tag { kind: TagKind::Thinking, close: true, len } => Some(len),
            TagCandidate::Tag { kind: TagKind::Final, close, len } => {
                self.saw_final |= !close;
                self.in_final = !close;
                Some(len)
            }
            TagCandidate::Undecided if !self.rules.complete => None,
            TagCandidate::Undecided | TagCandidate::Text => {
                self.show("<");
                Some(1)
            }
        }
    }

    /// Collects thinking from `from` to its closing tag; where text goes on, or `None` when it never closes.
    fn hide(&mut self, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        for (at, _) in rest.match_indices('<') {
            let tail = rest.get(at..).unwrap_or_default();
            if let TagCandidate::Tag { kind: TagKind::Thinking, close: true, len } = candidate(tail) {
                self.out.thinking.push_str(rest.get(..at).unwrap_or_default());
                return Some(from + at + len);
            }
        }
        self.out.thinking.push_str(rest);
        None
    }

    /// Shows the code that starts at `at`, or the run of marks when it is none; how many bytes were shown.
    fn code(&mut self, at: usize, rest: &str) -> usize {
        let mark = rest.chars().next().unwrap_or_default();
        let run = rest.len() - rest.trim_start_matches(mark).len();
        let len = if run >= 3 && self.starts_line(at) {
            fence_len(rest, run)
        } else if mark == '`' {
            // Backticks at the very end of a text that goes on may become more.
            let may_end = |end: &usize| self.rules.complete || *end < self.text.len();
            match self.spans.end_of(at, run).filter(may_end) {
                Some(end) => end - at,
                None => {
                    self.open_span |= !self.rules.complete && self.spans.is_in_last_paragraph(at);
                    run
                }
            }
        } else {
            run
        };
        self.show(rest.get(..len).unwrap_or(rest));
        len
    }

    fn starts_line(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with('\n')
    }

    fn show(&mut self, piece: &str) {
        if self.in_final || !self.rules.final_only {
            self.out.visible.push_str(piece);
        }
    }
}

/// Length of a fenced block that starts here, to the end of the text when it is not closed.
fn fence_len(rest: &str, run: usize) -> usize {
    let fence = rest.get(..run).unwrap_or_default();
    let mut len = 0;
    for (index, line) in rest.split_inclusive('\n').enumerate() {
        len += line.len();
        if index > 0 && line.trim_start().starts_with(fence) {
            return len;
        }
    }
    rest.len()
}

/// Classifies what the `<` at the start of `rest` begins. Behind its name a tag may have
/// attributes; one that closes itself is an end.
fn candidate(rest: &str) -> TagCandidate {
    let mut close = false;
    let mut name = String::new();
    let mut name_ended = false;
    let mut last = '<';
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '>' => {
                let close = close || last == '/';
                return named(&name).map_or(TagCandidate::Text, |kind| TagCandidate::Tag {
                    kind,
                    close,
                    len: at + 1,
                });
            }
            '<' | '\n' => return TagCandidate::Text,
            '/' if !close && name.is_empty() => close = true,
            c if c.is_whitespace() => name_ended |= !name.is_empty(),
            // An attribute.
            _ if name_ended => {}
            '/' => name_ended = true,
            c if c.is_ascii_alphabetic() => name.push(c.to_ascii_lowercase()),
            _ => return TagCandidate::Text,
        }
        let possible = if name_ended { named(&name).is_some() } else { may_be_named(&name) };
        if !possible || at > MAX_TAG {
            return TagCandidate::Text;
        }
        last = c;
    }
    TagCandidate::Undecided
}

fn named(name: &str) -> Option<TagKind> {
    if name == FINAL {
        return Some(TagKind::Final);
    }
    THINKING.contains(&name).then_some(TagKind::Thinking)
}

fn may_be_named(start: &str) -> bool {
    THINKING.iter().chain([&FINAL]).any(|name| name.starts_with(start))
}

/// Turns text blocks that begin with a whole thinking section into a thinking block and the text after it, which is how
/// such a message is stored (spec `streaming.md` §6 "Message end").
pub fn promote_thinking(content: &mut Vec<Block>) {
    let starts = |block: &Block| matches!(block, Block::Text(text) if leading_thinking(&text.text).is_some());
    if !content.iter().any(starts) {
        return;
    }
    let mut promoted = Vec::with_capacity(content.len() + 1);
    for block in content.drain(..) {
        match block {
            Block::Text(text) => promoted.extend(split_thinking(text)),
            Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => {
                promoted.push(block)
            }
        }
    }
    *content = promoted;
}

fn split_thinking(block: TextBlock) -> Vec<Block> {
    let Some((thinking, rest)) = leading_thinking(&block.text) else { return vec![Block::Text(block)] };
    let mut out = vec![Block::Thinking(ThinkingBlock {
        thinking: thinking.trim().to_owned(),
        ..ThinkingBlock::default()
    })];
    let rest = rest.trim_start();
    if !rest.is_empty() {
        let text = rest.to_owned();
        out.push(Block::Text(TextBlock { text, ..block }));
    }
    out
}

/// The thinking section a text begins with, and the text after it.
fn leading_thinking(text: &str) -> Option<(&str, &str)> {
    let start = text.trim_start();
    let TagCandidate::Tag { kind: TagKind::Thinking, close: false, len } = candidate(start) else {
        return None;
    };
    let body = start.get(len..)?;
    body.match_indices('<').find_map(|(at, _)| match candidate(body.get(at..)?) {
        TagCandidate::Tag { kind: TagKind::Thinking, close: true, len } => {
            Some((body.get(..at)?, body.get(at + len..)?))
        }
        TagCandidate::Tag { .. } | TagCandidate::Undecided | TagCandidate::Text => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(text: &str, final_only: bool) -> String {
        strip(text, TagRules { final_only, complete: true }).visible
    }

    /// Vectors of spec `streaming.md` §6.
    #[test]
    fn reasoning_is_hidden_and_code_left_alone() {
        let rows = [
            ("Hello <thinking>secret</thinking> world", "Hello  world"),
            ("strips `<thinking>` tags", "strips `<thinking>` tags"),
            ("use `<thinking>` now", "use `<thinking>` now"),
            ("```\n<thinking>x</thinking>\n```", "```\n<thinking>x</thinking>\n```"),
            ("A <think>rest never closed", "A "),
            ("<thought>x</thought>A<antthinking>y</antthinking>B< think >z</ think >C", "ABC"),
            ("a<final>b</final>c", "abc"),
            ("`<think>x</think>` y", "`<think>x</think>` y"),
            ("a </think> b", "a  b"),
            ("<think>it`s</think> That`s <think>x</think>all", " That`s all"),
            ("1 < 2 and <b>bold</b> <thinker>", "1 < 2 and <b>bold</b> <thinker>"),
            ("tail <thi", "tail <thi"),
            ("<think>a</think>b", "b"),
            ("<think>unclosed", ""),
            ("<thinking class='x'>q</thinking>z", "z"),
            ("<THINK>q</ Think >z", "z"),
            ("a <think/> b", "a  b"),
            ("a <think /> b <thinking about> c", "a  b "),
            ("<thinks>a <final answer> b", "<thinks>a  b"),
            ("~~~\n<think>\n~~~\nx<think>y</think>", "~~~\n<think>\n~~~\nx"),
        ];
        for (input, expect) in rows {
            assert_eq!(visible(input, false), expect, "{input:?}");
        }
    }

    #[test]
    fn with_final_tags_required_only_their_inside_is_shown() {
        let rows = [
            ("pre <final>Hi there</final> post", "Hi there"),
            ("<think>x</think><final>a</final>", "a"),
            ("</final>Oops no start", "Oops no start"),
            ("plain answer", "plain answer"),
        ];
        for (input, expect) in rows {
            assert_eq!(visible(input, true), expect, "{input:?}");
        }
    }

    #[test]
    fn an_unfinished_tag_is_held_back() {
        let shown = |text: &str, final_only| strip(text, TagRules { final_only, complete: false }).visible;
        assert_eq!(shown("lo <thi", false), "lo ");
        assert_eq!(shown("lo </", false), "lo ");
        assert_eq!(shown("lo <", false), "lo ");
        assert_eq!(shown("lo <thx", false), "lo <thx");
        assert_eq!(shown("a < b", false), "a < b");
        assert_eq!(shown("use `<thinking>", false), "use `");
        assert_eq!(shown("plain", true), "");
        assert_eq!(shown("pre <final>Hi th", true), "Hi th");
    }

    #[test]
    fn thinking_is_collected() {
        let out = strip("<think>a</think>b<think>c", TagRules { final_only: false, complete: true });
        assert_eq!(out, Stripped { visible: "b".into(), thinking: "ac".into() });
    }

    #[test]
    fn a_leading_thinking_section_becomes_a_thinking_block() {
        let mut content =
            vec![Block::text(" <think>why </think>\n\nAnswer"), Block::text("x <think>y</think>")];
        promote_thinking(&mut content);
        let thinking = Block::Thinking(ThinkingBlock { thinking: "why".into(), ..ThinkingBlock::default() });
        assert_eq!(content, [thinking, Block::text("Answer"), Block::text("x <think>y</think>")]);
        let mut open = vec![Block::text("<think>never closed")];
        promote_thinking(&mut open);
        assert_eq!(open, [Block::text("<think>never closed")]);
    }

    proptest::proptest! {
        /// Wherever a text is cut, what is shown before the cut is how the whole begins: nothing flashes.
        #[test]
        fn what_is_shown_of_a_part_stays(
            text in "(<think>|</think>|<final>|</final>|<thinking a='b'>|< /thought >|<b>|`|``|```\n|~~~\n|\n|\n\n|\\[Tool Call: x\\]|\nArguments: \\{\"a\": 1\\}|\\[Tool Result for ID 1\\]|<minimax:tool_call>|</minimax:tool_call>|[a-c </\\[\\]]|é){0,16}",
            cut in 0..80usize,
            final_only: bool,
        ) {
            let cut = text.floor_char_boundary(cut.min(text.len()));
            let part = strip(&text[..cut], TagRules { final_only, complete: false });
            let whole = strip(&text, TagRules { final_only, complete: false });
            proptest::prop_assert!(whole.visible.starts_with(&part.visible), "{:?} of {:?}", part, whole);
            if !final_only {
                let ended = strip(&text, TagRules { final_only, complete: true });
                proptest::prop_assert!(ended.visible.starts_with(&part.visible), "{:?} of {:?}", part, ended);
            }
        }

        #[test]
        fn stripping_never_panics_and_never_invents_text(text in "[<>/`~ a-f\\n]{0,6}(<think>|</think>|<final>|`|```\n|x|é){0,8}") {
            for complete in [false, true] {
                let out = strip(&text, TagRules { final_only: false, complete });
                proptest::prop_assert!(out.visible.len() + out.thinking.len() <= text.len());
            }
        }
    }
}
