use super::*;

#[test]
fn an_address_with_a_path_is_the_endpoint() {
    for (base, expect) in [
        ("https://api.firecrawl.dev", Ok("https://api.firecrawl.dev/v2/scrape")),
        (" http://here:3002/ ", Ok("http://here:3002/v2/scrape")),
        ("https://proxy.example/own/path", Ok("https://proxy.example/own/path")),
        ("here", Err("tools.web.fetch.firecrawl.baseUrl is no address of the web")),
    ] {
        assert_eq!(endpoint(base).as_deref().map_err(String::as_str), expect, "{base}");
    }
}

#[test]
fn markdown_becomes_plain_text() {
    for (markdown, expect) in [
        ("", ""),
        ("# Head\n\nOne [link](http://a) and `code`.\nNext", "Head\n\nOne link and code.\nNext"),
        ("- one\n- two\n\nafter", "one\ntwo\n\nafter"),
        ("```\nlet x;\n```\n\n**b**", "let x;\n\nb"),
        ("| a | b |\n| - | - |\n| 1 | 2 |", "a b \n1 2"),
    ] {
        assert_eq!(plain(markdown), expect, "{markdown}");
    }
}
