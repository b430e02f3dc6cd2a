//! Putting the transcripts of a deleted session away.

use openclaw_protocol::AgentId;
use openclaw_sessions::layout::{ArchiveReason, archive_path};
use openclaw_sessions::{Layout, SessionEntry};

use crate::clock::now_ms;

/// Renames every transcript of a row and returns the new names. One that can't be renamed stays, with a warning: the
/// session is gone either way. Blocking.
pub(super) fn transcripts(layout: &Layout, agent: &AgentId, entry: &SessionEntry) -> Vec<String> {
    let mut archived = Vec::new();
    for path in layout.transcript_candidates(agent, entry).into_iter().filter(|path| path.is_file()) {
        let to = archive_path(&path, ArchiveReason::Deleted, now_ms());
        match std::fs::rename(&path, &to) {
            Ok(()) => archived.push(to.display().to_string()),
            Err(error) => tracing::warn!(path = %path.display(), %error, "the transcript could not be put away"),
        }
    }
    archived
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_renamed_and_missing_ones_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), folder.path(), None);
        let agent = AgentId::default();
        let entry: SessionEntry = serde_json::from_str(r#"{"sessionId":"s-1"}"#).unwrap();
        assert_eq!(transcripts(&layout, &agent, &entry), [""; 0]);
        let path = layout.transcript_of(&agent, &entry).unwrap().unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        let archived = transcripts(&layout, &agent, &entry);
        let [only] = archived.as_slice() else { panic!("{archived:?}") };
        assert!(only.starts_with(&format!("{}.deleted.", path.display())), "{only}");
        assert!(!path.exists() && std::path::Path::new(only).is_file());
    }
}
