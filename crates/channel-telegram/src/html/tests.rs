use openclaw_testkit::markdown::{any_markdown, hostile_texts};
use proptest::prelude::*;

use super::*;

fn html_of(markdown: &str) -> String {
    whole(markdown, TableMode::Code).formatted.unwrap_or_default()
}

/// Spec `channels.md` §4.2, the rows that are known to be bad as they should be.
#[test]
fn markdown_becomes_html() {
    let rows = [
        ("hi _there_ **boss** `code`", "hi <i>there</i> <b>boss</b> <code>code</code>"),
        ("see [docs](https://example.com)", "see <a href=\"https://example.com\">docs</a>"),
        ("<b>nope</b>", "&lt;b&gt;nope&lt;/b&gt;"),
        ("a & b < c", "a &amp; b &lt; c"),
        ("first\n\nsecond", "first\n\nsecond"),
        ("- one\n- two", "• one\n• two"),
        ("2. two\n3. three", "2. two\n3. three"),
        ("# Title\n\n> Quote", "Title\n\n<blockquote>Quote</blockquote>"),
        ("> a\n> > b", "<blockquote>a\n\nb</blockquote>"),
        ("```js\nconst x = 1;\n```", "<pre><code class=\"language-js\">const x = 1;\n</code></pre>"),
        ("```\na < b\n```\nend", "<pre><code>a &lt; b\n</code></pre>\nend"),
        (
            "**bold [link](https://example.com) text**",
            "<b>bold <a href=\"https://example.com\">link</a> text</b>",
        ),
        ("[**bold**](https://example.com)", "<a href=\"https://example.com\"><b>bold</b></a>"),
        ("**bold _it_** ~~s~~ ||sp||", "<b>bold <i>it</i></b> <s>s</s> <tg-spoiler>sp</tg-spoiler>"),
        (
            "https://ex.com/?a=1&b=2",
            "<a href=\"https://ex.com/?a=1&amp;b=2\">https://ex.com/?a=1&amp;b=2</a>",
        ),
        ("![alt](http://x/y.png)", "<a href=\"http://x/y.png\">alt</a>"),
        ("a\n---\nb", "a\n\nb"),
        ("snake_case_name and 2*3*4", "snake_case_name and 2<i>3</i>4"),
        ("visit example.com or a@b.co", "visit example.com or a@b.co"),
        ("see README.md and main.rs", "see README.md and main.rs"),
        (
            "**start https://example.com** end",
            "<b>start <a href=\"https://example.com\">https://example.com</a></b> end",
        ),
        ("- a\n  - b\n- c", "• a\n  • b\n• c"),
        ("[a](https://e.com/\"x\")", "<a href=\"https://e.com/&quot;x&quot;\">a</a>"),
        ("<https://e.com>", "<a href=\"https://e.com\">https://e.com</a>"),
        ("<a@b.co>", "<a href=\"mailto:a@b.co\">a@b.co</a>"),
        ("**a ||b** c||", "<b>a <tg-spoiler>b</tg-spoiler></b><tg-spoiler> c</tg-spoiler>"),
        ("[empty]()", "empty"),
    ];
    for (input, expect) in rows {
        assert_eq!(html_of(input), expect, "{input:?}");
    }
}

/// Spec `channels.md` §4.3.
#[test]
fn tables_are_code_or_bullets() {
    let table = "| A | B |\n|---|---|\n| 1 | **2** |";
    let named = "| Name | Value |\n|---|---|\n| A | 1 |\n| B | 2 |";
    let wide = "| F | SQLite | PG |\n|---|---|---|\n| Speed | Fast | Medium |";
    let rows = [
        (table, TableMode::Code, "<pre><code>| A   | B   |\n| --- | --- |\n| 1   | 2   |\n</code></pre>"),
        (table, TableMode::Bullets, "<b>1</b>\n• B: <b>2</b>"),
        (table, TableMode::Off, "| A | B |\n|---|---|\n| 1 | <b>2</b> |"),
        (named, TableMode::Bullets, "<b>A</b>\n• Value: 1\n\n<b>B</b>\n• Value: 2"),
        (wide, TableMode::Bullets, "<b>Speed</b>\n• SQLite: Fast\n• PG: Medium"),
    ];
    for (input, mode, expect) in rows {
        assert_eq!(whole(input, mode).formatted.as_deref(), Some(expect), "{input:?} {mode:?}");
    }
}

