//! Directives a model may put into its text: reply tags, the voice tag, media lines (spec
//! `messages.md` §8). Text inside code is never a directive.

use super::code_span::{CodeSpans, backticks};
use crate::reply::ReplyTo;

/// A text with its directives taken out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directives {
    /// Text without the directives.
    pub text: String,
    /// Message to quote: the last explicit id, else the current message.
    pub reply_to: Option<ReplyTo>,
    /// Position in the input at which that reply tag begins.
    pub(crate) reply_at: usize,
    /// True if audio is sent as a voice note.
    pub voice: bool,
    /// Media references in order.
    pub media: Vec<String>,
}

/// Takes the directives out of a whole text.
pub fn parse(text: &str) -> Directives {
    if !text.contains("[[") && !text.contains(MEDIA) {
        return Directives { text: text.trim().to_owned(), ..Directives::default() };
    }
    let mut found = Directives::default();
    let tagged = tags(text, &mut found);
    found.text = media_lines(&tagged, &mut found.media);
    found
}

/// Returns the number of bytes of the cleaned text before a media reference: before its line, or
/// before its tag.
pub(crate) fn before_media(text: &str, reference: &str) -> Option<usize> {
    let is_named_by = |end: usize| {
        let named = parse(text.get(..end).unwrap_or_default()).media;
        named.iter().any(|named| named == reference)
    };
    let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).chain([text.len()]).collect();
    let line = lines.partition_point(|end| !is_named_by(*end));
    let end = *lines.get(line)?;
    let start = line.checked_sub(1).and_then(|before| lines.get(before)).copied().unwrap_or_default();
    let tags = text.get(start..end)?.match_indices("]]").map(|(at, _)| start + at + 2);
    let by_tag = tags.into_iter().find(|end| is_named_by(*end)).and_then(|end| text.get(..end)?.rfind("[["));
    Some(parse(text.get(..by_tag.unwrap_or(start))?).text.len())
}

/// The part of an unfinished text that can no longer turn into a directive.
pub(crate) fn settled(text: &str) -> &str {
    let text = before_media_start(text);
    if let Some(open) = tag_in_open_code(text) {
        return text.get(..open).unwrap_or_default();
    }
    if let Some(open) = text.rfind("[[") {
        let tail = text.get(open + 2..).unwrap_or_default();
        if !tail.contains("]]") && may_become_tag(tail) {
            return text.get(..open).unwrap_or_default();
        }
    }
    // The next tag may begin here.
    text.strip_suffix('[').unwrap_or(text)
}

/// The text without its last line, where that begins as a media line does.
fn before_media_start(text: &str) -> &str {
    let line_start = text.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..).unwrap_or_default().trim_start();
    let is_start = !line.is_empty() && (MEDIA.starts_with(line) || line.starts_with(MEDIA));
    // A tag may stand before a fence on its line.
    let is_prose = || !in_fence(&tags(text, &mut Directives::default()));
    if is_start && is_prose() { text.get(..line_start).unwrap_or_default() } else { text }
}

/// Returns the position of a tag after a backtick that may still turn out to open a code span, in
/// which case it is not a tag.
fn tag_in_open_code(text: &str) -> Option<usize> {
    let (prose, is_code) = segments(text).pop()?;
    if is_code || !prose.contains("[[") {
        return None;
    }
    let offset = text.len() - prose.len();
    let mut spans = CodeSpans::new(prose);
    let mut at = 0;
    while let Some(found) = prose.get(at..)?.find('`') {
        at += found;
        let run = backticks(prose.get(at..)?);
        // Backticks at the very end may become more.
        match spans.end_of(at, run).filter(|end| *end < prose.len()) {
            Some(end) => at = end,
            None if spans.is_in_last_paragraph(at) => {
                return first_tag(prose.get(at..)?).map(|open| offset + at + open);
            }
            None => at += run,
        }
    }
    None
}

