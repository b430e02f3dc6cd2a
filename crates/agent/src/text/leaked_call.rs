//! Tool calls that a model wrote as text: it was shown them so, or its provider did not take them
//! for calls (spec `streaming.md` §6). People should not see them. Calls in code blocks are
//! ordinary text.

use std::borrow::Cow;

use super::directive::segments;

/// Substrings that every such call contains.
const SIGNS: [&str; 3] = ["[Tool Call:", "[Tool Result for ID", "minimax:tool_call"];
const CALL: &str = "[Tool Call:";
const RESULT: &str = "[Tool Result for ID";
const TAGS: [&str; 2] = ["<minimax:tool_call>", "</minimax:tool_call>"];
const INVOKE: &str = "<invoke";
const INVOKE_END: &str = "</invoke>";
const ARGUMENTS: &str = "\nArguments:";
/// Bytes of what stands in the brackets.
const LONGEST_HEAD: usize = 512;

/// The text without them. Of a text that goes on, an end that may become one is held back.
pub(super) fn without(text: &str, complete: bool) -> Cow<'_, str> {
    let has_one = SIGNS.iter().any(|sign| text.contains(sign));
    if !has_one && (complete || may_begin(text).is_none()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut parts = segments(text).into_iter().peekable();
    while let Some((part, is_code)) = parts.next() {
        if is_code {
            out.push_str(part);
        } else {
            let is_whole = complete || parts.peek().is_some();
            LeakReader { has_calls: part.contains(SIGNS[2]), is_whole, has_ends: true }.read(part, &mut out);
        }
    }
    Cow::Owned(out)
}

/// Returns the position at which the end of a text may become a call.
fn may_begin(text: &str) -> Option<usize> {
    let at = text.rfind(['[', '<'])?;
    let end = text.get(at..)?;
    let starts = [CALL, RESULT, TAGS[0], TAGS[1]];
    starts.iter().any(|start| start.starts_with(end)).then_some(at)
}

/// Finding at a bracket.
enum BracketFinding {
    /// A call of this many bytes.
    Call(usize),
    /// A call whose end has not arrived yet.
    Unfinished,
    Text,
}

struct LeakReader {
    /// True if there are tagged calls: `<invoke>` counts as a call only beside those.
    has_calls: bool,
    is_whole: bool,
    /// True if a closing `<invoke>` tag may still follow.
    has_ends: bool,
}

impl LeakReader {
    fn read(mut self, text: &str, out: &mut String) {
        let mut at = 0;
        while let Some(next) = text.get(at..).and_then(|rest| rest.find(['[', '<'])).map(|next| at + next) {
            out.push_str(text.get(at..next).unwrap_or_default());
            let rest = text.get(next..).unwrap_or_default();
            at = match self.found(rest) {
                BracketFinding::Call(len) => next + len,
                BracketFinding::Unfinished if !self.is_whole => return,
                BracketFinding::Unfinished | BracketFinding::Text => {
                    out.push_str(rest.get(..1).unwrap_or_default());
                    next + 1
                }
            };
        }
        out.push_str(text.get(at..).unwrap_or_default());
    }

    fn found(&mut self, rest: &str) -> BracketFinding {
        if let Some(tag) = TAGS.iter().find(|tag| rest.starts_with(**tag)) {
            return BracketFinding::Call(tag.len());
        }
        if rest.starts_with(CALL) || rest.starts_with(RESULT) {
            return self.written(rest);
        }
        if self.has_calls && rest.starts_with(INVOKE) {
            let end = if self.has_ends { rest.find(INVOKE_END) } else { None };
            self.has_ends = end.is_some();
            return end
                .map_or(BracketFinding::Unfinished, |end| BracketFinding::Call(end + INVOKE_END.len()));
        }
        let may_be = rest.len() <= RESULT.len() && may_begin(rest) == Some(0)
            || self.has_calls && INVOKE.starts_with(rest);
        if may_be { BracketFinding::Unfinished } else { BracketFinding::Text }
    }

