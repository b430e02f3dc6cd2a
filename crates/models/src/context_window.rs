//! Number of tokens that a run may use (spec `models.md` §2.5).

/// The window of a model about which nothing is known.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;
/// Below this a run is refused.
pub const MINIMUM: u64 = 16_000;
/// Below this the owner is warned.
pub const WARN_BELOW: u64 = 32_000;

/// A resolved context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    /// Size in tokens.
    pub tokens: u64,
    /// Origin of the size.
    pub source: WindowSource,
}

/// Origin of a [`ContextWindow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// `models.providers.<p>.models[].contextWindow`
    Config,
    /// The catalog.
    Catalog,
    /// Default size, because no source names one.
    Default,
    /// `agents.defaults.contextTokens`
    AgentCap,
}

impl WindowSource {
    /// The label clients know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "modelsConfig",
            Self::Catalog => "model",
            Self::Default => "default",
            Self::AgentCap => "agentContextTokens",
        }
    }
}

/// A window too small to work in; the run is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Model context window too small ({0} tokens). Minimum is {MINIMUM}.")]
pub struct WindowTooSmall(pub u64);

impl ContextWindow {
    /// `min(base, cap)` where base is the configured size, else the catalog's, else the default.
    pub fn resolve(configured: Option<u64>, catalog: Option<u64>, cap: Option<u64>) -> Self {
        let base = match (configured, catalog) {
            (Some(tokens), _) => Self { tokens, source: WindowSource::Config },
            (None, Some(tokens)) => Self { tokens, source: WindowSource::Catalog },
            (None, None) => Self { tokens: DEFAULT_CONTEXT_WINDOW, source: WindowSource::Default },
        };
        match cap {
            Some(cap) if cap < base.tokens => Self { tokens: cap, source: WindowSource::AgentCap },
            Some(_) | None => base,
        }
    }

    /// Refuses a window below [`MINIMUM`].
    ///
    /// # Errors
    /// [`WindowTooSmall`], whose text is for people.
    pub fn check(self) -> Result<Self, WindowTooSmall> {
        if self.tokens < MINIMUM { Err(WindowTooSmall(self.tokens)) } else { Ok(self) }
    }

    /// Returns true if the owner should be warned that the window is small.
    pub fn is_tight(self) -> bool {
        self.tokens < WARN_BELOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `models.md` §2.5.
    #[test]
    fn windows_resolve_as_the_spec_lists() {
        let rows = [
            (None, Some(200_000), None, Ok((200_000, "model"))),
            (Some(64_000), Some(200_000), None, Ok((64_000, "modelsConfig"))),
            (None, Some(200_000), Some(50_000), Ok((50_000, "agentContextTokens"))),
            (None, None, Some(300_000), Ok((200_000, "default"))),
            (Some(8_000), None, None, Err(WindowTooSmall(8_000))),
        ];
        for (config, catalog, cap, expect) in rows {
            let window = ContextWindow::resolve(config, catalog, cap);
            let found = window.check().map(|w| (w.tokens, w.source.as_str()));
            assert_eq!(found, expect, "{config:?} {catalog:?} {cap:?}");
        }
    }

    #[test]
    fn the_refusal_says_both_sizes() {
        let text = WindowTooSmall(8_000).to_string();
        assert_eq!(text, "Model context window too small (8000 tokens). Minimum is 16000.");
    }
}