/// Returns the position of the first tag, complete or begun. A bracket may stand before it.
fn first_tag(text: &str) -> Option<usize> {
    let is_tag = |open: &usize| {
        let tail =
            text.get(open + 2..).filter(|_| text.get(*open..).is_some_and(|rest| rest.starts_with("[[")));
        let inner = tail.and_then(|tail| tail.get(..tail.find("]]").unwrap_or(tail.len())));
        inner.is_some_and(|inner| may_become_tag(inner) || tag(inner).is_some())
    };
    text.match_indices('[').map(|(at, _)| at).find(is_tag)
}

const MEDIA: &str = "MEDIA:";
/// Longest media reference.
const MAX_MEDIA: usize = 4096;
/// Longest tag that is waited for.
const MAX_TAG: usize = 256;
const TAG_NAMES: [&str; 6] = ["reply_to_current", "reply_to", "reply", "audio_as_voice", "voice", "media"];

enum Tag {
    Reply(ReplyTo),
    Voice,
    Media(String),
}

fn may_become_tag(inner: &str) -> bool {
    let start = inner.trim_start().to_ascii_lowercase();
    let known = TAG_NAMES.iter().any(|name| name.starts_with(start.as_str()) || start.starts_with(name));
    known && inner.len() <= MAX_TAG && !inner.contains('\n')
}

fn tag(inner: &str) -> Option<Tag> {
    if inner.len() > MAX_MEDIA + MAX_TAG || inner.contains('\n') {
        return None;
    }
    let (name, value) = match inner.split_once(':') {
        Some((name, value)) => {
            (name.trim().to_ascii_lowercase(), Some(value.trim()).filter(|value| !value.is_empty())?)
        }
        None => (inner.trim().to_ascii_lowercase(), ""),
    };
    match (name.as_str(), value) {
        ("reply_to_current", "") => Some(Tag::Reply(ReplyTo::Current)),
        ("reply", "current") => Some(Tag::Reply(ReplyTo::Current)),
        ("reply_to" | "reply", id) if !id.is_empty() => Some(Tag::Reply(ReplyTo::Id(id.to_owned()))),
        ("audio_as_voice" | "voice", "") => Some(Tag::Voice),
        ("media", reference) if valid_media(reference) => Some(Tag::Media(reference.to_owned())),
        _ => None,
    }
}

/// Removes tags; white space is tidied only when there was one, as the reference does, and never inside code.
fn tags(text: &str, found: &mut Directives) -> String {
    let mut out = String::with_capacity(text.len());
    let mut seen = false;
    let mut prose: Vec<(String, bool)> = Vec::new();
    let mut from = 0;
    for (segment, code) in segments(text) {
        if code {
            prose.push((segment.to_owned(), true));
        } else {
            let (clean, any) = untagged(segment, from, found);
            seen |= any;
            prose.push((clean, false));
        }
        from += segment.len();
    }
    for (segment, code) in prose {
        if seen && !code { out.push_str(&tidy(&segment)) } else { out.push_str(&segment) }
    }
    out
}

/// `from` is where the segment begins.
fn untagged(segment: &str, from: usize, found: &mut Directives) -> (String, bool) {
    let mut out = String::with_capacity(segment.len());
    let mut any = false;
    let mut spans = CodeSpans::new(segment);
    // Position of the next closing mark; looked for once, however many tags begin before it.
    let mut close = Some(0);
    let mut at = 0;
    while let Some(next) = segment.get(at..).and_then(|rest| rest.find(['[', '`'])).map(|next| at + next) {
        out.push_str(segment.get(at..next).unwrap_or_default());
        let rest = segment.get(next..).unwrap_or_default();
        let run = backticks(rest);
        if run > 0 {
            at = spans.end_of(next, run).unwrap_or(next + run);
            out.push_str(segment.get(next..at).unwrap_or_default());
            continue;
        }
        if !rest.starts_with("[[") {
            out.push('[');
            at = next + 1;
            continue;
        }
        let inner = next + 2;
        if close.is_some_and(|close| close < inner) {
            close = segment.get(inner..).and_then(|rest| rest.find("]]")).map(|end| inner + end);
        }
        let parsed = close.and_then(|end| Some((tag(segment.get(inner..end)?)?, end + 2)));
        match parsed {
            Some((tag, after)) => {
                apply(tag, from + next, found);
                any = true;
                at = after + put_gap(&mut out, segment.get(after..).unwrap_or_default());
            }
            None => {
                out.push_str("[[");
                at = inner;
            }
        }
    }
    out.push_str(segment.get(at..).unwrap_or_default());
    (out, any)
}

