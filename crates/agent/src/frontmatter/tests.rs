use proptest::prelude::*;

use super::*;

fn parsed(block: &str) -> Frontmatter {
    MarkdownDocument::parse(&format!("---\n{block}\n---\nbody\n")).unwrap().frontmatter
}

fn all(block: &str) -> Vec<(String, String)> {
    parsed(block).values
}

fn pairs(values: &[(&str, &str)]) -> Vec<(String, String)> {
    values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn every_value_is_text() {
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("name: demo\ndescription: \"Text & more\"", &[("name", "demo"), ("description", "Text & more")]),
        (
            "a: 1\nb: 1.0\nc: 0x10\nd: -2.5\ne: 1_000",
            &[("a", "1"), ("b", "1"), ("c", "16"), ("d", "-2.5"), ("e", "1_000")],
        ),
        ("a: yes\nb: true\nc: ~\nd: null\ne:", &[("a", "yes"), ("b", "true")]),
        ("a: 2026-02-09", &[("a", "2026-02-09")]),
        ("a: |\n  one\n  two\n", &[("a", "one\ntwo")]),
        ("a: >\n  one\n  two\n", &[("a", "one two")]),
        ("a:\n  b: 1\n  c: [x, 'y']", &[("a", r#"{"b":1,"c":["x","y"]}"#)]),
        ("a:\n- x\n- y", &[("a", r#"["x","y"]"#)]),
        ("a: &x {k: v}\nb: *x", &[("a", r#"{"k":"v"}"#), ("b", r#"{"k":"v"}"#)]),
        ("a: !!str 1", &[("a", "1")]),
    ];
    for (block, expect) in rows {
        assert_eq!(all(block), pairs(expect), "{block}");
    }
}

#[test]
fn json5_is_taken_from_the_lines_as_it_stands() {
    let frontmatter = parsed(
        "name: demo\nmetadata:\n  {\n    \"openclaw\":\n      { emoji: '💾', events: ['command:new',], always: true },\n  }",
    );
    let manifest = frontmatter.manifest().unwrap().unwrap();
    assert_eq!(manifest.text("emoji"), Some("💾"));
    assert_eq!(manifest.list("events"), ["command:new"]);
    assert_eq!(manifest.switch("always"), Some(true));
    assert_eq!(
        parsed("metadata: {\"openclaw\":{\"os\":[\"linux\"]}}")
            .manifest()
            .unwrap()
            .unwrap()
            .requirements()
            .os,
        ["linux"]
    );
}

#[test]
fn metadata_may_be_a_yaml_mapping_or_bear_an_earlier_name() {
    let rows = [
        "metadata:\n  openclaw:\n    emoji: x",
        "metadata: '{\"moltbot\": {\"emoji\": \"x\"}}'",
        "metadata: {clawdbot: {emoji: 'x'}}",
    ];
    for block in rows {
        assert_eq!(parsed(block).manifest().unwrap().unwrap().text("emoji"), Some("x"), "{block}");
    }
    assert_eq!(parsed("metadata: {\"other\": {}}").manifest().unwrap(), None);
    assert_eq!(parsed("name: x").manifest().unwrap(), None);
    for bad in ["metadata: {openclaw: {", "metadata: [1]", "metadata: word"] {
        assert!(matches!(parsed(bad).manifest(), Err(FrontmatterError::Metadata(_))), "{bad}");
    }
}

#[test]
fn what_is_no_yaml_is_read_line_by_line() {
    assert_eq!(
        all("name: 'demo'\ndescription: note: this\nlist:\n  - a\n  - b\n\nx y: no\n-: -"),
        pairs(&[("name", "demo"), ("description", "note: this"), ("list", "- a\n  - b"), ("-", "-")])
    );
    // Equal keys are no YAML either; the last one counts.
    assert_eq!(parsed("name: a\nname: b").get("name"), Some("b"));
}

#[test]
fn a_block_begins_the_file_and_ends_with_a_line_of_dashes() {
    let rows = [
        ("no block\n---\n", None, "no block\n---\n"),
        ("---\nname: x\n", None, "---\nname: x\n"),
        ("---\r\nname: x\r\n---\r\nbody\r\n", Some("x"), "body\n"),
        ("---\rname: x\r---\rbody", Some("x"), "body"),
        ("\u{feff}---\nname: x\n---\nbody", Some("x"), "body"),
        ("---\nname: x\n----- end\nbody", Some("x"), "body"),
        ("---\nname: x\n---", Some("x"), ""),
        ("---\n---\nbody", None, "body"),
        ("--- name: x\n---\nbody", Some("x"), "body"),
    ];
    for (text, name, body) in rows {
        let document = MarkdownDocument::parse(text).unwrap();
        assert_eq!((document.frontmatter.get("name"), document.body.as_str()), (name, body), "{text:?}");
    }
}

#[test]
fn switches_are_said_in_many_ways() {
    let frontmatter = parsed("a: true\nb: 'YES'\nc: off\nd: maybe\ne: 0");
    assert_eq!(
        ["a", "b", "c", "d", "e", "f"].map(|key| frontmatter.switch(key)),
        [Some(true), Some(true), Some(false), None, Some(false), None]
    );
}

#[test]
fn a_block_takes_bounded_memory() {
    let long = format!("---\nname: {}\n---\n", "x".repeat(MAX_BYTES));
    assert_eq!(MarkdownDocument::parse(&long), Err(FrontmatterError::TooLong));
    // Each line doubles the one before, as text and as values: not taken as YAML.
    let mut laughs = "a0: &a0 [x, x]\n".to_owned();
    for at in 1..40 {
        laughs.push_str(&format!("a{at}: &a{at} [*a{}, *a{}]\n", at - 1, at - 1));
    }
    assert_eq!(parsed(&laughs).get("a39"), Some("&a39 [*a38, *a38]"));
    let deep = format!("a: {}", "[".repeat(20_000));
    assert!(parsed(&deep).get("a").is_some());
    let deep = format!("a:\n {}x", "- ".repeat(20_000));
    assert!(parsed(&deep).get("a").is_some());
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "(---\n)?[a-c:{}\\[\\]'\"&*!|>~ \n#,-]{0,80}(\n---)?.{0,10}") {
        if let Ok(document) = MarkdownDocument::parse(&text) {
            let _ = document.frontmatter.manifest();
        }
    }

    #[test]
    fn plain_pairs_come_back(key in "[a-z]{1,8}", value in "[a-zA-Z][a-zA-Z &.]{0,30}[a-z]x") {
        prop_assert_eq!(all(&format!("{key}: {value}")), pairs(&[(&key, value.trim())]));
    }
}
