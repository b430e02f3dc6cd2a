//! What an agent's `IDENTITY.md` says of it (spec `agent-runtime.md` §5.4).

use std::path::Path;

/// More of the file is not looked at.
const MAX_BYTES: usize = 64 * 1024;

/// The fields of the file that clients see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct IdentityFile {
    /// `Name`
    pub name: Option<String>,
    /// `Emoji`
    pub emoji: Option<String>,
    /// `Avatar`
    pub avatar: Option<String>,
}

impl IdentityFile {
    /// Reads the file of a workspace; one that is missing or unreadable says nothing. Blocking.
    pub(super) fn read(workspace: &Path) -> Self {
        let bytes = std::fs::read(workspace.join("IDENTITY.md")).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(bytes.get(..MAX_BYTES).unwrap_or(&bytes)))
    }

    /// Lines `- **Label:** value` or `Label: value`; the last of a label counts. A hint in parentheses is no value.
    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let Some((label, value)) = line.split_once(':') else { continue };
            let label = label.trim().trim_start_matches(['-', '*', ' ']).to_lowercase();
            let value = value.trim_matches(|c: char| c == '*' || c == '_' || c.is_whitespace());
            if value.is_empty() || (value.starts_with('(') && value.ends_with(')')) {
                continue;
            }
            let field = match label.as_str() {
                "name" => &mut found.name,
                "emoji" => &mut found.emoji,
                "avatar" => &mut found.avatar,
                _ => continue,
            };
            *field = Some(value.to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_in_both_forms_and_hints_are_not_values() {
        let text = "# Identity\n- **Name:** Ada\n- Emoji: 🧪\n- **Avatar:** _(workspace path or URL)_\nVibe: calm\nName: Bea";
        let expect = IdentityFile { name: Some("Bea".into()), emoji: Some("🧪".into()), avatar: None };
        assert_eq!(IdentityFile::parse(text), expect);
        assert_eq!(IdentityFile::parse("Avatar: https://x/y.png").avatar.as_deref(), Some("https://x/y.png"));
        assert_eq!(IdentityFile::read(Path::new("/nowhere")), IdentityFile::default());
    }
}
