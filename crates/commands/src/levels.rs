//! Levels as people write them (spec `messages.md` §4 "Level synonyms"): case, blanks, `_` and `-` don't count.

use openclaw_journal::intent::Reasoning;
use openclaw_models::ThinkingLevel;
use openclaw_sessions::entry::{ElevatedLevel, VerboseLevel};

use super::directive::DirectiveReading;
use super::line::{Hit, cut, ends_name, skip_colon, slashes};
use openclaw_sessions::reset::trigger::strip_prefix_without_case;

type LevelNames<T> = &'static [(T, &'static [&'static str])];

const VERBOSE: LevelNames<VerboseLevel> = &[
    (VerboseLevel::Off, &["off", "false", "no", "0"]),
    (VerboseLevel::On, &["on", "minimal", "true", "yes", "1"]),
    (VerboseLevel::Full, &["full", "all", "everything"]),
];
const REASONING: LevelNames<Reasoning> = &[
    (Reasoning::Off, &["off", "false", "no", "0", "hide", "hidden", "disable", "disabled"]),
    (Reasoning::On, &["on", "true", "yes", "1", "show", "visible", "enable", "enabled"]),
    (Reasoning::Stream, &["stream", "streaming", "draft", "live"]),
];
const ELEVATED: LevelNames<ElevatedLevel> = &[
    (ElevatedLevel::Off, &["off", "false", "no", "0"]),
    (ElevatedLevel::On, &["on", "true", "yes", "1"]),
    (ElevatedLevel::Ask, &["ask", "prompt", "approval", "approve"]),
    (ElevatedLevel::Full, &["full", "auto", "autoapprove"]),
];

fn plain(text: &str) -> String {
    let letters = text.chars().filter(|c| !c.is_whitespace() && *c != '_' && *c != '-');
    letters.flat_map(char::to_lowercase).collect()
}

fn named<T: Copy>(names: LevelNames<T>, text: &str) -> Option<T> {
    let text = plain(text);
    names.iter().find(|(_, names)| names.contains(&text.as_str())).map(|(level, _)| *level)
}

/// `/think`
pub(crate) fn thinking(text: &str) -> Option<ThinkingLevel> {
    plain(text).parse().ok()
}

/// `/verbose`
pub(crate) fn verbose(text: &str) -> Option<VerboseLevel> {
    named(VERBOSE, text)
}

/// `/reasoning`
pub(crate) fn reasoning(text: &str) -> Option<Reasoning> {
    named(REASONING, text)
}

/// `/elevated`
pub(crate) fn elevated(text: &str) -> Option<ElevatedLevel> {
    named(ELEVATED, text)
}

/// Cuts out a directive that takes a level; returns the level as it was written, and the rest of
/// the text.
pub(crate) fn take(
    text: &str,
    names: &[&str],
    reading: DirectiveReading,
    is_level: fn(&str) -> bool,
) -> Option<(String, String)> {
    cut(text, |line| find(line, names, reading, is_level))
}

fn find(
    line: &str,
    names: &[&str],
    reading: DirectiveReading,
    is_level: fn(&str) -> bool,
) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = skip_colon(behind_name(behind, names)?);
        let argument = argument(behind, reading, is_level);
        if reading == DirectiveReading::Among && argument.is_empty() {
            return None;
        }
        Some(Hit { from, to: line.len() - behind.len() + argument.len(), value: argument.to_owned() })
    })
}

/// Returns the text behind one of the names; `None` if the text begins with none of them.
pub(crate) fn behind_name<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| strip_prefix_without_case(text, name).filter(|rest| ends_name(rest)))
}

/// Returns the level at the beginning of a text: one word, or two that are one level, such as
/// `extra high`. A word that is no level belongs to the directive only if it is the whole text.
fn argument(text: &str, reading: DirectiveReading, is_level: fn(&str) -> bool) -> &str {
    let one = word_len(text);
    let blanks = |from: &str| from.len() - from.trim_start_matches([' ', '\t']).len();
    let gap = text.get(one..).map_or(0, blanks);
    let two = one + gap + text.get(one + gap..).map_or(0, word_len);
    let slice = |to: usize| text.get(..to).unwrap_or_default();
    match () {
        () if gap > 0 && two > one + gap && is_level(slice(two)) => slice(two),
        () if is_level(slice(one)) => slice(one),
        () if reading == DirectiveReading::Alone => slice(one),
        () => "",
    }
}

fn word_len(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '-' || c == '_').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `messages.md` §4 "Level synonyms".
    #[test]
    fn every_synonym_is_read() {
        let rows = [
            ("off", ThinkingLevel::Off),
            ("on enable ENABLED low thinkhard think-hard think_hard", ThinkingLevel::Low),
            ("min minimal think", ThinkingLevel::Minimal),
            ("mid med medium thinkharder think-harder harder", ThinkingLevel::Medium),
            ("high ultra ultrathink thinkhardest highest max", ThinkingLevel::High),
            ("xhigh x-high x_high extra-high extra_high extrahigh X-High", ThinkingLevel::XHigh),
        ];
        for (names, level) in rows {
            for name in names.split(' ') {
                assert_eq!(thinking(name), Some(level), "{name}");
            }
        }
        assert_eq!(thinking("extra high"), Some(ThinkingLevel::XHigh));
        for (level, names) in VERBOSE {
            assert!(names.iter().all(|name| verbose(name) == Some(*level)));
        }
        for (names, level) in [
            ("off hide hidden disable disabled", Reasoning::Off),
            ("on show visible enabled", Reasoning::On),
            ("stream STREAMING draft live", Reasoning::Stream),
        ] {
            assert!(names.split(' ').all(|name| reasoning(name) == Some(level)), "{names}");
        }
        for (names, level) in [
            ("ask prompt approval approve", ElevatedLevel::Ask),
            ("full auto auto-approve auto_approve", ElevatedLevel::Full),
        ] {
            assert!(names.split(' ').all(|name| elevated(name) == Some(level)), "{names}");
        }
        for none in ["", "xyz", "offline", "lowest", "5"] {
            assert!(
                thinking(none).is_none() && verbose(none).is_none() && reasoning(none).is_none(),
                "{none}"
            );
        }
    }
}
