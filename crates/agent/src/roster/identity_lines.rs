//! Lines that are added to an agent's `IDENTITY.md` (spec `gateway-protocol.md` §6.6).

use std::path::Path;

use super::RosterError;
use crate::identity::Identity;
use crate::place::PlaceError;
use crate::workspace_file;

/// The file.
const FILE: &str = "IDENTITY.md";
/// Largest number of bytes of the file that are searched for existing lines.
const MAX_BYTES: u64 = 1024 * 1024;

/// Identity fields to write; absent ones are left out. In the file the last line of a label counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdentityLines {
    /// `Name`
    pub name: Option<String>,
    /// `Emoji`
    pub emoji: Option<String>,
    /// `Avatar`
    pub avatar: Option<String>,
}

impl IdentityLines {
    /// Adds what the file does not say yet. The rest of the file stays as it is.
    pub(super) fn append(&self, workspace: &Path) -> Result<(), RosterError> {
        let path = workspace.join(FILE);
        let failed = |error: PlaceError| RosterError::Io { path: path.clone(), source: error.into() };
        let place = workspace_file::place(workspace, FILE).map_err(failed)?;
        let said = match place.read_head(MAX_BYTES) {
            Ok(head) => Identity::parse(&String::from_utf8_lossy(&head.bytes)),
            Err(error) if error.is_not_found() => Identity::default(),
            Err(error) => return Err(failed(error)),
        };
        let fields = [
            ("Name", &self.name, said.name),
            ("Emoji", &self.emoji, said.emoji),
            ("Avatar", &self.avatar, said.avatar),
        ];
        let mut lines = String::new();
        for (label, text, said) in fields {
            let text =
                text.as_deref().map(one_line).filter(|text| !text.is_empty() && said.as_ref() != Some(text));
            lines.extend(text.map(|text| format!("- {label}: {text}\n")));
        }
        if lines.is_empty() {
            return Ok(());
        }
        place.append(format!("\n{lines}").as_bytes()).map_err(failed)
    }
}

/// White space folded: a line break would begin another field.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, emoji: &str) -> IdentityLines {
        IdentityLines { name: Some(name.into()), emoji: Some(emoji.into()), avatar: None }
    }

    #[test]
    fn lines_are_added_once_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let read = || std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        lines("Golden Helper", "🧪").append(dir.path()).unwrap();
        assert_eq!(read(), "\n- Name: Golden Helper\n- Emoji: 🧪\n");
        lines("Golden Helper", "🧪").append(dir.path()).unwrap();
        lines("A\n- Emoji: x", " ").append(dir.path()).unwrap();
        assert_eq!(read(), "\n- Name: Golden Helper\n- Emoji: 🧪\n\n- Name: A - Emoji: x\n");
        let identity = Identity::parse(&read());
        assert_eq!((identity.name.as_deref(), identity.emoji.as_deref()), (Some("A - Emoji: x"), Some("🧪")));
    }
}
