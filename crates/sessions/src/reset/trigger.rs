//! A reset asked for in a message (spec `sessions.md` §5.3).

use std::borrow::Cow;

/// A reset asked for in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetRequest {
    /// The trigger as configured.
    pub trigger: String,
    /// Text after the trigger, in its original case; empty for a bare trigger.
    pub rest: String,
}

/// Finds a reset trigger at the start of a message. `raw` is the command body, `stripped` the same
/// without structural prefixes ([`strip_structural_prefixes`]) and, in groups, without mentions.
/// The rest after the trigger is taken from `raw` if that begins with it, so that nothing of it is
/// lost. For a sender who may not give commands the trigger is plain text.
pub fn find_trigger(triggers: &[&str], raw: &str, stripped: &str, may_command: bool) -> Option<ResetRequest> {
    if !may_command {
        return None;
    }
    let triggers = triggers.iter().map(|trigger| trigger.trim()).filter(|trigger| !trigger.is_empty());
    let mut found = triggers.filter_map(|trigger| {
        let rest = after_trigger(raw.trim(), trigger).or_else(|| after_trigger(stripped.trim(), trigger))?;
        Some(ResetRequest { trigger: trigger.to_owned(), rest: rest.to_owned() })
    });
    found.next()
}

/// Text after the trigger and a blank, compared without case; empty where there is nothing else. Behind one that is written as a command
/// there may be a colon.
fn after_trigger<'a>(text: &'a str, trigger: &str) -> Option<&'a str> {
    let rest = strip_prefix_without_case(text, trigger)?;
    if trigger.starts_with('/') {
        return behind_name(rest);
    }
    let is_word = rest.is_empty() || rest.starts_with(char::is_whitespace);
    is_word.then(|| rest.trim_start())
}

/// Text after the name of a command, if the name ends there: at the end, a blank, or a colon (the
/// colon is dropped).
fn behind_name(rest: &str) -> Option<&str> {
    let without_colon = rest.strip_prefix(':');
    let ends = without_colon.is_some() || rest.is_empty() || rest.starts_with(char::is_whitespace);
    ends.then(|| without_colon.unwrap_or(rest).trim_start())
}

/// The name of the command that a text begins with, without its slash, and what follows: `/name: words` is `/name words` (spec
/// `messages.md` §3).
pub fn slash_command(text: &str) -> Option<(&str, &str)> {
    let behind = text.strip_prefix('/')?;
    let end = behind.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(behind.len());
    let (name, rest) = behind.split_at_checked(end)?;
    Some((name, behind_name(rest)?)).filter(|(name, _)| !name.is_empty())
}

/// A text as a command is read from it. A text without an envelope keeps its lines and blanks.
pub fn command_body(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.starts_with(['/', '!']) { text.into() } else { strip_structural_prefixes(text) }
}

/// Text after a prefix that is compared without case; `None` if the prefix is absent.
pub fn strip_prefix_without_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut wanted = prefix.chars().flat_map(char::to_lowercase).peekable();
    let mut chars = text.chars();
    while wanted.peek().is_some() {
        for lower in chars.next()?.to_lowercase() {
            if wanted.next() != Some(lower) {
                return None;
            }
        }
    }
    Some(chars.as_str())
}

/// Marker before a person's own words in a message that another program wrapped (spec `messages.md`
/// §3). Only to find commands: it is no text for a model.
const CURRENT: &str = "[Current message - respond to this]";

/// A message without `[…]` envelopes, `Name:` at the start of its lines, line breaks and repeated blanks.
pub fn strip_structural_prefixes(text: &str) -> Cow<'_, str> {
    if has_nothing_to_strip(text) {
        return text.into();
    }
    let text = text.split_once(CURRENT).map_or(text, |(_, current)| current);
    let named: Vec<String> =
        without_brackets(text).lines().map(|line| without_name(line).to_owned()).collect();
    let text = named.join("\n").replace("\\n", " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ").into()
}

/// True for one line of words with single blanks between them and none of the characters that envelopes and names have. Most messages
/// are such.
fn has_nothing_to_strip(text: &str) -> bool {
    let mut behind_blank = true;
    let is_plain = text.chars().all(|c| {
        let is_blank = c == ' ';
        let stays =
            if is_blank { !behind_blank } else { !matches!(c, '[' | ':' | '\\') && !c.is_whitespace() };
        behind_blank = is_blank;
        stays
    });
    is_plain && !behind_blank
}

fn without_brackets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once('[') {
        match opened.split_once(']') {
            Some((inside, after)) if !inside.is_empty() => {
                out.push_str(before);
                rest = after.trim_start();
            }
            Some(_) => {
                out.push_str(before);
                out.push('[');
                rest = opened;
            }
            // Nothing closes what comes later either.
            None => break,
        }
    }
    out.push_str(rest);
    out
}

fn without_name(line: &str) -> &str {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "+()-_. ".contains(c);
    match line.trim_start_matches([' ', '\t']).split_once(':') {
        Some((name, rest)) if !name.is_empty() && name.chars().all(is_of_name) => rest.trim_start(),
        Some(_) | None => line,
    }
}
