//! `openclaw hooks install`: hooks of a directory, an archive or npm.

use std::path::Path;

use openclaw_agent::hooks::install::{self, InstallError, Mode, NpmSpec, Staged};

use super::Survey;
use super::settings::{HookSource, Settings};
use crate::client::block_on;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Endings by which a name means an archive, there or not.
const ARCHIVES: &[&str] = &[".zip", ".tgz", ".tar.gz", ".tar"];

pub(super) fn install(survey: &Survey<'_>, from: &str, context: &CliContext) -> CommandResult {
    let (hooks, path) = (&survey.places.managed, context.env().expand_path(from));
    if path.exists() {
        let staged = install::stage(&path, hooks).map_err(|error| failed(&error))?;
        let origin = if path.is_dir() { HookSource::Directory(&path) } else { HookSource::Archive(&path) };
        return finish(staged, origin, hooks, context);
    }
    if is_path(from) {
        return Err(not_there(&path));
    }
    let spec = spec(from)?;
    output::line(&format!("Downloading {}…", spec.as_str()));
    let staged = fetch(&spec, hooks, context)?;
    finish(staged, HookSource::Npm { spec: spec.as_str() }, hooks, context)
}

/// Uses a directory where it is.
pub(super) fn link(survey: &Survey<'_>, from: &str, context: &CliContext) -> CommandResult {
    let path = context.env().expand_path(from);
    if !path.exists() {
        let text = format!("`--link` requires a local path, and {} is not there.", path.display());
        return Err(CommandFailure::new("hooks-install", text));
    }
    if !path.is_dir() {
        return Err(CommandFailure::new("hooks-install", "Linked hook paths must be directories."));
    }
    let pack = install::look(&path).map_err(|error| failed(&error.into()))?;
    let taken = install::directory_of(&survey.places.managed, &pack.id);
    if is_same_place(&taken, &path) {
        let text =
            format!("{} is where hooks are looked for already; there is nothing to link.", path.display());
        return Err(CommandFailure::new("hooks-install", text));
    }
    if taken.exists() {
        return Err(failed(&InstallError::Exists(taken)));
    }
    let mut settings = Settings::of(context);
    settings.add_directory(&path);
    settings.installed(&pack, &path, HookSource::Directory(&path));
    settings.write(context)?;
    output::line(&format!("Linked hook path: {}", context.short(&path)));
    super::told();
    Ok(0)
}

/// Fetches a package and what it depends on.
pub(super) fn fetch(spec: &NpmSpec, hooks: &Path, context: &CliContext) -> Result<Staged, CommandFailure> {
    block_on(async { install::stage_npm(spec, hooks, context.env()).await.map_err(|error| failed(&error)) })
}

pub(super) fn fetch_dependencies(staged: &Staged, context: &CliContext) -> Result<(), CommandFailure> {
    block_on(async { staged.fetch_dependencies(context.env()).await.map_err(|error| failed(&error)) })
}

pub(super) fn spec(text: &str) -> Result<NpmSpec, CommandFailure> {
    NpmSpec::parse(text).map_err(|error| CommandFailure::new("hooks-install", format!("{error}.")))
}

pub(super) fn failed(error: &InstallError) -> CommandFailure {
    CommandFailure::new("hooks-install", format!("The hooks were not installed: {error}."))
}

fn finish(staged: Staged, origin: HookSource<'_>, hooks: &Path, context: &CliContext) -> CommandResult {
    fetch_dependencies(&staged, context)?;
    let installed = staged.install(hooks, &Mode::New).map_err(|error| failed(&error))?;
    let mut settings = Settings::of(context);
    settings.installed(&installed.pack, &installed.directory, origin);
    if let Err(error) = settings.write(context) {
        // Hooks that nobody asked for by now; not switched on, they would be used once hooks are.
        let _ = std::fs::remove_dir_all(&installed.directory);
        return Err(error);
    }
    let names = installed.pack.names().join(", ");
    output::line(&format!("Installed hooks: {names} ({})", context.short(&installed.directory)));
    super::told();
    Ok(0)
}

fn is_same_place(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn is_path(text: &str) -> bool {
    let starts = ["./", "../", "/", "~"].iter().any(|start| text.starts_with(start));
    starts || text == "." || text == ".." || ARCHIVES.iter().any(|ending| text.ends_with(ending))
}

fn not_there(path: &Path) -> CommandFailure {
    CommandFailure::new("hooks-install", format!("Path not found: {}", path.display()))
}
