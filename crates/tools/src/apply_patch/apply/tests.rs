use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use super::super::parse::{Hunk, parse};
use super::*;

/// Returns the content of a file after an update with this body.
fn patched(before: &[u8], body: &str) -> Result<Vec<u8>, String> {
    let input = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
    let hunks = parse(&input).map_err(|error| error.to_string())?;
    let [Hunk::Update { chunks, .. }] = hunks.as_slice() else { panic!("{hunks:?}") };
    update(before, chunks, "f").map_err(|error| error.to_string())
}

#[test]
fn chunks_are_applied() {
    for (before, body, after) in [
        ("foo\nbar\n", "@@\n foo\n-bar\n+baz", "foo\nbaz\n"),
        ("line1\n", "@@\n+line2\n*** End of File", "line1\nline2\n"),
        ("foo\nbar", " foo\n-bar\n+baz", "foo\nbaz\n"),
        ("a\nb\n", "-a\n-b", ""),
        ("", "+a", "a\n"),
        // Without old lines it is added at the end, wherever the context is; insertions stay in order.
        ("f\ng\n", "@@ f\n+x\n@@\n-g\n+h\n@@\n+y", "f\nh\nx\ny\n"),
        // The context narrows the search to what comes after it.
        ("fn a\n  x\nfn b\n  x\n", "@@ fn b\n-  x\n+  y", "fn a\n  x\nfn b\n  y\n"),
        ("a\nx\na\nx\n", "@@\n a\n-x\n+1\n@@\n a\n-x\n+2", "a\n1\na\n2\n"),
        ("fn a\nx\nfn b\nx\n", "@@ fn a\n-x\n+y\n@@ fn b\n-x\n+z", "fn a\ny\nfn b\nz\n"),
        // At the end of the file, not at the first occurrence.
        ("x\ny\nx\n", "-x\n+z\n*** End of File", "x\ny\nz\n"),
        // Lines that are kept stay as the file has them.
        ("  a \nb\n", "@@\n a\n-b\n+c", "  a \nc\n"),
        (
            "\u{201c}q\u{201d} \u{2013} r\u{a0}s\nb\n",
            "@@\n \"q\" - r s\n-b\n+c",
            "\u{201c}q\u{201d} \u{2013} r\u{a0}s\nc\n",
        ),
        ("fn  a()\t\nx\n", "@@ fn  a()\n-x\n+y", "fn  a()\t\ny\n"),
        // An empty last line that the file does not have.
        ("a\nb\n", "@@\n a\n-b\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@\n b\n \n+c", "a\nb\n\nc\n"),
        ("a\nb\n", "@@\n b\n-\n+c\n+", "a\nb\nc\n"),
        // Empty lines at the end stay.
        ("a\n\n\n", "-a\n+b", "b\n\n\n"),
        ("a\n\n", "@@\n+b", "a\n\nb\n"),
        // Line ends and byte order mark stay.
        ("a\r\nb\r\n", "@@\n a\n-b\n+c\n+d", "a\r\nc\r\nd\r\n"),
        ("a\r\nb", "@@\n+c", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\nc\n", "@@\n-a\n+1\n b\n-c\n+2", "1\r\nb\n2\n"),
        ("\u{feff}a\nb\n", "-a\n+c", "\u{feff}c\nb\n"),
        ("\u{feff}", "+a", "\u{feff}a\n"),
    ] {
        assert_eq!(patched(before.as_bytes(), body), Ok(after.into()), "{before:?} {body:?}");
    }
}

#[test]
fn what_does_not_fit_is_explained() {
    const BINARY: &str = "f is a binary file or not UTF-8 text. Use exec to change it.";
    for (before, body, says) in [
        (&b"a\n"[..], "@@ fn x\n-a", "Failed to find context 'fn x' in f"),
        (b"fn x\na\n", "@@ fn x\n-a\n@@ fn x\n-b", "Failed to find context 'fn x' in f"),
        (b"a\nb\n", "@@\n a\n-c\n+d", "Failed to find expected lines in f:\na\nc"),
        (b"a\nb\n", "@@\n-b\n@@\n-a", "Failed to find expected lines in f:\na"),
        (b"a\nb\n", "@@\n b\n-c\n ", "Failed to find expected lines in f:\nb\nc\n"),
        (b"a\nb\n", "-a\n*** End of File", "Failed to find expected lines in f:\na"),
        // The match would overlap the first chunk.
        (b"a\nb\n", "@@\n a\n-b\n+c\n@@\n-b\n+d\n*** End of File", "Failed to find expected lines in f:\nb"),
        (b"", "-", "Failed to find expected lines in f:\n"),
        (b"a\xff\n", "+x", BINARY),
        (b"a\0\n", "-a", BINARY),
    ] {
        assert_eq!(patched(before, body), Err(says.to_owned()), "{body:?}");
    }
}

/// Format in which a file is stored.
#[derive(Debug, Clone, Copy)]
struct Style {
    bom: &'static str,
    end: &'static str,
    last_end: bool,
}

fn style() -> impl Strategy<Value = Style> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(bom, crlf, last_end)| Style {
        bom: if bom { BOM } else { "" },
        end: if crlf { "\r\n" } else { "\n" },
        last_end,
    })
}

