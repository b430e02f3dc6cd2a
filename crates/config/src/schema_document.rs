//! The answer to `config.schema` (spec `config.md` §10): the schema from which the web UI builds its forms, and hints.

use openclaw_protocol::params::config::ConfigSchemaResult;
use serde_json::Value;

use crate::check::schema;

/// Labels, groups, order, and which fields are secret or advanced.
const HINTS: &str = include_str!("../data/hints.json");

/// Keys that are accepted and not in the schema of [`config_schema`], by path with `*` for any name or entry: ours, and
/// those of newer versions.
pub fn unlisted_keys() -> Vec<(String, Value)> {
    schema::unlisted()
}

/// The schema, the hints and when they were made.
pub fn config_schema() -> ConfigSchemaResult {
    ConfigSchemaResult {
        schema: schema::served(),
        ui_hints: serde_json::from_str(HINTS).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        generated_at: format!("{:.3}", jiff::Timestamp::now()),
    }
}
