use proptest::prelude::*;

use super::*;

fn check(file: &str, old: &str, new: &str, expect: &Result<&str, EditError>) {
    let after = replace(file.as_bytes(), old, new).map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(after.as_deref(), expect.as_ref().copied(), "{file:?}: {old:?} -> {new:?}");
}

#[test]
fn the_one_passage_is_replaced() {
    for (file, old, new, after) in [
        ("a b c", "b", "x", "a x c"),
        ("a b c", " b", "", "a c"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("é b é", "b", "ü", "é ü é"),
        // Line ends of the file, whichever the model used.
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\nc\r\n"),
        ("a\nb\nc", "a\r\nb", "x\r\ny", "x\ny\nc"),
        ("a\nb\r\nc\r\nd", "b\nc", "x\ny", "a\nx\r\ny\r\nd"),
        ("one\r\ntwo\nthree", "two", "x\ny", "one\r\nx\r\ny\nthree"),
        // A byte order mark.
        ("\u{feff}a b", "a", "x", "\u{feff}x b"),
        ("\u{feff}a b", "\u{feff}a", "\u{feff}x", "\u{feff}x b"),
        // An exact match wins over what folding would find besides it.
        ("say 'x' and \u{2018}x\u{2019}", "'x'", "y", "say y and \u{2018}x\u{2019}"),
        // Folding: only the passage changes.
        (
            "\u{201c}keep\u{201d}  \nsay \u{201c}hi\u{201d} \u{2013} now",
            "say \"hi\" - now",
            "bye",
            "\u{201c}keep\u{201d}  \nbye",
        ),
        ("a  \nb\t\nc  \n", "a\nb\nc", "x", "x  \n"),
        ("a\nb\n", "a  \nb  ", "x", "x\n"),
        ("a\u{a0}b\u{3000}c", "a b c", "x", "x"),
        ("x\u{2212}y\u{2014}z", "y-z", "q", "x\u{2212}q"),
        ("a \r\nb", "a\nb", "x\ny", "x\r\ny"),
    ] {
        check(file, old, new, &Ok(after));
    }
}

#[test]
fn what_is_missing_or_ambiguous_or_the_same_is_refused() {
    for (file, old, new, error) in [
        ("abc", "x", "y", EditError::NotFound),
        ("", "x", "y", EditError::NotFound),
        ("a   \n   b", "\t", "y", EditError::NotFound),
        ("a b a", "a", "x", EditError::Ambiguous(2)),
        ("aaa", "aa", "x", EditError::Ambiguous(2)),
        ("ééé", "é", "x", EditError::Ambiguous(3)),
        ("aaaaa", "aa", "x", EditError::Ambiguous(2)),
        ("\u{2018}x\u{2019} \u{201a}x\u{2019}", "'x'", "y", EditError::Ambiguous(2)),
        ("a b", "b", "b", EditError::NoChange),
        ("a\r\nb", "a\nb", "a\r\nb", EditError::NoChange),
    ] {
        check(file, old, new, &Err(error));
    }
}

/// A search anew from each occurrence took hours here.
#[test]
fn what_repeats_without_end_is_refused_at_once() {
    let (file, old) = ("a".repeat(1_500_000), "a".repeat(8_000));
    check(&file, &old, "x", &Err(EditError::Ambiguous(187)));
    check(&file, &format!("{old}b"), "x", &Err(EditError::NotFound));
}

#[test]
fn bytes_that_are_no_text_survive_an_edit_beside_them_and_refuse_one_over_them() {
    let file = b"caf\xe9 old\n\xff\n";
    assert_eq!(replace(file, "old", "new").unwrap(), b"caf\xe9 new\n\xff\n");
    assert_eq!(replace(file, "caf\u{fffd}", "x"), Err(EditError::NotText));
}

fn line() -> impl Strategy<Value = String> {
    "[ab \u{a0}\u{2018}\u{201d}\u{2014}é\t\r]{0,6}"
}

proptest! {
    #[test]
    fn no_byte_outside_the_passage_changes(
        lines in prop::collection::vec((line(), any::<bool>()), 0..12),
        bom in any::<bool>(),
        pick in any::<prop::sample::Index>(),
        length in 1_usize..12,
        new in "[xyz\n]{0,6}",
        folded in any::<bool>(),
    ) {
        let mut file = String::from(if bom { "\u{feff}" } else { "" });
        for (line, crlf) in &lines {
            file.push_str(line);
            file.push_str(if *crlf { "\r\n" } else { "\n" });
        }
        // A passage as a model might repeat it: exact, or in plain spelling.
        let chars: Vec<char> = file.chars().collect();
        let start = if chars.is_empty() { 0 } else { pick.index(chars.len()) };
        let passage: String = chars.iter().skip(start).take(length).collect();
        let old = if folded { Folded::of(passage.as_bytes(), Fold::Typography).text } else { passage };
        prop_assume!(!old.is_empty());
        let Ok(after) = replace(file.as_bytes(), &old, &new) else { return Ok(()) };

        let after = String::from_utf8(after).unwrap();
        let inserted = [new.clone(), new.replace('\n', "\r\n")];
        let fits = inserted.iter().any(|new| {
            (0..=file.len()).filter(|at| file.is_char_boundary(*at)).any(|at| {
                let (head, tail) = file.split_at(at);
                after.strip_prefix(head).and_then(|rest| rest.strip_prefix(new.as_str())).is_some_and(|rest| {
                    // The removed text is one passage that reads like `old`.
                    tail.strip_suffix(rest).is_some_and(|gone| {
                        let same = |fold| {
                            Folded::of(gone.trim_start_matches('\u{feff}').as_bytes(), fold).text
                                == Folded::of(old.trim_start_matches('\u{feff}').as_bytes(), fold).text
                        };
                        same(Fold::LineEnds) || same(Fold::Typography)
                    })
                })
            })
        });
        prop_assert!(fits, "{file:?}: {old:?} -> {new:?} gave {after:?}");
    }
}
