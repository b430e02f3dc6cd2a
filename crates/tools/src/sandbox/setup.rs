//! The first command of a sandbox, and the note that it is used.

use std::time::Duration;

use openclaw_config::clock::now_ms;
use serde_json::Map;
use sha1::{Digest as _, Sha1};

use super::active::{ActiveSandbox, Inside};
use super::registry::{Entry, Registry, SandboxEngine};
use super::sandboxes::{SandboxFault, Sandboxes};
use crate::command::run_alone;

/// Time limit of a setup command.
const SETUP_TIME: Duration = Duration::from_secs(600);

impl Sandboxes {
    /// Runs the setup command of a sandbox of the kernel where it did not succeed yet, and notes that the sandbox is used. `limits` is
    /// what holds its limits.
    pub(super) async fn note_local(
        &self,
        sandbox: &ActiveSandbox,
        name: &str,
        key: String,
        (limits, has_group): (String, bool),
    ) -> Result<(), SandboxFault> {
        let registry = Registry::local(&self.state_dir);
        let known = registry.find(name);
        let setup = sandbox.settings.docker.setup_command.as_deref();
        let made_with = setup.map(hash);
        let is_set_up = known.as_ref().is_some_and(|known| known.config_hash == made_with);
        if let Some(command) = setup.filter(|_| !is_set_up) {
            self.set_up(sandbox, command).await?;
        }
        let now = now_ms();
        let mut entry = Entry {
            container_name: name.to_owned(),
            session_key: key,
            created_at_ms: known.as_ref().map_or(now, |known| known.created_at_ms),
            last_used_at_ms: now,
            image: "local".to_owned(),
            config_hash: made_with,
            rest: known.map_or_else(Map::new, |known| known.rest),
            kind: SandboxEngine::Kernel,
        };
        entry.set_limits(limits, has_group);
        Ok(registry.note(entry)?)
    }

    async fn set_up(&self, sandbox: &ActiveSandbox, command: &str) -> Result<(), SandboxFault> {
        let (directory, environment) = (sandbox.inner_workspace(), sandbox.environment(&[], &[]));
        let inside = Inside { command, directory: &directory, environment: &environment, in_terminal: false };
        run_alone(sandbox.launch(inside), SETUP_TIME, self.lock.clone()).await.map_err(SandboxFault::Setup)
    }
}

fn hash(command: &str) -> String {
    Sha1::digest(command).iter().map(|byte| format!("{byte:02x}")).collect()
}
