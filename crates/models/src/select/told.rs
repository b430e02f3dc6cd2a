//! Warnings that are given once in the life of a process, not with every run.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Candidate;
use crate::context_window::{ContextWindow, WARN_BELOW};

/// Warnings that are kept in mind; they can name what comes from requests.
const MAX_TOLD: usize = 1000;

/// The warnings that were told. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct ToldWarnings {
    warnings: Arc<Mutex<HashSet<String>>>,
}

impl ToldWarnings {
    /// Returns the warnings that were not given before.
    pub(super) fn news(&self, mut warnings: Vec<String>) -> Vec<String> {
        let mut told = self.warnings.lock();
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        warnings.retain(|warning| told.insert(warning.clone()));
        warnings
    }
}

/// A warning for each model whose window is small (spec `models.md` §2.5).
pub(super) fn small_windows(candidates: &[Candidate]) -> impl Iterator<Item = String> {
    let tight = candidates.iter().filter(|candidate| candidate.window.is_tight());
    tight.map(|candidate| {
        let ContextWindow { tokens, source } = candidate.window;
        format!(
            "the context window of {} is small: {tokens} tokens ({}), {WARN_BELOW} or more are recommended",
            candidate.reference,
            source.as_str()
        )
    })
}
