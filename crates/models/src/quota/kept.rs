//! Quotas that were asked for a moment ago are not asked for again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_protocol::params::usage::{ProviderUsage, UsageStatusResult};
use tokio::time::Instant;

use crate::select::Models;
use crate::settings::ModelSettings;
use openclaw_config::clock::now_ms;

/// Time for which an answer stays valid.
const GOOD: Duration = Duration::from_secs(30);
/// Time for which an answer with errors stays valid: a person who has just repaired something wants
/// to see it.
const GOOD_WITH_ERRORS: Duration = Duration::from_secs(5);

/// The last answer. A caller that asks while others do waits for their answer.
#[derive(Debug, Default)]
pub struct QuotaCache {
    last: tokio::sync::Mutex<Option<CachedQuota>>,
}

#[derive(Debug)]
struct CachedQuota {
    agent_dir: PathBuf,
    asked: Instant,
    answer: UsageStatusResult,
}

impl CachedQuota {
    fn is_good(&self, agent_dir: &Path, now: Instant) -> bool {
        let failed = self.answer.providers.iter().any(|provider| provider.error.is_some());
        let lasts = if failed { GOOD_WITH_ERRORS } else { GOOD };
        self.agent_dir == agent_dir && now.duration_since(self.asked) < lasts
    }
}

impl QuotaCache {
    /// Returns the quotas of the providers, cached if they were requested a moment ago.
    pub async fn get(
        &self,
        models: &Models,
        settings: &ModelSettings,
        agent_dir: &Path,
    ) -> UsageStatusResult {
        // Held while the providers are asked, a few seconds at most, so that they are asked once.
        let mut last = self.last.lock().await;
        if let Some(kept) = last.as_ref().filter(|kept| kept.is_good(agent_dir, Instant::now())) {
            return kept.answer.clone();
        }
        let providers: Vec<ProviderUsage> = models.quotas(settings, agent_dir).await;
        let answer = UsageStatusResult { updated_at: now_ms(), providers };
        *last = Some(CachedQuota {
            agent_dir: agent_dir.to_path_buf(),
            asked: Instant::now(),
            answer: answer.clone(),
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_good_for_a_moment_and_errors_for_less() {
        let asked = Instant::now();
        let kept = |error: Option<&str>| {
            let provider = ProviderUsage { error: error.map(str::to_owned), ..ProviderUsage::default() };
            let answer = UsageStatusResult { updated_at: 0, providers: vec![provider] };
            CachedQuota { agent_dir: "/a".into(), asked, answer }
        };
        let rows = [
            (None, "/a", 29, true),
            (None, "/a", 30, false),
            (None, "/b", 0, false),
            (Some("Timeout"), "/a", 4, true),
            (Some("Timeout"), "/a", 5, false),
        ];
        for (error, dir, seconds, expect) in rows {
            let now = asked + Duration::from_secs(seconds);
            assert_eq!(kept(error).is_good(Path::new(dir), now), expect, "{error:?} {dir} {seconds}");
        }
    }
}
