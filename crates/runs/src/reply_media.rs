//! Files of a reply, copied into the gateway's own storage: later changes by the agent do not
//! change an answer that waits to be sent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_agent::ReplyPayload;
use openclaw_channels::AnswerMedia;
use openclaw_delivery::reply::pipeline::media;

use openclaw_journal::steady_id::uuid_of;
use openclaw_runtime::messages::files::{ClientFiles, OutgoingFiles, Reach};
use openclaw_runtime::setup::LiveSettings;

/// The files of one reply.
#[derive(Debug, Default)]
pub(super) struct LoadedMedia {
    pub(super) media: Vec<AnswerMedia>,
    /// Notes for people about files that could not be had, line by line.
    pub(super) notes: Option<String>,
}

/// Access to the files that answers and clients send.
pub struct ReplyFiles {
    settings: LiveSettings,
    state_dir: PathBuf,
}

impl ReplyFiles {
    /// Access to files below the state directory, and of people where the settings allow it.
    pub fn new(settings: LiveSettings, state_dir: PathBuf) -> Self {
        Self { settings, state_dir }
    }

    /// Takes files that a client names: addresses of the web, and paths as far as it reaches.
    pub async fn load_files(
        &self,
        names: Vec<String>,
        reach: ClientFiles,
    ) -> Result<Vec<AnswerMedia>, String> {
        let config = Arc::clone(&self.settings.now().config);
        let files = self.files(Reach::of_client(reach, &self.state_dir, &config));
        let mut taken = Vec::with_capacity(names.len());
        for name in &names {
            taken.push(files.take(name).await?);
        }
        Ok(taken)
    }

    /// Takes the files that a payload names: addresses of the web, and files of the workspace. A
    /// missing one is replaced by a note.
    pub(super) async fn load_media(&self, payload: &ReplyPayload, workspace: &Path) -> LoadedMedia {
        let names = media(payload);
        if names.is_empty() {
            return LoadedMedia::default();
        }
        let most = self.settings.now().config.agents.defaults.media_max_mb;
        let files = self.files(Reach::within(workspace)).at_most(most);
        let (mut media, mut notes) = (Vec::new(), Vec::new());
        for name in &names {
            match files.take(name).await {
                Ok(file) => media.push(file),
                Err(why) => notes.push(format!("({why})")),
            }
        }
        LoadedMedia { media, notes: (!notes.is_empty()).then(|| notes.join("\n")) }
    }

    fn files(&self, reach: Reach) -> OutgoingFiles {
        OutgoingFiles::new(&self.state_dir, &self.settings.now().config, reach)
    }
}

/// Returns the block name of a file, made from its reference, so that the next start knows that it
/// was sent.
pub(super) fn file_name(reference: &str) -> String {
    format!("m{}", uuid_of(reference))
}
