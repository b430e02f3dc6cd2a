use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::super::tame::tame;
use super::*;

const URL: &str = "https://site.example/dir/page";

/// Weight and nodes.
fn weighed(html: &str) -> (u64, u64) {
    let document = Document::from(html);
    tame(&document, &StopSignal::never());
    (weight(&document, URL, &StopSignal::never()).unwrap(), u64::try_from(document.tree.len()).unwrap())
}

fn weight_of(html: &str) -> u64 {
    weighed(html).0
}

fn within(elements: &str, depth: usize, inner: &str) -> String {
    format!("{}{inner}", elements.repeat(depth))
}

/// An optimised build takes a second or two for the largest page of a kind that is not too heavy. These are little larger.
fn are_too_heavy(rows: &[(&str, String)]) {
    for (name, html) in rows {
        let weight = weight_of(html);
        assert!(weight > HEAVIEST, "{name}: {weight}");
    }
}

/// What is inside of elements is read again for each of them.
#[test]
fn large_pages_that_are_deep_are_too_heavy() {
    are_too_heavy(&[
        ("text in divs", within("<div>", 390, &"word, ".repeat(22_000))),
        ("text in formats", within("<b><i>", 190, &"word, ".repeat(23_000))),
        ("text in tables", within("<table><tr><td>", 95, &"word, ".repeat(23_000))),
        ("text in headings", within("<h2><div>", 190, &"word, ".repeat(23_000))),
        ("elements in divs", within("<div>", 390, &"<i></i>".repeat(6_700))),
        ("elements in lists", within("<ul><li>", 190, &"<li>x".repeat(3_400))),
        ("elements in quotes", within("<blockquote>", 390, &"<p>x".repeat(3_300))),
        ("rows in tables", within("<table><tr><td>", 95, &"<tr><td>x<td>y".repeat(1_500))),
        ("divs that are deep again and again", {
            format!("{}x{}", "<div>".repeat(380), "</div>".repeat(380)).repeat(40)
        }),
        ("elements in figures with attributes", {
            let attributes: String = (0..32).map(|at| format!(" a{at}=.jpg")).collect();
            within(&format!("<figure{attributes}>"), 390, &"<i></i>".repeat(6_700))
        }),
        ("lines in quotes", within("<blockquote>", 390, &format!("<pre>{}", "x\n".repeat(7_700)))),
        ("lines in some quotes", within("<blockquote>", 40, &format!("<pre>{}", "\n".repeat(480_000)))),
        ("lines in quotes of lists", {
            within("<ul><li><blockquote>", 130, &format!("<pre>{}", "x\n".repeat(15_500)))
        }),
    ]);
}

/// Each of these is read in time that grows with the square of it.
#[test]
fn pages_with_long_bases_titles_or_backslashes_are_too_heavy() {
    let long = "x".repeat(8_000);
    are_too_heavy(&[
        ("links with a long base", format!("<base href='/{long}'>{}", "<a href=a>b</a>".repeat(6_700))),
        ("sets of addresses with a long base", {
            let set = format!("<img srcset='{}'>", "a, ".repeat(1_000));
            format!("<base href='/{long}'>{}", set.repeat(7))
        }),
        ("headings beside a long title", {
            format!("<title>{}</title>{}", long.repeat(3), "<h2>a</h2>".repeat(2_300))
        }),
        ("headings beside a title in pieces", {
            format!("<h1>{}</h1>{}", "<i>ab</i>".repeat(9_000), "<h2>a</h2>".repeat(3_000))
        }),
        ("headings beside a title of the head", {
            format!("<meta name=title content='{long}'>{}", "<h2>a</h2>".repeat(6_700))
        }),
        ("backslashes before blocks of a cell", {
            format!("<table><td>{}{}", "\\".repeat(50_000), "<dl></dl>".repeat(4_400))
        }),
        ("backslashes in pieces", {
            format!("<table><td>{}{}", "\\<i></i>".repeat(9_000), "<dl></dl>".repeat(9_000))
        }),
    ]);
}

