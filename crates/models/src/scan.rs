//! Free models of OpenRouter: which there are, and which of them can call tools and see images (spec `cli.md` §4.2).

mod listing;
mod probes;
mod rank;

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::net::{Headers, JSON, NetError};
use crate::reference::ModelRef;
use crate::select::Models;
use crate::settings::ModelSettings;
use openclaw_config::clock::now_ms;

pub use listing::parameters;
pub use rank::{Picks, pick, ranked};

/// The provider that is asked.
pub const PROVIDER: &str = "openrouter";
/// Bytes of the list that are read; it has a few hundred models.
const MAX_LIST: usize = 16 * 1024 * 1024;
/// Time limit for the list.
const LIST_DEADLINE: Duration = Duration::from_secs(20);

/// Filter for models.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Smallest number of parameters in billions; a model that does not tell has none.
    pub least_parameters: f64,
    /// Largest age in days; a model that does not tell is new.
    pub most_days: Option<f64>,
    /// Maker of the model: the part of an id before the slash.
    pub maker: Option<String>,
}

/// Timing of the questions to models.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Time limit for one answer.
    pub deadline: Duration,
    /// Number of models that are asked concurrently.
    pub at_once: usize,
}

/// A model that was found. The keys are those of OpenClaw 2026.2.9.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Id at the provider.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Provider: always [`PROVIDER`].
    pub provider: &'static str,
    /// `openrouter/<id>`
    pub model_ref: String,
    /// Tokens.
    pub context_length: Option<u64>,
    /// Tokens.
    pub max_completion_tokens: Option<u64>,
    /// Number of parameters that a request may have.
    pub supported_parameters_count: usize,
    /// The list says that it can call tools.
    pub supports_tools_meta: bool,
    /// Modality, such as `text+image->text`.
    pub modality: Option<String>,
    /// Billions of parameters, as far as id and name tell.
    #[serde(rename = "inferredParamB")]
    pub parameters: Option<f64>,
    /// Unix milliseconds.
    pub created_at_ms: Option<i64>,
    /// Prices, in dollars a token.
    pub pricing: Option<Pricing>,
    /// True if the model costs nothing.
    pub is_free: bool,
    /// Result of the tool test: the model has to call a tool when told to.
    pub tool: Tried,
    /// Result of the image test.
    pub image: Tried,
}

/// Prices, in dollars a token or a request.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the provider's")]
pub struct Pricing {
    pub prompt: f64,
    pub completion: f64,
    pub request: f64,
    pub image: f64,
    pub web_search: f64,
    pub internal_reasoning: f64,
}

/// Result of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// True if the model passed the test.
    pub ok: bool,
    /// Duration in milliseconds.
    pub latency_ms: Option<u64>,
    /// Error of the test, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the test was not made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Tried {
    /// Result of a test that was not made.
    pub const SKIPPED: Self = Self { ok: false, latency_ms: None, error: None, skipped: true };
}

/// Error of listing the models. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The server could not be reached.
    #[error("cannot list the models of OpenRouter: {0}")]
    Net(#[from] NetError),
    /// The answer did not come in time.
    #[error("cannot list the models of OpenRouter: no answer within {} s", LIST_DEADLINE.as_secs())]
    Late,
    /// The server said no.
    #[error("OpenRouter /models failed: HTTP {0}")]
    Refused(u16),
    /// The answer is no list.
    #[error("OpenRouter /models sent no list of models")]
    Garbage,
    /// The configuration has replaced all providers.
    #[error("the configuration has no provider openrouter (models.mode is \"replace\")")]
    NoProvider,
}

impl Models {
    /// The free models that are wanted, none of them tried.
    ///
    /// # Errors
    /// See [`ScanError`].
    pub async fn free_models(
        &self,
        settings: &ModelSettings,
        wanted: &Wanted,
    ) -> Result<Vec<Found>, ScanError> {
        let catalog = Catalog::new(settings);
        let entry = catalog.provider(&crate::ProviderId::normalize(PROVIDER)).ok_or(ScanError::NoProvider)?;
        let address = entry.base_url.as_deref().unwrap_or_default().trim_end_matches('/');
        let asked = async {
            let incoming = self.http.get(&format!("{address}/models"), Headers::accepting(JSON)).await?;
            match incoming.status {
                200..300 => Ok(incoming.whole(MAX_LIST).await?),
                status => Err(ScanError::Refused(status)),
            }
        };
        let body = tokio::time::timeout(LIST_DEADLINE, asked).await.map_err(|_| ScanError::Late)??;
        let mut found = listing::read(&body).ok_or(ScanError::Garbage)?;
        let now = now_ms();
        found.retain(|model| listing::is_wanted(model, wanted, now));
        Ok(found)
    }

    /// Tries what models can do, several at once; the order stays.
    pub async fn try_models(
        &self,
        settings: &ModelSettings,
        agent_dir: &Path,
        found: Vec<Found>,
        pace: Pace,
    ) -> Vec<Found> {
        let catalog = Catalog::new(settings);
        let tries = found.into_iter().map(async |mut model| {
            match catalog.lookup(&ModelRef::new(PROVIDER, &model.id)) {
                Ok(spec) => {
                    probes::try_one(self, settings, agent_dir, &spec, &mut model, pace.deadline).await
                }
                Err(error) => model.tool.error = Some(error.to_string()),
            }
            model
        });
        futures_util::stream::iter(tries).buffered(pace.at_once.max(1)).collect().await
    }
}
