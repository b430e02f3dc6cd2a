//! Texts that nobody writes. They are long: what does not take time in proportion to their length does not end here.

use super::directive::{parse, settled};
use super::heartbeat::{Answering, strip as strip_heartbeat};
use super::silent::{is_silent, may_become_token};
use super::tags::{TagRules, strip};
use super::visible::VisibleText;

/// Fragments that are repeated.
const PATTERNS: &[&str] = &[
    " ",
    "\n",
    "x",
    "😀",
    "\u{200f}",
    "<",
    ">",
    "<b>",
    "<think",
    "<think>",
    "</think>",
    "<think>a</think>b",
    "<thinking a",
    "<final>",
    "`",
    "`a` ",
    "`` ` ",
    "``` a ",
    "```\n",
    "~~~",
    "[",
    "]",
    "[[",
    "[[voice",
    "[[voice]] ",
    "`[[voice]] ",
    "MEDIA:",
    "MEDIA:./a\n",
    "MEDIA: a \n",
    "[Tool Call:",
    "[Tool Call: x]",
    "[Tool Call: x]\nArguments: {",
    "[Tool Result for ID 1]\n\n",
    "<minimax:tool_call><invoke ",
    "HEARTBEAT_OK ",
    "NO_REPLY ",
    "_",
    "*",
    "&nbsp;",
    "@somebody ",
];

fn texts(len: usize) -> impl Iterator<Item = (String, String)> {
    let runs: String = (0..len / 200).map(|at| format!("{} ", "`".repeat(at % 400))).collect();
    let tag = format!("[[media:{}]]", "a".repeat(len));
    let repeated =
        PATTERNS.iter().map(move |pattern| (format!("{pattern:?}"), pattern.repeat(len / pattern.len())));
    repeated.chain([("runs of backticks".to_owned(), runs), ("a long tag".to_owned(), tag)])
}

#[test]
fn texts_that_nobody_writes_are_read_all_the_same() {
    for (name, text) in texts(20_000) {
        for final_only in [false, true] {
            for complete in [false, true] {
                let out = strip(&text, TagRules { final_only, complete });
                assert!(out.visible.len() + out.thinking.len() <= text.len(), "{name}");
            }
        }
        assert!(parse(&text).text.len() <= text.len() && settled(&text).len() <= text.len(), "{name}");
        for answering in [Answering::Message, Answering::Heartbeat { ack_max_chars: 300 }] {
            assert!(strip_heartbeat(&text, answering).rest.len() <= text.len(), "{name}");
        }
        assert!(!is_silent(&text) || may_become_token(&text), "{name}");
    }
}

#[test]
fn they_are_shown_as_they_come() {
    for (name, text) in texts(20_000) {
        let mut visible = VisibleText::new(false);
        let chars: Vec<char> = text.chars().collect();
        for delta in chars.chunks(500) {
            visible.push(0, &delta.iter().collect::<String>());
        }
        visible.finish(&text);
        assert_eq!(visible.raw(), text, "{name}");
    }
}
