//! Plans the change to every file. Files are read, nothing is changed.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::path::PathBuf;

use openclaw_agent::ToolError;
use openclaw_agent::ToolOutput;
use openclaw_agent::place::off_limits::Purpose;
use openclaw_agent::place::{EntryKind, Place, PlaceError};
use serde_json::json;

use super::apply::update;
use super::conflict::{NextHunk, Touched, conflict};
use super::failed;
use super::parse::{Hunk, PatchChunk};
use crate::edit::MAX_FILE;
use crate::path::{Resolver, refused};

/// Files of one patch; the directory of each is held open.
const MAX_FILES: usize = 200;
/// Bytes of all files together, before and after: they are in memory at once.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// Changes that a patch makes to the files.
pub(super) struct PatchPlan {
    pub(super) files: Vec<Planned>,
    pub(super) summary: PatchSummary,
}

/// Change to one file.
pub(super) struct Planned {
    /// Path as the patch names it.
    pub(super) path: String,
    pub(super) change: FileChange,
    touched: Touched,
}

pub(super) enum FileChange {
    /// Writes this content to the file.
    Write {
        /// `None` if it is new.
        existing: Option<Existing>,
        after: Vec<u8>,
        /// Permissions of the file that was moved here; a file that exists here already keeps its
        /// own.
        permissions: Option<Permissions>,
    },
    /// Removes the file.
    Remove {
        /// Entry itself, also if it is a symbolic link.
        entry: Place,
        /// Content of the file, if it is moved elsewhere.
        moved: Option<Existing>,
    },
}

/// A file as it was read.
pub(super) struct Existing {
    pub(super) place: Place,
    pub(super) bytes: Vec<u8>,
    permissions: Permissions,
}

impl Existing {
    fn read(place: Place, path: &str) -> Result<Self, ToolError> {
        let head = place.read_head(MAX_FILE).map_err(|error| refuse(path, &error))?;
        if head.is_cut {
            return Err(failed(format!("{path} is larger than 32MB. Use exec to change it.")));
        }
        Ok(Self { place, bytes: head.bytes, permissions: head.metadata.permissions() })
    }
}

/// Paths of the result, each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PatchSummary {
    added: Vec<String>,
    modified: Vec<String>,
    deleted: Vec<String>,
}

impl PatchSummary {
    /// Returns the output for the model and clients.
    pub(super) fn output(&self) -> ToolOutput {
        let mut text = "Success. Updated the following files:".to_owned();
        for (mark, paths) in [('A', &self.added), ('M', &self.modified), ('D', &self.deleted)] {
            for path in paths {
                text.push_str(&format!("\n{mark} {path}"));
            }
        }
        let Self { added, modified, deleted } = self;
        let summary = json!({"added": added, "modified": modified, "deleted": deleted});
        ToolOutput { details: Some(json!({"summary": summary})), ..ToolOutput::text(text) }
    }
}

fn list(paths: &mut Vec<String>, path: String) {
    if !paths.contains(&path) {
        paths.push(path);
    }
}

/// Applies the hunks in order, in memory.
pub(super) fn plan(
    hunks: Vec<Hunk<'_>>,
    resolver: &Resolver,
    is_stopped: impl Fn() -> bool,
) -> Result<PatchPlan, ToolError> {
    let mut planner =
        Planner { resolver, files: BTreeMap::new(), summary: PatchSummary::default(), bytes: 0 };
    for hunk in hunks {
        if is_stopped() {
            return Err(ToolError::Aborted);
        }
        planner.hunk(hunk)?;
    }
    Ok(PatchPlan { files: planner.files.into_values().collect(), summary: planner.summary })
}

struct Planner<'r> {
    resolver: &'r Resolver,
    /// Files by [`Resolver::identity`].
    files: BTreeMap<PathBuf, Planned>,
    summary: PatchSummary,
    bytes: usize,
}

