//! The analysis beside the shells of this host: the words are those that programs are really given.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::strategy::{BoxedStrategy, Just, Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;

use super::super::*;

const LINES: usize = 300;
const SHELLS: &[&str] = &["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh", "/bin/ksh"];

/// Programs of these names note what they are given. The second one fails.
const PROGRAMS: &[(&str, u8)] = &[("yes_program", 0), ("no_program", 1)];

fn program(dir: &Path, name: &str, code: u8) {
    let path = dir.join(name);
    // One write per call: the parts of a pipeline run at the same time.
    let script = format!(
        "#!/bin/sh\nr='{name}'\nfor a; do r=\"$r<$a>\"; done\nprintf '%s\\037' \"$r\" >>\"$NOTES\"\nexit {code}\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn pick(from: &'static [&'static str]) -> BoxedStrategy<String> {
    proptest::sample::select(from).prop_map(str::to_owned).boxed()
}

/// Pieces of words, mostly such as the analysis takes.
fn piece() -> BoxedStrategy<String> {
    let inside =
        pick(&["a", " ", "b", "|", "&&", ";", "#", "*", "~", "{x,y}", "é", "=", ">", "-", "\t", "\u{3000}"]);
    let inside = proptest::collection::vec(inside, 0..4).prop_map(|pieces| pieces.concat()).boxed();
    let plain = pick(&["a", "b1", "-n", "x=1", "/p/q", ".", "%d", "@x", "+", ",", ":", "--opt=v", "="]);
    let escaped =
        pick(&["\\ ", "\\'", "\\\"", "\\\\", "\\|", "\\;", "\\#", "\\*", "\\$", "\\a", "\\~", "\\!", "\\&"]);
    let in_double = pick(&["\\\"", "\\\\", "\\$", "\\`", "\\a", "'", "\\ "]);
    let double = (inside.clone(), in_double).prop_map(|(one, two)| format!("\"{one}{two}\""));
    let odd = pick(&["$HOME", "*", "~", "#", "{a,b}", "\"$NOTES\"", "`echo x`", "?", "!", "a~", "[a]", "é"]);
    proptest::strategy::Union::new_weighted(vec![
        (8, plain),
        (4, escaped),
        (4, inside.clone().prop_map(|text| format!("'{text}'")).boxed()),
        (4, inside.prop_map(|text| format!("\"{text}\"")).boxed()),
        (3, double.boxed()),
        (1, odd),
    ])
    .boxed()
}

fn line() -> BoxedStrategy<String> {
    let word = proptest::collection::vec(piece(), 1..4).prop_map(|pieces| pieces.concat());
    let arguments = proptest::collection::vec((pick(&[" ", "  ", "\t"]), word), 0..4)
        .prop_map(|words| words.into_iter().map(|(gap, word)| gap + &word).collect::<String>());
    let name = pick(&["yes_program", "no_program", "\"yes_program\"", "no_'program'", "yes\\_program"]);
    let command = (name, arguments).prop_map(|(name, arguments)| name + &arguments);
    let operator = pick(&[" && ", "&&", " || ", "||", " | ", "|", " ; ", ";"]);
    let more = proptest::collection::vec((operator, command.clone()), 0..4);
    (command, more)
        .prop_map(|(first, more)| {
            more.into_iter().fold(first, |line, (operator, command)| line + &operator + &command)
        })
        .boxed()
}

/// Returns what runs according to the analysis: pipelines as a whole, from left to right.
fn expected(segments: &[Segment]) -> Vec<String> {
    let mut out = Vec::new();
    let (mut runs, mut code) = (true, 0);
    for segment in segments {
        runs = match segment.joint {
            Joint::Start | Joint::Then => true,
            Joint::Pipe => runs,
            Joint::And => code == 0,
            Joint::Or => code != 0,
        };
        if !runs {
            continue;
        }
        let (_, own) = PROGRAMS.iter().find(|(name, _)| *name == segment.program).unwrap();
        code = *own;
        let arguments: String = segment.arguments.iter().map(|word| format!("<{word}>")).collect();
        out.push(segment.program.clone() + &arguments);
    }
    out.sort();
    out
}

fn observed(shell: &str, command: &str, dir: &Path) -> Vec<String> {
    let notes = dir.join("notes");
    fs::write(&notes, "").unwrap();
    let ran = Command::new(shell)
        .args(["-c", command])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", dir.display()))
        .env("NOTES", &notes)
        .env("HOME", dir)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{shell} -c {command:?}");
    let text = fs::read_to_string(&notes).unwrap();
    let mut calls: Vec<String> = text.split_terminator('\u{1f}').map(str::to_owned).collect();
    calls.sort();
    calls
}

#[test]
fn programs_get_the_words_of_the_analysis() {
    let dir = tempfile::tempdir().unwrap();
    for (name, code) in PROGRAMS {
        program(dir.path(), name, *code);
    }
    let shells: Vec<&str> = SHELLS.iter().copied().filter(|shell| Path::new(shell).exists()).collect();
    let mut runner = TestRunner::deterministic();
    let strategy = proptest::strategy::Union::new_weighted(vec![
        (30, line()),
        (1, Just("yes_program 'a\nb' \"c\td\"".to_owned()).boxed()),
    ]);
    let (mut read, mut chained) = (0, 0);
    for _ in 0..LINES {
        let command = strategy.new_tree(&mut runner).unwrap().current();
        let Ok(segments) = analyse(&command) else { continue };
        read += 1;
        chained += usize::from(segments.len() > 1);
        // Every shell in turn: one of them for each line is enough over hundreds of lines.
        let shell = shells[read % shells.len()];
        assert_eq!(observed(shell, &command, dir.path()), expected(&segments), "{shell} -c {command:?}");
        assert_eq!(observed("/bin/sh", &join(&segments), dir.path()), expected(&segments), "{command:?}");
    }
    assert!(read > LINES / 3 && chained > LINES / 8, "{read} lines were read, {chained} of them chains");
}