/// A blank in place of a tag; at the start of a line none, there the blanks behind it go too. Says how long those are.
fn put_gap(out: &mut String, behind: &str) -> usize {
    let is_line_start = out.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n');
    if !is_line_start {
        out.push(' ');
        return 0;
    }
    behind.len() - behind.trim_start_matches([' ', '\t']).len()
}

fn apply(tag: Tag, at: usize, found: &mut Directives) {
    match tag {
        Tag::Reply(ReplyTo::Current) if found.reply_to.is_some() => {}
        Tag::Reply(to) => {
            found.reply_to = Some(to);
            found.reply_at = at;
        }
        Tag::Voice => found.voice = true,
        Tag::Media(reference) => found.media.push(reference),
    }
}

/// Runs of blanks become one space, those at the end of a line go. Lines keep their indent.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let words = line.trim_start_matches([' ', '\t']);
        if words.is_empty() {
            continue;
        }
        out.push_str(line.get(..line.len() - words.len()).unwrap_or_default());
        let words: Vec<&str> = words.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        out.push_str(&words.join(" "));
    }
    out
}

/// The text cut into prose and fenced code, each with its line breaks.
pub(super) fn segments(text: &str) -> Vec<(&str, bool)> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        match (fence, fence_mark(line)) {
            (None, Some(mark)) => {
                out.push((text.get(start..at).unwrap_or_default(), false));
                start = at;
                fence = Some(mark);
            }
            (Some(open), Some(mark)) if mark.starts_with(open) => {
                out.push((text.get(start..next).unwrap_or_default(), true));
                start = next;
                fence = None;
            }
            _ => {}
        }
        at = next;
    }
    out.push((text.get(start..).unwrap_or_default(), fence.is_some()));
    out.retain(|(segment, _)| !segment.is_empty());
    out
}

fn fence_mark(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    let mark = trimmed.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let run = trimmed.len() - trimmed.trim_start_matches(mark).len();
    if run < 3 {
        return None;
    }
    trimmed.get(..run)
}

/// Returns true if the last line of a text is inside a fence, or closes one.
pub(super) fn in_fence(text: &str) -> bool {
    segments(text).last().is_some_and(|(_, code)| *code)
}

/// Takes `MEDIA:` lines out. Paragraph breaks stay; text without media lines is only trimmed.
fn media_lines(text: &str, media: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for (segment, code) in segments(text) {
        if code || !segment.contains(MEDIA) {
            out.push_str(segment);
            continue;
        }
        let mut taken = false;
        let mut kept = String::with_capacity(segment.len());
        for line in segment.split_inclusive('\n') {
            match line.trim_start().strip_prefix(MEDIA).and_then(media_line) {
                Some((references, rest)) => {
                    taken = true;
                    media.extend(references);
                    if !rest.is_empty() {
                        kept.push_str(&rest);
                        kept.push('\n');
                    }
                }
                None => kept.push_str(line),
            }
        }
        if taken { out.push_str(&squeezed(&kept)) } else { out.push_str(&kept) }
    }
    out.trim().to_owned()
}

/// Runs of blanks to one, three or more line breaks to two: the gap a removed line leaves.
fn squeezed(text: &str) -> String {
    let mut out = tidy(text);
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    out
}

