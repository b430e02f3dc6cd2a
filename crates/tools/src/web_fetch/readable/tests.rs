use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;

const URL: &str = "https://site.example/dir/page";
const PARAGRAPH: &str = "<p>This paragraph has words, commas, and <a href='../x?a=1'>a link</a>, so that whoever looks for the \
                         article of this page takes it for a part of it, as it should.</p>";

fn page(body: &str) -> String {
    format!("<!DOCTYPE html><html><head><title>The  title\n of it</title></head><body>{body}</body></html>")
}

fn article_page() -> String {
    let article = format!(
        "<h1>Head</h1>{}<ul><li>one<li>two</ul><pre><code>let x = 1;</code></pre><img src='i.png' alt='pic'>",
        PARAGRAPH.repeat(6)
    );
    page(&format!(
        "<nav><a href='/'>Home menu</a></nav><article>{article}</article><p hidden>secret words</p>\
         <script>alert('no')</script><footer><a href='/imprint'>Imprint</a></footer>"
    ))
}

#[test]
fn the_article_is_found() {
    let found = article(&article_page(), URL, PageFormat::Markdown, &StopSignal::never());
    assert_eq!((found.title.as_deref(), found.is_cut), (Some("The title of it"), false));
    for part in
        ["## Head", "[a link](https://site.example/x?a=1)", "- one\n- two", "```\nlet x = 1;\n```", "![pic]"]
    {
        assert!(found.text.contains(part), "{part} in {}", found.text);
    }
    for part in ["Home menu", "alert", "secret words", "Imprint", "<p>"] {
        assert!(!found.text.contains(part), "{part} not in {}", found.text);
    }
    let plain = article(&article_page(), URL, PageFormat::Text, &StopSignal::never()).text;
    assert!(plain.starts_with("Head\n\nThis paragraph has words, commas, and a link, so"), "{plain}");
    assert!(!plain.contains("](") && !plain.contains("##"), "{plain}");
}

#[test]
fn a_page_without_an_article_is_given_whole() {
    let body =
        "<nav>menu</nav><h1>Head</h1><p>A <b>b</b> <a href='/c'>c</a></p><p hidden>no</p><style>x{}</style>";
    let found = whole(&page(body), PageFormat::Markdown, &StopSignal::never());
    assert_eq!(found.text, "# Head\n\nA **b** [c](/c)");
    assert_eq!(whole(&page(body), PageFormat::Text, &StopSignal::never()).text, "Head\n\nA b c");
    assert_eq!(found.title.as_deref(), Some("The title of it"));
    assert_eq!(article("<p>Hello", URL, PageFormat::Markdown, &StopSignal::never()).text, "Hello");
}

#[test]
fn nothing_comes_of_nothing() {
    for html in ["", " \n", "<html></html>", "<script>x()</script>", "<!-- c -->", "<div><span></span></div>"]
    {
        for mode in [PageFormat::Markdown, PageFormat::Text] {
            assert_eq!(article(html, URL, mode, &StopSignal::never()).text, "", "{html}");
        }
    }
}

/// Each of these takes minutes, gigabytes or the stack where nothing bounds it.
#[test]
fn hostile_nesting_ends_at_a_bound() {
    let formats: String = (0..2_000).map(|at| format!("<b id=x{at}>")).collect();
    let rows = [
        ("divs", "<div>".repeat(100_000)),
        ("spans", "<span>".repeat(100_000)),
        ("lists", "<ul><li>".repeat(100_000)),
        ("tables", "<table><tr><td>".repeat(50_000)),
        ("divs before a table", format!("<table>{}", "<div>".repeat(100_000))),
        ("svg", format!("<svg>{}", "<g>".repeat(100_000))),
        ("quotes", "<blockquote>".repeat(100_000)),
        ("formats that repeat", format!("<p>{formats}</p>{}", "<p>x".repeat(100_000))),
    ];
    let bounds = Bounds { time: Duration::from_secs(3600), ..Bounds::default() };
    for (name, html) in rows {
        let html = format!("{PARAGRAPH}{html}");
        let parsed = html::parse(&html, bounds, &StopSignal::never());
        assert!(
            parsed.is_cut && parsed.document.tree.len() < 20_000,
            "{name}: {}",
            parsed.document.tree.len()
        );
        let found = article(&html, URL, PageFormat::Markdown, &StopSignal::never());
        assert!(found.is_cut && found.text.starts_with("This paragraph"), "{name}: {}", found.text);
    }
}

