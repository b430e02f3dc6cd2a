mod hostile;

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::discord::{DiscordLimits, chunk_discord};
use super::fence::fences;
use super::*;

fn text(input: &str, limit: usize) -> Vec<String> {
    chunk_text(input, Limit::utf16(limit))
}

fn markdown(input: &str, limit: usize) -> Vec<String> {
    chunk_markdown(input, Limit::utf16(limit))
}

fn newline(input: &str, limit: usize) -> Vec<String> {
    chunk(input, Limit::utf16(limit), ChunkMode::Newline, Markup::Markdown)
}

/// Spec `streaming.md` §9.1, `channels.md` §4.4.
#[test]
fn plain_text_is_cut_where_it_reads_well() {
    let rows: [(&str, usize, &[&str]); 15] = [
        (
            "paragraph one line\n\nparagraph two starts here and continues",
            40,
            &["paragraph one line", "paragraph two starts here and continues"],
        ),
        (
            "This is a message that should break nicely near a word boundary.",
            30,
            &["This is a message that should", "break nicely near a word", "boundary."],
        ),
        ("Supercalifragilisticexpialidocious", 10, &["Supercalif", "ragilistic", "expialidoc", "ious"]),
        ("Heads up now (Though now I'm curious)ok", 35, &["Heads up now", "(Though now I'm curious)ok"]),
        ("Hello (outer (inner) end) world", 26, &["Hello (outer (inner) end)", "world"]),
        ("Hello) world (ok)", 12, &["Hello)", "world (ok)"]),
        ("", 10, &[]),
        (" \n ", 10, &[]),
        ("no limit at all", 0, &["no limit at all"]),
        ("(all of it stands in parentheses", 20, &["(all of it stands", "in parentheses"]),
        ("one\r\ntwo", 6, &["one", "two"]),
        ("😀😀😀", 4, &["😀😀", "😀"]),
        ("e\u{301}e\u{301}e\u{301}", 5, &["e\u{301}e\u{301}", "e\u{301}"]),
        ("👩‍👩‍👧👩‍👩‍👧", 8, &["👩‍👩‍👧", "👩‍👩‍👧"]),
        ("a \u{301}bc d", 4, &["a \u{301}b", "c d"]),
    ];
    for (input, limit, expect) in rows {
        assert_eq!(text(input, limit), expect, "{input:?} at {limit}");
    }
    assert_eq!(text(&"a".repeat(100), 60), ["a".repeat(60), "a".repeat(40)]);
}

#[test]
fn each_platform_counts_in_its_own_unit() {
    let rows: [(LengthUnit, &[&str]); 3] = [
        (LengthUnit::Utf16, &["😀éa😀é", "a😀éa"]),
        (LengthUnit::Bytes, &["😀éa", "😀éa", "😀éa"]),
        (LengthUnit::Chars, &["😀éa😀éa😀", "éa"]),
    ];
    for (unit, expect) in rows {
        assert_eq!(chunk_text("😀éa😀éa😀éa", Limit::new(7, unit)), expect, "{unit:?}");
    }
}

fn fenced(open: &str, body: &str) -> String {
    let close: String = open.chars().take_while(|c| matches!(c, '`' | '~')).collect();
    format!("{open}\n{body}\n{close}")
}

