use openclaw_testkit::markdown::any_markdown;
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::render::{PLAIN, SIGNAL, SLACK, SignalStyle, WHATSAPP, plain, signal, slack, whatsapp};
use super::*;
use crate::text::Limit;

/// All features at once.
pub(crate) const EVERYTHING: MarkdownFeatures =
    MarkdownFeatures { spoilers: true, autolinks: true, ..MarkdownFeatures::PLAIN };

/// Spec `channels.md` §4.1.
#[test]
fn markdown_is_words_and_their_looks() {
    let styled = read("Hello **world** — see [docs](https://docs.openclaw.ai).", MarkdownFeatures::PLAIN);
    assert_eq!(styled.text, "Hello world — see docs.");
    let span = |range, style| Span { range, style };
    // In bytes: the dash has three.
    let link = Style::Link("https://docs.openclaw.ai".to_owned());
    assert_eq!(styled.spans, [span(6..11, Style::Bold), span(20..24, link)]);
}

#[test]
fn blocks_stand_apart_as_they_are_read() {
    let rows = [
        ("first\n\nsecond", "first\n\nsecond"),
        ("- one\n- two", "• one\n• two"),
        ("2. two\n3. three", "2. two\n3. three"),
        ("- a\n  - b\n- c", "• a\n  • b\n• c"),
        ("1. a\n   - b\n     1. c\n2. d", "1. a\n  • b\n    1. c\n2. d"),
        ("- a\n\n- b\n\n  more", "• a\n• b\n  more"),
        ("text\n- a\n\nafter", "text\n\n• a\n\nafter"),
        ("- a\n- `b`\n\nafter", "• a\n• b\n\nafter"),
        ("- a\n-\n\nafter", "• a\n• \n\nafter"),
        ("1. `a`\n\n# Head", "1. a\n\nHead"),
        ("# Title\n\n> Quote\n> goes on\n\nend", "Title\n\nQuote\ngoes on\n\nend"),
        ("a\n\n---\n\nb", "a\n\nb"),
        ("a\n---\nb", "a\n\nb"),
        ("![alt](http://x/y.png)", "alt"),
        ("- [ ] todo\n- [x] done", "• [ ] todo\n• [x] done"),
        ("a  \nb\nc", "a\nb\nc"),
        ("before\n\n```\nconst x = 1;\n```\n\nafter", "before\n\nconst x = 1;\n\nafter"),
        ("- item\n  ```\n  code\n  ```\n- next", "• item\n  code\n• next"),
        ("~5 to ~10, a~b~c", "~5 to ~10, a~b~c"),
        ("<b>nope</b> <div>\n**x**", "<b>nope</b> <div>\nx"),
        ("<div>\n\n**x**\n</div>", "<div>\n\nx\n</div>"),
        ("<b>**x <i _y_> &lt", "<b>**x <i y> &lt"),
        ("a &lt; b &amp;&amp; c", "a < b && c"),
        ("`a < b`", "a < b"),
        ("x\u{FDD0}y <z>", "xy <z>"),
        ("", ""),
        ("\n\n", ""),
    ];
    for (input, expect) in rows {
        assert_eq!(read(input, MarkdownFeatures::PLAIN).text, expect, "{input:?}");
    }
}

#[test]
fn lists_in_lists_are_indented_so_far_and_no_farther() {
    let read = read(&format!("{}x", "- ".repeat(5000)), MarkdownFeatures::PLAIN);
    let indents: Vec<usize> = read.text.lines().map(|line| line.len() - line.trim_start().len()).collect();
    assert_eq!((indents[1], indents[12], indents[13], indents[4000]), (2, 24, 24, 24));
}

#[test]
fn spoilers_are_pairs_of_bars_in_a_paragraph() {
    let rows: [(&str, &str, &[&str]); 7] = [
        ("hello ||secret|| world", "hello secret world", &["secret"]),
        ("||a **b** c|| ||d||", "a b c d", &["a b c", "d"]),
        ("if a || b || c", "if a || b || c", &[]),
        ("||open\n\nother||", "||open\n\nother||", &[]),
        ("`||x||` ||||", "||x|| ||||", &[]),
        ("||x", "||x", &[]),
        ("- ||x||\n- y", "• x\n• y", &["x"]),
    ];
    for (input, text, hidden) in rows {
        let styled = read(input, EVERYTHING);
        let spoilers = styled.spans.iter().filter(|span| span.style == Style::Spoiler);
        let found: Vec<&str> = spoilers.map(|span| &styled.text[span.range.clone()]).collect();
        assert_eq!((styled.text.as_str(), found.as_slice()), (text, hidden), "{input:?}");
    }
    assert_eq!(read("||x||", MarkdownFeatures::PLAIN).text, "||x||");
}

const TABLE: &str = "| A | B |\n|---|---|\n| 1 | **2** |";
const NAMED: &str = "| Name | Value |\n|---|---|\n| A | 1 |\n| B | 2 |";
const WIDE: &str =
    "| F | SQLite | PG |\n|---|---|---|\n| Speed | Fast | Medium |\n| | | |\n| Size | | 日本 |";

