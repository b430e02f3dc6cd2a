//! The pictures that a message names by their paths: its model sees them, if the run may read files.

use openclaw_agent::Toolbox;
use openclaw_journal::request::RunRequest;
use openclaw_models::Candidate;
use openclaw_protocol::message::Block;
use openclaw_runtime::setup::Settings;
use openclaw_tools::PromptPictures;
use openclaw_tools::sandbox::ActiveSandbox;
use tokio_util::sync::CancellationToken;

use crate::session::RunSession;

/// The tools with which the agent could look at the file itself.
const LOOKING: [&str; 2] = ["read", "image"];

/// Facts that decide which pictures are shown.
pub(super) struct Sight<'a> {
    pub(super) session: &'a RunSession,
    pub(super) settings: &'a Settings,
    pub(super) first: &'a Candidate,
    pub(super) tools: &'a Toolbox,
    pub(super) sandbox: Option<&'a ActiveSandbox>,
}

impl Sight<'_> {
    /// Returns the pictures, in the order in which they are named. They are stored with the
    /// message: later turns send the same bytes, whatever becomes of the files. A sender can't use
    /// a path to let the model describe a file that the tool policy does not let them read.
    pub(super) async fn pictures(&self, request: &RunRequest, cancel: &CancellationToken) -> Vec<Block> {
        let Self { session, settings, first, tools, sandbox } = self;
        if !first.sees {
            return Vec::new();
        }
        let named = request.named_pictures();
        if named.is_empty() || !tools.specs().iter().any(|tool| LOOKING.contains(&tool.name.as_ref())) {
            return Vec::new();
        }
        let pictures = PromptPictures::new(&settings.config, session.agent.workspace.clone(), *sandbox);
        pictures.load(&named, &request.images, cancel).await
    }
}