#[test]
fn nodes_and_time_are_bounded() {
    let nodes = Bounds { nodes: 2_000, time: Duration::from_secs(3600), ..Bounds::default() };
    let parsed = html::parse(&"<i></i>".repeat(4_000), nodes, &StopSignal::never());
    assert!(parsed.is_cut && parsed.document.tree.len() < 2_500);
    // Each attribute is compared with all before it.
    let attributes: String = (0..200_000).map(|at| format!(" a{at}=1")).collect();
    let time = Bounds { time: Duration::from_millis(50), ..Bounds::default() };
    assert!(html::parse(&format!("<div{attributes}>x</div>"), time, &StopSignal::never()).is_cut);
}

/// Each of these takes minutes where the libraries that look for articles get it.
#[test]
fn pages_that_are_too_heavy_come_as_their_words() {
    let long = "x ".repeat(50_000);
    for (name, html) in [
        ("nesting", format!("{}{long}{long}", "<div>".repeat(300))),
        ("a long title", format!("<title>{long}</title>x{}", "<h2>a</h2>".repeat(600))),
        ("lines in quotes", format!("{}<pre>{}", "<blockquote>".repeat(200), "x\n".repeat(35_000))),
    ] {
        let found = article(&html, URL, PageFormat::Markdown, &StopSignal::never());
        assert!(found.is_plain && found.text.starts_with('x'), "{name}: {:.99}", found.text);
        assert!(found.title.is_none_or(|title| title.chars().count() == MAX_TITLE), "{name}");
    }
}

/// They were read in time that grows with the square of them.
#[test]
fn floods_of_entities_come_as_articles() {
    for (flood, expect) in [("&amp; ", "& "), ("&nbsp;a", "\u{a0}a"), ("&copy; ", "\u{a9} "), ("\" ", "\" ")]
    {
        let title = flood.repeat(10_000);
        let html = page(&format!("<p>x {}</p><p><a href=/ title='{title}'>y</a>", flood.repeat(3_000)));
        let found = article(&html, URL, PageFormat::Markdown, &StopSignal::never());
        assert_eq!((found.is_plain, found.is_cut), (false, false), "{flood}");
        let text = format!("x {}\n\n[y](https://site.example/)", expect.repeat(3_000).trim_end());
        assert!(found.text == text, "{flood}: {:.99}", found.text);
    }
}

#[test]
fn work_that_was_given_up_ends_with_its_first_step() {
    let given_up = CancellationToken::new();
    given_up.cancel();
    let stop = StopSignal::within(Duration::from_secs(3600), given_up);
    let parsed = html::parse(&"<p>word".repeat(100_000), Bounds::default(), &stop);
    assert!(parsed.is_cut && parsed.document.text().len() <= 512);
    let found = article(&article_page(), URL, PageFormat::Markdown, &stop);
    assert_eq!((found.text.as_str(), found.is_cut), ("", true));
}

/// Neither do they cost memory.
#[test]
fn errors_of_a_page_are_not_kept() {
    let parsed = html::parse(&"<".repeat(10_000), Bounds::default(), &StopSignal::never());
    assert!(parsed.document.errors.borrow().len() <= 1024);
}

#[test]
fn parsing_ends_when_its_time_is_over() {
    let html = PARAGRAPH.repeat(10);
    let parsed =
        html::parse(&html, Bounds { time: Duration::ZERO, ..Bounds::default() }, &StopSignal::never());
    assert!(parsed.is_cut);
    // The first step is done in any case.
    assert!(parsed.document.text().starts_with("This paragraph"));
    assert!(!html::parse(&html, Bounds::default(), &StopSignal::never()).is_cut);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    /// In steps the same comes out as at once, wherever the steps part a character or a tag.
    #[test]
    fn steps_change_nothing(before in 500_usize..520, html in "(<[a-z/]{1,4}>|é|&amp;|\r\n|[a-z ]{1,4}|😀|<!--x-->){0,60}") {
        let html = format!("{}{html}", "x".repeat(before));
        let steps = html::parse(&html, Bounds::default(), &StopSignal::never()).document;
        let at_once = dom_query::Document::from(html.as_str());
        proptest::prop_assert_eq!(steps.html(), at_once.html());
    }

    /// Any text is a page.
    #[test]
    fn nothing_panics(html in "(<[a-z/!]{1,6}|>|<table>|<tr>|<td>|<p>|</p>|<br>|<a href=x>|é|&#[0-9]{1,9};|[a-z, ]{1,9}){0,80}") {
        article(&html, URL, PageFormat::Markdown, &StopSignal::never());
        whole(&html, PageFormat::Text, &StopSignal::never());
    }
}