/// Spec `channels.md` §4.3.
#[test]
fn tables_are_lines_of_code_or_bullets() {
    let rows = [
        (TABLE, TableMode::Code, "| A   | B   |\n| --- | --- |\n| 1   | 2   |\n"),
        (TABLE, TableMode::Bullets, "1\n• B: 2"),
        (TABLE, TableMode::Off, TABLE),
        (NAMED, TableMode::Bullets, "A\n• Value: 1\n\nB\n• Value: 2"),
        (WIDE, TableMode::Bullets, "Speed\n• SQLite: Fast\n• PG: Medium\n\nSize\n• PG: 日本"),
        (
            WIDE,
            TableMode::Code,
            "| F     | SQLite | PG     |\n| ----- | ------ | ------ |\n| Speed | Fast   | Medium |\n\
             |       |        |        |\n| Size  |        | 日本   |\n",
        ),
        ("| A |\n|---|\n| 1 |\n| 2 |", TableMode::Bullets, "• A: 1\n\n• A: 2"),
        ("| A | B |\n|---|---|", TableMode::Bullets, ""),
        // A long cell makes its own row long, no other.
        (
            &format!("| A |\n|---|\n| {} |\n| b |", "x".repeat(90)),
            TableMode::Code,
            &format!(
                "| A{} |\n| {} |\n| {} |\n| b{} |\n",
                " ".repeat(79),
                "-".repeat(80),
                "x".repeat(90),
                " ".repeat(79)
            ),
        ),
    ];
    for (input, mode, expect) in rows {
        let styled = read(input, MarkdownFeatures::PLAIN.with_tables(mode));
        let text = if mode == TableMode::Off { styled.text.replace("2 |", "**2** |") } else { styled.text };
        assert_eq!(text, expect, "{input:?} {mode:?}");
    }
    let bold = read(TABLE, MarkdownFeatures::PLAIN.with_tables(TableMode::Bullets)).spans;
    assert_eq!(bold.iter().filter(|span| span.style == Style::Bold).count(), 2);
    let names = [("off", Some(TableMode::Off)), (" code ", Some(TableMode::Code)), ("x", None)];
    for (name, mode) in names {
        assert_eq!(TableMode::parse(name), mode);
    }
}

#[test]
fn tables_in_raw_markdown_are_converted_and_nothing_else() {
    let rows = [
        (
            "**a**\n\n| A | B |\n|---|---|\n| 1 | **2** |\n\n`x`  \nend\n",
            TableMode::Code,
            "**a**\n\n```\n| A   | B   |\n| --- | --- |\n| 1   | 2   |\n```\n\n`x`  \nend\n",
        ),
        (NAMED, TableMode::Bullets, "**A**\n• Value: 1\n\n**B**\n• Value: 2"),
        (TABLE, TableMode::Off, TABLE),
        ("```\n| A | B |\n|---|---|\n```", TableMode::Code, "```\n| A | B |\n|---|---|\n```"),
        ("> | A | B |\n> |---|---|\n> | 1 | 2 |", TableMode::Code, "> | A | B |\n> |---|---|\n> | 1 | 2 |"),
        ("a | b", TableMode::Code, "a | b"),
    ];
    for (input, mode, expect) in rows {
        assert_eq!(convert_tables(input, mode), expect, "{input:?}");
    }
}

/// Spec `channels.md` §4.2.
#[test]
fn slack_gets_mrkdwn() {
    let rows = [
        ("**b**", "*b*"),
        ("~~x~~ _i_ `c`", "~x~ _i_ `c`"),
        ("# Title", "*Title*"),
        ("# **Title** x", "*Title x*"),
        ("> Quote", "> Quote"),
        ("> q1\n> q2\n\nend", "> q1\n> q2\n\nend"),
        ("> **q1\n> q2**", "> *q1*\n> *q2*"),
        ("[docs](https://example.com)", "<https://example.com|docs>"),
        ("[docs](https://e.com/?a=1&b=2)", "<https://e.com/?a=1&amp;b=2|docs>"),
        ("[https://e.com](https://e.com)", "https://e.com"),
        ("see https://example.com", "see https://example.com"),
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        (
            "hi <@U123> see <https://example.com|docs> and <!here>",
            "hi <@U123> see <https://example.com|docs> and <!here>",
        ),
        ("<https://example.com> <mailto:a@b.c> <x>", "<https://example.com> <mailto:a@b.c> &lt;x&gt;"),
        ("`<@U123>`", "`&lt;@U123&gt;`"),
        ("```js\nlet a;\n```", "```\nlet a;\n```"),
        ("- item\n  - nested", "• item\n  • nested"),
        ("||x||", "||x||"),
        (TABLE, "```\n| A   | B   |\n| --- | --- |\n| 1   | 2   |\n```"),
    ];
    for (input, expect) in rows {
        assert_eq!(slack(&read(input, SLACK), Limit::utf16(4000)), [expect], "{input:?}");
    }
    let cut = slack(&read("**word word word**", SLACK), Limit::utf16(11));
    assert_eq!(cut, ["*word word*", "*word*"]);
}

