//! `openclaw hooks update`: fetches again what came from npm.

use openclaw_agent::hooks::install::{Mode, directory_of, installed_version};

use super::Survey;
use super::install::{failed, fetch, fetch_dependencies, spec};
use super::settings::{HookInstall, HookSource, Settings};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Mode of an update: install, or only say what would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Install,
    DryRun,
}

/// Updates one, or all. A failure does not keep the others from their update.
pub(super) fn run(survey: &Survey<'_>, id: Option<&str>, how: How, context: &CliContext) -> CommandResult {
    let mut settings = Settings::of(context);
    let mut targets = settings.installs();
    if let Some(id) = id {
        targets.retain(|(known, _)| known == id);
        if targets.is_empty() {
            return Err(CommandFailure::new("hooks-update", format!("No install record for \"{id}\".")));
        }
    }
    let (mut updated, mut failures) = (0, 0);
    for (id, record) in &targets {
        match update(survey, id, record, how, context, &mut settings) {
            Ok(HookUpdate::Replaced) => updated += 1,
            Ok(HookUpdate::Nothing) => {}
            Err(error) => {
                failures += 1;
                output::error_line(&format!("Failed to update {id}: {}", error.message));
            }
        }
    }
    if targets.is_empty() {
        output::line("No hooks were installed with `openclaw hooks install`.");
    }
    if updated > 0 {
        settings.write(context)?;
        super::told();
    }
    Ok(u8::from(failures > 0))
}

/// Result for one hook.
enum HookUpdate {
    Nothing,
    Replaced,
}

fn update(
    survey: &Survey<'_>,
    id: &str,
    record: &HookInstall,
    how: How,
    context: &CliContext,
    settings: &mut Settings,
) -> Result<HookUpdate, CommandFailure> {
    let wanted = match (record.source.as_str(), &record.spec) {
        ("npm", Some(wanted)) => spec(wanted)?,
        ("npm", None) => {
            output::line(&format!("Skipping \"{id}\" (missing npm spec)."));
            return Ok(HookUpdate::Nothing);
        }
        (source, _) => {
            output::line(&format!("Skipping \"{id}\" (source: {source})."));
            return Ok(HookUpdate::Nothing);
        }
    };
    let hooks = &survey.places.managed;
    let was = installed_version(&directory_of(hooks, id));
    let staged = fetch(&wanted, hooks, context)?;
    let label = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
    let (old, new) = (label(&was), label(&staged.pack.version));
    let is_same = was.is_some() && was == staged.pack.version;
    if how == How::DryRun {
        output::line(&match is_same {
            true => format!("{id} is up to date ({old})."),
            false => format!("Would update {id}: {old} → {new}."),
        });
        return Ok(HookUpdate::Nothing);
    }
    fetch_dependencies(&staged, context)?;
    let installed = staged.install(hooks, &Mode::Replace(id.to_owned())).map_err(|error| failed(&error))?;
    settings.note(&installed.pack, &installed.directory, HookSource::Npm { spec: wanted.as_str() });
    output::line(&match is_same {
        true => format!("{id} already at {old}."),
        false => format!("Updated {id}: {old} → {new}."),
    });
    Ok(HookUpdate::Replaced)
}
