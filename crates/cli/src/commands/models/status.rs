//! `openclaw models status`.

mod document;
mod health;
mod probes;
mod text;

use super::form::Form;
use super::view::ModelView;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR, USAGE};
use crate::output;
use document::ModelsStatus;
use health::Health;
pub(super) use probes::ProbeSettings;

/// Flags of the request.
pub(super) struct StatusFlags {
    pub(super) form: Form,
    /// The exit code says how the credentials are.
    pub(super) check: bool,
    /// Settings of probes; if set, every credential is tried.
    pub(super) probe: Option<ProbeSettings>,
}

pub(super) fn run(view: &ModelView, context: &CliContext, ask: &StatusFlags) -> CommandResult {
    let mut status = ModelsStatus::of(view, context);
    if let Some(pace) = &ask.probe {
        if ask.form == Form::Plain {
            return Err(CommandFailure::usage("--probe cannot be used with --plain output."));
        }
        status.auth.probes = Some(probes::run(view, pace)?);
    }
    match ask.form {
        Form::Json => output::json(&status),
        Form::Plain => output::line(&view.primary.to_string()),
        Form::Text => text::lines(&status, context).iter().for_each(|line| output::line(line)),
    }
    Ok(if ask.check { check_code(&status) } else { 0 })
}

/// 1 when a credential is missing or expired, 2 when one expires soon (spec `cli.md` §1.1).
fn check_code(status: &ModelsStatus) -> u8 {
    let has = |wanted: Health| status.auth.oauth.profiles.iter().any(|profile| profile.status == wanted);
    match () {
        () if !status.auth.missing_providers_in_use.is_empty() => ERROR,
        () if has(Health::Expired) || has(Health::Missing) => ERROR,
        () if has(Health::Expiring) => USAGE,
        () => 0,
    }
}

#[cfg(test)]
mod tests;
