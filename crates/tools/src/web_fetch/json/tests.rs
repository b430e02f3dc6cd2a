use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::*;

fn all(json: &str) -> Option<String> {
    indented(json, usize::MAX, &StopSignal::never()).map(|indented| {
        assert!(!indented.is_cut);
        indented.text
    })
}

#[test]
fn json_gets_a_line_for_each_value() {
    let exact = "12345678901234567890.10";
    for (json, expect) in [
        ("1", "1"),
        (" [ ] ", "[]"),
        ("{}", "{}"),
        ("[[],{}]", "[\n  [],\n  {}\n]"),
        ("{\"b\":1,\n\"a\":[true , null]}", "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    null\n  ]\n}"),
        (r#""a\\\"[,]{:}""#, r#""a\\\"[,]{:}""#),
        (r#"["\u4f60\u597d\n"]"#, "[\n  \"你好\\n\"\n]"),
        // What no text can hold stays as it came, and so do numbers.
        (r#""\ud800""#, r#""\ud800""#),
        (exact, exact),
    ] {
        assert_eq!(all(json).as_deref(), Some(expect), "{json}");
    }
    for json in ["", "{no json", "[1,]", "[1", "1 2", "{\"a\"}"] {
        assert_eq!(all(json), None, "{json}");
    }
}

/// Bytes of small nested values become a hundred times as many, and levels the square of it.
#[test]
fn what_is_written_is_bounded() {
    let flood = format!("{}{}1{}", "[".repeat(127), "1,".repeat(500_000), "]".repeat(127));
    let found = indented(&flood, 10_000, &StopSignal::never()).unwrap();
    assert!(found.is_cut && (10_001..11_000).contains(&found.text.len()), "{}", found.text.len());
    let long = format!("[\"{}\", 1]", "x".repeat(20_000));
    assert!(indented(&long, 10_000, &StopSignal::never()).unwrap().is_cut);
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(indented(&deep, usize::MAX, &StopSignal::never()), None);
}

#[test]
fn writing_ends_when_it_is_stopped() {
    let stop = StopSignal::within(Duration::ZERO, CancellationToken::new());
    assert_eq!(indented("[1]", usize::MAX, &stop), Some(Indented { text: String::new(), is_cut: true }));
}

fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,3}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest::proptest! {
    /// As serde writes it.
    #[test]
    fn any_json_is_written_as_others_write_it(value in any_json()) {
        let expect = serde_json::to_string_pretty(&value).unwrap();
        proptest::prop_assert_eq!(all(&value.to_string()), Some(expect));
    }
}
