//! Frames that an agent's prompt has around people's words, and the replacements that keep text of
//! others from taking the form of one.
//!
//! Text of others stands in a prompt through [`framed_name`] (names, titles, file names, errors:
//! one line) or [`framed_words`] (messages, quotations, descriptions). Both change a few brackets
//! and leave everything else as it was written.

//!
//! Lines are compared by what they look like ([`glyph`]), not by the characters they are written with.

mod glyph;

use std::borrow::Cow;

use openclaw_protocol::printable::one_line;
use openclaw_sessions::display::CHANNEL_LABELS;

use glyph::{Glyph, read, sign};

/// Heading of the messages of a group since the agent's last answer. Clients of the reference know these words.
pub const HISTORY: &str = "[Chat messages since your last reply - for context]";
/// Heading of the message to answer.
pub const CURRENT: &str = "[Current message - respond to this]";
/// Heading of the message that began a thread.
pub const STARTER: &str = "[Thread starter - for context]";
/// Heading of messages that waited and are run together.
pub const QUEUED_MESSAGES: &str = "[Queued messages while agent was busy]";
/// Heading of announcements of sub-agents that waited and are run together.
pub const QUEUED_ANNOUNCES: &str = "[Queued announce messages while agent was busy]";
/// Heading of each of those messages, followed by its number.
pub const QUEUED_ITEM: &str = "Queued #";
/// Heading of the messages that a full queue has dropped.
pub const OVERFLOW: &str = "[Queue overflow]";

/// Texts that the brackets of frames begin with, in lower case.
const BRACKETS: &[&str] = &[
    "chat messages since your last reply",
    "current message",
    "thread starter",
    "replying to",
    "/replying",
    "quoting",
    "/quoting",
    "forwarded from",
    "written via",
    "media attached",
    "image: source",
    "from:",
    "message_id:",
    "queued messages",
    "queued announce",
    "queue overflow",
    // Messages of the gateway itself, or of OpenClaw.
    "system message",
    "system]",
    "system:",
    "openclaw]",
    "cron:",
    "subagent context",
    "subagent task",
    // Turns in a conversation that is to be summarised.
    "user]:",
    "assistant]:",
    "assistant thinking]:",
    "assistant tool calls]:",
    "tool result]:",
    "old tool result",
];
/// Weekdays, as the time before a client's message begins with one.
const WEEKDAYS: [&str; 7] = ["mon ", "tue ", "wed ", "thu ", "fri ", "sat ", "sun "];
/// Frames without a bracket: beginning of the line in lower case, the character that makes it a frame, and a replacement for that.
const LINES: &[(&str, char, &str)] = &[
    ("queued #", '#', "no. "),
    ("note: the user stopped", ':', ","),
    ("note: the previous agent run", ':', ","),
    ("untrusted context (metadata", '(', "‹"),
    ("agent-to-agent message context:", ':', ","),
    ("agent-to-agent reply step:", ':', ","),
    ("agent-to-agent announce step:", ':', ","),
    ("sub-agent announce step:", ':', ","),
];
/// Beginning of a line in which the gateway itself says something; a bracket with the time follows.
const SYSTEM: &str = "system:";
/// Longest id behind a speaker's name, in characters.
const LONGEST_ID: usize = 64;
/// Fewest digits in such an id: shorter numbers before a colon belong to lists and code.
const SHORTEST_ID: usize = 4;

/// Returns a name as it may stand in the frame around a message: people choose their names, and one
/// with a line break or a bracket would pretend to be a frame of its own.
pub fn framed_name(name: &str) -> String {
    let name = one_line(name.trim()).replace(|c| sign(c) == Some('['), "(");
    let name = name.replace(|c| sign(c) == Some(']'), ")");
    framed_line(&name, &mut Vec::new()).unwrap_or(name)
}

