//! Keys of older versions in the config. A gateway reads them as the keys that replaced them, and says so at every start until they are
//! moved.

use openclaw_config::write::{self, Actor};
use openclaw_sessions::checkup::{Finding, Repair, Severity};

use crate::context::CliContext;

/// Reports keys that stand at their old place; `None` if there are none.
pub(super) fn finding(context: &CliContext) -> Option<Finding> {
    let snapshot = &context.loaded.snapshot;
    let path = context.short(&snapshot.path);
    (!snapshot.migrated.is_empty()).then(|| Finding {
        id: "config.moved",
        severity: Severity::Warning,
        message: format!(
            "{path} has keys of older versions, which are read so: {}",
            snapshot.migrated.join(" ")
        ),
        // Those of included files stay.
        repairs: write::has_old_keys(&context.loaded).then_some(Repair::MoveOldKeys).into_iter().collect(),
    })
}

/// Moves the keys in the file and keeps a backup. Returns a sentence that says what was done; `None` if there was nothing to do.
///
/// # Errors
/// Returns why the config can't be written.
pub(super) fn rewrite(context: &CliContext) -> Result<Option<String>, String> {
    let written = write::move_old_keys(&context.loaded, Actor::Cli).map_err(|error| error.to_string())?;
    let path = context.short(&context.loaded.snapshot.path);
    let changes = context.loaded.snapshot.migrated.join(" ");
    Ok(written.map(|_| format!("Rewrote {path}, and kept the former one as {path}.bak: {changes}")))
}
