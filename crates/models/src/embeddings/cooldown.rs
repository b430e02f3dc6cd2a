//! The time before which nobody asks an endpoint with a key again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openclaw_embedding::EmbedError;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// Time for which a refused credential is not tried again: a person must act.
const REFUSED: Duration = Duration::from_secs(60);
/// Longest cooldown that a server can ask for.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// Cooldowns that are kept although nobody uses them.
const KEPT: usize = 64;

/// The cooldowns of all endpoints of a process. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(super) struct EmbeddingCooldowns(Arc<Mutex<HashMap<[u8; 32], Arc<EmbeddingCooldown>>>>);

/// The cooldown of one endpoint with one key.
#[derive(Debug, Default)]
pub(super) struct EmbeddingCooldown(Mutex<CooldownState>);

#[derive(Debug, Default)]
struct CooldownState {
    until: Option<Instant>,
    /// The refusal that began it, if it was one.
    refusal: Option<EmbedError>,
}

/// Reason why an endpoint can't be asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Closed {
    /// The endpoint may be asked after this time.
    For(Duration),
    /// The credential was refused a moment ago.
    Refused(EmbedError),
}

impl EmbeddingCooldowns {
    /// The cooldown that all who use this key at this address share.
    pub(super) fn of(&self, address: &str, key: Option<&str>) -> Arc<EmbeddingCooldown> {
        let mut hash = Sha256::new();
        hash.update(address);
        hash.update([0]);
        hash.update(key.unwrap_or_default());
        let mut all = self.0.lock();
        if all.len() >= KEPT {
            all.retain(|_, cooldown| Arc::strong_count(cooldown) > 1 || cooldown.closed().is_some());
        }
        Arc::clone(all.entry(hash.finalize().into()).or_default())
    }
}

impl EmbeddingCooldown {
    /// Tells why nobody may ask now; `None` if the endpoint may be asked.
    pub(super) fn closed(&self) -> Option<Closed> {
        let state = self.0.lock();
        let left = state.until?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        Some(state.refusal.clone().map_or(Closed::For(left), Closed::Refused))
    }

    /// Closes the credential for this time, or longer if that was said before.
    pub(super) fn close_for(&self, time: Duration) {
        let until = Instant::now() + time.min(LONGEST);
        let mut state = self.0.lock();
        state.until = Some(state.until.map_or(until, |known| known.max(until)));
    }

    /// Closes the credential for a while after a refusal, which later callers are told again.
    pub(super) fn refuse(&self, error: EmbedError) {
        let mut state = self.0.lock();
        *state = CooldownState { until: Some(Instant::now() + REFUSED), refusal: Some(error) };
    }

    /// The endpoint answered.
    pub(super) fn open(&self) {
        *self.0.lock() = CooldownState::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn users_of_a_key_share_its_cooldown() {
        let all = EmbeddingCooldowns::default();
        let (one, same) = (all.of("a", Some("k")), all.clone().of("a", Some("k")));
        let others = [all.of("a", Some("l")), all.of("b", Some("k")), all.of("a", None)];
        one.close_for(Duration::from_secs(5));
        one.close_for(Duration::from_secs(2));
        assert_eq!(same.closed(), Some(Closed::For(Duration::from_secs(5))), "the longer one counts");
        assert!(others.iter().all(|other| other.closed().is_none()));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(same.closed(), None);
        let refusal = EmbedError::Unauthorized { message: "401".to_owned() };
        same.refuse(refusal.clone());
        assert_eq!(one.closed(), Some(Closed::Refused(refusal)));
        one.open();
        assert_eq!(same.closed(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn cooldowns_that_have_ended_are_forgotten() {
        let all = EmbeddingCooldowns::default();
        let kept = all.of("0", None);
        all.of("1", None).close_for(Duration::from_secs(60));
        for n in 2..200 {
            all.of(&n.to_string(), None);
        }
        assert!(all.0.lock().len() <= KEPT + 2, "{}", all.0.lock().len());
        assert!(all.of("1", None).closed().is_some());
        assert!(Arc::ptr_eq(&kept, &all.of("0", None)));
    }
}
