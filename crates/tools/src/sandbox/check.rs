//! The question if a sandbox can be had, before a run needs one.

use std::time::Duration;

use openclaw_config::Environment;
use tokio::time::timeout;

use super::container::{self, Cli, ContainerError};
use super::sandboxes::{SandboxError, SandboxFault, Sandboxes, program_of};
use super::settings::SandboxSettings;

impl Sandboxes {
    /// Asks what a run asks first: whether the container program answers and has the image, or what the kernel gives.
    ///
    /// # Errors
    /// When a run would not begin. A program that says nothing within `patience` counts as down.
    pub async fn check(
        &self,
        settings: &SandboxSettings,
        environment: &Environment,
        patience: Duration,
    ) -> Result<(), SandboxError> {
        let Some(program) = program_of(settings.backend, environment) else {
            let level = self.level().await;
            return level.map(drop).map_err(|why| SandboxError::from(SandboxFault::NoKernel(why)));
        };
        let cli = Cli::new(program, environment);
        let asked = timeout(patience, container::check(&cli, &settings.docker.image)).await;
        let silent = |_| {
            let said = format!("no answer within {} s", patience.as_secs());
            Err(ContainerError::NoDaemon { program, said })
        };
        asked.unwrap_or_else(silent).map_err(|error| SandboxError::from(SandboxFault::from(error)))
    }
}
