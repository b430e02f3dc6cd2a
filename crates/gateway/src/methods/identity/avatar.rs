//! Avatars: letters, URLs, or files of the workspace.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openclaw_agent::workspace_file;

/// Largest file that becomes a data URL, in bytes (spec `gateway-protocol.md` §6.6).
const MAX_DATA_URL_BYTES: u64 = 2 * 1024 * 1024;

/// File names of pictures and their media types.
const TYPES: [(&str, &str); 7] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("bmp", "image/bmp"),
];

/// Configured avatar: a URL or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::methods) enum Avatar {
    /// An `http`, `https` or `data` URL.
    Url(String),
    /// A path, relative to the workspace.
    File(String),
    /// Letters or an emoji.
    Text(String),
}

impl Avatar {
    /// Tells them apart by their spelling.
    pub(in crate::methods) fn parse(text: &str) -> Self {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") || lower.starts_with("data:image/") {
            Self::Url(text.to_owned())
        } else if text.contains(['/', '\\']) || media_type(Path::new(text)).is_some() {
            Self::File(text.to_owned())
        } else {
            Self::Text(text.to_owned())
        }
    }
}

/// True if the file is in the workspace. Blocking.
pub(in crate::methods) fn is_file_in(workspace: &Path, path: &str) -> bool {
    matches!(workspace_file::read(workspace, path, 0), Ok(Some(_)))
}

/// A picture of the workspace as a data URL. Blocking.
pub(in crate::methods) fn data_url(workspace: &Path, path: &str) -> Option<String> {
    let media_type = media_type(Path::new(path))?;
    let head = workspace_file::read(workspace, path, MAX_DATA_URL_BYTES).ok()??;
    (!head.is_cut).then(|| format!("data:{media_type};base64,{}", STANDARD.encode(head.bytes)))
}

fn media_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    TYPES.iter().find(|(own, _)| *own == extension).map(|(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avatars_are_told_apart_by_their_spelling() {
        let rows = [
            ("https://x/y", Avatar::Url("https://x/y".into())),
            ("data:image/png;base64,AA", Avatar::Url("data:image/png;base64,AA".into())),
            ("avatars/me.png", Avatar::File("avatars/me.png".into())),
            ("me.PNG", Avatar::File("me.PNG".into())),
            (" 🧪 ", Avatar::Text("🧪".into())),
            ("A", Avatar::Text("A".into())),
        ];
        for (text, expect) in rows {
            assert_eq!(Avatar::parse(text), expect, "{text}");
        }
    }

    #[test]
    fn only_files_of_the_workspace_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(workspace.join("me.png"), b"abc").unwrap();
        std::fs::write(folder.path().join("secret.png"), b"no").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret.png"), workspace.join("link.png")).unwrap();
        assert_eq!(data_url(&workspace, "me.png").as_deref(), Some("data:image/png;base64,YWJj"));
        for outside in ["../secret.png", "link.png", "missing.png", "/etc/passwd", "."] {
            assert!(!is_file_in(&workspace, outside), "{outside}");
            assert_eq!(data_url(&workspace, outside), None, "{outside}");
        }
        std::fs::write(workspace.join("big.png"), vec![0; 2 * 1024 * 1024 + 1]).unwrap();
        assert_eq!(data_url(&workspace, "big.png"), None);
    }
}