/// Spec `streaming.md` §9.2, `channels.md` §4.4.
#[test]
fn code_blocks_are_closed_and_opened_again() {
    let rows: Vec<(String, usize, Vec<String>)> = vec![
        (
            "Hello (outer (inner) end) world".to_owned(),
            26,
            vec!["Hello (outer (inner) end)".to_owned(), "world".to_owned()],
        ),
        ("Hello) world (ok)".to_owned(), 12, vec!["Hello)".to_owned(), "world (ok)".to_owned()]),
        (
            format!("({})", "a".repeat(80)),
            20,
            vec![
                format!("({}", "a".repeat(19)),
                "a".repeat(20),
                "a".repeat(20),
                "a".repeat(20),
                "a)".to_owned(),
            ],
        ),
        (
            format!("{}\n\n{}\n\n{}", "p".repeat(60), fenced("```bash", "line1\nline2"), "s".repeat(60)),
            40,
            vec![
                "p".repeat(40),
                format!("{}\n", "p".repeat(20)),
                format!("{}\n", fenced("```bash", "line1\nline2")),
                "s".repeat(40),
                "s".repeat(20),
            ],
        ),
        (
            fenced("```txt", &"a".repeat(100)),
            40,
            [29, 29, 29, 13].map(|len| fenced("```txt", &"a".repeat(len))).to_vec(),
        ),
        (
            fenced("```txt", &"a".repeat(30)),
            20,
            [9, 9, 9, 3].map(|len| fenced("```txt", &"a".repeat(len))).to_vec(),
        ),
        (
            fenced("```js", "const a = 1;\nconst b = 2;\nconst c = 3;"),
            40,
            vec![fenced("```js", "const a = 1;\nconst b = 2;"), fenced("```js", "const c = 3;")],
        ),
        (
            fenced("~~~sh", &"x".repeat(60)),
            40,
            [30, 30].map(|len| fenced("~~~sh", &"x".repeat(len))).to_vec(),
        ),
        // Lines keep their indent, blank lines stay, a block that ends with its part needs no other end.
        (
            fenced("```", "    one\n\n    two\n  three"),
            20,
            vec![fenced("```", "    one\n"), fenced("```", "    two"), fenced("```", "  three")],
        ),
        (fenced("```", &"x".repeat(24)), 20, [12, 12].map(|len| fenced("```", &"x".repeat(len))).to_vec()),
        (format!("{}\nend", fenced("```", "x\ny")), 11, vec![fenced("```", "x\ny"), "end".to_owned()]),
        // Text that looks like the end of the block does not begin a line.
        (fenced("```", "aaaa```bb"), 12, ["aaa", "a```", "bb"].map(|body| fenced("```", body)).to_vec()),
    ];
    for (input, limit, expect) in rows {
        assert_eq!(markdown(&input, limit), expect, "{input:?} at {limit}");
    }
}

#[test]
fn a_limit_without_room_for_a_block_still_ends() {
    for limit in 1..12 {
        let parts = markdown(&fenced("```typescript", "const a = 1;\nconst b = 2;"), limit);
        assert!(parts.iter().all(|part| part.len() <= limit), "{limit}: {parts:?}");
    }
}

/// Spec `streaming.md` §9.3.
#[test]
fn paragraphs_become_parts_of_their_own() {
    let python = "```python\ndef a():\n    pass\n\ndef b():\n    pass\n```";
    let rows: [(&str, usize, &[&str]); 7] = [
        ("Para one\n\nPara two", 1000, &["Para one", "Para two"]),
        ("Line one\nLine two", 1000, &["Line one\nLine two"]),
        ("A\nB\n \t\nC\n\n\n\nD  ", 1000, &["A\nB", "C", "D"]),
        ("A\r\n\r\nB\r\nC", 1000, &["A", "B\nC"]),
        ("one two three four\n\nfive", 8, &["one two", "three", "four", "five"]),
        (&format!("{python}\n\nAfter"), 1000, &[python, "After"]),
        ("\n\n \n", 1000, &[]),
    ];
    for (input, limit, expect) in rows {
        assert_eq!(newline(input, limit), expect, "{input:?} at {limit}");
    }
}

