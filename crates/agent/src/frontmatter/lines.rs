//! The block read line by line: `key: value`, or `key:` with an indented block below it.

/// Keys with their values, quotes around a value taken off.
pub(super) fn read(block: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = block.split('\n').peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = key_value(line) else { continue };
        let value = match value.is_empty() {
            false => unquoted(value).to_owned(),
            true => {
                let mut below = String::new();
                while let Some(line) = lines.next_if(|line| line.is_empty() || line.starts_with([' ', '\t']))
                {
                    below.push_str(line);
                    below.push('\n');
                }
                below.trim().to_owned()
            }
        };
        if !value.is_empty() {
            found.push((key.to_owned(), value));
        }
    }
    found
}

/// A line that begins with a name of letters, digits, `_` and `-`, and a colon.
fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_name = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    is_name.then(|| (key, value.trim()))
}

fn unquoted(value: &str) -> &str {
    let without = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    without('"').or_else(|| without('\'')).unwrap_or(value)
}