impl Style {
    fn stored(self, lines: &[String], last_end: bool) -> Vec<u8> {
        let text = lines.join(self.end);
        let end = if last_end && !lines.is_empty() { self.end } else { "" };
        format!("{}{text}{end}", self.bom).into_bytes()
    }
}

/// The chunks that make one text of the other, with so many lines around each change.
fn chunks(before: &[String], after: &[String], around: usize) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.iter().map(String::as_str).collect(), after.iter().map(String::as_str).collect());
    let diff = TextDiff::from_slices(&before, &after);
    let mut out = Vec::new();
    for group in diff.grouped_ops(around) {
        out.push("@@".to_owned());
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            out.push(format!("{mark}{}", change.value()));
        }
    }
    out.join("\n")
}

proptest! {
    /// With the whole file as context, whatever repeats in it.
    #[test]
    fn a_patch_with_all_lines_gives_the_second_text(
        before in prop::collection::vec("[ab {\u{2013}\u{201c}]{0,2}", 0..12),
        after in prop::collection::vec("[ab {\u{2013}\u{201c}]{0,2}", 0..12),
        style in style(), is_end in any::<bool>(),
    ) {
        prop_assume!(before != after);
        // An empty last line without an end is no line.
        prop_assume!(style.last_end || before.last().is_none_or(|line| !line.is_empty()));
        let style = if before.is_empty() || (before.len() == 1 && !style.last_end) { Style { end: "\n", ..style } } else { style };
        let body = chunks(&before, &after, 100) + if is_end { "\n*** End of File" } else { "" };
        let result = patched(&style.stored(&before, style.last_end), &body);
        prop_assert_eq!(result, Ok(style.stored(&after, true)), "{}", body);
    }

    /// With few lines of context in a text that does not repeat itself. The context is spelled with other white space, which
    /// changes nothing.
    #[test]
    fn a_patch_with_several_chunks_gives_the_second_text(
        old in prop::collection::vec(any::<bool>(), 2..60), new in prop::collection::vec(0_usize..80, 0..8),
        around in 1_usize..4, is_indented in any::<bool>(),
    ) {
        let before: Vec<String> = (0..old.len()).map(|at| format!("  line {at}")).collect();
        let mut after: Vec<String> =
            before.iter().zip(&old).filter(|(_, kept)| **kept).map(|(line, _)| line.clone()).collect();
        for (at, place) in new.iter().enumerate() {
            after.insert((*place).min(after.len()), format!("new {at}"));
        }
        prop_assume!(before != after);
        let body = chunks(&before, &after, around);
        let body = if is_indented { body.replace("   line", " line").replace("-  line", "-line") } else { body };
        let style = Style { bom: "", end: "\n", last_end: true };
        prop_assert_eq!(patched(&style.stored(&before, true), &body), Ok(style.stored(&after, true)), "{}", body);
    }
}