/// Spec `streaming.md` §9.3, `channels.md` §4.4.
#[test]
fn lines_become_parts_of_their_own() {
    let rows: [(&str, usize, &[&str]); 8] = [
        ("Line one\n\n\nLine two\n\nLine three", 1000, &["Line one", "\n\nLine two", "\nLine three"]),
        ("\n\nLine one\nLine two", 1000, &["\n\nLine one", "Line two"]),
        ("  Line one  \n  Line two  ", 1000, &["Line one", "Line two"]),
        ("", 1000, &[]),
        (" \n\n", 1000, &[]),
        ("a\n\n", 1000, &["a"]),
        ("\nabc defgh", 5, &["\nabc ", "defgh"]),
        ("a\nb", 0, &["a\nb"]),
    ];
    for (input, limit, expect) in rows {
        assert_eq!(chunk_lines(input, Limit::utf16(limit)), expect, "{input:?} at {limit}");
    }
}

fn discord(input: &str, chars: usize, lines: usize) -> Vec<String> {
    chunk_discord(input, DiscordLimits { chars, lines }, ChunkMode::Length)
}

/// Spec `streaming.md` §9.4.
#[test]
fn discord_messages_have_few_lines() {
    let numbered: Vec<String> = (0..45).map(|at| format!("line {at}")).collect();
    let parts = discord(&numbered.join("\n"), 2000, 20);
    assert_eq!(parts.iter().map(|part| part.lines().count()).collect::<Vec<_>>(), [20, 20, 5]);

    let logs: Vec<String> = (0..8).map(|at| format!("log({at});")).collect();
    let code = |range: std::ops::Range<usize>| fenced("```js", &logs[range].join("\n"));
    let input = format!("Here:\n\n{}\n\nDone.", code(0..8));
    let expect = [format!("Here:\n\n{}", code(0..2)), code(2..6), format!("{}\n\nDone.", code(6..8))];
    assert_eq!(discord(&input, 2000, 6), expect);

    let rows: [(&str, usize, usize, &[&str]); 6] = [
        ("Reasoning:\n_1. a\n2. b\n3. c\n4. d_", 2000, 3, &["Reasoning:\n_1. a\n2. b_", "_3. c\n4. d_"]),
        (
            "alpha  beta\tgamma   delta epsilon  zeta",
            12,
            17,
            &["alpha  beta", "gamma", "delta", "epsilon", "zeta"],
        ),
        ("short\nSupercalifragilistic", 12, 17, &["short", "Supercalifra", "gilistic"]),
        ("", 12, 17, &[]),
        ("all of it fits", 2000, 17, &["all of it fits"]),
        ("one\n\n\n\ntwo", 2000, 3, &["one\n\n", "two"]),
    ];
    for (input, chars, lines, expect) in rows {
        assert_eq!(discord(input, chars, lines), expect, "{input:?}");
    }
    let long = discord(&fenced("```txt", &"a".repeat(60)), 50, 17);
    assert_eq!(long, [39, 21].map(|len| fenced("```txt", &"a".repeat(len))));
    let marks = discord(&fenced("```", "aaaa\nbbbbbbbbbbbbbb\nx```y"), 29, 17);
    assert_eq!(marks, [fenced("```", "aaaa\nbbbbbbbbbbbbbb"), fenced("```", "x```y")]);
    let paragraphs = chunk_discord("a\n\nb", DiscordLimits::default(), ChunkMode::Newline);
    assert_eq!(paragraphs, ["a", "b"]);
}

/// Words, blanks, parentheses, fences, and characters of several units or code points.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z]{1,12}",
        4 => Just(" ".to_owned()),
        3 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("(".to_owned()),
        1 => Just(")".to_owned()),
        1 => Just("\n```0\n".to_owned()),
        1 => Just("\n```\n".to_owned()),
        1 => Just("\n~~~~\n".to_owned()),
        1 => Just("\n    deep\n".to_owned()),
        1 => Just("x```".to_owned()),
        1 => Just("😀".to_owned()),
        1 => Just("👩‍👩‍👧".to_owned()),
        1 => Just("e\u{301}".to_owned()),
        1 => Just(" \u{301}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the characters of a text that do not occur in fence lines.
fn prose(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '`' | '~' | '0')).collect()
}

