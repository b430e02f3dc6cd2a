//! The files are changed, all of them or none.
//!
//! A file is compared with what was read right before it is replaced. If one can't be changed, those before it are put back.
//! A killed process leaves some files changed; a file that was to be removed may then lie beside its place as a `.tmp`.

use std::fs::Permissions;
use std::path::PathBuf;

use openclaw_agent::ToolError;
use openclaw_agent::place::{Place, PlaceError, SetAside};

use super::failed;
use super::plan::{Existing, FileChange, Planned};
use crate::edit::MAX_FILE;
use crate::path::{Resolver, refused};

/// Writes what is to be written, then removes what is to be removed.
pub(super) fn commit(files: &[Planned], resolver: &Resolver) -> Result<(), ToolError> {
    let mut done = Vec::new();
    let is_write = |file: &&Planned| matches!(file.change, FileChange::Write { .. });
    let (writes, removals): (Vec<_>, Vec<_>) = files.iter().partition(is_write);
    for file in writes.into_iter().chain(removals) {
        if let Err(error) = change(file, resolver, &mut done) {
            return Err(undo_all(&error, &file.path, done, resolver));
        }
    }
    for step in done {
        if let UndoStep::Removed { path, aside } = step
            && let Err(error) = aside.discard()
        {
            tracing::warn!(path, %error, "removed file stays under another name");
        }
    }
    Ok(())
}

/// Reason why a file was not changed.
enum CommitError {
    /// The file was changed by another process after it was read.
    Changed,
    Place(PlaceError),
}

impl From<PlaceError> for CommitError {
    fn from(error: PlaceError) -> Self {
        Self::Place(error)
    }
}

/// A step that can be undone.
enum UndoStep<'p> {
    /// Directories that were missing, the deepest first.
    Directories { path: &'p str, made: Vec<PathBuf> },
    /// A new file.
    Created { path: &'p str, place: Place, after: &'p [u8] },
    /// A file has new content, or a part of it.
    Replaced { path: &'p str, existing: &'p Existing, after: &'p [u8], is_whole: bool },
    /// A file is out of sight.
    Removed { path: &'p str, aside: SetAside<'p> },
}

fn change<'p>(
    file: &'p Planned,
    resolver: &Resolver,
    done: &mut Vec<UndoStep<'p>>,
) -> Result<(), CommitError> {
    let path = file.path.as_str();
    match &file.change {
        FileChange::Write { existing: Some(existing), after, .. } => {
            if !holds(&existing.place, &existing.bytes)? {
                return Err(CommitError::Changed);
            }
            if existing.bytes == *after {
                return Ok(());
            }
            let replaced = existing.place.replace(after);
            done.push(UndoStep::Replaced { path, existing, after, is_whole: replaced.is_ok() });
            Ok(replaced?)
        }
        FileChange::Write { existing: None, after, permissions } => {
            done.push(UndoStep::Directories { path, made: resolver.missing_directories(path) });
            let place = resolver.writable(path)?;
            if place.exists() {
                return Err(CommitError::Changed);
            }
            place.replace(after)?;
            let permitted = permissions.as_ref().map_or(Ok(()), |permissions| permit(&place, permissions));
            done.push(UndoStep::Created { path, place, after });
            permitted
        }
        FileChange::Remove { entry, moved } => {
            if let Some(existing) = moved
                && !holds(&existing.place, &existing.bytes)?
            {
                return Err(CommitError::Changed);
            }
            done.push(UndoStep::Removed { path, aside: entry.set_aside()? });
            Ok(())
        }
    }
}

/// Returns true if the file has this content.
fn holds(place: &Place, bytes: &[u8]) -> Result<bool, PlaceError> {
    match place.read_head(MAX_FILE) {
        Ok(head) => Ok(!head.is_cut && head.bytes == bytes),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

fn permit(place: &Place, permissions: &Permissions) -> Result<(), CommitError> {
    Ok(place.open()?.set_permissions(permissions.clone()).map_err(PlaceError::Io)?)
}

/// Puts back what was done, the last first, and says what the model reads.
fn undo_all(error: &CommitError, path: &str, done: Vec<UndoStep<'_>>, resolver: &Resolver) -> ToolError {
    let why = match error {
        CommitError::Changed => format!("{path} was changed by something else meanwhile. Read it again."),
        CommitError::Place(error) => refused("apply_patch", path, error).to_string(),
    };
    let left: Vec<String> = done.into_iter().rev().filter_map(|step| undo(step, resolver).err()).collect();
    failed(match left.as_slice() {
        [] => format!("{why}\nThe patch was not applied: no file is changed."),
        left => format!("{why}\nThe patch was not applied, but could not be undone in: {}", left.join(", ")),
    })
}

/// Undoes a step, unless something else changed the file since; then that stays. The error says which file.
fn undo(step: UndoStep<'_>, resolver: &Resolver) -> Result<(), String> {
    match step {
        UndoStep::Directories { path, made } => {
            for directory in made {
                // The directory may still be missing, or hold files of another process.
                let _ = resolver.remove_empty_directory(&directory, path);
            }
            Ok(())
        }
        UndoStep::Created { path, place, after } => match holds(&place, after) {
            Ok(true) => place.remove().map_err(|error| format!("{path} ({error})")),
            Ok(false) => Err(format!("{path} (changed by something else)")),
            Err(error) => Err(format!("{path} ({error})")),
        },
        UndoStep::Replaced { path, existing, after, is_whole } => {
            let failed = |error: PlaceError| format!("{path} ({error})");
            if holds(&existing.place, &existing.bytes).map_err(failed)? {
                return Ok(());
            }
            if is_whole && !holds(&existing.place, after).map_err(failed)? {
                return Err(format!("{path} (changed by something else)"));
            }
            existing.place.replace(&existing.bytes).map_err(failed)
        }
        UndoStep::Removed { path, aside } => {
            let name = aside.name().to_string_lossy().into_owned();
            aside.put_back().map_err(|error| format!("{path} (kept beside it as {name}: {error})"))
        }
    }
}

#[cfg(test)]
mod tests;
