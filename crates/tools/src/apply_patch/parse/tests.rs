use proptest::prelude::*;

use super::PatchLine::{Add, Keep, Remove};
use super::*;

fn update<'a>(path: &'a str, move_to: Option<&'a str>, chunks: Vec<PatchChunk<'a>>) -> Hunk<'a> {
    Hunk::Update { path, move_to, chunks }
}

fn chunk<'a>(context: Option<&'a str>, lines: &[PatchLine<'a>]) -> PatchChunk<'a> {
    PatchChunk { context, lines: lines.to_vec(), is_end_of_file: false }
}

fn add<'a>(path: &'a str, content: &str) -> Hunk<'a> {
    Hunk::Add { path, content: content.to_owned() }
}

#[test]
fn patches_are_read() {
    for (body, expect) in [
        ("*** Add File: hello.txt\n+hello\n", vec![add("hello.txt", "hello\n")]),
        ("*** Add File: a b.txt\n*** Add File: c\n++x\n+\n", vec![add("a b.txt", ""), add("c", "+x\n\n")]),
        ("  *** Delete File: a.txt  \n", vec![Hunk::Delete { path: "a.txt" }]),
        ("*** Delete File: \u{3000}a\u{a0} \n", vec![Hunk::Delete { path: "\u{3000}a\u{a0}" }]),
        (
            "*** Update File: source.txt\n*** Move to: dest.txt\n@@\n foo\n-bar\n+baz\n",
            vec![update(
                "source.txt",
                Some("dest.txt"),
                vec![chunk(None, &[Keep("foo"), Remove("bar"), Add("baz")])],
            )],
        ),
        (
            "*** Update File: end.txt\n@@\n+line2\n\n*** End of File\n",
            vec![update(
                "end.txt",
                None,
                vec![PatchChunk { is_end_of_file: true, ..chunk(None, &[Add("line2"), Keep("")]) }],
            )],
        ),
        // The first chunk may lack its mark; blank lines between chunks are skipped, in a chunk they are context.
        (
            "*** Update File: a\n \n\n-x\n\n y\n@@ fn f() {\n-z\n*** End of File\n\n  \n@@\n+w\n*** Delete File: b\n",
            vec![
                update(
                    "a",
                    None,
                    vec![
                        chunk(None, &[Remove("x"), Keep(""), Keep("y")]),
                        PatchChunk { is_end_of_file: true, ..chunk(Some("fn f() {"), &[Remove("z")]) },
                        chunk(None, &[Add("w")]),
                    ],
                ),
                Hunk::Delete { path: "b" },
            ],
        ),
        ("*** Update File: a\n@@ \n+x\n", vec![update("a", None, vec![chunk(Some(""), &[Add("x")])])]),
    ] {
        let crlf = body.replace('\n', "\r\n");
        for body in [body, crlf.as_str()] {
            for (before, after) in [
                ("", ""),
                ("\n \t", "\n\n"),
                ("<<EOF\n", "\nEOF"),
                ("<<'EOF'\n", "\nEOF\n"),
                ("<<\"EOF\"\n", "\n)EOF"),
            ] {
                let input = format!("{before}*** Begin Patch\n{body}*** End Patch{after}");
                assert_eq!(parse(&input).as_ref(), Ok(&expect), "{input}");
            }
        }
    }
}

#[test]
fn what_is_no_patch_is_explained() {
    const HEADERS: &str = "is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', \
                           '*** Delete File: {path}', '*** Update File: {path}'";
    const MARKS: &str =
        "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)";
    let header = |line: usize, text: &str| format!("Invalid patch hunk at line {line}: '{text}' {HEADERS}");
    let hunk = |line: usize, text: &str| format!("Invalid patch hunk at line {line}: {text}");
    let no_begin = "The first line of the patch must be '*** Begin Patch'";
    let no_end = "The last line of the patch must be '*** End Patch'";
    for (input, says) in [
        ("", "Provide a patch input.".to_owned()),
        (" \n\t", "Provide a patch input.".to_owned()),
        ("*** Begin Patch\n*** End Patch", "No files were modified.".to_owned()),
        ("x", no_begin.to_owned()),
        ("*** End Patch", no_begin.to_owned()),
        ("*** Begin Patch", no_end.to_owned()),
        ("*** Begin Patch\n*** Delete File: a", no_end.to_owned()),
        ("<<EOF\n*** Begin Patch\n*** Delete File: a\nEOF", no_end.to_owned()),
        ("<<EOF\n*** Delete File: a\n*** End Patch\nEOF", no_begin.to_owned()),
        ("<<END\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEND", no_begin.to_owned()),
        ("<<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch", no_begin.to_owned()),
        ("<<EOF\nEOF", no_begin.to_owned()),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", header(2, "*** Rename File: a")),
        ("*** Begin Patch\n*** Delete File: \n*** End Patch", header(2, "*** Delete File: ")),
        ("*** Begin Patch\n*** Add File: a\n+x\n y\n*** End Patch", header(4, " y")),
        ("*** Begin Patch\n*** Delete File: a\n\n*** End Patch", header(3, "")),
        (
            "*** Begin Patch\n*** Delete File: a\n*** Update File: b\n\n*** End Patch",
            hunk(3, "Update file hunk for path 'b' is empty"),
        ),
        (
            "*** Begin Patch\n*** Update File: b\n*** Move to: c\n*** Delete File: d\n*** End Patch",
            hunk(2, "Update file hunk for path 'b' is empty"),
        ),
        (
            "*** Begin Patch\n*** Update File: b\n-x\n+y\n*** End of File\n-z\n*** End Patch",
            hunk(6, "Expected update hunk to start with a @@ context marker, got: '-z'"),
        ),
        (
            "*** Begin Patch\n*** Update File: b\n@@\n*** End of File\n*** End Patch",
            hunk(4, "Update hunk does not contain any lines"),
        ),
        (
            "*** Begin Patch\n*** Update File: b\n@@ x\n*** End Patch",
            hunk(4, "Update hunk does not contain any lines"),
        ),
        (
            "*** Begin Patch\n*** Update File: b\n@@\n@@\n+x\n*** End Patch",
            hunk(4, &format!("Unexpected line found in update hunk: '@@'. {MARKS}")),
        ),
        (
            "*** Begin Patch\n*** Update File: b\nwhat\n*** End Patch",
            hunk(3, &format!("Unexpected line found in update hunk: 'what'. {MARKS}")),
        ),
        (
            "*** Begin Patch\n*** Update File: b\n@@\n*** Delete File: c\n*** End Patch",
            hunk(4, &format!("Unexpected line found in update hunk: '*** Delete File: c'. {MARKS}")),
        ),
    ] {
        assert_eq!(parse(input).unwrap_err().to_string(), says, "{input}");
    }
}

