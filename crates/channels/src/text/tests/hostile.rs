//! Texts that nobody writes, through everything that cuts and renders. They are long: what does not take time in proportion to their
//! length does not end here.

use openclaw_testkit::markdown::hostile_texts;

use super::*;
use crate::markdown::render::{SIGNAL, SLACK, WHATSAPP, plain, signal, slack, whatsapp};
use crate::markdown::tests::EVERYTHING;
use crate::markdown::{TableMode, convert_tables, read};

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
    ("Slack", |input| fit(&slack(&read(input, SLACK), Limit::utf16(4000)), 4000)),
    ("WhatsApp", |input| fit(&whatsapp(&read(input, WHATSAPP), Limit::utf16(4000)), 4000)),
    ("Signal", |input| {
        for message in signal(&read(input, SIGNAL), Limit::utf16(4000)) {
            let len = message.text.encode_utf16().count();
            assert!(len <= 4000 && message.styles.iter().all(|style| style.start + style.length <= len));
        }
    }),
    ("words", |input| drop(plain(&read(input, EVERYTHING)))),
    ("raw tables", |input| drop(convert_tables(input, TableMode::Code))),
];

#[test]
fn texts_that_nobody_writes_are_cut_and_rendered_all_the_same() {
    for (name, input) in hostile_texts() {
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
        assert!(slack(&read(&input, SLACK), Limit::utf16(80)).is_empty());
        assert!(signal(&read(&input, SIGNAL), Limit::utf16(80)).is_empty());
        assert!(whatsapp(&read(&input, WHATSAPP), Limit::utf16(80)).is_empty());
    }
}

#[test]
fn forty_thousand_emoji_are_twenty_messages() {
    let emoji = "😀".repeat(40_000);
    assert_eq!(text(&emoji, 4000).len(), 20);
    let family = "👩‍👩‍👧".repeat(5000);
    assert!(text(&family, 4000).iter().all(|part| part.trim_end_matches("👩‍👩‍👧").is_empty()));
}

#[test]
fn ten_thousand_mentions_stay_whole() {
    let tokens = "<@U123> ".repeat(10_000);
    let parts = slack(&read(&tokens, SLACK), Limit::utf16(4000));
    assert!(parts.iter().all(|part| part.split(' ').all(|word| word == "<@U123>")), "{:?}", parts.first());
}
