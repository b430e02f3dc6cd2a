//! Newtypes for the identifiers that cross crate boundaries.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps an identifier that is already in its canonical form.
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Arc::from(text.as_ref()))
            }

            /// The canonical text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// Run of an agent. For `agent` and `chat.send` it equals the client's idempotency key.
    RunId
}
text_id! {
    /// Id of a transcript: a UUID, minted on session creation and on every reset.
    SessionId
}

/// An agent's id in canonical form: `[a-z0-9_-]{1,64}` (spec `sessions.md` §1.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// The agent that exists without configuration.
    pub const MAIN: &'static str = "main";

    /// Normalises any text to an agent id; blank or unusable text becomes `main`.
    pub fn normalize(text: &str) -> Self {
        const MAX: usize = 64;
        let lower = text.trim().to_lowercase();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let starts_well = lower.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        if starts_well && lower.len() <= MAX && lower.chars().all(plain) {
            return Self(Arc::from(lower));
        }
        let mut slug = String::with_capacity(lower.len());
        for c in lower.chars() {
            if plain(c) {
                slug.push(c);
            } else if !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let cut: String = slug.trim_matches('-').chars().take(MAX).collect();
        Self(Arc::from(if cut.is_empty() { Self::MAIN } else { cut.as_str() }))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for AgentId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Default for AgentId {
    fn default() -> Self {
        Self(Arc::from(Self::MAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `sessions.md` §1.2.
    #[test]
    fn agent_ids_are_normalised_as_the_reference_does() {
        let long = "a".repeat(70);
        let cut = "a".repeat(64);
        let rows = [
            ("", "main"),
            ("Main", "main"),
            ("my agent!", "my-agent"),
            ("--x--", "x"),
            ("@@@", "main"),
            (long.as_str(), cut.as_str()),
            ("Ünï", "n"),
            ("_x", "_x"),
            ("9a", "9a"),
        ];
        for (input, expect) in rows {
            assert_eq!(AgentId::normalize(input).as_str(), expect, "{input:?}");
        }
    }
}
