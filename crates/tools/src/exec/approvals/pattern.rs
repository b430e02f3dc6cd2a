//! Patterns of the allowlist: `*` within a directory, `**` across directories, `?` one character of a name, `~` the home.

use std::path::Path;

/// Returns true if a pattern matches this path, as a whole and ignoring case. A bare name never
/// does: it would say nothing about which program of that name is meant.
pub fn matches(pattern: &str, path: &Path, home: &Path) -> bool {
    let pattern = pattern.trim();
    let Some(path) = path.to_str() else { return false };
    if !pattern.contains(['/', '\\', '~']) {
        return false;
    }
    let home = home.to_string_lossy();
    // The home is no pattern, whatever characters its name has.
    let (home, pattern) = match pattern.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (home.trim_end_matches('/'), rest),
        Some(_) | None => ("", pattern),
    };
    let tokens: Vec<Token> = home.chars().map(Token::Literal).chain(tokens(pattern)).collect();
    is_match(&tokens, path)
}

/// The pattern that means this file alone. None for names that say more as a pattern: a file can be called `*`.
pub fn of_file(path: &Path) -> Option<&str> {
    let path = path.to_str()?;
    (path.starts_with('/') && !path.contains(['*', '?']) && path.trim() == path).then_some(path)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Literal(char),
    /// `?`
    One,
    /// `*`
    Name,
    /// `**`
    Any,
}

fn tokens(pattern: &str) -> impl Iterator<Item = Token> {
    let mut chars = pattern.chars().peekable();
    std::iter::from_fn(move || {
        Some(match chars.next()? {
            '*' if chars.next_if_eq(&'*').is_some() => Token::Any,
            '*' => Token::Name,
            '?' => Token::One,
            c => Token::Literal(c),
        })
    })
}

/// Keeps the set of places in the pattern that the text so far can have reached, so that no pattern takes long.
fn is_match(tokens: &[Token], path: &str) -> bool {
    let mut reached = vec![false; tokens.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    skip_stars(tokens, &mut reached);
    for c in path.chars() {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| reached.get(*at) == Some(&true)) {
            let to = match token {
                Token::Literal(wanted) if is_same(*wanted, c) => at + 1,
                Token::One if c != '/' => at + 1,
                Token::Name if c != '/' => at,
                Token::Any => at,
                Token::Literal(_) | Token::One | Token::Name => continue,
            };
            if let Some(place) = next.get_mut(to) {
                *place = true;
            }
        }
        skip_stars(tokens, &mut next);
        reached = next;
    }
    reached.last() == Some(&true)
}

/// A star may stand for nothing.
fn skip_stars(tokens: &[Token], reached: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token, Token::Name | Token::Any)
            && reached.get(at) == Some(&true)
            && let Some(next) = reached.get_mut(at + 1)
        {
            *next = true;
        }
    }
}

/// Equal in any case. A letter beyond ASCII never equals an ASCII one: U+212A, the Kelvin sign, is no `k`.
fn is_same(a: char, b: char) -> bool {
    if a.is_ascii() || b.is_ascii() {
        return a.eq_ignore_ascii_case(&b);
    }
    a.to_lowercase().eq(b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_whole_paths() {
        for (pattern, path, expect) in [
            ("/usr/bin/rg", "/usr/bin/rg", true),
            (" /usr/bin/rg ", "/usr/bin/rg", true),
            ("/usr/bin/rg", "/usr/bin/rga", false),
            ("/usr/bin/rg", "/x/usr/bin/rg", false),
            ("/USR/bin/Rg", "/usr/BIN/rG", true),
            ("/opt/É", "/opt/é", true),
            ("/opt/k", "/opt/\u{212a}", false),
            ("rg", "/usr/bin/rg", false),
            ("*", "/usr/bin/rg", false),
            ("**", "/usr/bin/rg", false),
            ("", "", false),
            ("/usr/bin/*", "/usr/bin/rg", true),
            ("/usr/bin/*", "/usr/bin/", true),
            ("/usr/bin/*", "/usr/bin/a/b", false),
            ("/usr/*/rg", "/usr/bin/rg", true),
            ("/usr/*/rg", "/usr/local/bin/rg", false),
            ("/usr/**/rg", "/usr/local/bin/rg", true),
            ("/usr/**", "/usr/local/bin/rg", true),
            ("**/rg", "/usr/local/bin/rg", true),
            ("/usr/bin/r?", "/usr/bin/rg", true),
            ("/usr/bin/r?", "/usr/bin/r", false),
            ("/usr?bin/rg", "/usr/bin/rg", false),
            ("/usr/bin/[r]g", "/usr/bin/rg", false),
            ("/usr/bin/[r]g", "/usr/bin/[r]g", true),
            ("/a/***b", "/a/x/yb", true),
            ("~/bin/*", "/home/o*/bin/x", true),
            ("~/bin/*", "/home/other/bin/x", false),
            ("~", "/home/o*", true),
            ("~other/x", "/home/o*other/x", false),
        ] {
            assert_eq!(matches(pattern, Path::new(path), Path::new("/home/o*")), expect, "{pattern} {path}");
        }
    }

    #[test]
    fn the_pattern_of_a_file_means_no_other() {
        for (path, expect) in [
            ("/usr/bin/rg", true),
            ("/opt/my app/run[1]", true),
            ("/w/*", false),
            ("/w/**", false),
            ("/w/r?", false),
            ("/w/rg ", false),
            ("rg", false),
            ("~/rg", false),
        ] {
            assert_eq!(of_file(Path::new(path)), expect.then_some(path));
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = format!("/{}b", "*a**".repeat(200));
        assert!(!matches(&pattern, Path::new(&format!("/{}", "a".repeat(4000))), Path::new("/")));
    }
}