impl Planner<'_> {
    fn hunk(&mut self, hunk: Hunk<'_>) -> Result<(), ToolError> {
        match hunk {
            Hunk::Add { path, content } => {
                self.write(path, content.into_bytes(), None)?;
                list(&mut self.summary.added, self.resolver.shown(path));
            }
            Hunk::Delete { path } => {
                self.delete(path)?;
                list(&mut self.summary.deleted, self.resolver.shown(path));
            }
            Hunk::Update { path, move_to, chunks } => {
                // A file that is moved onto itself stays.
                let target = move_to.filter(|to| self.resolver.identity(to) != self.resolver.identity(path));
                match target {
                    None => self.update(path, &chunks)?,
                    Some(target) => self.update_and_move(path, target, &chunks)?,
                }
                list(&mut self.summary.modified, self.resolver.shown(target.unwrap_or(path)));
            }
        }
        Ok(())
    }

    /// The key of a file that the next hunk may change like this.
    fn key(&self, path: &str, next: NextHunk) -> Result<PathBuf, ToolError> {
        let key = self.resolver.identity(path);
        let earlier = self.files.get(&key).map(|file| file.touched);
        match earlier.and_then(|touched| conflict(path, touched, next)) {
            Some(conflict) => Err(failed(conflict)),
            None if earlier.is_none() && self.files.len() >= MAX_FILES => {
                Err(failed(format!("The patch changes more than {MAX_FILES} files. Split it.")))
            }
            None => Ok(key),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), ToolError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= MAX_BYTES {
            return Ok(());
        }
        Err(failed("The files of the patch are larger than 128MB together. Split it."))
    }

    fn read(&mut self, place: Place, path: &str) -> Result<Existing, ToolError> {
        let existing = Existing::read(place, path)?;
        self.count(existing.bytes.len())?;
        Ok(existing)
    }

    fn write(
        &mut self,
        path: &str,
        after: Vec<u8>,
        permissions: Option<Permissions>,
    ) -> Result<(), ToolError> {
        let key = self.key(path, NextHunk::Write)?;
        let occupant = self.resolver.occupant(path).map_err(|error| refuse(path, &error))?;
        let existing = occupant.map(|place| self.read(place, path)).transpose()?;
        self.count(after.len())?;
        let change = FileChange::Write { existing, after, permissions };
        self.files.insert(key, Planned { path: path.to_owned(), change, touched: Touched::Written });
        Ok(())
    }

    fn delete(&mut self, path: &str) -> Result<(), ToolError> {
        let key = self.key(path, NextHunk::Delete)?;
        let (entry, touched) = self.entry(path)?;
        let change = FileChange::Remove { entry, moved: None };
        self.files.insert(key, Planned { path: path.to_owned(), change, touched });
        Ok(())
    }

    /// Returns the entry that is removed for `path`.
    fn entry(&self, path: &str) -> Result<(Place, Touched), ToolError> {
        let entry = self.resolver.existing_entry(path).map_err(|error| refuse(path, &error))?;
        match entry.kind().map_err(|error| refuse(path, &error))? {
            EntryKind::File => Ok((entry, Touched::Removed)),
            EntryKind::Link => Ok((entry, Touched::Unlinked)),
        }
    }

    fn update(&mut self, path: &str, chunks: &[PatchChunk<'_>]) -> Result<(), ToolError> {
        let key = self.key(path, NextHunk::Update)?;
        if let Some(Planned { change: FileChange::Write { after, .. }, .. }) = self.files.get_mut(&key) {
            let updated = update(after, chunks, path).map_err(failed)?;
            let more = updated.len().saturating_sub(after.len());
            *after = updated;
            return self.count(more);
        }
        let existing = self.existing(path)?;
        let after = update(&existing.bytes, chunks, path).map_err(failed)?;
        self.count(after.len())?;
        let change = FileChange::Write { existing: Some(existing), after, permissions: None };
        self.files.insert(key, Planned { path: path.to_owned(), change, touched: Touched::Updated });
        Ok(())
    }

    fn existing(&mut self, path: &str) -> Result<Existing, ToolError> {
        let place = self.resolver.existing(path, Purpose::Write).map_err(|error| refuse(path, &error))?;
        self.read(place, path)
    }

    fn update_and_move(
        &mut self,
        path: &str,
        target: &str,
        chunks: &[PatchChunk<'_>],
    ) -> Result<(), ToolError> {
        let key = self.key(path, NextHunk::Move)?;
        let (entry, touched) = self.entry(path)?;
        if touched == Touched::Unlinked {
            // Only the link goes: what an earlier hunk made of the file behind it would be lost.
            self.key(path, NextHunk::Delete)?;
        }
        let (existing, after) = match self.files.remove(&key).map(|file| file.change) {
            Some(FileChange::Write { existing: Some(existing), after, .. }) => {
                let after = update(&after, chunks, path).map_err(failed)?;
                (existing, after)
            }
            Some(_) | None => {
                let existing = self.existing(path)?;
                let after = update(&existing.bytes, chunks, path).map_err(failed)?;
                (existing, after)
            }
        };
        let permissions = Some(existing.permissions.clone());
        let change = FileChange::Remove { entry, moved: Some(existing) };
        self.files.insert(key, Planned { path: path.to_owned(), change, touched });
        self.write(target, after, permissions)
    }
}

fn refuse(path: &str, error: &PlaceError) -> ToolError {
    refused("apply_patch", path, error)
}
