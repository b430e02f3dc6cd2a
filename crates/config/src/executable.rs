//! Check that a configured program name is safe to start (spec `config.md` §4.3).

/// A trimmed non-empty path, or a bare name without anything a shell would act on.
pub(crate) fn is_safe_executable(value: &str) -> bool {
    let text = value.trim();
    let is_dangerous =
        |c: char| c.is_control() || matches!(c, ';' | '&' | '|' | '`' | '$' | '<' | '>' | '"' | '\'');
    if text.is_empty() || text.starts_with('-') || text.contains(is_dangerous) {
        return false;
    }
    looks_like_path(text)
        || text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-'))
}

fn looks_like_path(text: &str) -> bool {
    let mut start = text.chars();
    let has_drive = start.next().is_some_and(|c| c.is_ascii_alphabetic()) && start.next() == Some(':');
    text.starts_with(['.', '~']) || text.contains(['/', '\\']) || has_drive
}