fn cut(limit: usize) -> Cut {
    Cut { limit, ..Cut::default() }
}

fn htmls(markdown: &str, cut: Cut) -> Vec<String> {
    messages(markdown, cut).into_iter().filter_map(|words| words.formatted).collect()
}

/// Spec `channels.md` §4.4.
#[test]
fn messages_are_whole_by_themselves() {
    let rows: [(&str, Cut, &[&str]); 4] = [
        (
            "**word word word word word word end**",
            cut(20),
            &["<b>word word word word</b>", "<b>word word end</b>"],
        ),
        (
            "```\n    indented\n    line two\n```",
            cut(14),
            &["<pre><code>    indented</code></pre>", "<pre><code>    line two\n</code></pre>"],
        ),
        ("one\n\n**two**", Cut { mode: ChunkMode::Newline, ..cut(4000) }, &["one", "<b>two</b>"]),
        ("", cut(20), &[]),
    ];
    for (input, cut, expect) in rows {
        assert_eq!(htmls(input, cut), expect, "{input:?}");
    }
    assert_eq!(htmls(&"&".repeat(30), cut(30)), ["&amp;".repeat(30)]);
}

#[test]
fn html_that_is_too_long_is_cut_again() {
    let messages = messages(&"&".repeat(4000), Cut::default());
    assert_eq!(messages.iter().map(|words| words.plain.len()).sum::<usize>(), 4000);
    let longest = messages.iter().filter_map(|words| words.formatted.as_ref()).map(String::len).max();
    assert!(longest.is_some_and(|len| (3900..=RENDERED_LIMIT).contains(&len)), "{longest:?}");
    let far = format!("[x](https://e.com/{})", "a".repeat(5000));
    assert_eq!(html_of(&far), "x");
    assert_eq!(self::messages("a", cut(0)).len(), 1);
}

#[test]
fn each_message_has_its_words_without_markup() {
    let words = whole("**b** [docs](https://e.com)", TableMode::Code);
    assert_eq!(words.plain, "b docs (https://e.com)");
    assert_eq!(visible_len("**b** [docs](https://e.com) 😀", TableMode::Code), 9);
}

/// Returns true if every tag is closed by its own, in order.
fn is_nested(html: &str) -> bool {
    let mut open = Vec::new();
    for tag in html.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return false,
            Some(_) => {}
            None => open.push(tag.split(' ').next().unwrap_or_default()),
        }
    }
    open.is_empty()
}

fn words_of(html: &str) -> String {
    let mut words = String::new();
    let mut is_tag = false;
    for c in html.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => words.push(c),
            _ => {}
        }
    }
    words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// HTML may be much longer than what people read of it.
#[test]
fn messages_with_long_html_are_as_full_as_they_can_be() {
    let links = format!("[a](https://example.com/{}) ", "x".repeat(60)).repeat(400);
    let signs = format!("```\n{}```\n", "if a < b && c > d { e(&f) }\n".repeat(400));
    let both = format!("{}\n\n{links}\n\n{signs}", "word ".repeat(3000));
    for markdown in [links, signs, both] {
        let messages = messages(&markdown, Cut::default());
        let lengths: Vec<usize> =
            messages.iter().map(|words| LengthUnit::Utf16.len(words.formatted.as_deref().unwrap())).collect();
        let (_, all_but_last) = lengths.split_last().unwrap();
        // A line break is a better place than a full message: one piece before each part of the text may be shorter.
        let full = all_but_last.iter().filter(|length| **length > 3000).count();
        assert!(
            full + 3 >= all_but_last.len() && lengths.iter().all(|length| *length <= RENDERED_LIMIT),
            "{lengths:?}"
        );
    }
}

