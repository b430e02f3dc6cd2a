use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::tests::golden;

fn cut_into(content: &str, tokens: usize, overlap: usize) -> Vec<(u32, u32, String)> {
    chunks(content, Chunking { tokens, overlap })
        .into_iter()
        .map(|chunk| (chunk.start_line, chunk.end_line, chunk.text))
        .collect()
}

fn shape(content: &str, tokens: usize, overlap: usize) -> Vec<(u32, u32, usize)> {
    cut_into(content, tokens, overlap)
        .iter()
        .map(|(start, end, text)| (*start, *end, text.encode_utf16().count()))
        .collect()
}

/// Cases in which OpenClaw 2026.2.9 is wrong; [`mends_what_2026_2_9_does_wrong`] has what is right.
const WRONG: &[&str] = &["long_line_overlap", "surrogate_split", "cjk"];

#[test]
fn cuts_ordinary_text_as_2026_2_9_does() {
    let golden = golden("memory-chunker.json");
    for (name, case) in golden["vectors"].as_object().unwrap() {
        if WRONG.contains(&name.as_str()) {
            continue;
        }
        let number = |key: &str| usize::try_from(case["options"][key].as_u64().unwrap()).unwrap();
        let chunking = Chunking { tokens: number("tokens"), overlap: number("overlap") };
        let made = chunks(case["content"].as_str().unwrap(), chunking);
        let made: Vec<Value> = made.iter().map(|chunk| serde_json::json!({
            "startLine": chunk.start_line, "endLine": chunk.end_line, "utf16Len": chunk.text.encode_utf16().count(),
            "text": chunk.text, "hash": chunk.hash(),
        })).collect();
        assert_eq!(Value::Array(made), case["chunks"], "{name}");
    }
}

#[test]
fn cuts_lines_of_79_characters_as_the_table_says() {
    let text = format!("# Log\n\n{}", (0..120).map(|n| format!("{n:079}\n")).collect::<String>());
    let lines: Vec<_> = shape(&text, 400, 80).iter().map(|(start, end, _)| (*start, *end)).collect();
    assert_eq!(lines, [(1, 21), (18, 37), (34, 53), (50, 69), (66, 85), (82, 101), (98, 117), (114, 123)]);
}

#[test]
fn mends_what_2026_2_9_does_wrong() {
    // No chunk above its limit, and no newline between pieces of one line.
    let long = format!("{}\nend", "x".repeat(70));
    assert_eq!(shape(&long, 8, 2), [(1, 1, 32), (1, 1, 32), (1, 2, 18)]);
    assert_eq!(cut_into(&long, 8, 2)[2].2, format!("{}\nend", "x".repeat(14)));
    // Characters stay whole, and so does what readers take for one.
    let later = golden("memory-chunker.json");
    for name in ["surrogate_split", "cjk"] {
        let case = &later["vectors"][name];
        let made = cut_into(case["content"].as_str().unwrap(), 8, 0);
        assert_eq!(serde_json::to_value(made).unwrap(), later["later_upstream"][name], "{name}");
    }
    let family = "👨‍👩‍👧‍👦";
    let made = cut_into(&format!("{}{family}", "a".repeat(30)), 8, 0);
    assert_eq!(made[1].2, family);
}

#[test]
fn no_chunk_of_han_characters_is_above_the_tokens_of_the_model() {
    let text = "网关架构评审会议记录".repeat(1_000);
    for chunk in chunks(&text, Chunking::default()) {
        assert!(chunk.text.chars().count() <= 400);
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z \n]{0,400}", "[a-z中文😀é\r\n]{0,300}", "(x{0,120}\n){0,6}", any::<String>(),]
}

proptest! {
    #[test]
    fn chunks_are_parts_of_the_text_in_order_and_leave_nothing_out(text in texts(), tokens in 1_usize..40, overlap in 0_usize..45) {
        let chunking = Chunking { tokens, overlap };
        let limit = chunking.resolved().limit();
        let made = chunks(&text, chunking);
        prop_assert!(!made.is_empty());
        // Each chunk is a piece of the text that begins no later than the one before it ends (but for the newline that
        // parts them), and reaches further.
        let mut reached = 0;
        let mut from = 0;
        for (index, chunk) in made.iter().enumerate() {
            let widest = chunk.text.chars().map(char_weight).max().unwrap_or_default();
            prop_assert!(weight(&chunk.text) <= limit.max(widest));
            let latest = if index == 0 { 0 } else { (reached + 1).min(text.len()) };
            let starts = (from..=latest).filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(&chunk.text)));
            let ends: Vec<(usize, usize)> = starts.map(|at| (at, at + chunk.text.len())).filter(|(_, end)| *end >= reached).collect();
            prop_assert!(!ends.is_empty(), "{chunk:?} is not where {reached} was reached in {text:?}");
            let between = |at: usize| at <= reached || text.get(reached..at) == Some("\n");
            let (start, end) = ends.into_iter().rev().find(|(at, _)| between(*at)).unwrap();
            (from, reached) = (start, end);
            prop_assert!(chunk.start_line <= chunk.end_line);
        }
        prop_assert_eq!(reached, text.len());
        let lines = text.split('\n').count();
        prop_assert_eq!(made.last().unwrap().end_line as usize, lines);
    }
}
