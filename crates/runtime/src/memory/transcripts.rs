//! Transcripts of an agent as a source of memory, without secrets.

use std::io;
use std::time::SystemTime;

use openclaw_agent::Redactor;
use openclaw_memory::TranscriptFile;
use openclaw_protocol::AgentId;
use openclaw_sessions::transcript::Transcripts;

use super::{Mask, Shared};
use crate::settings::Settings;

pub(super) struct AgentTranscripts {
    agent: AgentId,
    transcripts: Transcripts,
    /// Secrets of the configuration, wherever they stand.
    known: Redactor,
    /// Masks texts that look like secrets.
    mask: Mask,
}

impl AgentTranscripts {
    pub(super) fn new(shared: &Shared, settings: &Settings, agent: &AgentId) -> Self {
        let config = &settings.config;
        let secrets = config.own_secrets().into_iter().chain(config.tool_secrets());
        Self {
            agent: agent.clone(),
            transcripts: shared.transcripts.clone(),
            known: Redactor::new(secrets).unwrap_or_default(),
            mask: shared.mask.clone(),
        }
    }
}

impl openclaw_memory::TranscriptSource for AgentTranscripts {
    fn list(&self) -> io::Result<Vec<TranscriptFile>> {
        let listed = self.transcripts.list(&self.agent)?;
        Ok(listed
            .into_iter()
            .map(|found| TranscriptFile {
                name: found.name,
                size: found.size,
                modified: nanoseconds(found.modified),
            })
            .collect())
    }

    fn read(&self, name: &str) -> io::Result<String> {
        self.transcripts.text(&self.agent, name)
    }

    fn redact(&self, text: &str) -> String {
        (self.mask)(&self.known.redact_text(text))
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
