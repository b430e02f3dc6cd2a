//! `models.json` of an agent's directory (spec `models.md` §2.1): models that other programs and older versions know of.
//!
//! It is read when it changed, and written when a run needs models that are not in it yet. OpenClaw 2026.2.9 and we read
//! each other's: [`check`] holds its rules, [`marker`] what stands for a secret in it.

mod check;
mod keeper;
mod marker;
mod read;
mod write;

use std::path::Path;

pub(crate) use keeper::{FileKeeper, FileView};
pub(crate) use write::Writing;

/// Why the file of an agent's directory is ignored. Blocks.
pub fn models_file_problem(agent_dir: &Path) -> Option<String> {
    FileKeeper::default().view(agent_dir).warning
}

/// Name of the file in an agent's directory.
pub(crate) const FILE: &str = "models.json";

#[cfg(test)]
mod tests;