/// The references of one line and the text left beside them, or `None` when there is no valid one.
fn media_line(payload: &str) -> Option<(Vec<String>, String)> {
    let payload = payload.trim();
    if let Some((quoted, rest)) = quoted(payload) {
        let reference = cleaned(quoted);
        return valid_media(reference).then(|| (vec![reference.to_owned()], rest.trim().to_owned()));
    }
    let (valid, invalid): (Vec<&str>, Vec<&str>) = payload
        .split_whitespace()
        .map(cleaned)
        .filter(|part| !part.is_empty())
        .partition(|part| valid_media(part));
    let spaced = cleaned(payload);
    if !invalid.is_empty() && spaced.starts_with("./") && valid_media(spaced) && valid.len() <= 1 {
        return Some((vec![spaced.to_owned()], String::new()));
    }
    if valid.is_empty() {
        return None;
    }
    Some((valid.into_iter().map(str::to_owned).collect(), invalid.join(" ")))
}

/// A quoted start of the payload and what follows it.
fn quoted(payload: &str) -> Option<(&str, &str)> {
    let quote = payload.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    payload.get(1..)?.split_once(quote)
}

fn cleaned(candidate: &str) -> &str {
    let start = candidate.trim_start_matches(['`', '"', '\'', '[', '{', '(']);
    let end = start.trim_end_matches(['`', '"', '\'', '\\', '}', ')', ']', ',']);
    end.strip_prefix("file://").unwrap_or(end)
}

