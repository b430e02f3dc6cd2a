//! Quotas that the providers report as used (spec `operations.md` §13): one file per provider, with
//! the request and the reader of the answer. [`Models::quotas`] asks all of them at once, a short
//! time each; one that fails says so in its own row.
//!
//! Providers do not publish these interfaces. An answer that can no longer be understood is an
//! error in its row, never a failure of the whole.

mod access;
mod anthropic;
mod antigravity;
mod ask;
mod codex;
mod copilot;
mod gemini;
mod kept;
mod minimax;
mod reading;
mod servers;
pub mod text;
mod xiaomi;
mod zai;

use std::path::Path;

use openclaw_protocol::params::usage::{ProviderUsage, UsageWindow};
use serde_json::Value;

use self::access::{QuotaCredential, Wants};
use self::ask::QuotaQuestion;
pub use self::kept::QuotaCache;
use self::servers::QuotaServers;
pub use self::servers::SERVER_VARIABLE;
use crate::reference::ProviderId;
use crate::select::Models;
use crate::settings::ModelSettings;

/// Request and reader for one provider.
struct QuotaProvider {
    id: &'static str,
    name: &'static str,
    wants: Wants,
    /// The questions; all are asked at once.
    ask: fn(&QuotaServers, &QuotaCredential) -> Vec<QuotaQuestion>,
    /// Reads the answers in the order of the questions; one that failed is `null`.
    read: fn(&[Value]) -> Result<Quota, String>,
}

/// Content of an answer.
#[derive(Debug, Default, PartialEq)]
struct Quota {
    windows: Vec<UsageWindow>,
    plan: Option<String>,
}

/// All providers that can be asked, in the order in which they are shown.
const PROVIDERS: &[QuotaProvider] = &[
    anthropic::PROVIDER,
    copilot::PROVIDER,
    gemini::PROVIDER,
    antigravity::PROVIDER,
    minimax::PROVIDER,
    minimax::CHINA,
    codex::PROVIDER,
    xiaomi::PROVIDER,
    zai::PROVIDER,
];

impl Models {
    /// Returns the quotas of the providers for which the agent has a suitable credential. Reads the
    /// agent's credentials, may renew a login.
    pub async fn quotas(&self, settings: &ModelSettings, agent_dir: &Path) -> Vec<ProviderUsage> {
        let accesses = access::Accesses::load(self, settings, agent_dir).await;
        let servers = QuotaServers::from(&self.variables);
        let asked = PROVIDERS.iter().map(async |provider| {
            let access = accesses.of(&ProviderId::normalize(provider.id), provider.wants).await?;
            let quota = match access {
                Ok(access) => provider.quota(self, &servers, &access).await,
                Err(error) => Err(error),
            };
            Some(provider.row(quota))
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }
}

impl QuotaProvider {
    async fn quota(
        &self,
        models: &Models,
        servers: &QuotaServers,
        access: &QuotaCredential,
    ) -> Result<Quota, String> {
        let questions = (self.ask)(servers, access);
        let asked = questions.iter().map(|question| ask::ask(&models.http, question, access, self.wants));
        let answers = futures_util::future::join_all(asked).await;
        let first_error = answers.iter().find_map(|answer| answer.as_ref().err()).cloned();
        let documents: Vec<Value> = answers.into_iter().map(Result::unwrap_or_default).collect();
        match first_error {
            Some(error) if documents.iter().all(Value::is_null) => Err(error),
            _ => (self.read)(&documents),
        }
    }

    fn row(&self, quota: Result<Quota, String>) -> ProviderUsage {
        let (quota, error) = match quota {
            Ok(quota) => (quota, None),
            Err(error) => (Quota::default(), Some(error)),
        };
        ProviderUsage {
            provider: self.id.to_owned(),
            display_name: self.name.to_owned(),
            windows: quota.windows,
            plan: quota.plan,
            error,
        }
    }
}

#[cfg(test)]
mod tests;
