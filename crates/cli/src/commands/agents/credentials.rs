//! Credentials of another agent for a new one. They are never inherited (decision 17): copied when a person says so.

use std::path::{Path, PathBuf};

use openclaw_config::Config;
use openclaw_config::private_file::{self, Durability};
use openclaw_config::shared_place;
use openclaw_models::credentials::FILE;
use openclaw_protocol::AgentId;

use crate::failure::CommandFailure;

/// Credentials that could be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// Agent that owns the credentials.
    pub(super) owner: AgentId,
    from: PathBuf,
    to: PathBuf,
}

impl Offer {
    /// Offers the default agent's credentials, unless it has none or the new agent has its own.
    pub(super) fn of(config: &Config, agent_dir: &Path) -> Option<Self> {
        let owner = config.default_agent();
        let from = config.agent(&owner).agent_dir.join(FILE);
        let to = agent_dir.join(FILE);
        (from.is_file() && !to.exists()).then_some(Self { owner, from, to })
    }

    /// Copies them, for the owner of the files alone.
    pub(super) fn copy(&self) -> Result<(), CommandFailure> {
        let failed = |error| {
            CommandFailure::new(
                "credentials",
                format!("cannot copy {} to {}: {error}", self.from.display(), self.to.display()),
            )
        };
        let content = shared_place::read(&self.from).map_err(failed)?;
        private_file::replace(&self.to, &content, Durability::Synced).map_err(failed)
    }

    /// Instructions for copying them by hand.
    pub(super) fn hint(&self) -> String {
        let dir = self.to.parent().unwrap_or(&self.to).display();
        format!(
            "Credentials were not copied: every agent has its own. To give it those of \"{}\":\n  mkdir -p -m 700 '{dir}' && cp '{}' '{}'",
            self.owner,
            self.from.display(),
            self.to.display(),
        )
    }
}
