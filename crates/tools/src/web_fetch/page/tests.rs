use super::*;

fn raw(content_type: &str, body: &[u8]) -> RawPage {
    RawPage {
        body: body.to_vec(),
        content_type: Some(content_type).filter(|kind| !kind.is_empty()).map(bare_type),
        url: "http://site.example/".to_owned(),
        is_cut: false,
        mode: PageFormat::Markdown,
        max_chars: 50_000,
        readability: true,
    }
}

/// The type a server gives, the body; who made the text, and the text or what is told.
#[test]
fn a_document_becomes_text_or_says_why_not() {
    use Extractor::{Json, Raw as Plain, Readability};
    let binary = |kind: &str| format!("Web fetch failed: the document is binary ({kind}), not text.");
    let utf16: Vec<u8> = "\u{feff}hé".encode_utf16().flat_map(u16::to_le_bytes).collect();
    type Text = Result<(Extractor, &'static str), String>;
    let rows: Vec<(&str, &[u8], Text)> = vec![
        ("Text/HTML; charset=UTF-8", b"<p>Hello", Ok((Readability, "Hello"))),
        ("application/xhtml+xml", b"<p>Hello</p>", Ok((Readability, "Hello"))),
        ("", b" \n<!DOCTYPE HTML><p>Hello", Ok((Readability, "Hello"))),
        ("", b"<html><p>Hello", Ok((Readability, "Hello"))),
        ("", b"just words", Ok((Plain, "just words"))),
        ("text/html", b"", Err(NOTHING.to_owned())),
        (
            "application/json",
            b"{\"b\":1,\"a\":[true]}",
            Ok((Json, "{\n  \"b\": 1,\n  \"a\": [\n    true\n  ]\n}")),
        ),
        ("application/ld+json; x=y", b"[]", Ok((Json, "[]"))),
        ("text/json", b"1", Ok((Json, "1"))),
        ("application/json", b"{no json", Ok((Plain, "{no json"))),
        ("text/plain", b"a < b", Ok((Plain, "a < b"))),
        ("text/plain", b"", Ok((Plain, ""))),
        ("text/plain", "\u{feff}hé".as_bytes(), Ok((Plain, "hé"))),
        ("text/plain", &utf16, Ok((Plain, "hé"))),
        ("text/css", b"a{}", Ok((Plain, "a{}"))),
        ("application/rss+xml", b"<rss/>", Ok((Plain, "<rss/>"))),
        ("image/svg+xml", b"<svg/>", Ok((Plain, "<svg/>"))),
        ("application/octet-stream", b"words", Ok((Plain, "words"))),
        ("nonsense", b"words", Ok((Plain, "words"))),
        ("image/png", b"words", Err(binary("image/png"))),
        ("audio/mpeg", b"", Err(binary("audio/mpeg"))),
        ("application/pdf", b"%PDF-1.7", Err(binary("application/pdf"))),
        ("application/zip", b"PK", Err(binary("application/zip"))),
        ("application/octet-stream", b"a\0b", Err(binary("application/octet-stream"))),
        ("text/plain", b"\x80\x81\x82\x83\x84abc", Err(binary("text/plain"))),
        ("", b"%PDF-1.7 text", Err(binary("unknown"))),
    ];
    for (kind, body, expect) in rows {
        let found = raw(kind, body).extract(&StopSignal::never());
        let found = found.as_ref().map(|found| (found.extractor, found.text.as_str()));
        assert_eq!(found.map_err(Clone::clone), expect, "{kind} {}", String::from_utf8_lossy(body));
    }
}

#[test]
fn what_was_cut_is_said() {
    for (kind, body) in [("text/plain", "words"), ("text/html", "<p>words")] {
        let found =
            RawPage { is_cut: true, ..raw(kind, body.as_bytes()) }.extract(&StopSignal::never()).unwrap();
        assert_eq!((found.warning.as_deref(), found.is_cut), (Some(TOO_LONG), true), "{kind}");
    }
    let deep = format!("<p>words{}", "<div>".repeat(1000));
    let found = raw("text/html", deep.as_bytes()).extract(&StopSignal::never()).unwrap();
    assert_eq!((found.warning.as_deref(), found.is_cut), (Some(TOO_COMPLEX), true));
}

#[test]
fn without_readability_pages_are_not_read() {
    let off = |kind| {
        RawPage { readability: false, ..raw(kind, b"<p>words") }
            .extract(&StopSignal::never())
            .map(|found| found.text)
    };
    assert_eq!(off("text/html"), Err(NO_EXTRACTOR.to_owned()));
    assert_eq!(off("text/plain"), Ok("<p>words".to_owned()));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_text_or_refused(kind in "(|text/html|text/plain|application/json|x/y)", body: Vec<u8>) {
        let _ = raw(&kind, &body).extract(&StopSignal::never());
    }
}