/// These are read in time that grows with their size alone.
#[test]
fn floods_are_light() {
    let attributes = |count| -> String { (0..count).map(|at| format!(" a{at}=1")).collect() };
    let rows = [
        ("ampersands", "& ".repeat(50_000)),
        ("entities", "&amp;".repeat(20_000)),
        ("no-break spaces", "&nbsp;".repeat(20_000)),
        ("signs of two bytes", "\u{a9} ".repeat(50_000)),
        ("ampersands of an attribute", format!("<p title='{}'>x", "& ".repeat(50_000))),
        ("ampersands of attributes", format!("<p title='{}'>x", "& ".repeat(4_000)).repeat(20)),
        ("quotes", "\" ".repeat(50_000)),
        ("quotes of titles", format!("<a href=/ title='{}'>x</a>", "\" ".repeat(4_000)).repeat(20)),
        ("signs of Markdown", "* _ ` [ ".repeat(20_000)),
        ("attributes", format!("<p{}>x", attributes(1_000))),
        ("a long attribute", format!("<p title='{}'>x", "x".repeat(200_000))),
        ("comments", "<!-- -->x".repeat(5_000)),
        ("character data", "<![CDATA[x]]>".repeat(5_000)),
        ("unclosed paragraphs", "<p>x".repeat(5_000)),
        ("unclosed formats", "<b><p>x</b>".repeat(3_000)),
        ("unclosed links", "<a href=x><p>x</a>".repeat(3_000)),
        ("options", format!("<select>{}", "<option>x".repeat(5_000))),
        ("a template", format!("<p>x<template>{}", within("<div>", 300, &"<i></i>".repeat(5_000)))),
        ("objects", within("<object>", 390, &"x ".repeat(50_000))),
        ("elements beside a table", format!("<table>{}", "<div>x</div>".repeat(5_000))),
        ("cells", format!("<table><tr>{}", "<td>a".repeat(5_000))),
        ("breaks", "x<br>".repeat(5_000)),
        ("list items", format!("<ul>{}", "<li><p>x".repeat(3_000))),
        ("images", "<img src=x.jpg alt=y>".repeat(3_000)),
        ("lines", format!("<pre>{}", "x\n".repeat(50_000))),
        ("back ticks", format!("<pre>{}", "`".repeat(100_000))),
        ("backslashes", "\\".repeat(100_000)),
    ];
    for (name, html) in rows {
        let (weight, nodes) = weighed(&html);
        // As large as a page can be.
        let times = (5 * 1024 * 1024 / u64::try_from(html.len()).unwrap()).min(200_000 / nodes);
        assert!(weight * times < HEAVIEST, "{name}: {weight} {times} times");
    }
}

#[test]
fn pages_that_people_read_are_light() {
    let words = "<p>Some words &amp; <a href='/wiki/a_b' title='A b'>a link</a>, as long as a sentence is \u{a0}here.</p>";
    let article = format!("{}{}", "<div>".repeat(15), words.repeat(1_000));
    let table = format!("<table>{}", "<tr><td>one</td><td>two &amp; three</td></tr>".repeat(1_000));
    let log = format!("<pre>{}</pre>", "2026-02-09 10:11:12 a line of a log & more\n".repeat(4_000));
    let mail = within("<blockquote>", 12, &format!("<pre>{}</pre>", "a line of a mail\n".repeat(1_000)));
    let code = format!("<table>{}", "<tr><td>1<td>\\begin{a}\\\\".repeat(1_000));
    for (name, html) in
        [("an article", article), ("a table", table), ("a log", log), ("mail", mail), ("code", code)]
    {
        let weight = weight_of(&html);
        assert!(weight < HEAVIEST / 5, "{name}: {weight}");
    }
}

#[test]
fn backslashes_are_counted_across_elements() {
    for (html, expect) in [
        ("a", 0),
        ("\\", 1),
        ("\\ \\\\ \\", 2),
        ("a\\<i>\\\\</i>\\a\\", 4),
        ("\\\\a<i>\\</i>", 2),
        ("\\<i>a</i>\\", 1),
    ] {
        let document = Document::from(html);
        let mut sizes = Sizes::default();
        walk(document.root(), &StopSignal::never(), |node, side, depth| {
            node.query(|node| match &node.data {
                NodeData::Text { contents } if side == Side::Begin => sizes.text(contents, depth),
                _ => {}
            });
            true
        });
        assert_eq!(sizes.most_backslashes, expect, "{html}");
    }
}

#[test]
fn weighing_ends_when_it_is_stopped() {
    let given_up = CancellationToken::new();
    given_up.cancel();
    let stop = StopSignal::within(Duration::from_secs(3600), given_up);
    assert_eq!(weight(&Document::from("<p>x"), URL, &stop), None);
}
