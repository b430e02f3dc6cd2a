//! Diff of an edit for people: numbered lines with a little context.

use std::borrow::Cow;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 4;
/// Characters of a line that are shown.
const MAX_LINE: usize = 1000;
/// Bytes of a diff, which clients and the transcript get; what follows is left out.
const MAX_TEXT: usize = 64 * 1024;
/// Time to search for the smallest difference; then a larger one is used, which is equally correct.
const DEADLINE: Duration = Duration::from_secs(1);

/// A diff to show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditDiff {
    /// Lines of ` 12 same`, `-13 gone`, `+13 new`; `...` where lines are left out.
    pub(super) text: String,
    /// Line in the new file, from 1.
    pub(super) first_changed_line: Option<usize>,
}

/// Compares two texts line by line. Neither long lines nor many of them make it larger than [`MAX_TEXT`] and a line.
pub(super) fn of(before: &str, after: &str) -> EditDiff {
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(before, after);
    let width = before.lines().count().max(after.lines().count()).to_string().len();
    let left_out = format!(" {:width$} ...", "");
    let (mut text, mut first, mut end, mut is_cut) = (String::new(), None, 0, false);
    'groups: for group in diff.grouped_ops(CONTEXT) {
        if group.first().is_some_and(|op| op.old_range().start > end) {
            push_line(&mut text, &left_out);
        }
        end = group.last().map_or(end, |op| op.old_range().end);
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
            if text.len() >= MAX_TEXT {
                is_cut = true;
                break 'groups;
            }
            let line = shortened(change.value().trim_end_matches(['\r', '\n']));
            push_line(&mut text, &format!("{sign}{number:width$} {line}"));
        }
    }
    if is_cut || first.is_some() && end < diff.old_slices().len() {
        push_line(&mut text, &left_out);
    }
    EditDiff { text, first_changed_line: first }
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// The beginning of a long line, and how much of it is missing.
fn shortened(line: &str) -> Cow<'_, str> {
    let Some((cut, _)) = line.char_indices().nth(MAX_LINE) else { return Cow::Borrowed(line) };
    let (shown, rest) = line.split_at(cut);
    Cow::Owned(format!("{shown}… ({} more characters)", rest.chars().count()))
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
        assert_eq!(of(&before, &after), EditDiff { text: text.into(), first_changed_line: Some(6) });
    }

    #[test]
    fn changes_far_apart_have_dots_between_them() {
        let before: String = (1..=30).map(|n| format!("{n}\n")).collect();
        let after = before.replace("10\n", "ten\n").replace("25\n", "");
        let shown = of(&before, &after).text;
        let dots: Vec<usize> =
            shown.lines().enumerate().filter(|(_, line)| line.ends_with("...")).map(|(at, _)| at).collect();
        assert_eq!(dots, [0, 11, 21], "{shown}");
    }

    #[test]
    fn long_lines_and_many_lines_are_cut() {
        let long = "é".repeat(24_000_000);
        let shown = of(&long, &format!("{long}x"));
        let start = "é".repeat(MAX_LINE);
        let expect =
            format!("-1 {start}… (23999000 more characters)\n+1 {start}… (23999001 more characters)");
        assert!(shown.text == expect && shown.first_changed_line == Some(1), "{} bytes", shown.text.len());

        let lines = |word: &str| (0..200_000).map(|n| format!("{word} {n}\n")).collect::<String>();
        let shown = of(&lines("old"), &lines("new"));
        assert!(shown.text.len() < MAX_TEXT + 100 && shown.text.ends_with(" ..."), "{}", shown.text.len());
        assert_eq!(shown.first_changed_line, Some(1));
    }

    #[test]
    fn a_file_of_one_line_has_no_dots() {
        assert_eq!(of("a", "b"), EditDiff { text: "-1 a\n+1 b".into(), first_changed_line: Some(1) });
        assert_eq!(of("a\r\n", "a\r\n"), EditDiff { text: String::new(), first_changed_line: None });
    }
}
