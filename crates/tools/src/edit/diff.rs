//! What an edit changed, for people: numbered lines with a little context.

use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 4;

/// A diff to show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Lines of ` 12 same`, `-13 gone`, `+13 new`; `...` where lines are left out.
    pub(super) text: String,
    /// In the new file, from 1.
    pub(super) first_changed_line: Option<usize>,
}

/// Compares two texts line by line.
pub(super) fn of(before: &str, after: &str) -> Shown {
    let diff = TextDiff::from_lines(before, after);
    let width = before.lines().count().max(after.lines().count()).to_string().len();
    let (mut lines, mut first) = (Vec::new(), None);
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 || group.first().is_some_and(|op| op.old_range().start > 0) {
            lines.push(format!(" {:width$} ...", ""));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, number) = match change.tag() {
                ChangeTag::Equal => (' ', change.old_index()),
                ChangeTag::Delete => ('-', change.old_index()),
                ChangeTag::Insert => ('+', change.new_index()),
            };
            let number = number.unwrap_or_default() + 1;
            if sign != ' ' {
                first = first.or(Some(number));
            }
            lines.push(format!("{sign}{number:width$} {}", change.value().trim_end_matches(['\r', '\n'])));
        }
        let more = group.last().is_some_and(|op| op.old_range().end < diff.old_slices().len());
        if more && index + 1 == diff.grouped_ops(CONTEXT).len() {
            lines.push(format!(" {:width$} ...", ""));
        }
    }
    Shown { text: lines.join("\n"), first_changed_line: first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_four_lines_around_it() {
        let before: String = (1..=12).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 6\n", "line six\nand more\n");
        let text = "    ...\n  2 line 2\n  3 line 3\n  4 line 4\n  5 line 5\n- 6 line 6\n+ 6 line six\n+ 7 and more\n  \
                    7 line 7\n  8 line 8\n  9 line 9\n 10 line 10\n    ...";
        assert_eq!(of(&before, &after), Shown { text: text.into(), first_changed_line: Some(6) });
    }

    #[test]
    fn a_file_of_one_line_has_no_dots() {
        assert_eq!(of("a", "b"), Shown { text: "-1 a\n+1 b".into(), first_changed_line: Some(1) });
        assert_eq!(of("a\r\n", "a\r\n"), Shown { text: String::new(), first_changed_line: None });
    }
}
