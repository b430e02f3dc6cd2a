//! `openclaw doctor --generate-gateway-token`.

use openclaw_config::value_path;
use openclaw_config::write::{self, Actor};
use serde_json::{Value, json};

use crate::commands::config::write_failure;
use crate::commands::setup::new_token;
use crate::context::Context;
use crate::failure::Failure;

/// Writes a token into the config unless there is a secret already. Says what was done, never the token.
///
/// # Errors
/// When the config can't be parsed or written.
pub(super) fn generate(context: &Context) -> Result<String, Failure> {
    let snapshot = &context.loaded.snapshot;
    let path = context.short(&snapshot.path);
    if !snapshot.is_parsable() || (snapshot.exists && context.config().is_err()) {
        return Err(context.invalid_config());
    }
    let auth = snapshot.config.pointer("/gateway/auth");
    let has = |key: &str| auth.and_then(|auth| auth.get(key)).is_some_and(|value| !value.is_null());
    if has("token") || has("password") {
        return Ok(format!("{path} has a gateway secret already; it stays."));
    }
    let mut next = snapshot.parsed.clone();
    let mut put = |key: &str, value: Value| {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        value_path::set(&mut next, &path, value);
    };
    put("gateway.auth.mode", json!("token"));
    put("gateway.auth.token", json!(new_token()));
    write::write(&context.loaded, &next, Actor::Cli).map_err(write_failure)?;
    Ok(format!("Generated a gateway token and wrote it to {path} (gateway.auth.token)."))
}