#[test]
fn signal_gets_words_and_styles() {
    type Row<'a> = (&'a str, &'a str, &'a [(usize, usize, &'static str)]);
    let rows: [Row<'_>; 8] = [
        (
            "hi _there_ **boss** ~~nope~~ `code`",
            "hi there boss nope code",
            &[(3, 5, "ITALIC"), (9, 4, "BOLD"), (14, 4, "STRIKETHROUGH"), (19, 4, "MONOSPACE")],
        ),
        ("hello ||secret|| world", "hello secret world", &[(6, 6, "SPOILER")]),
        ("😀 **bold**", "😀 bold", &[(3, 4, "BOLD")]),
        (
            "see [docs](https://example.com) and https://example.com",
            "see docs (https://example.com) and https://example.com",
            &[],
        ),
        (
            "before\n\n```\nconst x = 1;\n```\n\nafter",
            "before\n\nconst x = 1;\n\nafter",
            &[(8, 13, "MONOSPACE")],
        ),
        ("# Title\n\n> Quote", "Title\n\nQuote", &[]),
        ("**[docs](https://e.com)** x", "docs (https://e.com) x", &[(0, 4, "BOLD")]),
        (NAMED, "A\n• Value: 1\n\nB\n• Value: 2", &[(0, 1, "BOLD"), (14, 1, "BOLD")]),
    ];
    for (input, text, styles) in rows {
        let styles: Vec<_> =
            styles.iter().map(|&(start, length, name)| SignalStyle { start, length, name }).collect();
        let messages = signal(&read(input, SIGNAL), Limit::utf16(4000));
        assert_eq!(messages, [super::render::SignalText { text: text.to_owned(), styles }], "{input:?}");
    }
    assert_eq!(SignalStyle { start: 3, length: 5, name: "BOLD" }.to_wire(), "3:5:BOLD");
}

#[test]
fn whatsapp_gets_its_marks() {
    let rows = [
        ("**b** _i_ ~~s~~ `c`", "*b* _i_ ~s~ `c`"),
        ("# Title\n\n> q1\n> q2", "*Title*\n\n> q1\n> q2"),
        ("```js\nlet a;\n```", "```let a;\n```"),
        ("[docs](https://e.com) <https://e.com>", "docs (https://e.com) https://e.com"),
        ("**two\nlines**", "*two*\n*lines*"),
        (NAMED, "*A*\n• Value: 1\n\n*B*\n• Value: 2"),
    ];
    for (input, expect) in rows {
        assert_eq!(whatsapp(&read(input, WHATSAPP), Limit::utf16(4000)), [expect], "{input:?}");
    }
}

#[test]
fn plain_words_keep_the_addresses_of_links() {
    let rows = [
        ("**b** [docs](https://e.com)", "b docs (https://e.com)"),
        ("<a@b.co> [e.com](https://e.com/)", "a@b.co e.com"),
    ];
    for (input, expect) in rows {
        assert_eq!(plain(&read(input, PLAIN)), expect, "{input:?}");
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest! {
    #[test]
    fn pieces_fit_and_lose_nothing(markdown in any_markdown(), limit in 10usize..80) {
        let styled = read(&markdown, EVERYTHING);
        let limit = Limit::utf16(limit);
        let pieces = pieces(&styled, limit);
        prop_assert!(pieces.iter().all(|piece| limit.fits(&piece.text) && !piece.text.trim().is_empty()));
        let whole: std::collections::HashSet<&str> = styled.text.graphemes(true).collect();
        for grapheme in pieces.iter().flat_map(|piece| piece.text.graphemes(true)) {
            prop_assert!(whole.contains(grapheme), "{:?} was parted", grapheme);
        }
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        prop_assert_eq!(without_blanks(&text), without_blanks(&styled.text));
        for piece in pieces {
            for span in &piece.spans {
                prop_assert!(piece.text.get(span.range.clone()).is_some_and(|text| !text.is_empty()));
            }
        }
    }

    #[test]
    fn every_markup_fits_its_limit(markdown in any_markdown(), limit in 40usize..120) {
        let limit = Limit::utf16(limit);
        for text in slack(&read(&markdown, SLACK), limit) {
            // A single grapheme can't be cut; a link of this test has 33 characters.
            prop_assert!(limit.fits(&text), "{:?}", text);
        }
        for text in whatsapp(&read(&markdown, WHATSAPP), limit) {
            prop_assert!(limit.fits(&text), "{:?}", text);
        }
        for message in signal(&read(&markdown, SIGNAL), limit) {
            prop_assert!(limit.fits(&message.text));
            let len = message.text.encode_utf16().count();
            prop_assert!(message.styles.iter().all(|style| style.start + style.length <= len));
        }
    }

    #[test]
    fn raw_markdown_without_tables_is_left_alone(markdown in any_markdown()) {
        let converted = convert_tables(&markdown, TableMode::Code);
        if !markdown.contains("|---|") {
            prop_assert_eq!(converted, markdown.as_str());
        }
    }
}
