//! The pictures that a text names (spec `tools.md` §6, "Prompt images"). Pure, and linear in the text.

use crate::image::reference::Reference;

/// Pictures of one text that are looked for; more are not.
pub(super) const MOST_NAMED: usize = 32;

/// File name extensions of pictures. Some of these no model takes: the file's first bytes decide.
const EXTENSIONS: [&str; 10] = ["png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "heif"];
/// Prefixes of a path that stands in a text without brackets.
const BEGINNINGS: [&str; 4] = ["/", "./", "../", "~"];
const FILE_URL: &str = "file://";
const ATTACHED: &str = "[media attached";
const SOURCE: &str = "[image: source:";

/// The paths of pictures on this machine that a text names, in order and each once, as the file
/// tools take paths. No memory is allocated for a text without one.
pub fn named_pictures(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if !names_any(text) {
        return found;
    }
    let mut at = 0;
    let mut before = None;
    while let Some((rest, first)) = text.get(at..).and_then(|rest| Some((rest, rest.chars().next()?))) {
        let Mention { path, length } = mention(rest, before).unwrap_or(Mention { path: None, length: 0 });
        if let Some(path) = path.filter(|path| !found.contains(path)) {
            found.push(path);
            if found.len() == MOST_NAMED {
                break;
            }
        }
        let length = length.max(first.len_utf8());
        before = rest.get(..length).and_then(|read| read.chars().next_back());
        at += length;
    }
    found
}

/// Returns true if anything in the text ends like the name of a picture.
fn names_any(text: &str) -> bool {
    text.match_indices('.').any(|(at, _)| text.get(at..).and_then(extension).is_some())
}

/// A part of the text that was read as one.
struct Mention {
    path: Option<String>,
    /// Length in bytes.
    length: usize,
}

/// Returns the mention with which the text begins, if that is a form in which pictures are named.
fn mention(rest: &str, before: Option<char>) -> Option<Mention> {
    match rest.chars().next()? {
        '[' => attached(rest).or_else(|| source(rest)),
        quote @ ('"' | '\'' | '`') if is_boundary(before) => quoted(rest, quote),
        'f' | 'F' if before.is_none_or(|before| !before.is_ascii_alphanumeric()) => file_url(rest),
        '/' | '.' | '~' if is_boundary(before) => bare(rest),
        _ => None,
    }
}

/// Returns true if a path may begin after this character.
fn is_boundary(before: Option<char>) -> bool {
    before.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | '[' | '<'))
}

/// `[media attached: path (mime) | url]`, `[media attached 1/2: …]`.
fn attached(rest: &str) -> Option<Mention> {
    let inside = bracketed(rest, ATTACHED)?;
    let length = ATTACHED.len() + inside.len() + 1;
    let (count, named) = inside.split_once(':')?;
    if !count.chars().all(|c| c.is_ascii_digit() || c == '/' || c == ' ') {
        return None;
    }
    let named = named.split('|').next()?;
    let ends = named.match_indices('.').filter_map(|(at, _)| {
        let end = at + extension(named.get(at..)?)?;
        let behind = named.get(end..)?.trim_start();
        (behind.is_empty() || behind.starts_with('(')).then_some(end)
    });
    let path = ends.take(1).find_map(|end| local(named.get(..end)?));
    Some(Mention { path, length })
}

/// `[Image: source: path]`.
fn source(rest: &str) -> Option<Mention> {
    let inside = bracketed(rest, SOURCE)?;
    let named = inside.trim();
    let path = (picture_end(named) == Some(named.len())).then(|| local(named)).flatten();
    Some(Mention { path, length: SOURCE.len() + inside.len() + 1 })
}

/// Returns the text between a prefix and the bracket that closes on the same line.
fn bracketed<'a>(rest: &'a str, beginning: &str) -> Option<&'a str> {
    let inside = rest.get(beginning.len()..)?;
    rest.get(..beginning.len())?.eq_ignore_ascii_case(beginning).then_some(())?;
    let end = inside.find(['[', ']', '\n'])?;
    inside.get(end..)?.starts_with(']').then(|| inside.get(..end)).flatten()
}

/// `"/a b/c.png"`: within quotes a path may have spaces. If it is not a path, only the quote is
/// passed over.
fn quoted(rest: &str, quote: char) -> Option<Mention> {
    let inside = rest.strip_prefix(quote)?;
    if !begins_path(inside) {
        return None;
    }
    let end = inside.find([quote, '\n'])?;
    let named = inside.get(..end)?;
    let is_closed = inside.get(end..)?.starts_with(quote);
    let is_one = is_closed && picture_end(named) == Some(named.len()) && !named.contains(['"', '`']);
    // Else two paths could be read as one.
    let is_one = is_one && named.split_whitespace().skip(1).all(|word| !begins_path(word));
    is_one.then(|| Mention { path: local(named), length: end + 2 })
}

/// `file:///a%20b.png`.
fn file_url(rest: &str) -> Option<Mention> {
    rest.get(..FILE_URL.len())?.eq_ignore_ascii_case(FILE_URL).then_some(())?;
    let word = word(rest, |c| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '`' | ']'));
    let path = picture_end(word).and_then(|end| local(word.get(..end)?));
    Some(Mention { path, length: word.len() })
}

/// A path among words.
fn bare(rest: &str) -> Option<Mention> {
    if !begins_path(rest) {
        return None;
    }
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>');
    let word = word(rest, is_end);
    let path = picture_end(word).and_then(|end| local(word.get(..end)?));
    Some(Mention { path, length: word.len() })
}

fn begins_path(text: &str) -> bool {
    // `//host/…` is an address without its scheme.
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) && !text.starts_with("//")
}

