//! Errors that chats were told of lately, so that each is told once.

use std::collections::HashMap;
use std::time::Duration;

use openclaw_channels::Address;
use openclaw_protocol::RunId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Cooldown of an error in a conversation whose policy is `once`: the same error is not told again
/// within it, as in later versions of OpenClaw.
const COOLDOWN: Duration = Duration::from_secs(4 * 60 * 60);
/// Number of errors that are remembered; of more, those that were told last.
const MAX_TOLD: usize = 1_000;

/// The errors that were told. A start forgets them: then each is told once more.
#[derive(Debug, Default)]
pub(crate) struct ToldErrors {
    told: Mutex<HashMap<(Address, String), ToldError>>,
}

/// Time at which an error was told, and the run that told it: that run may tell it again if storing
/// it failed.
#[derive(Debug)]
struct ToldError {
    at: Instant,
    run_id: RunId,
}

impl ToldErrors {
    /// True if a run may tell an error now (cooldown). Also notes that it was told.
    pub(crate) fn may_tell(&self, at: &Address, text: &str, run_id: &RunId, now: Instant) -> bool {
        let mut told = self.told.lock();
        told.retain(|_, told| now.duration_since(told.at) < COOLDOWN);
        let key = (at.clone(), text.to_owned());
        if let Some(before) = told.get(&key) {
            return before.run_id == *run_id;
        }
        if told.len() >= MAX_TOLD
            && let Some(oldest) = told.iter().min_by_key(|(_, told)| told.at).map(|(key, _)| key.clone())
        {
            told.remove(&oldest);
        }
        told.insert(key, ToldError { at: now, run_id: run_id.clone() });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_again_after_a_while_or_elsewhere() {
        let (told, now) = (ToldErrors::default(), Instant::now());
        let at = |target: &str| Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: None,
        };
        let may = |target: &str, text: &str, run: &str, after: Duration| {
            told.may_tell(&at(target), text, &RunId::new(run), now + after)
        };
        let second = Duration::from_secs(1);
        assert!(may("5", "broken", "a", Duration::ZERO));
        assert!(may("5", "broken", "a", second), "the same run says the same");
        assert!(!may("5", "broken", "b", second));
        assert!(may("6", "broken", "b", second), "another chat");
        assert!(may("5", "other", "b", second), "another error");
        assert!(!may("5", "broken", "c", COOLDOWN - second));
        assert!(may("5", "broken", "c", COOLDOWN));
        assert!(!may("5", "broken", "d", COOLDOWN + second), "and then it rests again");
        for n in 0..MAX_TOLD {
            assert!(may("7", &format!("error {n}"), "e", COOLDOWN + second));
        }
        assert_eq!(told.told.lock().len(), MAX_TOLD);
    }
}
