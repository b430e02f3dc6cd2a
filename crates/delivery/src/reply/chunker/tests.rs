use proptest::prelude::*;

use BreakPreference::{Newline, Paragraph, Sentence};

use super::*;

fn settings(min: usize, max: usize, prefer: BreakPreference) -> ChunkSettings {
    ChunkSettings { min, max, prefer, by_paragraph: false }
}

/// Step of a test with the chunker.
#[derive(Debug, Clone)]
enum Step {
    Append(String),
    Drain,
    Force,
}

use Step::{Drain as D, Force as F};

fn append(text: impl Into<String>) -> Step {
    Step::Append(text.into())
}

/// Returns the blocks, and the rest of the text.
fn run(settings: ChunkSettings, steps: &[Step]) -> (Vec<String>, String) {
    let mut chunker = BlockChunker::new(settings);
    let mut blocks = Vec::new();
    for step in steps {
        match step {
            Step::Append(text) => chunker.append(text),
            D => blocks.extend(chunker.drain(Drain::Ready)),
            F => blocks.extend(chunker.drain(Drain::All)),
        }
    }
    (blocks.into_iter().map(|block| block.text).collect(), chunker.held().to_owned())
}

fn fenced(open: &str, body: &str) -> String {
    let close: String = open.trim_start().chars().take_while(|c| matches!(c, '`' | '~')).collect();
    let indent = " ".repeat(open.len() - open.trim_start().len());
    format!("{open}\n{body}\n{indent}{close}")
}

/// Spec `streaming.md` §2. Code is closed within the limit, and a block ends without line breaks.
#[test]
fn text_is_cut_where_it_reads_well() {
    let js = fenced("```js", "console.log('x')");
    let blank_line = fenced("```", "a\n\nb");
    let by_paragraph = |min, max| ChunkSettings { by_paragraph: true, ..settings(min, max, Paragraph) };
    let code = |open: &str, c: &str, lens: &[usize]| -> Vec<String> {
        lens.iter().map(|len| fenced(open, &c.repeat(*len))).collect()
    };
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut rows: Vec<(ChunkSettings, Vec<Step>, Vec<String>, String)> = vec![
        (
            settings(1, 40, Paragraph),
            vec![append(format!("Intro\n{js}\n\nAfter first line\nAfter second line")), D],
            vec![format!("Intro\n{js}")],
            "After first line\nAfter second line".to_owned(),
        ),
        (
            settings(5, 25, Paragraph),
            vec![append("First block line\n\nSecond block line"), F],
            own(&["First block line", "Second block line"]),
            String::new(),
        ),
        (
            settings(10, 30, Paragraph),
            vec![append(fenced("```txt", &"a".repeat(80))), F],
            code("```txt", "a", &[19, 19, 19, 19, 4]),
            String::new(),
        ),
        (
            settings(10, 40, Paragraph),
            vec![append(fenced("```json", &"x".repeat(120))), F],
            code("```json", "x", &[28, 28, 28, 28, 8]),
            String::new(),
        ),
        (
            settings(5, 30, Paragraph),
            vec![append("Intro\n\n  ```js\n  const x = 1;\n  ```\n\nOutro"), F],
            own(&["Intro", "  ```js\n  const x = 1;\n  ```", "Outro"]),
            String::new(),
        ),
        (
            settings(5, 40, Newline),
            vec![append("First line\nSecond line\nThird line\n"), D, F],
            own(&["First line\nSecond line\nThird line"]),
            String::new(),
        ),
        (
            settings(1, 50, Newline),
            vec![append("[[reply_to_current]]\nHello"), D, F],
            own(&["[[reply_to_current]]", "Hello"]),
            String::new(),
        ),
        (
            settings(10, 30, Sentence),
            vec![append("One sentence here. Two is here! And three"), D, F],
            own(&["One sentence here.", "Two is here! And three"]),
            String::new(),
        ),
        (
            settings(10, 20, Paragraph),
            vec![append("short"), D, append("short then much longer text without sentence end"), D, F],
            own(&["shortshort then", "much longer text", "without sentence", "end"]),
            String::new(),
        ),
        (
            by_paragraph(100, 200),
            vec![append("Para one.\n\nPara two"), D, append("\n\nPara three"), D, F],
            own(&["Para one.", "Para two", "Para three"]),
            String::new(),
        ),
        (
            by_paragraph(10, 20),
            vec![append(format!("{}\n\nx", "word ".repeat(6))), D],
            own(&["word word word word", "word word"]),
            "x".to_owned(),
        ),
        (
            by_paragraph(1, 100),
            vec![append(format!("{blank_line}\n\nAfter")), D, F],
            vec![blank_line, "After".to_owned()],
            String::new(),
        ),
        (settings(800, 1200, Paragraph), vec![append("x".repeat(799)), D], vec![], "x".repeat(799)),
        (settings(800, 1200, Paragraph), vec![append("x".repeat(1100)), D], vec![], "x".repeat(1100)),
        (
            settings(800, 1200, Paragraph),
            vec![append("x".repeat(1300)), D],
            vec!["x".repeat(1200)],
            "x".repeat(100),
        ),
        (
            settings(5, 12, Paragraph),
            vec![append("aaaa bbbb cccc dddd"), D],
            own(&["aaaa bbbb"]),
            "cccc dddd".to_owned(),
        ),
        // A number is not cut at its point.
        (
            settings(7, 40, Sentence),
            vec![append("It is 3."), D, append("14 or so."), F],
            own(&["It is 3.14 or so."]),
            String::new(),
        ),
        (settings(2, 40, Paragraph), vec![append(" \n\n "), F], vec![], String::new()),
        (settings(1, 4, Paragraph), vec![append("😀😀😀"), F], own(&["😀😀", "😀"]), String::new()),
        // Lines of code are whole where they can be.
        (
            settings(5, 26, Paragraph),
            vec![append("```\n  one two\n  three\nfour\n```"), F],
            own(&["```\n  one two\n  three\n```", "```\nfour\n```"]),
            String::new(),
        ),
    ];
    for open in ["```bash", "~~~sh", "````md"] {
        let block = fenced(open, "line1\nline2");
        rows.push((
            settings(5, 25, Paragraph),
            vec![append(format!("Intro\n\n{block}\n\nOutro")), F],
            vec!["Intro".to_owned(), block, "Outro".to_owned()],
            String::new(),
        ));
    }
    for (settings, steps, blocks, left) in rows {
        assert_eq!(run(settings, &steps), (blocks, left), "{settings:?} {steps:?}");
    }
}

