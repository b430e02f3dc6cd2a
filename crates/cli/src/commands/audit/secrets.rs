//! Secrets in the configuration, and in what tools print.

use openclaw_config::Config;
use openclaw_config::settings::RedactSensitive;
use serde_json::Value;

use super::{AuditFinding, Severity};
use crate::context::CliContext;

pub(super) fn findings(context: &CliContext, config: &Config) -> Vec<AuditFinding> {
    let password = context.loaded.snapshot.parsed.pointer("/gateway/auth/password").and_then(Value::as_str);
    let is_written = password.map(str::trim).is_some_and(|text| !text.is_empty() && !text.starts_with("${"));
    let in_config = is_written.then(|| {
        AuditFinding::new(
            "config.secrets.gateway_password_in_config",
            Severity::Warn,
            "Gateway password is stored in config",
            "gateway.auth.password stands in the config file: whoever reads the file or a copy of it has the password.",
        )
        .remedy("Put it into OPENCLAW_GATEWAY_PASSWORD and remove gateway.auth.password.")
    });
    let unmasked = (config.logging.redact_sensitive == RedactSensitive::Off).then(|| {
        AuditFinding::new(
            "logging.redact_off",
            Severity::Warn,
            "Tool output is not redacted",
            "logging.redactSensitive=\"off\": secrets that tools print are stored, shown and sent as they are.",
        )
        .remedy("Set logging.redactSensitive to \"tools\".")
    });
    in_config.into_iter().chain(unmasked).collect()
}
