//! Texts that nobody writes, through everything that cuts and renders. They are long: what does not take time in proportion to their
//! length does not end here.

use super::*;
use crate::markdown::render::{SIGNAL, SLACK, WHATSAPP, plain, signal, slack, whatsapp};
use crate::markdown::{TableMode, convert_tables, read};
use crate::telegram::html::tests::is_nested;
use crate::telegram::html::{Cut, RENDERED_LIMIT, TELEGRAM, messages, visible_len};

/// Bytes of each text.
const LONG: usize = 6_000;

/// Fragments that are repeated.
const PATTERNS: &[&str] = &[
    " ",
    "\n",
    "\n ",
    "\r\n",
    "\t\u{a0}",
    "\u{200f}",
    "\u{202e}a\u{202c} ",
    "\u{200b}",
    "x",
    "x\n\n",
    "x\n",
    "word ",
    "One sentence. ",
    "(",
    ")",
    "(a ",
    "a) ",
    "😀",
    "👩‍👩‍👧",
    "👩‍",
    "🇩🇪",
    "e\u{301}",
    "\u{301}",
    " \u{301}",
    "<",
    "<b",
    "<b>",
    "</",
    "<a href=\"",
    "<!--",
    "<@U1",
    "<@U123> ",
    "@somebody ",
    "&",
    "&amp;",
    "&#",
    "*",
    "**a",
    "*a _b ",
    "*a* ",
    "a*b**c",
    "_a",
    "~~a",
    "`",
    "`a` ",
    "`` ` ",
    "```",
    "``` ",
    "```\n",
    "```\na\n",
    "```a`\n",
    "    a\n",
    "~~~~\n~~~\n",
    "||",
    "||a",
    "||a|| ",
    "|",
    "|a",
    "|\n",
    "| a | b |\n|---|---|\n",
    "[",
    "[[",
    "[a",
    "[a](",
    "[a](b) ",
    "[a][a] ",
    "[a]: b\n",
    "![",
    "](",
    "\\",
    ">",
    "> ",
    "> a\n",
    "- ",
    "- a\n",
    "1. ",
    "# ",
    "# a\n",
    "a\n===\n",
    "---\n",
    "https://a.b/ ",
    "https://a.b/)",
    "https://",
    "http",
    "\u{FDD0}",
];

fn texts(len: usize) -> Vec<(String, String)> {
    let repeated =
        PATTERNS.iter().map(|pattern| (format!("{pattern:?}"), pattern.repeat(len / pattern.len())));
    let all = |count: usize| 0..count * len / LONG;
    let nested: String = all(500).map(|at| format!("{}\n", "`".repeat(3 + 500 - at.min(500)))).collect();
    let deeper: String = all(500).map(|at| format!("{}\n", "~".repeat(3 + at.min(400)))).collect();
    let runs: String = all(250).map(|at| format!("{} ", "`".repeat(1 + at))).collect();
    let columns = len / 16;
    let table = format!("{}\n{}\n{}", "|a".repeat(columns), "|-".repeat(columns), "|\n".repeat(len / 4));
    let wide = format!("| {} | b |\n|---|---|\n{}", "x".repeat(len / 2), "| a | b |\n".repeat(len / 20));
    let emphasis = format!("{}x{}", "*a _b ".repeat(len / 12), "b_ a* ".repeat(len / 12));
    let special = [
        ("nested fences", nested),
        ("deeper fences", deeper),
        ("runs of backticks", runs),
        ("a table of many columns", table),
        ("a table with a long cell", wide),
        ("nested emphasis", emphasis),
        ("lists in lists", format!("{}x", "- ".repeat(len / 2))),
        ("blanks in a fence", format!("```\n{}", "\n".repeat(len))),
        ("blanks in the middle", format!("a{}b", " ".repeat(len))),
        ("quoted once, and on and on", format!("{}a\n{}", "> ".repeat(len / 8), "a\n".repeat(len / 4))),
        ("one address", format!("https://a.b/{}", "a".repeat(len))),
        ("one link", format!("[a](https://a.b/{})", "a".repeat(len))),
    ];
    repeated.chain(special.map(|(name, text)| (name.to_owned(), text))).collect()
}

fn fit(parts: &[String], limit: usize) {
    assert!(parts.iter().all(|part| Limit::utf16(limit).fits(part) && !part.trim().is_empty()));
}

/// Returns true if every fence is closed in its part. A fence of half a message has no room to be.
fn are_closed(parts: &[String], input: &str) -> bool {
    fences(input).iter().any(|fence| fence.open.marker.len() > 450) || are_balanced(parts, input)
}

