//! `session.maintenance`: unused rows are removed, their transcripts are archived, archives are
//! deleted when they are old, and a sessions directory stays below its size (spec `sessions.md`
//! §3.5). Nothing happens unless it is configured.
//!
//! [`Inventory`] says what there is, [`plan()`] decides, [`run`] does it or says what it would do.

mod files;
mod plan;
mod work;

pub use files::{FileKind, Inventory, SessionRow, StateFile};
pub(crate) use files::{Transcripts, list as list_files, session_of};
pub use plan::{Deletion, MaintenancePlan, RemovalReason, RowRemoval, plan};
pub use work::{Maintenance, MaintenanceError, MaintenanceJob, MaintenanceReport, run};

/// Effect of a maintenance plan: only reported, or carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The log says what would be done.
    Warn,
    /// The plan is carried out.
    Enforce,
}

/// `session.maintenance`, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Effect: report only, or carry out.
    pub mode: Mode,
    /// Rows without activity for this many milliseconds are removed.
    pub prune_after_ms: Option<u64>,
    /// Maximum number of rows of a store.
    pub max_entries: usize,
    /// Size in bytes of a store file of which a copy is kept before rows are removed.
    pub rotate_bytes: Option<u64>,
    /// Age in milliseconds at which archived transcripts are deleted.
    pub archive_retention_ms: Option<u64>,
    /// Size limits of a sessions directory.
    pub disk: Option<DiskBudget>,
}

/// Size limits of a sessions directory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskBudget {
    /// Beyond this it is cleaned,
    pub most: u64,
    /// down to this.
    pub target: u64,
}

#[cfg(test)]
mod tests;
