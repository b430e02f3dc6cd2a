//! Numbers that the environment sets.

use anyhow::{Context, Result};

/// A number from the environment.
pub(crate) fn set<T: std::str::FromStr>(name: &str, default: T) -> Result<T> {
    match std::env::var(name) {
        Ok(text) => text.trim().parse().ok().with_context(|| format!("{name} is no number: {text:?}")),
        Err(_) => Ok(default),
    }
}