type Work = (&'static str, fn(&str));

/// Operations that an answer may go through, and the properties they must have.
const WORK: &[Work] = &[
    ("plain text", |input| {
        for limit in [80, 4000] {
            let parts = text(input, limit);
            fit(&parts, limit);
            assert_eq!(without_blanks(&parts.concat()), without_blanks(input));
        }
    }),
    ("Markdown", |input| {
        for limit in [80, 4000] {
            let parts = markdown(input, limit);
            fit(&parts, limit);
            assert!(limit < 4000 || are_closed(&parts, input));
        }
    }),
    ("paragraphs", |input| fit(&newline(input, 4000), 4000)),
    ("lines", |input| {
        assert!(chunk_lines(input, Limit::utf16(4000)).iter().all(|part| part.len() <= 12_000))
    }),
    ("Discord", |input| {
        let parts = discord(input, 2000, 17);
        fit(&parts, 2000);
        assert!(parts.iter().all(|part| part.split('\n').count() <= 17));
        assert!(are_closed(&parts, input));
    }),
    ("Telegram", |input| {
        for words in messages(input, Cut::default()) {
            let html = words.formatted.unwrap_or_default();
            assert!(LengthUnit::Utf16.len(&html) <= RENDERED_LIMIT && is_nested(&html));
            assert!(!words.plain.trim().is_empty() && LengthUnit::Utf16.len(&words.plain) <= RENDERED_LIMIT);
        }
    }),
    ("Telegram's length", |input| assert!(visible_len(input, TableMode::Bullets) <= 64 * input.len())),
    ("Slack", |input| fit(&slack(&read(input, SLACK), Limit::utf16(4000)), 4000)),
    ("WhatsApp", |input| fit(&whatsapp(&read(input, WHATSAPP), Limit::utf16(4000)), 4000)),
    ("Signal", |input| {
        for message in signal(&read(input, SIGNAL), Limit::utf16(4000)) {
            let len = message.text.encode_utf16().count();
            assert!(len <= 4000 && message.styles.iter().all(|style| style.start + style.length <= len));
        }
    }),
    ("words", |input| drop(plain(&read(input, TELEGRAM)))),
    ("raw tables", |input| drop(convert_tables(input, TableMode::Code))),
];

#[test]
fn texts_that_nobody_writes_are_cut_and_rendered_all_the_same() {
    for (name, input) in texts(LONG) {
        for (of, work) in WORK {
            let done = std::panic::catch_unwind(|| work(&input));
            assert!(done.is_ok(), "{of} of {name}");
        }
    }
}

#[test]
fn blank_texts_say_nothing() {
    for blank in ["", " ", "\n\n", "\u{a0}\t\r\n", "\u{2003}\u{2028}"] {
        let input = blank.repeat(500);
        assert_eq!(text(&input, 80), [""; 0]);
        assert_eq!(markdown(&input, 80), [""; 0]);
        assert_eq!(newline(&input, 80), [""; 0]);
        assert_eq!(discord(&input, 80, 17), [""; 0]);
        assert!(messages(&input, Cut::default()).is_empty(), "{blank:?}");
        assert!(slack(&read(&input, SLACK), Limit::utf16(80)).is_empty());
        assert!(signal(&read(&input, SIGNAL), Limit::utf16(80)).is_empty());
        assert!(whatsapp(&read(&input, WHATSAPP), Limit::utf16(80)).is_empty());
    }
}

#[test]
fn forty_thousand_emoji_are_twenty_messages() {
    let emoji = "😀".repeat(40_000);
    assert_eq!(text(&emoji, 4000).len(), 20);
    assert_eq!(messages(&emoji, Cut::default()).len(), 20);
    assert!(messages(&emoji, Cut::default()).iter().all(|words| words.plain == "😀".repeat(2000)));
    let family = "👩‍👩‍👧".repeat(5000);
    assert!(text(&family, 4000).iter().all(|part| part.trim_end_matches("👩‍👩‍👧").is_empty()));
}

#[test]
fn ten_thousand_mentions_stay_whole() {
    let mentions = "@somebody ".repeat(10_000);
    let parts = messages(&mentions, Cut::default());
    assert!(parts.iter().all(|words| words.plain.split(' ').all(|word| word == "@somebody")));
    let tokens = "<@U123> ".repeat(10_000);
    let parts = slack(&read(&tokens, SLACK), Limit::utf16(4000));
    assert!(parts.iter().all(|part| part.split(' ').all(|word| word == "<@U123>")), "{:?}", parts.first());
}
