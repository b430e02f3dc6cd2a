//! `openclaw doctor --generate-gateway-token`.

use openclaw_config::value_path;
use openclaw_config::write::{self, Actor};
use openclaw_gateway::running_gateway;

use crate::commands::config::write_failure;
use crate::commands::setup::{generated_token, has_auth};
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::service::{self, process};

/// Writes a token into the config unless there is a secret already. Says what was done, never the token.
///
/// # Errors
/// When the config can't be parsed or written.
pub(super) fn generate(context: &CliContext) -> Result<String, CommandFailure> {
    let snapshot = &context.loaded.snapshot;
    let path = context.short(&snapshot.path);
    if !snapshot.is_parsable() || (snapshot.exists && context.config().is_err()) {
        return Err(context.invalid_config());
    }
    if has_auth(&snapshot.config, "token") || has_auth(&snapshot.config, "password") {
        return Ok(format!("{path} has a gateway secret already; it stays."));
    }
    let mut next = snapshot.parsed.clone();
    for (key, value) in generated_token() {
        value_path::set(&mut next, &key.split('.').map(str::to_owned).collect::<Vec<_>>(), value);
    }
    write::write(&context.loaded, &next, Actor::Cli).map_err(write_failure)?;
    let made = format!("Generated a gateway token and wrote it to {path} (gateway.auth.token).");
    Ok(match running_gateway(&context.loaded) {
        None => made,
        Some(running) => format!(
            "{made} The running gateway{} takes it with a restart: {}.",
            process(running),
            service::restart_advice(context, running)
        ),
    })
}