/// A patch as text.
fn written(hunks: &[Hunk<'_>]) -> String {
    let mut out = format!("{BEGIN}\n");
    for hunk in hunks {
        match hunk {
            Hunk::Add { path, content } => {
                out.push_str(&format!("{ADD}{path}\n"));
                content.lines().for_each(|line| out.push_str(&format!("+{line}\n")));
            }
            Hunk::Delete { path } => out.push_str(&format!("{DELETE}{path}\n")),
            Hunk::Update { path, move_to, chunks } => {
                out.push_str(&format!("{UPDATE}{path}\n"));
                move_to.iter().for_each(|to| out.push_str(&format!("{MOVE}{to}\n")));
                chunks.iter().for_each(|chunk| write_chunk(chunk, &mut out));
            }
        }
    }
    out + END
}

fn write_chunk(chunk: &PatchChunk<'_>, out: &mut String) {
    out.push_str(&chunk.context.map_or("@@\n".to_owned(), |context| format!("@@ {context}\n")));
    for line in &chunk.lines {
        let (mark, text) = match line {
            Keep(text) => (' ', text),
            Remove(text) => ('-', text),
            Add(text) => ('+', text),
        };
        out.push_str(&format!("{mark}{text}\n"));
    }
    if chunk.is_end_of_file {
        out.push_str(&format!("{END_OF_FILE}\n"));
    }
}

#[derive(Debug, Clone)]
struct Owned {
    kind: u8,
    path: String,
    words: Vec<(u8, String)>,
    is_end: bool,
}

fn owned() -> impl Strategy<Value = Vec<Owned>> {
    let words = prop::collection::vec((0_u8..3, "[ a*@+-]{0,5}"), 1..5);
    let hunk = (0_u8..4, "[a-z][a-z /.]{0,6}[a-z]", words, any::<bool>());
    prop::collection::vec(
        hunk.prop_map(|(kind, path, words, is_end)| Owned { kind, path, words, is_end }),
        1..5,
    )
}

fn hunks(owned: &[Owned]) -> Vec<Hunk<'_>> {
    owned
        .iter()
        .map(|Owned { kind, path, words, is_end }| match kind {
            0 => add(path, &words.iter().map(|(_, text)| format!("{text}\n")).collect::<String>()),
            1 => Hunk::Delete { path },
            kind => {
                let lines = words.iter().map(|(mark, text)| match mark {
                    0 => Keep(text.as_str()),
                    1 => Remove(text),
                    _ => Add(text),
                });
                let context = words.first().map(|(_, text)| text.as_str()).filter(|_| *is_end);
                let chunk = PatchChunk { context, lines: lines.collect(), is_end_of_file: *is_end };
                update(path, (*kind == 3).then_some("moved"), vec![chunk.clone(), chunk])
            }
        })
        .collect()
}

proptest! {
    #[test]
    fn a_written_patch_is_read_back(owned in owned()) {
        let hunks = hunks(&owned);
        let text = written(&hunks);
        prop_assert_eq!(parse(&text), Ok(hunks));
    }

    /// Parsing any text never panics, and whatever is parsed can be written and parsed again.
    #[test]
    fn any_text_is_read_or_refused(
        lines in prop::collection::vec(
            prop_oneof![
                "\\*\\*\\* (Add|Delete|Update) File: [ab]?", Just("*** Move to: c".to_owned()), Just("@@".to_owned()),
                Just("*** End of File".to_owned()), "[ +-]x?", Just(String::new()), "\\PC{0,6}",
            ],
            0..12,
        ),
    ) {
        let input = format!("{BEGIN}\n{}\n{END}", lines.join("\n"));
        if let Ok(hunks) = parse(&input) {
            let text = written(&hunks);
        prop_assert_eq!(parse(&text), Ok(hunks));
        }
    }
}
