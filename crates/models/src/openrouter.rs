//! OpenRouter: headers that it expects on each request (spec `models.md` §3).

use crate::model_spec::ModelSpec;
use crate::net::{Headers, NetError};

/// Headers that name this program in OpenRouter's statistics.
const HEADERS: &[(&str, &str)] = &[("HTTP-Referer", "https://openclaw.ai"), ("X-Title", "OpenClaw")];

/// Returns true if a model is called through OpenRouter, under whatever provider name.
pub(crate) fn serves(spec: &ModelSpec) -> bool {
    spec.provider() == "openrouter" || spec.base_url.contains("openrouter.ai")
}

/// Adds its headers to a request; does nothing for others. Headers of the owner come after and win.
pub(crate) fn add_headers(headers: &mut Headers, spec: &ModelSpec) -> Result<(), NetError> {
    if !serves(spec) {
        return Ok(());
    }
    HEADERS.iter().try_for_each(|(name, value)| headers.set(name, value))
}
