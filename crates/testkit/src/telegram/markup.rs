//! Telegram's HTML, as strictly as it is read there.

/// Tags that are known.
const TAGS: &[&str] = &[
    "b",
    "strong",
    "i",
    "em",
    "u",
    "ins",
    "s",
    "strike",
    "del",
    "span",
    "tg-spoiler",
    "a",
    "code",
    "pre",
    "blockquote",
    "tg-emoji",
];

/// The text without its tags, or what is wrong with it.
pub(super) fn visible(html: &str) -> Result<String, String> {
    let mut open: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('<') {
            let end = rest.find('>').ok_or("Can't find end tag")?;
            let tag = &rest[1..end];
            match tag.strip_prefix('/') {
                Some(name) => {
                    let last = open.pop().ok_or_else(|| format!("Unexpected end tag at byte offset {at}"))?;
                    if last != name.trim() {
                        return Err(format!(
                            "Unmatched end tag, expected \"</{last}>\", found \"</{name}>\""
                        ));
                    }
                }
                None => {
                    let name = tag.split_whitespace().next().unwrap_or_default();
                    if !TAGS.contains(&name) {
                        return Err(format!("Unsupported start tag \"{name}\""));
                    }
                    open.push(name.to_owned());
                }
            }
            rest = &rest[end + 1..];
        } else {
            let known = [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"')];
            match known.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, c)) => {
                    text.push(*c);
                    rest = &rest[name.len()..];
                }
                None => {
                    text.push('&');
                    rest = &rest[1..];
                }
            }
        }
    }
    text.push_str(rest);
    match open.pop() {
        Some(last) => Err(format!("Can't find end tag corresponding to start tag \"{last}\"")),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_balanced_and_known() {
        let rows = [
            ("a &lt; <b>b</b>", Some("a < b")),
            ("<a href=\"x\">y</a> &amp; z", Some("y & z")),
            ("<b>x", None),
            ("x</b>", None),
            ("<b><i>x</b></i>", None),
            ("<div>x</div>", None),
            ("1 < 2", None),
        ];
        for (html, expect) in rows {
            assert_eq!(visible(html).ok().as_deref(), expect, "{html}");
        }
    }
}
