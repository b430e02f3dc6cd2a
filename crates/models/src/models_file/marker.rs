//! Placeholders for keys in `models.json`: the name of a variable or a reference to the key's
//! place. Never a secret that is kept elsewhere.

use crate::catalog::BUILT_IN;

/// Begins every reference. OpenClaw 2026.2.9 takes the whole for a key, which it never gets to use: it looks at profiles,
/// variables and the configuration first, as we do.
const PREFIX: &str = "openclaw-ref:";
/// The key is in `models.providers.<id>.apiKey`.
pub(super) const CONFIG: &str = "openclaw-ref:config";
/// No key is needed, or none is known; the field may not be absent.
pub(super) const NONE: &str = "openclaw-ref:none";

/// Stands for the key of a profile.
pub(super) fn profile(id: &str) -> String {
    format!("{PREFIX}profile:{id}")
}

/// Returns true if a value is not a key but a placeholder: a reference, or what OpenClaw writes for
/// a provider's OAuth login.
pub(crate) fn is_marker(provider: &str, value: &str) -> bool {
    value.starts_with(PREFIX)
        || BUILT_IN.get(provider).is_some_and(|entry| entry.placeholder.as_deref() == Some(value))
}
