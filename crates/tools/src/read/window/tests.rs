use proptest::prelude::*;

use super::*;

fn show(text: &str, offset: usize, limit: Option<usize>) -> String {
    // A tiny buffer, so that lines arrive in pieces.
    let file = io::BufReader::with_capacity(7, text.as_bytes());
    let window = cut(file, LineRange { offset, limit }, || false).unwrap();
    window.render("f.txt").unwrap_or_else(|error| format!("error: {error}"))
}

#[test]
fn each_notice_stands_below_its_lines() {
    let many = (1..=2500).map(|n| n.to_string()).collect::<Vec<_>>();
    let wide = vec!["x".repeat(1023); 60];
    let long = format!("{}\nshort", "é".repeat(30_000));
    for (text, offset, limit, shown) in [
        ("hello note\n".to_owned(), 1, None, "hello note\n".to_owned()),
        (String::new(), 1, None, String::new()),
        ("a\nb\nc".into(), 2, None, "b\nc".into()),
        ("a\nb\nc".into(), 1, Some(2), "a\nb\n\n[Lines 1-2 of 3. Go on with offset=3.]".into()),
        ("a\nb\nc".into(), 2, Some(2), "b\nc".into()),
        ("a\nb\n".into(), 1, Some(2), "a\nb\n\n[Lines 1-2 of 3. Go on with offset=3.]".into()),
        ("a\nb".into(), 3, None, "error: Offset 3 is past the end: the file has 2 lines".into()),
        ("a\n".into(), 2, None, String::new()),
        (
            many.join("\n"),
            1,
            None,
            many[..2000].join("\n") + "\n\n[Lines 1-2000 of 2500. Go on with offset=2001.]",
        ),
        (many.join("\n"), 501, None, many[500..].join("\n")),
        (
            many.join("\n"),
            2,
            Some(2400),
            many[1..2001].join("\n") + "\n\n[Lines 2-2001 of 2500. Go on with offset=2002.]",
        ),
        (
            wide.join("\n"),
            1,
            None,
            wide[..50].join("\n")
                + "\n\n[Lines 1-50 of 60. Go on with offset=51.]",
        ),
        (
            long,
            1,
            None,
            "[Line 1 has 58.6KB; at most 50.0KB are shown at a time. Its beginning: sed -n '1p' f.txt | head -c 51200]".into(),
        ),
        (
            format!("a\n{}", "x".repeat(60_000)),
            1,
            None,
            "a\n\n[Lines 1-1 of 2. Go on with offset=2.]".into(),
        ),
    ] {
        assert_eq!(show(&text, offset, limit), shown, "offset {offset}, limit {limit:?}");
    }
}

#[test]
fn sizes_have_one_decimal() {
    for (bytes, text) in [(0, "0B"), (1023, "1023B"), (1024, "1.0KB"), (51200, "50.0KB"), (3 << 19, "1.5MB")]
    {
        assert_eq!(size(bytes), text);
    }
}

#[test]
fn a_cancelled_scan_ends() {
    let endless = io::BufReader::new(io::repeat(b'x'));
    assert!(matches!(cut(endless, LineRange { offset: 1, limit: None }, || true), Err(ScanError::Cancelled)));
}

/// Follows the notices from the first page to the last, as a model would.
fn all_pages(text: &str, limit: Option<usize>) -> String {
    let (mut pages, mut offset) = (Vec::new(), 1);
    loop {
        let page = show(text, offset, limit);
        let Some((content, note)) =
            page.rsplit_once("\n\n[").filter(|(_, note)| note.contains(". Go on with offset="))
        else {
            pages.push(page);
            return pages.join("\n");
        };
        pages.push(content.to_owned());
        let next = note.split_once("offset=").unwrap().1.split_once('.').unwrap().0;
        offset = next.parse().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn pages_put_together_are_the_file(
        lines in prop::collection::vec("[a-zé\r]{0,40}", 0..200),
        copies in 1_usize..20,
        limit in prop::option::of(100_usize..2500),
        wide in 1_usize..4,
    ) {
        let block: Vec<_> = lines.iter().map(|line| line.repeat(wide)).collect();
        let text = vec![block.join("\n"); copies].join("\n");
        prop_assert_eq!(all_pages(&text, limit), text);
    }
}