fn valid_media(reference: &str) -> bool {
    if reference.len() > MAX_MEDIA {
        return false;
    }
    let url = reference.starts_with("https://") || reference.starts_with("http://");
    let local = reference.starts_with("./") && !reference.contains("..");
    (url && !reference.contains(char::is_whitespace)) || local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<ReplyTo> {
        Some(ReplyTo::Id(text.to_owned()))
    }

    /// Vectors of spec `messages.md` §8.
    #[test]
    fn tags_are_taken_out_and_white_space_tidied() {
        let rows = [
            ("[[reply_to_current]] hi", "hi", Some(ReplyTo::Current), false),
            ("hello [[ reply_to : abc-123 ]] there", "hello there", id("abc-123"), false),
            ("[[reply_to_current]] a [[reply_to:5]] b", "a b", id("5"), false),
            ("[[reply_to:1]][[reply_to_current]]Z", "Z", id("1"), false),
            ("[[reply_to:]] x", "[[reply_to:]] x", None, false),
            // Lines keep their indent (`channels.md` §4.5).
            ("line1  \n   line2   [[reply_to_current]]", "line1\n   line2", Some(ReplyTo::Current), false),
            ("a [[reply_to: 99 ]]\n  indented", "a\n  indented", id("99"), false),
            ("a\n  [[voice]]  b", "a\n  b", None, true),
            // Nothing in code is a tag.
            ("use `[[reply_to:1]]` to answer [[voice]]", "use `[[reply_to:1]]` to answer", None, true),
            ("use ``a ` [[reply_to:1]]`` x", "use ``a ` [[reply_to:1]]`` x", None, false),
            ("it`s [[reply:1]] fine", "it`s fine", id("1"), false),
            ("[[[reply:1]]]", "[[[reply:1]]]", None, false),
            ("[[audio_as_voice]]\nhi", "hi", None, true),
            ("[[voice]] hi [[reply:current]]", "hi", Some(ReplyTo::Current), true),
            ("[[reply:7]] x", "x", id("7"), false),
            ("a [[x]] b", "a [[x]] b", None, false),
            ("two  spaces stay", "two  spaces stay", None, false),
            ("```\n[[reply_to:1]]\n  x\n```\n[[voice]] a", "```\n[[reply_to:1]]\n  x\n```\na", None, true),
        ];
        for (input, text, reply_to, voice) in rows {
            let text = text.to_owned();
            let reply_at = parse(input).reply_at;
            let expect = Directives { text, reply_to, reply_at, voice, media: Vec::new() };
            assert_eq!(parse(input), expect, "{input:?}");
        }
    }

    /// Vectors of spec `messages.md` §8.1, the known-bad ones as they should be.
    #[test]
    fn media_lines_are_taken_out() {
        let rows: [(&str, &[&str], &str); 13] = [
            ("MEDIA:https://e.com/a.png\ncaption", &["https://e.com/a.png"], "caption"),
            ("hi  there\n\nMEDIA: ./x y.png", &["./x y.png"], "hi there"),
            ("MEDIA:`./a.png`", &["./a.png"], ""),
            ("MEDIA:\"./my file.png\" tail", &["./my file.png"], "tail"),
            ("MEDIA:https://a.b/c.png https://a.b/d.png", &["https://a.b/c.png", "https://a.b/d.png"], ""),
            ("MEDIA:/etc/passwd", &[], "MEDIA:/etc/passwd"),
            ("MEDIA:../x.png", &[], "MEDIA:../x.png"),
            ("MEDIA:./a/../../x.png", &[], "MEDIA:./a/../../x.png"),
            ("media:https://e.com/a", &[], "media:https://e.com/a"),
            ("text MEDIA:https://e.com/a", &[], "text MEDIA:https://e.com/a"),
            ("```\nMEDIA:https://e.com/a\n```", &[], "```\nMEDIA:https://e.com/a\n```"),
            ("p1\n\np2\nMEDIA:https://e.com/a\n\np3", &["https://e.com/a"], "p1\n\np2\n\np3"),
            ("[[media:https://e.com/a]] x", &["https://e.com/a"], "x"),
        ];
        for (input, media, text) in rows {
            let out = parse(input);
            assert_eq!(
                (out.media.as_slice(), out.text.as_str()),
                (media.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>().as_slice(), text),
                "{input:?}"
            );
        }
        let voiced = parse("[[audio_as_voice]] MEDIA:https://e.com/a.ogg");
        assert_eq!((voiced.voice, voiced.media.len(), voiced.text.as_str()), (true, 1, ""));
    }

    #[test]
    fn a_media_reference_stands_somewhere_in_the_text() {
        let rows = [
            ("MEDIA:./a\ncaption", "./a", Some("")),
            ("one\nMEDIA:./a\ntwo\nMEDIA:./b", "./b", Some("one\ntwo")),
            ("see ./a:\n\nMEDIA: ./a\ntwo", "./a", Some("see ./a:")),
            ("one [[media:./a]] two [[media:./b]] three", "./b", Some("one two")),
            ("```\nMEDIA:./a\n```\nx\nMEDIA:./a", "./a", Some("```\nMEDIA:./a\n```\nx")),
            ("[[voice]] one\nMEDIA:./a ./b\n", "./b", Some("one")),
            ("one", "./a", None),
        ];
        for (text, reference, before) in rows {
            assert_eq!(before_media(text, reference), before.map(str::len), "{text:?}");
        }
    }

    #[test]
    fn what_may_become_a_directive_is_held_back() {
        let rows = [
            ("Hello [[", "Hello "),
            ("Hello [", "Hello "),
            ("[[reply_to:12", ""),
            ("a [[x", "a [[x"),
            ("[[1,2],[3", "[[1,2],[3"),
            ("a\nMED", "a\n"),
            ("a\nMEDIA:https", "a\n"),
            ("a\n", "a\n"),
            ("a\nMedal", "a\nMedal"),
            ("a [[voice]] b", "a [[voice]] b"),
            ("use `[[voice]] b", "use `"),
            ("use `[[x]] b", "use `[[x]] b"),
            ("use `[[voice]]` b", "use `[[voice]]` b"),
            ("it`s\n\n[[voice]] b", "it`s\n\n[[voice]] b"),
            ("```\nMEDIA:x", "```\nMEDIA:x"),
        ];
        for (input, expect) in rows {
            assert_eq!(settled(input), expect, "{input:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text in "(\\[\\[|\\]\\]|reply_to|:|MEDIA:|```|~~~|\n| |é|./a|[a-c]){0,24}") {
            parse(&text);
            settled(&text);
        }
    }
}
