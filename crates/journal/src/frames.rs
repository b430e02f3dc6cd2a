//! Frames that an agent's prompt has around people's words, and the replacements that keep text of
//! others from taking the form of one.
//!
//! Text of others stands in a prompt through [`framed_name`] (names, titles, file names, errors:
//! one line) or [`framed_words`] (messages, quotations, descriptions). Both change a few brackets
//! and leave everything else as it was written.
//!
//! Lines are compared by what they look like ([`glyph`]), not by the characters they are written
//! with. A line is read once, and nothing of it is copied but what is changed. A rare line break (`U+2028`, a vertical tab) is read
//! both ways: a line begins behind it, and it is a blank between the words of a frame.

mod glyph;

use std::borrow::Cow;

use openclaw_config::registry;
use openclaw_protocol::printable::one_line;

use glyph::{Glyph, Glyphs, may_be, sign};

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
    "sticker]",
    "sticker ",
    "image: source",
    "from:",
    // Also `message_id:`: a line between letters counts as a blank.
    "message id:",
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
    ("a subagent task \"", '"', "'"),
    ("received while offline)", ')', "›"),
];
/// Words behind the angle bracket of a placeholder for a file.
const MEDIA: &str = "media:";
/// Beginning of a line in which the gateway itself says something; a bracket with the time follows.
const SYSTEM: &str = "system:";
/// Longest id behind a speaker's name, in characters.
const LONGEST_ID: usize = 64;
/// Characters behind a weekday within which an envelope has a number.
const NEAR: usize = 64;
/// Fewest digits in such an id: shorter numbers before a colon belong to lists and code.
const SHORTEST_ID: usize = 4;

/// Returns a name as it may stand in the frame around a message: people choose their names, and one
/// with a line break or a bracket would pretend to be a frame of its own.
pub fn framed_name(name: &str) -> String {
    let name = one_line(name.trim()).replace(|c| sign(c) == Some('['), "(");
    let name = name.replace(|c| sign(c) == Some(']'), ")");
    let mut framed = Framed::new(&name);
    framed.line(0, name.len());
    framed.finish().into_owned()
}

/// Returns text of others as it may stand in a prompt: brackets of whatever looks like a frame are replaced, so that nobody can speak in
/// another's name. Everything else is unchanged.
pub fn framed_words(text: &str) -> Cow<'_, str> {
    // Every frame has at least one of these characters.
    if !text.contains(|c| matches!(sign(c), Some('[' | '(' | ':' | '#' | '"'))) {
        return Cow::Borrowed(text);
    }
    let mut framed = Framed::new(text);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        framed.line(at, at + line.len());
        at += line.len();
    }
    framed.finish()
}

/// A text whose frames are replaced from its beginning on.
struct Framed<'a> {
    text: &'a str,
    /// Text with the changes so far.
    out: String,
    /// Bytes of the text that are in it.
    kept: usize,
}

impl<'a> Framed<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, out: String::new(), kept: 0 }
    }

    /// Writes something else in the place of a part behind all that was replaced before.
    fn replace(&mut self, from: usize, to: usize, other: &str) {
        self.out.push_str(self.text.get(self.kept..from).unwrap_or_default());
        self.out.push_str(other);
        self.kept = to;
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.out.is_empty() && self.kept == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(self.text.get(self.kept..).unwrap_or_default());
        Cow::Owned(self.out)
    }

    /// Replaces the frames of a line in one pass.
    fn line(&mut self, from: usize, to: usize) {
        let line = self.text.get(from..to).unwrap_or_default();
        if !line.contains(|c| sign(c).is_some()) {
            return;
        }
        let mut glyphs = Glyphs::of(self.text, from, to);
        let mut head = LineStart::of(&glyphs);
        let mut brackets = Brackets::default();
        let mut is_broken = false;
        while let Some(glyph) = glyphs.next() {
            if let Some((from, to)) = head.number.filter(|(_, to)| glyph.from >= *to) {
                self.replace(from, from, "‹");
                self.replace(to, to, "›");
                head.number = None;
            }
            is_broken |= glyph.is_broken;
            if is_broken && !glyph.is_blank() {
                is_broken = false;
                head.begin_again(&glyph, &glyphs);
            }
            let instead = match head.sign.filter(|(at, _)| *at == glyph.from) {
                Some((_, other)) => Some(other),
                None => brackets.instead(&glyph, &glyphs, &head),
            };
            brackets.pass(&glyph);
            if let Some(instead) = instead {
                self.replace(glyph.from, glyph.to, instead);
            }
        }
    }
}

