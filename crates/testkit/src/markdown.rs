//! Markdown for tests of everything that cuts and renders it: well written, broken and hostile.

use proptest::prelude::{Strategy, prop_oneof};

/// Bytes of each text.
const LONG: usize = 6_000;

/// Fragments that are repeated.
const PATTERNS: &[&str] = &[
    " ",
    "\n",
    "\n ",
    "\r\n",
    "\t\u{a0}",
    "\u{200f}",
    "\u{202e}a\u{202c} ",
    "\u{200b}",
    "x",
    "x\n\n",
    "x\n",
    "word ",
    "One sentence. ",
    "(",
    ")",
    "(a ",
    "a) ",
    "😀",
    "👩‍👩‍👧",
    "👩‍",
    "🇩🇪",
    "e\u{301}",
    "\u{301}",
    " \u{301}",
    "<",
    "<b",
    "<b>",
    "</",
    "<a href=\"",
    "<!--",
    "<@U1",
    "<@U123> ",
    "@somebody ",
    "&",
    "&amp;",
    "&#",
    "*",
    "**a",
    "*a _b ",
    "*a* ",
    "a*b**c",
    "_a",
    "~~a",
    "`",
    "`a` ",
    "`` ` ",
    "```",
    "``` ",
    "```\n",
    "```\na\n",
    "```a`\n",
    "    a\n",
    "~~~~\n~~~\n",
    "||",
    "||a",
    "||a|| ",
    "|",
    "|a",
    "|\n",
    "| a | b |\n|---|---|\n",
    "[",
    "[[",
    "[a",
    "[a](",
    "[a](b) ",
    "[a][a] ",
    "[a]: b\n",
    "![",
    "](",
    "\\",
    ">",
    "> ",
    "> a\n",
    "- ",
    "- a\n",
    "1. ",
    "# ",
    "# a\n",
    "a\n===\n",
    "---\n",
    "https://a.b/ ",
    "https://a.b/)",
    "https://",
    "http",
    "\u{FDD0}",
];

/// Texts that nobody writes, each with its name. They are long: code that does not take time in
/// proportion to their length does not end here.
pub fn hostile_texts() -> Vec<(String, String)> {
    let len = LONG;
    let repeated =
        PATTERNS.iter().map(|pattern| (format!("{pattern:?}"), pattern.repeat(len / pattern.len())));
    let all = |count: usize| 0..count;
    let nested: String = all(500).map(|at| format!("{}\n", "`".repeat(3 + 500 - at.min(500)))).collect();
    let deeper: String = all(500).map(|at| format!("{}\n", "~".repeat(3 + at.min(400)))).collect();
    let runs: String = all(250).map(|at| format!("{} ", "`".repeat(1 + at))).collect();
    let columns = len / 16;
    let table = format!("{}\n{}\n{}", "|a".repeat(columns), "|-".repeat(columns), "|\n".repeat(len / 4));
    let wide = format!("| {} | b |\n|---|---|\n{}", "x".repeat(len / 2), "| a | b |\n".repeat(len / 20));
    let emphasis = format!("{}x{}", "*a _b ".repeat(len / 12), "b_ a* ".repeat(len / 12));
    let special = [
        ("nested fences", nested),
        ("deeper fences", deeper),
        ("runs of backticks", runs),
        ("a table of many columns", table),
        ("a table with a long cell", wide),
        ("nested emphasis", emphasis),
        ("lists in lists", format!("{}x", "- ".repeat(len / 2))),
        ("blanks in a fence", format!("```\n{}", "\n".repeat(len))),
        ("blanks in the middle", format!("a{}b", " ".repeat(len))),
        ("quoted once, and on and on", format!("{}a\n{}", "> ".repeat(len / 8), "a\n".repeat(len / 4))),
        ("one address", format!("https://a.b/{}", "a".repeat(len))),
        ("one link", format!("[a](https://a.b/{})", "a".repeat(len))),
    ];
    repeated.chain(special.map(|(name, text)| (name.to_owned(), text))).collect()
}

/// Markdown of every kind, also broken.
pub fn any_markdown() -> impl Strategy<Value = String> {
    let pieces = [
        "**",
        "_",
        "~~",
        "`",
        "||",
        "\n",
        "\n\n",
        "\n```js\n",
        "\n```\n",
        "\n- ",
        "\n  - ",
        "\n> ",
        "\n# ",
        "[",
        "](https://e.com/?a=\"1\"&b)",
        "https://x.y/z ",
        "<b>",
        "<",
        "&",
        ">",
        "😀",
        "e\u{301}",
        " ",
        " ",
        " ",
        "\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "\n    deep\n",
        "word",
        "other",
    ];
    let piece = prop_oneof![3 => "[a-z]{1,8}", 5 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned)];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}
