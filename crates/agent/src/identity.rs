//! Identity of the agent: the fields of `IDENTITY.md` (spec `agent-runtime.md` §5).

use std::path::Path;

use crate::workspace_file;

/// Largest number of bytes that are read of the file.
const MAX_BYTES: u64 = 64 * 1024;

/// The parsed fields; blank and placeholder values are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The agent's name.
    pub name: Option<String>,
    /// Kind of creature that the agent claims to be.
    pub creature: Option<String>,
    /// Impression that the agent gives, in its own words.
    pub vibe: Option<String>,
    /// Signature emoji.
    pub emoji: Option<String>,
    /// Workspace-relative path, URL or data URI of a picture.
    pub avatar: Option<String>,
    /// Free theme text some files carry.
    pub theme: Option<String>,
}

impl Identity {
    /// Reads `IDENTITY.md` of a workspace; a missing or unreadable file gives an empty identity.
    /// Blocking.
    pub fn of_workspace(workspace: &Path) -> Self {
        match workspace_file::read(workspace, "IDENTITY.md", MAX_BYTES) {
            Ok(Some(head)) => Self::parse(&String::from_utf8_lossy(&head.bytes)),
            Ok(None) | Err(_) => Self::default(),
        }
    }

    /// Reads lines of the form `- **Label:** value` or `Label: value`. The last usable value of a label counts: what is
    /// added to the file later replaces what it said before.
    pub fn parse(text: &str) -> Self {
        let mut identity = Self::default();
        for line in text.lines() {
            if let Some((label, value)) = field(line)
                && let Some(slot) = identity.slot(&label)
            {
                *slot = Some(value.to_owned());
            }
        }
        identity
    }

    /// Returns true if no field is filled in.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn slot(&mut self, label: &str) -> Option<&mut Option<String>> {
        match label {
            "name" => Some(&mut self.name),
            "creature" => Some(&mut self.creature),
            "vibe" => Some(&mut self.vibe),
            "emoji" => Some(&mut self.emoji),
            "avatar" => Some(&mut self.avatar),
            "theme" => Some(&mut self.theme),
            _ => None,
        }
    }
}

/// Label in lower case and value, marks stripped; nothing for other lines and for placeholders.
fn field(line: &str) -> Option<(String, &str)> {
    let line = line.trim().trim_start_matches(['-', '*', '+']).trim();
    let (label, value) = line.split_once(':')?;
    let label = label.trim_matches(|c: char| c == '*' || c == '_' || c.is_whitespace()).to_lowercase();
    let value = value.trim().trim_start_matches("**").trim();
    if is_placeholder(value) {
        return None;
    }
    let value = value.trim_matches(|c: char| c == '*' || c == '_' || c == '`' || c.is_whitespace());
    (!value.is_empty()).then_some((label, value))
}

/// An italic hint in parentheses, with or without the italics: `_(pick something)_`.
fn is_placeholder(value: &str) -> bool {
    let bare = value.trim_matches(['*', '_', ' ']);
    bare.starts_with('(') && bare.ends_with(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_both_forms_and_placeholders_ignored() {
        let text = "# IDENTITY.md\n\n- **Name:** Other\n- **Creature:** _(AI? robot? familiar?)_\n* Vibe: _calm, dry_\nEmoji: 🦞\n- **Avatar:**\n  (a path)\n- **Name:** Clawd\nNote: x\n";
        let expect = Identity {
            name: Some("Clawd".into()),
            vibe: Some("calm, dry".into()),
            emoji: Some("🦞".into()),
            ..Identity::default()
        };
        assert_eq!(Identity::parse(text), expect);
    }

    #[test]
    fn a_file_is_read_so_far_and_no_file_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Identity::of_workspace(dir.path()), Identity::default());
        let text = format!("- Avatar: https://x/y.png\n{}\n- Name: Late\n", "x".repeat(64 * 1024));
        std::fs::write(dir.path().join("IDENTITY.md"), text).unwrap();
        let expect = Identity { avatar: Some("https://x/y.png".into()), ..Identity::default() };
        assert_eq!(Identity::of_workspace(dir.path()), expect);
    }

    #[test]
    fn our_own_template_is_an_empty_identity() {
        assert!(Identity::parse(crate::workspace::IDENTITY_TEMPLATE).is_empty());
    }
}