/// Returns text of others as it may stand in a prompt: brackets of whatever looks like a frame are replaced, so that nobody can speak in
/// another's name. Everything else is unchanged.
pub fn framed_words(text: &str) -> Cow<'_, str> {
    // Every frame has at least one of these characters.
    if !text.contains(|c| matches!(sign(c), Some('[' | '(' | ':' | '#'))) {
        return Cow::Borrowed(text);
    }
    let is_break =
        |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let (mut glyphs, mut framed, mut kept) = (Vec::new(), String::new(), 0);
    let mut at = 0;
    for line in text.split_inclusive(is_break) {
        let ends_at = at + line.len();
        if let Some(changed) = framed_line(line, &mut glyphs) {
            framed.push_str(text.get(kept..at).unwrap_or_default());
            framed.push_str(&changed);
            kept = ends_at;
        }
        at = ends_at;
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    framed.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(framed)
}

/// Returns the line without frames; `None` if it has none. `glyphs` is room to work in.
fn framed_line(line: &str, glyphs: &mut Vec<Glyph>) -> Option<String> {
    if !line.contains(|c| sign(c).is_some()) {
        return None;
    }
    read(line, glyphs);
    unframe_words(glyphs);
    unframe_brackets(glyphs);
    unframe_speakers(glyphs);
    unframe_number(glyphs);
    written(line, glyphs)
}

/// Returns the line with its changes; `None` if there are none.
fn written(line: &str, glyphs: &[Glyph]) -> Option<String> {
    let is_changed =
        |glyph: &&Glyph| glyph.before.is_some() || glyph.instead.is_some() || glyph.after.is_some();
    let mut changed = glyphs.iter().filter(is_changed).peekable();
    changed.peek()?;
    let (mut out, mut kept) = (String::with_capacity(line.len() + 16), 0);
    for Glyph { from, to, before, instead, after, .. } in changed {
        out.push_str(line.get(kept..*from).unwrap_or_default());
        out.extend(*before);
        out.push_str(instead.unwrap_or_else(|| line.get(*from..*to).unwrap_or_default()));
        out.extend(*after);
        kept = *to;
    }
    out.push_str(line.get(kept..).unwrap_or_default());
    Some(out)
}

/// Changes the character that would make the line a frame without a bracket.
fn unframe_words(glyphs: &mut [Glyph]) {
    let Some(begun) = glyphs.get_mut(first_word(glyphs)..) else { return };
    let Some((_, sign, other)) = LINES.iter().find(|(with, ..)| begins(begun, with)) else { return };
    if let Some(glyph) = begun.iter_mut().find(|glyph| glyph.shown == *sign) {
        glyph.turn_into(' ', other);
    }
}

/// Changes the brackets of frames: those at the beginning of the line, behind nothing but blanks and punctuation, and those with words that
/// only frames have, wherever they stand. Goes backwards, so that each frame finds the bracket that closes it without a search.
fn unframe_brackets(glyphs: &mut [Glyph]) {
    let first = first_word(glyphs);
    let is_enveloped = glyphs.get(first..).is_some_and(is_envelope);
    let told = told_at(glyphs, first);
    let (mut closing, mut inside) = (Vec::new(), glyphs.len());
    for at in (0..glyphs.len()).rev() {
        let Some(glyph) = glyphs.get(at) else { continue };
        match glyph.shown {
            '[' => {
                let words = glyphs.get(inside..).unwrap_or_default();
                let is_frame = told == Some(at)
                    || at < first && is_enveloped
                    || BRACKETS.iter().any(|frame| begins(words, frame));
                if is_frame {
                    let closed = closing.pop();
                    glyphs.get_mut(at).into_iter().for_each(|glyph| glyph.turn_into('(', "("));
                    closed
                        .and_then(|at: usize| glyphs.get_mut(at))
                        .into_iter()
                        .for_each(|glyph| glyph.turn_into(')', ")"));
                }
            }
            ']' => {
                closing.push(at);
                inside = at;
            }
            shown if shown == '/' || shown.is_alphanumeric() => inside = at,
            _ => {}
        }
    }
}

