//! A file that is no JSON, such as one that was cut short: it is kept beside its place, and made
//! anew.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::FILE;
use super::read::text;

/// Moves the file of an agent's directory aside if it is no JSON; the next run makes it anew.
/// Returns where it is kept; `None` if there is nothing to do. Blocks.
///
/// # Errors
/// When the file system refuses.
pub fn set_models_file_aside(agent_dir: &Path) -> io::Result<Option<PathBuf>> {
    let path = agent_dir.join(FILE);
    let is_damaged = match text(&path) {
        Ok(Some(text)) => serde_json::from_str::<IgnoredAny>(&text).is_err(),
        Ok(None) => false,
        // The bytes are no text.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => true,
        Err(error) => return Err(error),
    };
    if !is_damaged {
        return Ok(None);
    }
    let name = format!("{FILE}.damaged-{}", jiff::Timestamp::now().as_millisecond());
    let kept = agent_dir.join(name);
    std::fs::rename(&path, &kept)?;
    Ok(Some(kept))
}
