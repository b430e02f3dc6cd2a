//! Words that are no Markdown, as Markdown.

/// Markdown that reads as these words, whatever signs are in them: what a provider or a tool says of its failure formats nothing. Space at
/// the beginning of a line is left out, as it could mean code.
pub fn escaped(words: &str) -> String {
    let mut out = String::with_capacity(words.len() + 16);
    for (at, line) in words.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        escape_line(&mut out, line.trim_start());
    }
    out
}

fn escape_line(out: &mut String, line: &str) {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    for (at, c) in line.char_indices() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '|' => out.push('\\'),
            '#' | '+' | '-' | '=' | '>' if at == 0 => out.push('\\'),
            '.' | ')' if at == digits && digits > 0 => out.push('\\'),
            '&' => {
                out.push_str("&amp;");
                continue;
            }
            '<' => {
                out.push_str("&lt;");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{MarkdownFeatures, read};
    use super::*;
    use openclaw_testkit::markdown::any_markdown;

    #[test]
    fn what_is_escaped_reads_as_it_was_written() {
        let rows = [
            "400 *bad* field `__name__` of <tool> & [more](https://a.b/c_d)",
            "# no heading\n- no list\n1. no item\n> no quote\n~~~\n```\nno code\n```",
            "| a | b |\n| - | - |\n| 1 | 2 |",
            "title\n===\nother\n---",
            "a\\_b &amp; <https://a.b> 12) x 3.5",
            "plain words. And more: 1 - 2 = 3",
        ];
        for words in rows {
            let styled = read(&escaped(words), MarkdownFeatures::PLAIN);
            assert_eq!((styled.text.as_str(), styled.spans.len()), (words, 0), "{}", escaped(words));
        }
        assert_eq!(
            read(&escaped("{\n    \"a\": 1\n}\n\n    b"), MarkdownFeatures::PLAIN).text,
            "{\n\"a\": 1\n}\n\nb"
        );
    }

    proptest! {
        #[test]
        fn nothing_is_formatted(words in any_markdown()) {
            prop_assert!(read(&escaped(&words), MarkdownFeatures::PLAIN).spans.is_empty(), "{}", escaped(&words));
        }
    }
}
