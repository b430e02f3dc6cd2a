//! `openclaw models set|set-image|aliases|fallbacks|image-fallbacks`: the choice of models in `agents.defaults` is changed.

mod aliases;
mod defaults;
mod fallbacks;

pub(super) use aliases::run as aliases;
pub(super) use defaults::{Choice, Defaults};
pub(super) use fallbacks::run as fallbacks;

use crate::context::CliContext;
use crate::failure::CommandResult;
use crate::output;

/// `models set` and `models set-image`.
pub(super) fn set(choice: Choice, model: &str, context: &CliContext) -> CommandResult {
    let mut defaults = Defaults::open(context)?;
    let target = defaults.target(model)?;
    defaults.allow(&target);
    defaults.put_primary(choice, &target.to_string());
    defaults.remark(choice, &target);
    defaults.save()?;
    output::line(&format!("{}: {target}", choice.primary_label()));
    Ok(0)
}
