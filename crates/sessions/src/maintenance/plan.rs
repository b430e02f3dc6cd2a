//! Maintenance planning: values in, values out.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{FileKind, Inventory, Policy, SessionRow, StateFile};
use crate::key::SessionKey;

/// A transcript without a row that changed this recently is left alone, in milliseconds: its row may be on its way.
const FRESH_MS: i64 = 60 * 60 * 1000;

/// Steps for one sessions directory, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaintenancePlan {
    /// Rows to remove, oldest first.
    pub remove: Vec<RowRemoval>,
    /// Files to delete for good, those that go first at the front.
    pub delete: Vec<Deletion>,
    /// True if the directory is too big even after all steps.
    pub still_too_big: bool,
}

/// A row that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRemoval {
    /// Session key.
    pub key: SessionKey,
    /// Last activity when this was decided; a row that was used since then stays.
    pub updated_at: i64,
    /// Reason for the removal.
    pub reason: RemovalReason,
    /// Transcripts to archive: those no other row uses.
    pub archive: Vec<PathBuf>,
}

/// A file that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The file. A transcript that this plan archives is named as it is now.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Reason for the deletion.
    pub reason: RemovalReason,
}

/// Reason for a removal or deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// Older than allowed.
    TooOld,
    /// There are too many rows.
    TooMany,
    /// The directory holds too much.
    TooBig,
}

impl RemovalReason {
    /// Reason in words, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooOld => "too old",
            Self::TooMany => "more than maxEntries",
            Self::TooBig => "over maxDiskBytes",
        }
    }
}

/// Decides. `now` in Unix milliseconds.
pub fn plan(found: &Inventory, policy: &Policy, now: i64) -> MaintenancePlan {
    let mut draft = Draft::new(found);
    draft.prune_old(policy, now);
    draft.cap(policy.max_entries);
    draft.expire_archives(policy, now);
    if let Some(disk) = policy.disk {
        draft.fit(disk.most, disk.target, now);
    }
    draft.plan
}

struct Draft<'a> {
    found: &'a Inventory,
    plan: MaintenancePlan,
    /// Rows that may go, oldest last.
    candidates: Vec<&'a SessionRow>,
    /// Number of rows that use each transcript.
    users: HashMap<&'a Path, usize>,
    sizes: HashMap<&'a Path, &'a StateFile>,
    rows_left: usize,
    gone: HashSet<&'a Path>,
}

fn is_older(since: i64, limit_ms: u64, now: i64) -> bool {
    u64::try_from(now.saturating_sub(since)).is_ok_and(|age| age > limit_ms)
}

impl<'a> Draft<'a> {
    fn new(found: &'a Inventory) -> Self {
        let mut candidates: Vec<&SessionRow> = found.rows.iter().filter(|row| !row.stays).collect();
        candidates.sort_by_key(|row| Reverse((row.updated_at, row.key.as_str())));
        let mut users: HashMap<&Path, usize> = HashMap::new();
        for path in found.rows.iter().flat_map(|row| &row.transcripts) {
            *users.entry(&**path).or_default() += 1;
        }
        let sizes = found.files.iter().map(|file| (&*file.path, file)).collect();
        let plan = MaintenancePlan::default();
        Self { found, plan, candidates, users, sizes, rows_left: found.rows.len(), gone: HashSet::new() }
    }

    fn prune_old(&mut self, policy: &Policy, now: i64) {
        let Some(limit) = policy.prune_after_ms else { return };
        while self.candidates.last().is_some_and(|row| is_older(row.updated_at, limit, now)) {
            self.remove_oldest(RemovalReason::TooOld);
        }
    }

    fn cap(&mut self, most: usize) {
        while self.rows_left > most && self.remove_oldest(RemovalReason::TooMany).is_some() {}
    }

    /// Removes the row that was used longest ago. Returns the transcripts that nobody uses then.
    fn remove_oldest(&mut self, reason: RemovalReason) -> Option<Vec<&'a Path>> {
        let row = self.candidates.pop()?;
        self.rows_left -= 1;
        let mut free = Vec::new();
        for path in &row.transcripts {
            if let Some(users) = self.users.get_mut(&**path) {
                *users -= 1;
                if *users == 0 {
                    free.push(&**path);
                }
            }
        }
        self.plan.remove.push(RowRemoval {
            key: row.key.clone(),
            updated_at: row.updated_at,
            reason,
            archive: free.iter().map(|path| path.to_path_buf()).collect(),
        });
        Some(free)
    }

    fn expire_archives(&mut self, policy: &Policy, now: i64) {
        let Some(limit) = policy.archive_retention_ms else { return };
        let old = |file: &&StateFile| file.kind == FileKind::Archive && is_older(file.since, limit, now);
        for file in self.found.files.iter().filter(old) {
            self.delete(file, RemovalReason::TooOld);
        }
    }

    fn delete(&mut self, file: &'a StateFile, reason: RemovalReason) -> u64 {
        if !self.gone.insert(&file.path) {
            return 0;
        }
        self.plan.delete.push(Deletion { path: file.path.clone(), bytes: file.bytes, reason });
        file.bytes
    }

    /// Oldest archives first, then the oldest transcripts that no row uses, then rows with their transcripts.
    fn fit(&mut self, most: u64, target: u64, now: i64) {
        let kept = self.found.files.iter().filter(|file| !self.gone.contains(&*file.path));
        let mut total: u64 = kept.map(|file| file.bytes).sum();
        if total <= most {
            return;
        }
        let mut spare: Vec<&StateFile> =
            self.found.files.iter().filter(|file| self.is_spare(file, now)).collect();
        spare.sort_by_key(|file| (file.kind == FileKind::Transcript, file.since));
        for file in spare {
            if total <= target {
                return;
            }
            total -= self.delete(file, RemovalReason::TooBig);
        }
        while total > target {
            let Some(free) = self.remove_oldest(RemovalReason::TooBig) else { break };
            for path in free {
                if let Some(file) = self.sizes.get(path).copied() {
                    total -= self.delete(file, RemovalReason::TooBig);
                }
            }
        }
        self.plan.still_too_big = total > most;
    }

    /// True if a file may be deleted for its size before any further row goes.
    fn is_spare(&self, file: &StateFile, now: i64) -> bool {
        match file.kind {
            FileKind::Archive | FileKind::Backup => true,
            FileKind::Transcript => match self.users.get(&*file.path) {
                // The last row that uses it goes with this very plan.
                Some(users) => *users == 0,
                None => now.saturating_sub(file.since) > FRESH_MS,
            },
            FileKind::Other => false,
        }
    }
}
