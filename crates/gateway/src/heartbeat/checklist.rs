//! Check whether `HEARTBEAT.md` asks for anything. Pure.

/// True if a checklist has nothing on it: every line is blank, a heading, or a list marker without
/// words.
pub(super) fn is_empty(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || is_heading(line) || is_bare_marker(line))
}

/// `^#+(\s|$)`
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    rest.len() < line.len() && (rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// `^[-*+]\s*(\[[\sXx]?\]\s*)?$`
fn is_bare_marker(line: &str) -> bool {
    let Some(rest) = line.strip_prefix(['-', '*', '+']) else { return false };
    let rest = rest.trim();
    let inside = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty()
        || inside.is_some_and(|inside| {
            let mut chars = inside.chars();
            let first = chars.next();
            chars.next().is_none() && first.is_none_or(|c| c.is_whitespace() || c == 'x' || c == 'X')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `agent-runtime.md` §11.2.
    #[test]
    fn only_words_are_something_to_do() {
        let nothing = [
            "",
            " \n\t\n",
            "# Title",
            "## A\n### B",
            "- [ ]",
            "* ",
            "+",
            "- [x]",
            "-[]",
            "#",
            "  # Title\r\n- [X] ",
        ];
        for text in nothing {
            assert!(is_empty(text), "{text:?}");
        }
        let something = [
            "#TODO",
            "- Check mail",
            "# T\ntext",
            "- [ ] mail",
            "-- ",
            "- [xx]",
            "1.",
            "<!-- note -->",
            "- [ ] [ ]",
        ];
        for text in something {
            assert!(!is_empty(text), "{text:?}");
        }
    }
}