#[test]
fn pictures_and_links_in_tables_keep_their_address() {
    let table = "| a | b |\n|---|---|\n| [docs](https://a.example/x) | ![cat](https://a.example/c.png) |";
    let shown = |tables| messages(table, Cut { tables, ..Cut::default() }).remove(0).formatted.unwrap();
    let code = shown(TableMode::Code);
    assert!(
        code.contains("docs (https://a.example/x)") && code.contains("cat (https://a.example/c.png)"),
        "{code}"
    );
    let bullets = shown(TableMode::Bullets);
    let named =
        "<a href=\"https://a.example/x\"><b>docs</b></a>\n• b: <a href=\"https://a.example/c.png\">cat</a>";
    assert_eq!(bullets, named, "a row is called in bold what its first cell says");
    let rows = [
        ("![](https://a.example/c.png)", "<a href=\"https://a.example/c.png\">https://a.example/c.png</a>"),
        ("[![cat](https://a.example/c.png)](https://a.example)", "<a href=\"https://a.example\">cat</a>"),
        ("![cat](./c.png)", "cat"),
    ];
    for (markdown, expect) in rows {
        assert_eq!(messages(markdown, Cut::default()).remove(0).formatted.as_deref(), Some(expect));
    }
}

#[test]
fn texts_that_nobody_writes_are_rendered_all_the_same() {
    for (name, input) in hostile_texts() {
        for words in messages(&input, Cut::default()) {
            let html = words.formatted.unwrap_or_default();
            assert!(LengthUnit::Utf16.len(&html) <= RENDERED_LIMIT && is_nested(&html), "{name}");
            let plain = words.plain;
            assert!(!plain.trim().is_empty() && LengthUnit::Utf16.len(&plain) <= RENDERED_LIMIT, "{name}");
        }
        assert!(visible_len(&input, TableMode::Bullets) <= 64 * input.len(), "{name}");
        drop(plain(&read(&input, TELEGRAM)));
    }
}

#[test]
fn blank_texts_make_no_message() {
    for blank in ["", " ", "\n\n", "\u{a0}\t\r\n", "\u{2003}\u{2028}"] {
        assert!(messages(&blank.repeat(500), Cut::default()).is_empty(), "{blank:?}");
    }
}

#[test]
fn forty_thousand_emoji_are_twenty_messages() {
    let emoji = messages(&"😀".repeat(40_000), Cut::default());
    assert_eq!(emoji.len(), 20);
    assert!(emoji.iter().all(|words| words.plain == "😀".repeat(2000)));
}

#[test]
fn ten_thousand_mentions_stay_whole() {
    let mentions = messages(&"@somebody ".repeat(10_000), Cut::default());
    assert!(mentions.iter().all(|words| words.plain.split(' ').all(|word| word == "@somebody")));
}

proptest! {
    #[test]
    fn messages_are_well_formed_and_fit(markdown in any_markdown(), limit in 10usize..90) {
        let whole_text = read(&markdown, TELEGRAM).text;
        let styled = read(&markdown, TELEGRAM);
        // A small limit of rendered text, so that messages are cut again.
        let pieces = rendered_pieces(&styled, Limit::utf16(limit), 120, &html);
        let mut words = String::new();
        for (piece, html) in &pieces {
            prop_assert!(is_nested(html), "{}", html);
            prop_assert!(Limit::utf16(limit).fits(&piece.text));
            prop_assert!(LengthUnit::Utf16.len(html) <= 120 || piece.text.chars().count() <= 2, "{}", html);
            prop_assert_eq!(&words_of(html), &piece.text);
            words.push_str(&piece.text);
        }
        let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        prop_assert_eq!(bare(&words), bare(&whole_text));
    }
}
