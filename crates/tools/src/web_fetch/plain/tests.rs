use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;

#[test]
fn the_words_of_a_page_come_line_by_line() {
    let html = "<title>T</title><nav>menu</nav><h1>Head</h1><p>A <b>b</b>c\n d<br>e</p><script>x()</script>\
                <table><tr><td>1<td>2<tr><td>3</table><p hidden>no</p><ul><li>x<li> y </ul>end";
    let stop = StopSignal::never();
    let expect = "Head\nA bc d\ne\n1 2\n3\nx\ny\nend".to_owned();
    assert_eq!(text(&Document::from(html), &stop), (expect, true));
}

#[test]
fn reading_ends_when_its_time_is_over() {
    let stop = StopSignal::within(Duration::ZERO, CancellationToken::new());
    assert_eq!(text(&Document::from("<p>x"), &stop), (String::new(), false));
}
