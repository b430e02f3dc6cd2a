//! The transcripts of an agent as a whole, for whoever reads all of them: their names, sizes and texts.

use std::io;
use std::time::SystemTime;

use openclaw_protocol::AgentId;

use super::storage::{OpenMode, TranscriptRef};
use super::transcripts::Transcripts;

/// Ending of the name of a transcript that is in use.
const ENDING: &str = ".jsonl";

/// Name that no transcript has: others are beside it.
const NONE: &str = "-";

/// Transcript of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTranscript {
    /// Name, such as `4f1c….jsonl`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Time of the last change.
    pub modified: SystemTime,
}

impl Transcripts {
    /// Lists the transcripts of an agent that are in use, in no order. Blocks.
    ///
    /// # Errors
    /// If it can't be told which there are, as where several agents have one directory. No transcripts are no error.
    pub fn list(&self, agent: &AgentId) -> io::Result<Vec<ListedTranscript>> {
        if !self.is_per_agent() {
            return Err(io::Error::other("several agents keep their transcripts in one directory"));
        }
        let names = match self.logs().names_beside(&self.beside(agent, NONE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        let mut found = Vec::new();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| name.ends_with(ENDING)) {
            // One that goes meanwhile is not there.
            if let Ok(Some(version)) = self.logs().version(&self.beside(agent, name)) {
                let modified = version.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push(ListedTranscript { name: name.to_owned(), size: version.len(), modified });
            }
        }
        Ok(found)
    }

    /// Returns the text of a transcript of an agent, by its name. Blocks.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn text(&self, agent: &AgentId, name: &str) -> io::Result<String> {
        let log = self.logs().open(&self.beside(agent, name), OpenMode::Read)?;
        let mut bytes = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        loop {
            match log.read_at(&mut piece, bytes.len() as u64)? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                read => bytes.extend_from_slice(piece.get(..read).unwrap_or_default()),
            }
        }
    }

    fn beside(&self, agent: &AgentId, name: &str) -> TranscriptRef {
        TranscriptRef::new(self.sessions_dir(agent).join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    #[test]
    fn transcripts_in_use_are_listed_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let transcripts = Transcripts::in_files(Layout::new(dir.path(), dir.path(), None));
        let agent = AgentId::default();
        assert_eq!(transcripts.list(&agent).unwrap(), []);
        let sessions = dir.path().join("agents/main/sessions");
        std::fs::create_dir_all(&sessions).unwrap();
        for name in ["a.jsonl", "b.jsonl.reset.1", "sessions.json", "a.jsonl.lock"] {
            std::fs::write(sessions.join(name), "{}\n").unwrap();
        }
        let listed = transcripts.list(&agent).unwrap();
        assert_eq!(
            listed.iter().map(|found| (found.name.as_str(), found.size)).collect::<Vec<_>>(),
            [("a.jsonl", 3)]
        );
        assert_eq!(transcripts.text(&agent, "a.jsonl").unwrap(), "{}\n");
        assert!(transcripts.text(&agent, "c.jsonl").is_err());
    }
}
