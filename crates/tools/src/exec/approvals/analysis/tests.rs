use proptest::prelude::*;

use super::*;

mod real_shell;

fn words(command: &str) -> Result<String, NotAnalysable> {
    let segments = analyse(command)?;
    let shown = segments.iter().map(|segment| {
        let words: Vec<String> = [&segment.program]
            .into_iter()
            .chain(&segment.arguments)
            .map(|word| format!("<{word}>"))
            .collect();
        format!("{}{}", segment.joint.operator(), words.concat())
    });
    Ok(shown.collect())
}

#[test]
fn words_are_what_a_shell_reads() {
    for (command, expect) in [
        ("rg x", "<rg><x>"),
        (" \t rg \t x ", "<rg><x>"),
        ("rg x | wc -l", "<rg><x> | <wc><-l>"),
        ("a|b&&c||d;e", "<a> | <b> && <c> || <d> ; <e>"),
        (r#"echo "a && b""#, "<echo><a && b>"),
        ("echo 'a | b; c > d $(e) `f` $g \\ \" #'", "<echo><a | b; c > d $(e) `f` $g \\ \" #>"),
        ("echo 'a\n\tb'", "<echo><a\n\tb>"),
        (r#"e "a\"b\\c\$d\`e\f""#, "<e><a\"b\\c$d`e\\f>"),
        (r"e a\ b\|c\;d\'e\\f\#g\*h\~i\!j", r"<e><a b|c;d'e\f#g*h~i!j>"),
        (r#"e a'b'"c"d''e"#, "<e><abcde>"),
        (r#"e '' """#, "<e><><>"),
        ("e x=1 --y=2 z:%@+,/", "<e><x=1><--y=2><z:%@+,/>"),
        ("e 'ünï' \"\u{3000}\"", "<e><ünï><\u{3000}>"),
        ("'/opt/my app/run' -x", "</opt/my app/run><-x>"),
        ("e '#' a", "<e><#><a>"),
    ] {
        assert_eq!(words(command).as_deref(), Ok(expect), "{command}");
    }
}

#[test]
fn what_a_shell_may_give_a_meaning_is_not_analysable() {
    for c in "$`<>()&#*?[]{}~!^\n\r\0\u{1}\u{7f}\u{85}\u{a0}\u{2003}\u{2028}\u{3000}\u{feff}é\u{200b}\u{202e}"
        .chars()
    {
        let command = format!("e a{c}");
        assert_eq!(analyse(&command), Err(NotAnalysable::Character(c)), "{command:?}");
        if c != '&' {
            assert!(analyse(&format!("{c}e a")).is_err(), "{c:?} first");
        }
    }
    for c in "$`!\n\r\0\u{1b}".chars() {
        let command = format!("e \"a{c}\"");
        assert_eq!(analyse(&command), Err(NotAnalysable::Character(c)), "{command:?}");
    }
    for c in "\r\0\u{1b}\u{9b}".chars() {
        let command = format!("e 'a{c}'");
        assert_eq!(analyse(&command), Err(NotAnalysable::Character(c)), "{command:?}");
    }
    for c in "\n\r\0é\u{a0}".chars() {
        assert_eq!(analyse(&format!("e \\{c}")), Err(NotAnalysable::Character(c)), "{c:?}");
    }
}

#[test]
fn what_is_no_sequence_of_simple_commands_is_not_analysable() {
    use NotAnalysable::{Character, EmptyPart, NotAProgram, Unterminated};
    let no = |word: &str| NotAProgram(word.to_owned());
    for (command, expect) in [
        ("", EmptyPart),
        (" \t", EmptyPart),
        ("foo &&", EmptyPart),
        ("&& foo", EmptyPart),
        ("foo ;", EmptyPart),
        ("foo ;; bar", EmptyPart),
        ("foo | | bar", EmptyPart),
        ("foo ||| bar", EmptyPart),
        ("| foo", EmptyPart),
        ("foo |", EmptyPart),
        ("foo & bar", Character('&')),
        ("foo &", Character('&')),
        ("foo &&& bar", Character('&')),
        ("foo |& bar", Character('&')),
        ("foo ;& bar", Character('&')),
        ("foo 'bar", Unterminated),
        ("foo \"bar", Unterminated),
        ("foo \"bar\\\"", Unterminated),
        ("foo \\", Unterminated),
        ("A=1 foo", no("A=1")),
        ("A+=1 foo", no("A+=1")),
        ("foo && A= bar", no("A=")),
        ("'A=1' foo", no("A=1")),
        ("=foo x", Character('=')),
        ("foo =bar", Character('=')),
        ("foo ''=bar", Character('=')),
        ("- foo", no("-")),
        ("-foo", no("-foo")),
        ("%1", no("%1")),
        ("'' foo", no("")),
        ("'a\nb' foo", no("a\nb")),
        ("if foo ; then bar ; fi", no("if")),
        ("for x in y ; do foo ; done", no("for")),
        ("while foo ; do bar ; done", no("while")),
        ("case x in", no("case")),
        ("function f", no("function")),
        ("time foo", no("time")),
        ("coproc foo", no("coproc")),
        ("noglob foo", no("noglob")),
        ("repeat 3 foo", no("repeat")),
        ("f() { foo ; }", Character('(')),
        ("{ foo ; }", Character('{')),
        ("( foo )", Character('(')),
        ("! foo", Character('!')),
        ("foo <<EOF", Character('<')),
        ("foo 2>&1", Character('>')),
        ("foo $'x'", Character('$')),
        ("foo <(bar)", Character('<')),
    ] {
        assert_eq!(analyse(command), Err(expect), "{command:?}");
    }
    assert_eq!(analyse(&"a".repeat(MAX_BYTES)).map(|segments| segments.len()), Ok(1));
    assert_eq!(analyse(&"a".repeat(MAX_BYTES + 1)), Err(NotAnalysable::TooLong));
}

#[test]
fn only_known_shells_are_read() {
    for shell in ["sh", "/bin/sh", "/usr/local/bin/bash", "dash", "/bin/zsh", "ksh"] {
        assert!(reads_like_posix(std::path::Path::new(shell)), "{shell}");
    }
    for shell in ["", "/", "fish", "/bin/tcsh", "csh", "nu", "pwsh", "elvish", "/bin/sh/x"] {
        assert!(!reads_like_posix(std::path::Path::new(shell)), "{shell}");
    }
}

/// Returns the text outside of quotes and escapes, determined by another method than the analysis
/// uses.
fn unquoted(command: &str) -> String {
    let mut out = String::new();
    let mut rest = command;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\\' => &after[after.chars().next().map_or(0, char::len_utf8)..],
            '\'' => after.split_once('\'').map_or("", |(_, rest)| rest),
            '"' => {
                let mut escaped = false;
                let end = after.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or("", |end| &after[end + 1..])
            }
            c => {
                out.push(c);
                after
            }
        };
    }
    out
}

const PIECES: &[&str] = &[
    "a", "rg", "x", " ", " ", "\t", "'", "\"", "\\", "&&", "||", "|", ";", "&", "$", "`", "#", "*", "~", "=",
    "A=1", "-n", "é", "!", "{", "}", "\n", "(", ")", "<", ">", "\u{a0}", "if", "%",
];

fn soup() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES), 0..14).prop_map(|pieces| pieces.concat())
}

fn holds(command: &str) {
    let Ok(segments) = analyse(command) else { return };
    let joined = join(&segments);
    assert_eq!(analyse(&joined), Ok(segments), "{command:?} {joined:?}");
    let bare = unquoted(command).replace("&&", "");
    let is_fine = |c: char| c.is_ascii_alphanumeric() || " \t|;_-./,:@%+=".contains(c);
    assert!(bare.chars().all(is_fine), "{command:?}");
}

proptest! {
    #[test]
    fn words_quoted_again_are_read_the_same(command in soup()) {
        holds(&command);
    }

    #[test]
    fn any_text_is_read_or_refused(command in "\\PC*|[ -~]*") {
        holds(&command);
    }

    #[test]
    fn any_words_survive_quoting(words in proptest::collection::vec("[ -~\n\tüé]{0,8}", 1..6)) {
        let segment = Segment { joint: Joint::Start, program: "p".into(), arguments: words };
        let line = join(std::slice::from_ref(&segment));
        prop_assert_eq!(analyse(&line), Ok(vec![segment]));
    }
}
