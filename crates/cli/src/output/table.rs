//! Text in columns. Cells stay in their place whatever their text.

use std::borrow::Cow;

use openclaw_config::Environment;

use super::one_line;

/// Characters of a line for a table: what the terminal says, or else 119.
pub(crate) fn width(env: &Environment) -> usize {
    const WIDTH: usize = 120;
    const NARROWEST: usize = 60;
    let columns = env.get_nonblank("COLUMNS").and_then(|columns| columns.parse().ok());
    columns.unwrap_or(WIDTH).max(NARROWEST) - 1
}

/// A column: its heading and its least width in characters; longer cells push the rest to the right.
pub(crate) type Column = (&'static str, usize);

/// Lines of plain columns, separated by one space, the heading first.
pub(crate) fn columns(columns: &[Column], rows: &[Vec<String>]) -> Vec<String> {
    let heading: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let render = |row: &Vec<String>| {
        let cells = row.iter().zip(columns).map(|(cell, (_, width))| pad(&one_line(cell), *width));
        cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    std::iter::once(&heading).chain(rows).map(render).collect()
}

/// Lines of plain columns as wide as their cells, separated by two spaces, the heading first.
pub(crate) fn fitting(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let heading: Vec<String> = heading.iter().map(|name| (*name).to_owned()).collect();
    let all: Vec<Vec<_>> = std::iter::once(&heading)
        .chain(rows)
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let longest = |at: usize| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let line = |row: &Vec<Cow<'_, str>>| {
        let cells = row.iter().enumerate().map(|(at, cell)| pad(cell, longest(at).unwrap_or_default()));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

/// Lines of a box with two columns. `width` is the whole width, in characters.
pub(crate) fn boxed(heading: [&str; 2], rows: &[(String, String)], width: usize) -> Vec<String> {
    let first =
        rows.iter().map(|(key, _)| key.chars().count()).chain([heading[0].len()]).max().unwrap_or_default();
    let second = width.saturating_sub(first + 7).max(20);
    let rule = |left: char, middle: char, right: char| {
        let (a, b) = ("─".repeat(first + 2), "─".repeat(second + 2));
        format!("{left}{a}{middle}{b}{right}")
    };
    let row = |key: &str, value: &str| format!("│ {} │ {} │", pad(key, first), pad(value, second));
    let mut lines = vec![rule('┌', '┬', '┐'), row(heading[0], heading[1]), rule('├', '┼', '┤')];
    for (key, value) in rows {
        let mut parts = wrap(&one_line(value), second).into_iter();
        lines.push(row(key, &parts.next().unwrap_or_default()));
        lines.extend(parts.map(|part| row("", &part)));
    }
    lines.push(rule('└', '┴', '┘'));
    lines
}

/// Lines of a box with several columns, each at least as wide as given here, in characters with its margins. The column
/// `flexible` takes what the others leave of `width`, and its cells are broken to fit.
pub(crate) fn grid(columns: &[Column], rows: &[Vec<String>], flexible: usize, width: usize) -> Vec<String> {
    const NARROWEST: usize = 24;
    let content = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| one_line(cell).chars().count());
        cells.max().unwrap_or_default()
    };
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, (name, least))| content(at).max(name.chars().count()).max(least.saturating_sub(2)))
        .collect();
    let others: usize =
        widths.iter().enumerate().filter(|(at, _)| *at != flexible).map(|(_, width)| width + 3).sum();
    if let Some(flexible) = widths.get_mut(flexible) {
        *flexible = width.saturating_sub(others + 4).max(NARROWEST - 2);
    }
    let rule = |left: &str, middle: &str, right: &str| {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}", parts.join(middle))
    };
    let line = |cells: &[String]| {
        let cells = widths
            .iter()
            .enumerate()
            .map(|(at, width)| pad(cells.get(at).map(String::as_str).unwrap_or_default(), *width));
        format!("│ {} │", cells.collect::<Vec<_>>().join(" │ "))
    };
    let heading: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut lines = vec![rule("┌", "┬", "┐"), line(&heading), rule("├", "┼", "┤")];
    for row in rows {
        let broken: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, width)| wrap(&one_line(cell), *width)).collect();
        for at in 0..broken.iter().map(Vec::len).max().unwrap_or_default() {
            let cells: Vec<String> =
                broken.iter().map(|cell| cell.get(at).cloned().unwrap_or_default()).collect();
            lines.push(line(&cells));
        }
    }
    lines.push(rule("└", "┴", "┘"));
    lines
}

fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Breaks at spaces; a word that is too long is broken anywhere.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word.to_owned();
        loop {
            let used = lines.last().map_or(0, |line| line.chars().count());
            let gap = usize::from(used > 0);
            if used + gap + rest.chars().count() <= width {
                if let Some(line) = lines.last_mut() {
                    line.push_str(if gap == 1 { " " } else { "" });
                    line.push_str(&rest);
                }
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let head: String = rest.chars().take(width).collect();
            rest = rest.chars().skip(width).collect();
            if let Some(line) = lines.last_mut() {
                line.push_str(&head);
            }
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_wraps_at_words_and_breaks_long_ones() {
        let rows =
            [("Key".to_owned(), "one two three four five".to_owned()), ("K".to_owned(), "x".repeat(25))];
        let text = boxed(["Item", "Value"], &rows, 31).join("\n");
        expect_test::expect![[r#"
            ┌──────┬──────────────────────┐
            │ Item │ Value                │
            ├──────┼──────────────────────┤
            │ Key  │ one two three four   │
            │      │ five                 │
            │ K    │ xxxxxxxxxxxxxxxxxxxx │
            │      │ xxxxx                │
            └──────┴──────────────────────┘"#]]
        .assert_eq(&text);
    }
}
