//! From the bytes of a document to text.

use std::borrow::Cow;

use super::json;
use super::parameters::PageFormat;
use super::readable::{self, Readable};
use super::stop::StopSignal;

/// Who made the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extractor {
    Readability,
    Firecrawl,
    Json,
    Raw,
}

impl Extractor {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Readability => "readability",
            Self::Firecrawl => "firecrawl",
            Self::Json => "json",
            Self::Raw => "raw",
        }
    }
}

/// A document as it came.
#[derive(Debug)]
pub(super) struct RawPage {
    pub(super) body: Vec<u8>,
    /// What the server says it is, see [`bare_type`].
    pub(super) content_type: Option<String>,
    pub(super) url: String,
    /// Whether there was more.
    pub(super) is_cut: bool,
    pub(super) mode: PageFormat,
    /// Characters of its text that are given at most.
    pub(super) max_chars: usize,
    pub(super) readability: bool,
}

/// A document as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extracted {
    pub(super) title: Option<String>,
    pub(super) text: String,
    pub(super) extractor: Extractor,
    /// What is said beside it.
    pub(super) warning: Option<String>,
    /// Whether only its beginning was read.
    pub(super) is_cut: bool,
}

const NOTHING: &str = "Web fetch extraction failed: Readability and Firecrawl returned no content.";
const NO_EXTRACTOR: &str = "Web fetch extraction failed: Readability is off (tools.web.fetch.readability) and Firecrawl gave nothing.";
const TOO_LONG: &str = "The document is larger than 5 MiB; only its beginning was read.";
const TOO_COMPLEX: &str =
    "The page is too deeply nested or has too many elements; only its beginning was read.";

const TOO_HEAVY: &str =
    "The page is too heavy to look for its article; the words of all of it are given without format.";

/// Kinds of document, as far as they are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageKind {
    Html,
    Json,
    Text,
    /// Known to be no text.
    Binary,
    /// Whatever its bytes say.
    Unsaid,
}

impl RawPage {
    /// The text, or what is told where there is none. The work ends early when it is to stop.
    pub(super) fn extract(self, stop: &StopSignal) -> Result<Extracted, String> {
        let kind = self.kind();
        let is_text = match kind {
            PageKind::Html | PageKind::Json | PageKind::Text => true,
            PageKind::Unsaid => looks_like_text(&self.body),
            PageKind::Binary => false,
        };
        if !is_text {
            let kind = self.content_type.as_deref().unwrap_or("unknown");
            return Err(format!("Web fetch failed: the document is binary ({kind}), not text."));
        }
        let text = decoded(&self.body);
        let plain = |text: Cow<'_, str>, extractor| Extracted {
            title: None,
            text: text.into_owned(),
            extractor,
            warning: self.is_cut.then(|| TOO_LONG.to_owned()),
            is_cut: self.is_cut,
        };
        match kind {
            PageKind::Html => self.article(&text, stop),
            // No character has more than four bytes.
            PageKind::Json => Ok(match json::indented(&text, self.max_chars.saturating_mul(4), stop) {
                Some(json) => {
                    let extracted = plain(Cow::Owned(json.text), Extractor::Json);
                    Extracted { is_cut: json.is_cut || self.is_cut, ..extracted }
                }
                None => plain(text, Extractor::Raw),
            }),
            PageKind::Text | PageKind::Unsaid | PageKind::Binary => Ok(plain(text, Extractor::Raw)),
        }
    }

    fn article(&self, text: &str, stop: &StopSignal) -> Result<Extracted, String> {
        if !self.readability {
            return Err(NO_EXTRACTOR.to_owned());
        }
        let Readable { title, text, is_cut, is_plain } = readable::article(text, &self.url, self.mode, stop);
        if text.is_empty() {
            return Err(NOTHING.to_owned());
        }
        let warning = if is_cut {
            Some(TOO_COMPLEX)
        } else if self.is_cut {
            Some(TOO_LONG)
        } else if is_plain {
            Some(TOO_HEAVY)
        } else {
            None
        };
        Ok(Extracted {
            title,
            text,
            extractor: Extractor::Readability,
            warning: warning.map(str::to_owned),
            is_cut: is_cut || self.is_cut,
        })
    }

    fn kind(&self) -> PageKind {
        let Some(kind) = self.content_type.as_deref() else {
            let begins_as_html = decoded(self.body.get(..512).unwrap_or(&self.body));
            let begins_as_html = begins_as_html.trim_start().to_ascii_lowercase();
            let is_html = begins_as_html.starts_with("<!doctype html") || begins_as_html.starts_with("<html");
            return if is_html { PageKind::Html } else { PageKind::Unsaid };
        };
        let (class, name) = kind.split_once('/').unwrap_or((kind, ""));
        match (class, name) {
            ("text", "html") | ("application", "xhtml+xml") => PageKind::Html,
            ("image", "svg+xml") => PageKind::Text,
            (_, name) if name == "json" || name.ends_with("+json") => PageKind::Json,
            (_, name) if name.ends_with("+xml") => PageKind::Text,
            ("image" | "audio" | "video" | "font", _) => PageKind::Binary,
            ("application", "pdf" | "zip" | "gzip" | "x-tar" | "x-7z-compressed" | "wasm") => {
                PageKind::Binary
            }
            _ => PageKind::Unsaid,
        }
    }
}

/// `Text/HTML; charset=utf-8` as `text/html`.
pub(super) fn bare_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Text as the web's programs read it: UTF-8, or UTF-16 with its mark.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let utf16 = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.as_chunks::<2>().0.iter().map(|pair| read(*pair)).collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        bytes => String::from_utf8_lossy(bytes),
    }
}

/// Whether the bytes are text: what no text has is a NUL, or much that is no UTF-8.
fn looks_like_text(bytes: &[u8]) -> bool {
    if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return true;
    }
    let head = bytes.get(..64 * 1024).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let strange = text.chars().filter(|c| *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())).count();
    !head.contains(&0) && !head.starts_with(b"%PDF-") && strange * 10 <= text.chars().count()
}

#[cfg(test)]
mod tests;