/// Facts about the beginning of a line, behind blanks and punctuation.
#[derive(Debug, Default)]
struct LineStart {
    /// Byte at which its first letter or digit begins.
    first: usize,
    /// True if it begins like an envelope, so that the brackets before it are frames.
    is_enveloped: bool,
    /// Byte of the bracket behind [`SYSTEM`], in a line that begins like a message of the gateway itself.
    told: Option<usize>,
    /// Byte of the character that makes the line a frame without a bracket, and its replacement.
    sign: Option<(usize, &'static str)>,
    /// Range of the mark of a speaker without a name, `123456: `.
    number: Option<(usize, usize)>,
}

impl LineStart {
    fn of(line: &Glyphs<'_>) -> Self {
        let (mut begun, mut ahead) = (line.clone(), line.clone());
        let first = loop {
            match ahead.next() {
                Some(glyph) if glyph.shown.is_alphanumeric() => break glyph.from,
                Some(_) => begun = ahead.clone(),
                None => return Self { first: line.end(), ..Self::default() },
            }
        };
        let sign = LINES.iter().find(|(with, ..)| begun.behind(with).is_some());
        let sign = sign.and_then(|(_, sign, other)| {
            Some((begun.clone().find(|glyph| glyph.shown == *sign)?.from, *other))
        });
        let told = begun.behind(SYSTEM).and_then(|mut told| told.find(|glyph| !glyph.is_blank()));
        Self {
            first,
            is_enveloped: is_envelope(&begun),
            told: told.filter(|glyph| glyph.shown == '[').map(|glyph| glyph.from),
            sign,
            number: number(begun),
        }
    }

    /// Reads the beginning of another line, at a glyph behind a rare line break. What was found ahead of it before stays.
    fn begin_again(&mut self, glyph: &Glyph, line: &Glyphs<'_>) {
        if glyph.from <= self.first {
            return;
        }
        let new = Self::of(&line.from(glyph));
        let (told, sign) = (self.told.take(), self.sign.take());
        *self = Self {
            told: told.filter(|at| *at >= glyph.from).or(new.told),
            sign: sign.filter(|(at, _)| *at >= glyph.from).or(new.sign),
            ..new
        };
    }
}

/// True if words in a bracket begin like the envelope before a message: with a channel's label, or with a weekday.
fn is_envelope(words: &Glyphs<'_>) -> bool {
    let is_label = |label: &str| {
        words
            .behind(label)
            .and_then(|mut rest| rest.next())
            .is_some_and(|glyph| glyph.parts_words() || glyph.is_apart)
    };
    let is_day = |day: &&str| words.behind(day).is_some();
    registry::envelope_labels().any(is_label)
        || words.behind("channel ").is_some()
        || WEEKDAYS.iter().any(is_day) && words.clone().take(NEAR).any(|glyph| glyph.shown.is_numeric())
}

/// Returns the range of the digits that a line begins with, if they are followed by a colon.
fn number(mut begun: Glyphs<'_>) -> Option<(usize, usize)> {
    let (mut digits, mut range) = (0, None);
    let colon = loop {
        let glyph = begun.next()?;
        if !glyph.shown.is_numeric() {
            break glyph;
        }
        digits += 1;
        range = Some((range.map_or(glyph.from, |(from, _)| from), glyph.to));
    };
    // A wide colon needs no blank behind it.
    let is_said = colon.shown == ':'
        && (colon.to - colon.from > 1 || begun.next().is_some_and(|glyph| glyph.shown == ' '));
    range.filter(|_| digits >= SHORTEST_ID && is_said)
}

/// Brackets of a line that is read glyph by glyph.
#[derive(Debug)]
struct Brackets {
    /// Number of frames that are open.
    open: usize,
    /// Byte of the words that the brackets before them begin with, and whether only frames have such words.
    words: (usize, bool),
    /// Byte of the id that the brackets before it may belong to.
    tried: usize,
    /// Range of the brackets that close the id of a speaker; those before `tried` open it.
    mark: Option<(usize, usize)>,
    /// True if a placeholder for a file is open.
    is_media: bool,
    /// True if the next bracket may open an id: a blank stands before it, or another that may.
    is_apart: bool,
}

impl Default for Brackets {
    fn default() -> Self {
        Self { open: 0, words: (0, false), tried: 0, mark: None, is_media: false, is_apart: true }
    }
}

impl Brackets {
    /// Notes a glyph, when it is done with.
    fn pass(&mut self, glyph: &Glyph) {
        self.is_apart = glyph.is_blank() || glyph.shown == '(' && (self.is_apart || glyph.is_apart);
    }

