//! What is told once in the life of a process, not with every run.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Candidate;
use crate::context_window::{ContextWindow, WARN_BELOW};
use crate::reference::ModelRef;

/// Models that are kept in mind; references can come from requests.
const MAX_TOLD: usize = 1000;

/// The models whose small windows were told. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    small: Arc<Mutex<HashSet<(ModelRef, u64)>>>,
}

impl Told {
    /// A warning for each model whose window is small, the first time (spec `models.md` §2.5).
    pub(super) fn small_windows(&self, candidates: &[Candidate]) -> Vec<String> {
        let tight = candidates.iter().filter(|candidate| candidate.window.is_tight());
        let news = tight.filter(|candidate| self.is_news(&candidate.reference, candidate.window));
        news.map(|candidate| {
            let ContextWindow { tokens, source } = candidate.window;
            format!(
                "the context window of {} is small: {tokens} tokens ({}), {WARN_BELOW} or more are recommended",
                candidate.reference,
                source.as_str()
            )
        })
        .collect()
    }

    fn is_news(&self, model: &ModelRef, window: ContextWindow) -> bool {
        let mut small = self.small.lock();
        if small.len() >= MAX_TOLD {
            small.clear();
        }
        small.insert((model.clone(), window.tokens))
    }
}