/// Returns true if no grapheme is split. Lines of fences are put in.
fn are_whole(parts: &[String], input: &str) -> bool {
    let whole: std::collections::HashSet<&str> = input.graphemes(true).collect();
    let mut graphemes = parts.iter().flat_map(|part| part.graphemes(true));
    graphemes.all(|grapheme| whole.contains(grapheme) || matches!(grapheme, "\n" | "\r" | "`" | "~"))
}

/// Returns true if every fence is closed in its part; the last part may lack what the text lacks.
fn are_balanced(parts: &[String], input: &str) -> bool {
    let is_open = |text: &str| fences(text).iter().any(|fence| fence.closed_at.is_none());
    let (last, others) = match parts.split_last() {
        Some(split) => split,
        None => return true,
    };
    !others.iter().any(|part| is_open(part)) && (!is_open(last) || is_open(input))
}

proptest! {
    #[test]
    fn parts_of_plain_text_give_it_back(input in any_text(), limit in 12usize..60, unit in 0..3) {
        let unit = [LengthUnit::Utf16, LengthUnit::Bytes, LengthUnit::Chars][unit as usize];
        let limit = Limit::new(limit.max(25), unit);
        let parts = chunk_text(&input, limit);
        prop_assert_eq!(without_blanks(&parts.concat()), without_blanks(&input));
        prop_assert!(parts.iter().all(|part| limit.fits(part) && !part.trim().is_empty()));
        prop_assert!(are_whole(&parts, &input), "{:?}", parts);
    }

    #[test]
    fn parts_of_markdown_fit_and_are_balanced(input in any_text(), limit in 40usize..80, unit in 0..3) {
        let unit = [LengthUnit::Utf16, LengthUnit::Bytes, LengthUnit::Chars][unit as usize];
        let limit = Limit::new(limit, unit);
        let parts = chunk_markdown(&input, limit);
        prop_assert!(are_whole(&parts, &input), "{:?}", parts);
        prop_assert!(parts.iter().all(|part| limit.fits(part) && !part.trim().is_empty()), "{:?}", parts);
        prop_assert!(are_balanced(&parts, &input), "{:?}", parts);
        prop_assert_eq!(prose(&parts.join("\n")), prose(&input), "{:?}", parts);
    }

    #[test]
    fn parts_of_paragraphs_and_lines_fit(input in any_text(), limit in 30usize..80) {
        let limit = Limit::utf16(limit);
        let parts = chunk(&input, limit, ChunkMode::Newline, Markup::Markdown);
        prop_assert!(parts.iter().all(|part| limit.fits(part) && !part.trim().is_empty()));
        prop_assert_eq!(prose(&parts.join("\n")), prose(&input), "{:?}", parts);
        prop_assert!(are_whole(&parts, &input), "{:?}", parts);
        let lines = chunk_lines(&input, limit);
        prop_assert!(are_whole(&lines, &input.replace('\r', "")) , "{:?}", lines);
        prop_assert!(lines.iter().all(|part| limit.fits(part)));
        prop_assert_eq!(without_blanks(&lines.concat()), without_blanks(&input));
    }

    #[test]
    fn messages_of_discord_fit_and_are_balanced(input in any_text(), chars in 40usize..90, lines in 3usize..9) {
        let parts = discord(&input, chars, lines);
        prop_assert!(are_whole(&parts, &input), "{:?}", parts);
        let limit = Limit::utf16(chars);
        prop_assert!(parts.iter().all(|part| limit.fits(part) && !part.trim().is_empty()), "{:?}", parts);
        prop_assert!(parts.iter().all(|part| part.split('\n').count() <= lines), "{:?}", parts);
        prop_assert!(are_balanced(&parts, &input), "{:?}", parts);
        prop_assert_eq!(prose(&parts.join("\n")), prose(&input), "{:?}", parts);
    }
}
