//! Makes a container that is there, runs, and was made with the settings in force.

use openclaw_config::clock::now_ms;
use serde_json::Map;
use sha1::{Digest as _, Sha1};

use super::argv;
use super::cli::{Cli, ContainerError};
use crate::sandbox::registry::{Entry, Registry, SandboxEngine};

const DEFAULT_IMAGE: &str = "openclaw-sandbox:bookworm-slim";
/// Base from which a missing default image is built.
const BASE_IMAGE: &str = "debian:bookworm-slim";
/// A container that was used lately is not taken away under its user.
const HOT_MS: i64 = 5 * 60 * 1000;

pub(in crate::sandbox) use argv::ContainerSpec;

/// State of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ContainerState {
    Missing,
    Stopped,
    Running,
}

/// Action to make the container ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContainerAction {
    Use,
    /// Uses the container although it was made with other settings.
    UseOutdated,
    Start,
    Create,
    Recreate,
}

fn step(state: &ContainerState, is_current: bool, last_used_ms: Option<i64>, now_ms: i64) -> ContainerAction {
    let is_hot = last_used_ms.is_some_and(|used| now_ms.saturating_sub(used) < HOT_MS);
    match (state, is_current) {
        (ContainerState::Missing, _) => ContainerAction::Create,
        (ContainerState::Running, true) => ContainerAction::Use,
        (ContainerState::Stopped, true) => ContainerAction::Start,
        (ContainerState::Running, false) if is_hot => ContainerAction::UseOutdated,
        (ContainerState::Running | ContainerState::Stopped, false) => ContainerAction::Recreate,
    }
}

/// Returns a hash of the parameters of a container.
fn hash(made: ContainerSpec<'_>) -> String {
    let text =
        argv::create(made, 0, "").join("\0") + made.settings.setup_command.as_deref().unwrap_or_default();
    Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(in crate::sandbox) async fn ensure(
    cli: &Cli,
    registry: &Registry,
    made: ContainerSpec<'_>,
) -> Result<(), ContainerError> {
    let (hash, now, name) = (hash(made), now_ms(), made.name);
    let known = registry.find(name);
    let state = state(cli, name).await?;
    let found = match state {
        ContainerState::Missing => None,
        ContainerState::Stopped | ContainerState::Running => label(cli, name).await,
    };
    // The container is recorded after its setup: without a record the setup may have been cut
    // short.
    let is_set_up = known.is_some() || made.settings.setup_command.is_none();
    let is_current = found.as_deref() == Some(hash.as_str()) && is_set_up;
    let step = step(&state, is_current, known.as_ref().map(|entry| entry.last_used_at_ms), now);
    match step {
        ContainerAction::Use => {}
        ContainerAction::UseOutdated => tracing::warn!(
            container = name,
            "the sandbox was made with other settings; make it anew with: openclaw sandbox recreate --session {}",
            made.key
        ),
        ContainerAction::Start => drop(cli.run(&words(["start", name])).await?),
        ContainerAction::Recreate => {
            remove(cli, name).await?;
            create(cli, made, now, &hash).await?;
        }
        ContainerAction::Create => create(cli, made, now, &hash).await?,
    }
    let is_new = matches!(step, ContainerAction::Create | ContainerAction::Recreate);
    let entry = Entry {
        container_name: name.to_owned(),
        session_key: made.key.to_owned(),
        created_at_ms: known.as_ref().filter(|_| !is_new).map_or(now, |entry| entry.created_at_ms),
        last_used_at_ms: now,
        image: made.settings.image.clone(),
        config_hash: if step == ContainerAction::UseOutdated { found } else { Some(hash) },
        rest: known.map_or_else(Map::new, |entry| entry.rest),
        kind: SandboxEngine::Container,
    };
    Ok(registry.note(entry)?)
}

async fn state(cli: &Cli, name: &str) -> Result<ContainerState, ContainerError> {
    match cli.run(&words(["inspect", "-f", "{{.State.Running}}", name])).await {
        Ok(text) if text == "true" => Ok(ContainerState::Running),
        Ok(_) => Ok(ContainerState::Stopped),
        Err(ContainerError::Failed { .. }) => Ok(ContainerState::Missing),
        Err(error) => Err(error),
    }
}

async fn label(cli: &Cli, name: &str) -> Option<String> {
    let format = "{{ index .Config.Labels \"openclaw.configHash\" }}";
    cli.run(&words(["inspect", "-f", format, name])).await.ok().filter(|label| !label.is_empty())
}

async fn create(cli: &Cli, made: ContainerSpec<'_>, now: i64, hash: &str) -> Result<(), ContainerError> {
    image(cli, &made.settings.image).await?;
    cli.run(&argv::create(made, now, hash)).await?;
    cli.run(&words(["start", made.name])).await?;
    let Some(command) = &made.settings.setup_command else { return Ok(()) };
    let Err(error) = cli.run(&argv::setup(made.name, command)).await else { return Ok(()) };
    // Left there, it would look as if it had been set up.
    remove(cli, made.name).await?;
    Err(match error {
        ContainerError::Failed { said, .. } => ContainerError::Setup(said),
        other => other,
    })
}

/// Fails where no container of this image can be made, as far as that can be told without making one.
pub(in crate::sandbox) async fn check(cli: &Cli, image: &str) -> Result<(), ContainerError> {
    has_image(cli, image).await.map(drop)
}

/// True if the image is there. A missing one is an error, but for the default image, which is made.
async fn has_image(cli: &Cli, image: &str) -> Result<bool, ContainerError> {
    let Err(error) = cli.run(&words(["image", "inspect", image])).await else { return Ok(true) };
    let is_missing = match &error {
        // Docker's words, and podman's.
        ContainerError::Failed { said, .. } => {
            let said = said.to_lowercase();
            said.contains("no such image") || said.contains("image not known")
        }
        _ => false,
    };
    match (is_missing, image == DEFAULT_IMAGE) {
        (false, _) => Err(error),
        (true, false) => Err(ContainerError::NoImage { program: cli.program(), image: image.to_owned() }),
        (true, true) => Ok(false),
    }
}

async fn image(cli: &Cli, image: &str) -> Result<(), ContainerError> {
    if has_image(cli, image).await? {
        return Ok(());
    }
    let pulled = cli.run(&words(["pull", BASE_IMAGE])).await;
    pulled.map_err(|error| match error {
        ContainerError::Failed { said, .. } => ContainerError::NotPulled { image: BASE_IMAGE, said },
        other => other,
    })?;
    cli.run(&words(["tag", BASE_IMAGE, DEFAULT_IMAGE])).await.map(drop)
}

pub(in crate::sandbox) async fn remove(cli: &Cli, name: &str) -> Result<(), ContainerError> {
    match cli.run(&words(["rm", "-f", name])).await {
        // Another process has removed it.
        Err(ContainerError::Failed { said, .. }) if said.to_lowercase().contains("no such container") => {
            Ok(())
        }
        done => done.map(drop),
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests;