    /// `[Tool Call: name (ID: 1)]` with its arguments, or `[Tool Result for ID 1]` with its lines up to a blank one.
    fn written(&self, rest: &str) -> BracketFinding {
        let near = rest.get(..rest.floor_char_boundary(LONGEST_HEAD)).unwrap_or_default();
        let head = match near.find([']', '\n']) {
            Some(end) if near.get(end..).is_some_and(|end| end.starts_with(']')) => end + 1,
            None if near.len() == rest.len() => return BracketFinding::Unfinished,
            Some(_) | None => return BracketFinding::Text,
        };
        let behind = rest.get(head..).unwrap_or_default();
        if rest.starts_with(RESULT) {
            return match behind.find("\n\n") {
                Some(end) => BracketFinding::Call(head + end),
                None if self.is_whole => BracketFinding::Call(rest.len()),
                None => BracketFinding::Unfinished,
            };
        }
        if !self.is_whole && ARGUMENTS.starts_with(behind) {
            return BracketFinding::Unfinished;
        }
        let Some(arguments) = behind.strip_prefix(ARGUMENTS) else { return BracketFinding::Call(head) };
        match json_len(arguments) {
            Some(len) => BracketFinding::Call(head + ARGUMENTS.len() + len),
            None if self.is_whole => BracketFinding::Call(rest.len()),
            None => BracketFinding::Unfinished,
        }
    }
}

/// Returns the length of the JSON object at the start of a text, with the blanks before it; the
/// length of the line if there is none. `None` where its end is missing.
fn json_len(text: &str) -> Option<usize> {
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let body = text.get(blanks..).unwrap_or_default();
    if !body.starts_with('{') {
        return body.find('\n').map(|end| blanks + end);
    }
    let (mut depth, mut in_string, mut is_escaped) = (0usize, false, false);
    for (at, c) in body.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => depth += 1,
            '}' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(blanks + at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_written_are_not_shown() {
        let rows = [
            ("a [Tool Call: read (ID: 1)]\nArguments: {\"a\": \"}\\\"\"}\nb", "a \nb"),
            ("[Tool Call: read]\nb", "\nb"),
            ("[Tool Call: read]\nArguments: none\nb", "\nb"),
            ("[Tool Call: read]\nArguments: {\"a\": 1", ""),
            ("a\n[Tool Result for ID 1]\n3 files\nmore\n\nb", "a\n\n\nb"),
            ("[Tool Result for ID 1]\n3 files", ""),
            (
                "a <minimax:tool_call>\n<invoke name=\"x\"><parameter>1</parameter></invoke>\n</minimax:tool_call> b",
                "a \n\n b",
            ),
            ("<minimax:tool_call><invoke>never closed", "<invoke>never closed"),
            ("<invoke>x</invoke>", "<invoke>x</invoke>"),
            ("```\n[Tool Call: read]\n```", "```\n[Tool Call: read]\n```"),
            ("[Tool Calls] [Tool Call: two\nlines]", "[Tool Calls] [Tool Call: two\nlines]"),
            ("[Tool", "[Tool"),
            ("no calls [x] < y", "no calls [x] < y"),
        ];
        for (text, expect) in rows {
            assert_eq!(without(text, true), expect, "{text:?}");
        }
    }

    #[test]
    fn an_end_that_may_become_one_is_held_back() {
        let rows = [
            ("a [", "a "),
            ("a [Tool C", "a "),
            ("a [Tool Call: x", "a "),
            ("a [Tool Call: x]", "a "),
            ("a [Tool Call: x]\nArg", "a "),
            ("a [Tool Call: x]\nArguments: {\"", "a "),
            ("a [Tool Call: x] b", "a  b"),
            ("[Tool Result for ID 1]\nfiles", ""),
            ("a <minimax:", "a "),
            ("a <minimax:tool_call> <inv", "a  "),
            ("a [x", "a [x"),
        ];
        for (text, expect) in rows {
            assert_eq!(without(text, false), expect, "{text:?}");
        }
    }
}
