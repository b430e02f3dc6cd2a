//! `openclaw doctor --remove-unknown`: removes keys from the config file that it may not have.

use openclaw_config::write::{self, Actor};
use openclaw_config::{unknown_keys, value_path};

use crate::commands::config::write_failure;
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Removes the keys and returns sentences that name them. A backup of the file is kept beside it.
///
/// # Errors
/// When the config can't be parsed or written.
pub(super) fn remove(context: &CliContext) -> Result<Vec<String>, CommandFailure> {
    let snapshot = &context.loaded.snapshot;
    if !snapshot.is_parsable() || !context.is_config_readable() {
        return Err(context.invalid_config());
    }
    let keys = unknown_keys(&snapshot.parsed);
    if keys.is_empty() {
        return Ok(vec!["The config has no unknown keys.".to_owned()]);
    }
    let mut next = snapshot.parsed.clone();
    for key in &keys {
        value_path::unset(&mut next, key);
    }
    write::write(&context.loaded, &next, Actor::Cli).map_err(write_failure)?;
    let told = |key: &Vec<String>| format!("Removed from the config: {}", value_path::path_text(key));
    let backup = format!("The file as it was: {}", context.short(&snapshot.path.with_added_extension("bak")));
    Ok(keys.iter().map(told).chain([backup]).collect())
}

/// Sentence about the unknown keys, with the command that takes them out; `None` where there are
/// none.
pub(super) fn told(context: &CliContext) -> Option<String> {
    let keys = unknown_keys(&context.loaded.snapshot.parsed);
    let names: Vec<String> = keys.iter().map(|key| value_path::path_text(key)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Unknown keys are kept: {}. To take them out: {}.",
            names.join(", "),
            context.hint_command("openclaw doctor --remove-unknown")
        )
    })
}