fn word(rest: &str, is_end: impl Fn(char) -> bool) -> &str {
    rest.find(is_end).and_then(|end| rest.get(..end)).unwrap_or(rest)
}

/// Returns the end of the picture name with which the text begins; the next characters may be
/// punctuation, or letters of a script without spaces.
fn picture_end(text: &str) -> Option<usize> {
    let text = text.trim_end_matches(|c: char| c.is_ascii_punctuation());
    text.rmatch_indices('.').find_map(|(at, _)| {
        let end = at + extension(text.get(at..)?)?;
        let goes_on = text.get(end..)?.starts_with(['/', '\\', '.']);
        let has_name = text.get(..at)?.chars().next_back().is_some_and(|c| c != '/');
        (has_name && !goes_on).then_some(end)
    })
}

/// The length of `.png` and the like, if the text begins with it and no letter goes on.
fn extension(text: &str) -> Option<usize> {
    let name = text.strip_prefix('.')?;
    let letters = name.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let length = letters.count();
    let name = name.get(..length)?;
    EXTENSIONS.iter().any(|known| name.eq_ignore_ascii_case(known)).then_some(length + 1)
}

/// The path, if it is one of this machine.
fn local(named: &str) -> Option<String> {
    let named = named.trim();
    let is_drive = named.as_bytes().get(1) == Some(&b':');
    match Reference::read(named)? {
        Reference::Path(path) if !is_drive && !path.starts_with("\\\\") => Some(path),
        Reference::Path(_) | Reference::Data(_) | Reference::Web(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pictures_are_named_in_these_forms() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[]),
            ("hello. png", &[]),
            ("[media attached: /m/a.png (image/png)]", &["/m/a.png"]),
            ("[media attached: /m/a b [1.png (image/png)]", &[]),
            ("[media attached: /m/a b.png (image/png) | https://e.org/c.png]", &["/m/a b.png"]),
            ("[media attached: /m/a b.jpeg | /m/a b.jpeg]", &["/m/a b.jpeg"]),
            ("[Media Attached 1/2: m/a.PNG]", &["m/a.PNG"]),
            ("[media attached: /m/Shot 1.png copy.png (image/png)]", &["/m/Shot 1.png copy.png"]),
            ("[media attached: 2 files]\n[media attached 1/2: /a.png (image/png)]", &["/a.png"]),
            ("[media attached: https://e.org/a.png]", &[]),
            ("[media attached: file:///a%20b.png (image/png)]", &["/a b.png"]),
            ("[media attached: /m/a.pdf (application/pdf) | /m/b.png]", &[]),
            ("[media attached: /m/a.png", &["/m/a.png"]),
            ("[Image: source: /m/a b.webp]", &["/m/a b.webp"]),
            ("[image: SOURCE: ~/a.gif ]", &["~/a.gif"]),
            ("[Image: source: http://e.org/a.gif]", &[]),
            ("[Image: source: /m/a.txt]", &[]),
            ("see file:///a%20b.png.", &["/a b.png"]),
            ("<file://localhost/a.tif> file://elsewhere/b.png profile:///c.png", &["/a.tif"]),
            (
                "look at /a.png, ./b.jpg; ../c.heic and ~/d.BMP!",
                &["/a.png", "./b.jpg", "../c.heic", "~/d.BMP"],
            ),
            (
                "(/a.png) \"/b.png\" '/c.png' `/d.png` [/e.png] </f.png>",
                &["/a.png", "/b.png", "/c.png", "/d.png", "/e.png", "/f.png"],
            ),
            ("\"/a b/c d.png\" and '/x y.png'", &["/a b/c d.png", "/x y.png"]),
            ("'/a.png /b.png'", &["/a.png", "/b.png"]),
            ("it's /a.png, isn't it's", &["/a.png"]),
            ("![alt](./a.png) **/b.png**", &["./a.png"]),
            ("```\n/a.png\n```", &["/a.png"]),
            ("/a.png /a.png file:///a.png", &["/a.png"]),
            ("/a.png?", &["/a.png"]),
            ("/a.png\u{3002}", &["/a.png"]),
            ("/a.png\u{3068}\u{3001} /\u{e9}t\u{e9}.tiff", &["/a.png", "/\u{e9}t\u{e9}.tiff"]),
            ("/a.tar.png /b.png.bak /c.pngx /d.png/e /.png /f.png-1", &["/a.tar.png"]),
            ("C:\\a.png C:/a.png \\\\h\\a.png [media attached: C:\\a.png] [Image: source: d:/a.png]", &[]),
            ("https://e.org/a.png http://e.org/~/b.png //e.org/c.png ftp://e.org/a.png", &[]),
            ("a.png src/a.png user@/a.png", &[]),
            ("/a.txt /b", &[]),
        ];
        for (text, expect) in rows {
            assert_eq!(named_pictures(text), *expect, "{text}");
        }
    }

    #[test]
    fn no_more_are_looked_for_than_so_many() {
        let text: String = (0..100).map(|at| format!("/{at}.png ")).collect();
        assert_eq!(named_pictures(&text).len(), MOST_NAMED);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            named_pictures(&text);
        }

        #[test]
        fn nor_do_pieces_of_the_forms(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "[media attached", "[Image: source:", " 1/2", ":", "]", "[", "(", ")", "|", "\"", "'", "`", "file://",
                    "/", "./", "../", "~", ".png", ".", "\u{e9}", "\u{3068}", " ", "\n", "%20", "%00", "%ff", "a", "\0",
                ]),
                0..40,
            )
        ) {
            for path in named_pictures(&pieces.concat()) {
                prop_assert!(picture_end(&path) == Some(path.len()), "{path}");
            }
        }
    }
}
