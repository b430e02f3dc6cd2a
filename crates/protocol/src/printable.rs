//! Text that may come from anybody, made safe for people to read: in a terminal, a log, a table.
//!
//! A control character moves the cursor or recolours what stands elsewhere; a direction override makes a line read
//! backwards. Both are written as `\u` escapes, which JSON reads back as what they were.

use std::borrow::Cow;

/// True if a character affects the text around it instead of standing in it. Line breaks and tabs
/// do too.
pub fn is_control(c: char) -> bool {
    // Line and paragraph separators, then the embeddings, overrides and isolates of bidirectional text.
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with its control characters escaped, except line breaks and tabs.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_where(text, |c| is_control(c) && !matches!(c, '\n' | '\t'))
}

/// The text in one line, for a field, a cell or a name: line breaks and tabs would pretend to be structure.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped_where(text, is_control)
}

/// The same, with everything escaped that has no shape of its own, for what a person has to judge: two texts that differ look different.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped_where(text, |c| is_control(c) || is_shapeless(c))
}

/// True if a character can't be seen, or passes for a space: it takes no room, is blank, or only
/// turns the characters around it.
pub fn is_shapeless(c: char) -> bool {
    let is_blank = c != ' ' && c.is_whitespace();
    is_blank
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The text up to so many characters, with `…` behind them if there are more.
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((at, _)) => Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default().trim_end())),
        None => Cow::Borrowed(text),
    }
}

/// The escape of one control character.
pub fn escape(c: char) -> Cow<'static, str> {
    match c {
        '\n' => Cow::Borrowed("\\n"),
        '\t' => Cow::Borrowed("\\t"),
        _ => Cow::Owned(format!("\\u{:04x}", u32::from(c))),
    }
}

fn escaped_where(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            out.push_str(&escape(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns a number with thousands separators: `12,345`.
pub fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_other_text_is_escaped() {
        let rows = [
            ("plain ünïcode 🦞 עברית", "plain ünïcode 🦞 עברית", "plain ünïcode 🦞 עברית"),
            ("two\nlines\tand a tab", "two\nlines\tand a tab", "two\\nlines\\tand a tab"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007", "\\u001b]0;title\\u0007"),
            ("\u{9b}31m\u{7f}\r\0", "\\u009b31m\\u007f\\u000d\\u0000", "\\u009b31m\\u007f\\u000d\\u0000"),
            ("gpj\u{202e}exe\u{2066}\u{2069}", "gpj\\u202eexe\\u2066\\u2069", "gpj\\u202eexe\\u2066\\u2069"),
            ("a\u{2028}b", "a\\u2028b", "a\\u2028b"),
        ];
        for (text, many, one) in rows {
            assert_eq!((escaped(text).as_ref(), one_line(text).as_ref()), (many, one), "{text:?}");
        }
    }

    #[test]
    fn an_excerpt_counts_characters() {
        for (most, expect) in [(0, "…"), (2, "🦞é…"), (3, "🦞éa"), (9, "🦞éa")] {
            assert_eq!(excerpt("🦞éa", most), expect);
        }
        assert_eq!(excerpt("a b", 2), "a…", "no blank stands before the mark");
    }

    #[test]
    fn what_has_no_shape_is_escaped_where_a_person_judges() {
        let rows = [
            ("rm /tmp/a\u{200b}b", "rm /tmp/a\\u200bb"),
            (
                "a\u{200e}\u{200f}\u{61c}\u{2060}\u{feff}\u{ad}b",
                "a\\u200e\\u200f\\u061c\\u2060\\ufeff\\u00adb",
            ),
            ("a\u{e0041}\u{fe0f}\u{3164}", "a\\ue0041\\ufe0f\\u3164"),
            ("two\nlines\u{202e}", "two\\nlines\\u202e"),
            ("a b\u{a0}c\u{2003}d\u{3000}e\u{2800}", "a b\\u00a0c\\u2003d\\u3000e\\u2800"),
            ("plain ünïcode 🦞 עברית", "plain ünïcode 🦞 עברית"),
        ];
        for (text, expect) in rows {
            assert_eq!(visible(text), expect, "{text:?}");
        }
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({ "key": "\u{1b}[2J\u{9b}\n\u{7f}\u{202e}" });
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&one_line(&text)).unwrap(), value);
    }
}