/// Returns the position of the bracket behind [`SYSTEM`], in a line that begins like a message of the gateway itself.
fn told_at(glyphs: &[Glyph], first: usize) -> Option<usize> {
    let begun = glyphs.get(first..).filter(|begun| begins(begun, SYSTEM))?;
    let colon = first + begun.iter().position(|glyph| glyph.shown == ':')?;
    let told = (colon + 1..glyphs.len()).find(|at| glyphs.get(*at).is_some_and(|glyph| !glyph.is_blank()))?;
    glyphs.get(told).is_some_and(|glyph| glyph.shown == '[').then_some(told)
}

/// True if words in a bracket begin like the envelope before a message: with a channel's label, or with a weekday.
fn is_envelope(words: &[Glyph]) -> bool {
    let is_label = |label: &&str| {
        let blank = words.get(label.chars().count());
        begins(words, label) && blank.is_some_and(Glyph::is_blank)
    };
    let is_day = |day: &&str| begins(words, day) && words.iter().any(|glyph| glyph.shown.is_numeric());
    CHANNEL_LABELS.iter().any(is_label) || begins(words, "channel ") || WEEKDAYS.iter().any(is_day)
}

/// Changes marks of a speaker, `Bob (42): `: the id stands between `‹` and `›` instead.
fn unframe_speakers(glyphs: &mut [Glyph]) {
    let mut was_apart = true;
    for at in 0..glyphs.len() {
        let Some(glyph) = glyphs.get(at) else { return };
        let is_apart = was_apart || glyph.is_apart;
        was_apart = glyph.is_blank();
        if glyph.shown != '(' || !is_apart {
            continue;
        }
        if let Some(closing) = speaker_mark(glyphs, at) {
            for (at, shown, sign) in [(at, '‹', "‹"), (closing, '›', "›")] {
                glyphs.get_mut(at).into_iter().for_each(|glyph| glyph.turn_into(shown, sign));
            }
        }
    }
}

/// Returns the position of the bracket that closes an id which is followed by a colon.
fn speaker_mark(glyphs: &[Glyph], opening: usize) -> Option<usize> {
    let behind = glyphs.get(opening + 1..)?;
    let length = behind.iter().take(LONGEST_ID + 1).position(|glyph| glyph.shown == ')')?;
    let (id, rest) = behind.split_at_checked(length)?;
    let is_id = id.iter().filter(|glyph| glyph.shown.is_numeric()).count() >= SHORTEST_ID
        && !id.iter().any(|glyph| glyph.is_blank() || glyph.shown == '(');
    let said = rest.iter().skip(1).find(|glyph| !glyph.is_blank());
    (is_id && said.is_some_and(|glyph| glyph.shown == ':')).then_some(opening + 1 + length)
}

/// Changes the mark of a speaker without a name, `123456: `.
fn unframe_number(glyphs: &mut [Glyph]) {
    let Some(begun) = glyphs.get_mut(first_word(glyphs)..) else { return };
    let digits = begun.iter().take_while(|glyph| glyph.shown.is_numeric()).count();
    // A wide colon needs no blank behind it.
    let is_said = begun.get(digits).is_some_and(|colon| {
        let blank = || begun.get(digits + 1).is_some_and(|glyph| glyph.shown == ' ');
        colon.shown == ':' && (colon.to - colon.from > 1 || blank())
    });
    if digits < SHORTEST_ID || !is_said {
        return;
    }
    if let Some(last) = begun.get_mut(digits - 1) {
        last.after = Some("›");
    }
    if let Some(first) = begun.first_mut() {
        first.before = Some("‹");
    }
}

/// Returns the position of the first letter or digit.
fn first_word(glyphs: &[Glyph]) -> usize {
    glyphs.iter().position(|glyph| glyph.shown.is_alphanumeric()).unwrap_or(glyphs.len())
}

/// True if the line begins with these words as people see it.
fn begins(glyphs: &[Glyph], with: &str) -> bool {
    let mut glyphs = glyphs.iter();
    with.chars().all(|wanted| {
        let wanted = wanted.to_ascii_lowercase();
        glyphs.next().is_some_and(|glyph| glyph.shown == wanted || wanted == ' ' && glyph.is_blank())
    })
}

#[cfg(any(test, feature = "testing"))]
pub(crate) mod forged;
#[cfg(test)]
mod tests;
