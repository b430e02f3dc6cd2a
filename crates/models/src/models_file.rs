//! `models.json` of an agent's directory (spec `models.md` §2.1): models that other programs and older versions know of.
//!
//! The file is read again when it has changed, and written when a run needs models that it lacks.
//! OpenClaw 2026.2.9 and this program read each other's files: [`check`] holds its rules,
//! [`marker`] the placeholders for secrets.

mod check;
mod damaged;
mod keeper;
mod marker;
mod read;
mod write;

use std::path::Path;

pub use damaged::set_models_file_aside;
pub(crate) use keeper::{FileKeeper, FileView};
pub(crate) use write::Writing;

/// Returns the reason why the file of an agent's directory is ignored. Blocks.
pub fn models_file_problem(agent_dir: &Path) -> Option<String> {
    FileKeeper::default().view(agent_dir).warning
}

/// Name of the file in an agent's directory.
pub(crate) const FILE: &str = "models.json";

#[cfg(test)]
mod tests;