    /// Returns what is to be written instead of a bracket of a frame. Of frames these are the brackets at the beginning of the line,
    /// behind nothing but blanks and punctuation, and those with words that only frames have, wherever they stand.
    fn instead(&mut self, glyph: &Glyph, behind: &Glyphs<'_>, head: &LineStart) -> Option<&'static str> {
        match glyph.shown {
            '[' => {
                let is_frame = head.told == Some(glyph.from)
                    || glyph.from < head.first && head.is_enveloped
                    || self.begins_frame(glyph, behind);
                if !is_frame {
                    return None;
                }
                self.open += 1;
                Some(if self.opens_mark(glyph, behind) { "‹" } else { "(" })
            }
            '(' => self.opens_mark(glyph, behind).then_some("‹"),
            ']' if self.open > 0 => {
                self.open -= 1;
                Some(if self.closes_mark(glyph) { "›" } else { ")" })
            }
            ')' => self.closes_mark(glyph).then_some("›"),
            '<' if begins_media(behind) => {
                self.is_media = true;
                Some("«")
            }
            '>' => std::mem::take(&mut self.is_media).then_some("»"),
            _ => None,
        }
    }

    /// True if the words behind a bracket are those of a frame. All brackets before the same words have the same answer, which is
    /// looked for once.
    fn begins_frame(&mut self, bracket: &Glyph, behind: &Glyphs<'_>) -> bool {
        if bracket.from < self.words.0 {
            return self.words.1;
        }
        let (mut words, mut ahead) = (behind.clone(), behind.clone());
        self.words = loop {
            match ahead.next() {
                None => break (behind.end(), false),
                Some(glyph) if glyph.shown == ']' => break (glyph.from, false),
                Some(glyph) if glyph.shown == '/' || glyph.shown.is_alphanumeric() => {
                    let begins = |frame: &&str| {
                        frame.starts_with(|c| may_be(glyph.shown, c)) && words.behind(frame).is_some()
                    };
                    break (glyph.from, BRACKETS.iter().any(begins));
                }
                Some(_) => words = ahead.clone(),
            }
        };
        self.words.1
    }

    /// True if a bracket opens the id of a speaker, `Bob (42): `: it stands between `‹` and `›` instead.
    fn opens_mark(&mut self, bracket: &Glyph, behind: &Glyphs<'_>) -> bool {
        if bracket.from < self.tried {
            return self.mark.is_some();
        }
        // A wide bracket needs no blank before it.
        if !(self.is_apart || bracket.is_apart || bracket.to - bracket.from > 1) {
            return false;
        }
        (self.tried, self.mark) = speaker_mark(behind.clone(), self.open);
        self.mark.is_some()
    }

    fn closes_mark(&self, bracket: &Glyph) -> bool {
        self.mark.is_some_and(|(from, to)| (from..to).contains(&bracket.from))
    }
}

/// True if the words behind an angle bracket are those of a placeholder for a file.
fn begins_media(behind: &Glyphs<'_>) -> bool {
    let (mut words, mut ahead) = (behind.clone(), behind.clone());
    if ahead.next().is_some_and(|glyph| glyph.is_blank()) {
        words = ahead;
    }
    words.behind(MEDIA).is_some()
}

/// Returns the byte of the id behind a bracket, which may be doubled, and the range of the brackets that close it, if a colon follows.
/// Brackets of so many open frames close one too.
fn speaker_mark(mut behind: Glyphs<'_>, mut open: usize) -> (usize, Option<(usize, usize)>) {
    let end = behind.end();
    let mut closes = |glyph: &Glyph| match glyph.shown {
        ')' => true,
        ']' if open > 0 => {
            open -= 1;
            true
        }
        _ => false,
    };
    let Some(mut glyph) = behind.find(|glyph| glyph.shown != '(') else { return (end, None) };
    let id = glyph.from;
    let (mut length, mut digits) = (0, 0);
    while !closes(&glyph) {
        length += 1;
        digits += usize::from(glyph.shown.is_numeric());
        let is_of_id = !glyph.is_blank() && !matches!(glyph.shown, '(' | '[');
        match behind.next() {
            Some(next) if is_of_id && length <= LONGEST_ID => glyph = next,
            _ => return (id, None),
        }
    }
    let mut closing = (glyph.from, glyph.to);
    let said = behind.find(|glyph| {
        let is_closing = closes(glyph);
        if is_closing {
            closing.1 = glyph.to;
        }
        !is_closing && !glyph.is_blank()
    });
    let is_said = said.is_some_and(|glyph| glyph.shown == ':');
    (id, (digits >= SHORTEST_ID && is_said).then_some(closing))
}

#[cfg(any(test, feature = "testing"))]
pub(crate) mod forged;
#[cfg(test)]
mod tests;
