//! Parses a model's reference to an image (spec `tools.md` §6). Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openclaw_agent::ToolError;
use url::Url;

/// An image, as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A file, as the file tools take paths.
    Path(String),
    /// The image itself, as a `data:` URL.
    Data(String),
    /// An address of the web.
    Web(String),
}

impl Reference {
    /// Reads it; `None` where its scheme is another.
    pub(crate) fn read(written: &str) -> Option<Self> {
        let written = written.trim();
        let named = written.strip_prefix('@').map_or(written, str::trim);
        let own = || named.to_owned();
        match scheme(named).as_deref() {
            // An `@` may belong to the name.
            None => Some(Self::Path(written.to_owned())),
            Some("file") => file_path(named).map(Self::Path),
            Some("data") => Some(Self::Data(own())),
            Some("http" | "https") => Some(Self::Web(own())),
            Some(_) => None,
        }
    }

    /// Returns the reference as people are told; the bytes of an image are left out.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Path(text) | Self::Web(text) => text.clone(),
            Self::Data(url) => url.split_once(',').map_or("data:", |(head, _)| head).to_owned(),
        }
    }
}

/// `http` of `http://…`; a drive letter is none.
fn scheme(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let is_name = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'));
    let is_drive = scheme.len() == 1 && rest.starts_with(['\\', '/']);
    (is_name && !is_drive).then(|| scheme.to_ascii_lowercase())
}

/// The path of a `file:` URL of this machine.
fn file_path(url: &str) -> Option<String> {
    let path = Url::parse(url).ok()?.to_file_path().ok()?;
    path.to_str().map(str::to_owned)
}

/// The bytes of a `data:` URL.
///
/// # Errors
/// Describes the problem in OpenClaw's words.
pub(super) fn decode(url: &str) -> Result<Vec<u8>, ToolError> {
    let failed = |text: &str| ToolError::Failed(text.to_owned());
    let malformed = || failed("Invalid data URL (expected base64 data: URL).");
    let (head, data) = url.split_once(',').ok_or_else(malformed)?;
    let kind = head.get("data:".len()..).ok_or_else(malformed)?;
    let (kind, encoding) = kind.rsplit_once(';').ok_or_else(malformed)?;
    if !encoding.eq_ignore_ascii_case("base64") {
        return Err(malformed());
    }
    let mime = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !mime.starts_with("image/") {
        return Err(ToolError::Failed(format!("Unsupported data URL type: {mime}")));
    }
    let data: String = data.split_whitespace().collect();
    if data.is_empty() {
        return Err(failed("Invalid data URL: empty payload."));
    }
    STANDARD.decode(data).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_path_data_or_an_address() {
        let path = |text: &str| Some(Reference::Path(text.to_owned()));
        let rows = [
            ("a.png", path("a.png")),
            (" @ a b.png ", path("@ a b.png")),
            ("@~/a.png", path("@~/a.png")),
            ("/x/a.png", path("/x/a.png")),
            ("C:\\x\\a.png", path("C:\\x\\a.png")),
            ("c:/x/a.png", path("c:/x/a.png")),
            ("file:///x/a%20b.png", path("/x/a b.png")),
            ("FILE://localhost/x/a.png", path("/x/a.png")),
            ("file://elsewhere/x/a.png", None),
            ("data:image/png;base64,AA==", Some(Reference::Data("data:image/png;base64,AA==".to_owned()))),
            ("@https://e.org/a.png", Some(Reference::Web("https://e.org/a.png".to_owned()))),
            ("HTTP://e.org/a.png", Some(Reference::Web("HTTP://e.org/a.png".to_owned()))),
            ("ftp://e.org/a.png", None),
            ("image:0", None),
            ("c:a.png", None),
        ];
        for (written, expect) in rows {
            assert_eq!(Reference::read(written), expect, "{written}");
        }
    }

    #[test]
    fn a_data_url_holds_an_image_in_base64() {
        let rows = [
            ("data:image/png;base64,AQID", Ok(vec![1, 2, 3])),
            ("data:image/png;name=a.png;BASE64,AQ\nID", Ok(vec![1, 2, 3])),
            ("data:image/png,AQID", Err("Invalid data URL (expected base64 data: URL).")),
            ("data:image/png;base64", Err("Invalid data URL (expected base64 data: URL).")),
            ("data:image/png;base64,§", Err("Invalid data URL (expected base64 data: URL).")),
            ("data:text/plain;base64,AQID", Err("Unsupported data URL type: text/plain")),
            ("data:image/png;base64, ", Err("Invalid data URL: empty payload.")),
        ];
        for (url, expect) in rows {
            let decoded = decode(url).map_err(|error| error.to_string());
            assert_eq!(decoded, expect.map_err(str::to_owned), "{url}");
        }
    }

    #[test]
    fn the_bytes_of_an_image_are_not_told() {
        let data = Reference::Data("data:image/png;base64,AQID".to_owned());
        assert_eq!(data.shown(), "data:image/png;base64");
        assert_eq!(Reference::Path("a.png".to_owned()).shown(), "a.png");
    }
}
