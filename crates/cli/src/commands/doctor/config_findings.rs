//! What is wrong with the config. It is reported, never written.

use openclaw_config::gateway_options::{GatewayFlags, gateway_options};
use openclaw_config::settings::GatewayMode;
use openclaw_sessions::checkup::{Finding, Severity};

use crate::client::{Target, TargetFlags};
use crate::context::Context;

/// What keeps a gateway from starting, if anything does.
pub(super) fn of(context: &Context) -> Option<Finding> {
    if let Some((id, message)) = unusable(context) {
        return Some(Finding { id, severity: Severity::Error, message, repairs: Vec::new() });
    }
    let (id, severity, message) = match unset_variables(context) {
        Some(message) => ("config.variables", Severity::Warning, message),
        None => match remote(context) {
            Some(message) => ("config.remote", Severity::Error, message),
            None => ("config.gateway", Severity::Error, refused(context)?),
        },
    };
    Some(Finding { id, severity, message, repairs: Vec::new() })
}

/// What in it can be used and does something else than it seems to.
pub(super) fn warnings(context: &Context) -> impl Iterator<Item = Finding> {
    let warnings = context.loaded.snapshot.warnings.iter();
    warnings.map(|warning| Finding {
        id: "config.warning",
        severity: Severity::Warning,
        message: warning.line(),
        repairs: Vec::new(),
    })
}

/// Variables that the config names and that are not set here. The service may have them.
fn unset_variables(context: &Context) -> Option<String> {
    let error = context.loaded.config().err()?;
    let list: Vec<&str> = error.issues.iter().map(|issue| issue.message.as_str()).collect();
    Some(format!("{}. A gateway that is started from here does not start without them.", list.join("; ")))
}

/// There is none, or it has mistakes.
fn unusable(context: &Context) -> Option<(&'static str, String)> {
    let snapshot = &context.loaded.snapshot;
    let path = snapshot.path.display();
    if !snapshot.exists {
        let setup = context.hint_command("openclaw setup");
        return Some(("config.missing", format!("Missing config: run {setup} first. It makes {path}.")));
    }
    if context.loaded.config_for_reading().is_ok() {
        return None;
    }
    let issues: Vec<String> = snapshot.issues.iter().map(openclaw_config::Issue::line).collect();
    let id = if snapshot.is_parsable() { "config.invalid" } else { "config.unreadable" };
    let message = format!(
        "The config {path} cannot be used and is left as it is: {}. Fix it by hand; until then stores and transcripts are \
         not looked at, because it says where they are.",
        issues.join("; "),
    );
    Some((id, message))
}

/// Why no command reaches the gateway of another machine.
fn remote(context: &Context) -> Option<String> {
    let target = Target::of(&context.config_or_default(), context.env(), &TargetFlags::default()).ok()?;
    let note = target.note.as_ref()?;
    let fix = target.misconfigured(context).and_then(|failure| failure.hint).unwrap_or_default();
    Some(format!("No command reaches a gateway: {note}. {fix}"))
}

/// Settings with which a gateway of this host does not start.
fn refused(context: &Context) -> Option<String> {
    let config = context.config_or_default();
    if config.gateway.mode == Some(GatewayMode::Remote) {
        return None;
    }
    let refusal = gateway_options(&config, context.env(), &GatewayFlags::default()).err()?;
    Some(refusal.to_string().replace('\n', " "))
}
