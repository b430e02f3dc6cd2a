//! `.env` files: `NAME=value` lines, `export` allowed, quoted values may span lines.

/// Reads all assignments, in order. Lines that are no assignment are skipped.
pub(crate) fn parse(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        rest = after;
        let line = line.trim_start();
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim_end();
        if !is_name(name) {
            continue;
        }
        let value = value.trim_start();
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => {
                // A quoted value may go on in the following lines.
                let start = value.as_ptr() as usize - text.as_ptr() as usize + 1;
                let body = text.get(start..).unwrap_or_default();
                match closing_quote(body, quote) {
                    Some(end) => {
                        rest = split_line(body.get(end + 1..).unwrap_or_default()).1;
                        unescape(body.get(..end).unwrap_or_default(), quote)
                    }
                    None => value.trim_end().to_owned(),
                }
            }
            _ => value.split_once(" #").map_or(value, |(before, _)| before).trim_end().to_owned(),
        };
        pairs.push((name.to_owned(), value));
    }
    pairs
}

fn split_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn closing_quote(body: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if c == quote && !escaped {
            return Some(at);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

fn unescape(body: &str, quote: char) -> String {
    if quote == '"' { body.replace("\\n", "\n").replace("\\r", "\r") } else { body.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_as_dotenv_does() {
        let text = "# c\nA=1\nexport B = two words # note\n\nC=\"x\\ny\" # z\nD='a\nb'\nE=\nbad line\nF=a#b\r\nG=\"open\n";
        let expect = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x\ny"),
            ("D", "a\nb"),
            ("E", ""),
            ("F", "a#b"),
            ("G", "\"open"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), expect);
    }
}
