use super::*;

fn tamed(html: &str) -> Document {
    let document = Document::from(html);
    tame(&document, &StopSignal::never());
    document
}

fn texts(document: &Document) -> Vec<usize> {
    let root = document.root();
    root.descendants_it().filter(NodeRef::is_text).map(|text| text.text().len()).collect()
}

#[test]
fn texts_that_would_be_searched_again_and_again_are_parted() {
    for text in ["& ".repeat(10_000), "\u{a0}".repeat(10_000), "&é<>\" ".repeat(2_000)] {
        let document = tamed(&format!("<p>a<pre>b</pre>{}<i>c", text.replace('<', "&lt;")));
        assert_eq!(&*document.select("body").text(), format!("ab{text}c"));
        let longest = texts(&document).into_iter().max();
        assert!(longest.is_some_and(|longest| longest <= PIECE), "{longest:?}");
        document.tree.validate().unwrap();
    }
    let plain = "x <".repeat(10_000).replace('<', "&lt;");
    assert_eq!(texts(&tamed(&plain)), [30_000]);
}

#[test]
fn attributes_are_few_and_short() {
    let many: String = (0..100).map(|at| format!(" a{at}=1")).collect();
    let long = "x".repeat(MAX_ATTRIBUTE);
    let document = tamed(&format!("<a href=/{long}{many} title={long}>x</a>"));
    document.select("a").nodes()[0].query(|node| {
        let attrs = &node.as_element().unwrap().attrs;
        let names: Vec<&str> = attrs.iter().map(|attr| &*attr.name.local).collect();
        assert_eq!((names.len(), names[0], names[31]), (32, "a0", "a31"));
    });
    let document = tamed(&format!("<a href=/x title={long}>x</a>"));
    assert_eq!(document.select("a").attr("title").map(|title| title.len()), Some(MAX_ATTRIBUTE));
}

#[test]
fn what_no_article_holds_is_taken_out() {
    let html = "a<script>1</script><style>2</style><template>3</template><object>4</object><iframe>5</iframe>b<embed>";
    assert_eq!(tamed(html).select("body").inner_html().as_ref(), "ab");
}