#[test]
fn a_block_says_how_it_goes_on() {
    let mut chunker = BlockChunker::new(settings(5, 26, Paragraph));
    chunker.append("```\n  one two\n  three\nfour\n```\nend");
    let blocks = chunker.drain(Drain::All);
    let continues: Vec<Continues> = blocks.iter().map(|block| block.continues).collect();
    assert_eq!(continues, [Continues::Nothing, Continues::Code, Continues::Nothing], "{blocks:?}");
    assert!(chunker.is_empty());
    let mut chunker = BlockChunker::new(settings(5, 20, Paragraph));
    chunker.append(&fenced("```", &"a".repeat(20)));
    let blocks = chunker.drain(Drain::All);
    assert_eq!(blocks[1].continues, Continues::CodeLine, "{blocks:?}");
    chunker.append("rest");
    chunker.clear();
    assert_eq!(chunker.drain(Drain::All), []);
}

fn any_answer() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z]{1,10}",
        5 => Just(" ".to_owned()),
        2 => Just(". ".to_owned()),
        2 => Just("\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        1 => Just("\n```0\n".to_owned()),
        1 => Just("\n```\n".to_owned()),
        1 => Just("\n~~~\n".to_owned()),
        1 => Just("\n    deep\n".to_owned()),
        1 => Just("😀".to_owned()),
        1 => Just("e\u{301}".to_owned()),
        1 => Just("👩‍👩‍👧".to_owned()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Splits a text into the characters that a reader sees.
fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    (1..=text.len()).filter(|end| is_grapheme_boundary(text, *end)).map(move |end| {
        let grapheme = &text[start..end];
        start = end;
        grapheme
    })
}

/// Removes the characters of fence lines, so that prose can be compared.
fn prose(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '`' | '~' | '0')).collect()
}

proptest! {
    #[test]
    fn blocks_give_the_text_back_wherever_it_is_cut(
        text in any_answer(),
        min in 1usize..60,
        max in 30usize..80,
        prefer in 0..3,
        by_paragraph: bool,
        steps in proptest::collection::vec(1usize..12, 1..40),
    ) {
        let prefer = [Paragraph, Newline, Sentence][prefer as usize];
        let mut chunker = BlockChunker::new(ChunkSettings { min, max, prefer, by_paragraph });
        let mut blocks = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        for step in steps.iter().cycle() {
            if at >= chars.len() {
                break;
            }
            let end = (at + step).min(chars.len());
            chunker.append(&chars[at..end].iter().collect::<String>());
            blocks.extend(chunker.drain(Drain::Ready));
            at = end;
        }
        blocks.extend(chunker.drain(Drain::All));
        let limit = Limit::utf16(max);
        let whole: std::collections::HashSet<&str> = graphemes(&text).collect();
        for grapheme in blocks.iter().flat_map(|block| graphemes(&block.text)) {
            prop_assert!(whole.contains(grapheme) || matches!(grapheme, "\n" | "`" | "~" | "0"), "{:?} was parted", grapheme);
        }
        prop_assert!(blocks.iter().all(|block| limit.fits(&block.text) && !block.text.trim().is_empty()), "{:?}", blocks);
        let said: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
        prop_assert_eq!(prose(&said.join("\n")), prose(&text), "{:?}", blocks);
        // Each ends where its last words do.
        for (at, block) in blocks.iter().enumerate() {
            let before = text.get(..block.end).unwrap_or_default();
            prop_assert_eq!(prose(&said[..=at].join("\n")), prose(before), "{:?}", block);
        }
        let is_open = |text: &str| fences(text).iter().any(|fence| fence.closed_at.is_none());
        if let Some((last, others)) = said.split_last() {
            prop_assert!(!others.iter().any(|block| is_open(block)), "{:?}", blocks);
            prop_assert!(!is_open(last) || is_open(&text), "{:?}", blocks);
        }
        // Joined again, code that was cut is as it was.
        let mut whole = String::new();
        for block in &blocks {
            let is_first = whole.is_empty();
            whole = if is_first { block.text.clone() } else { super::super::coalescer::joined(&whole, &block.text, block.continues, "\n") };
        }
        prop_assert!(fences(&whole).len() <= fences(&text).len(), "{:?}", whole);
    }
}
