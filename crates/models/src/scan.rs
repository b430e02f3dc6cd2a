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

pub use rank::{Picks, pick, ranked};

/// The provider that is asked.
pub const PROVIDER: &str = "openrouter";
/// Bytes of the list that are read; it has a few hundred models.
const MAX_LIST: usize = 16 * 1024 * 1024;
/// How long the list may take.
const LIST_DEADLINE: Duration = Duration::from_secs(20);

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// At least this many billion parameters; a model that does not tell has none.
    pub least_parameters: f64,
    /// At most this old, in days; a model that does not tell is new.
    pub most_days: Option<f64>,
    /// Only of this maker: what stands before the slash of an id.
    pub maker: Option<String>,
}

/// How models are asked.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long one answer may take.
    pub deadline: Duration,
    /// How many are asked at once.
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
    /// Always [`PROVIDER`].
    pub provider: &'static str,
    /// `openrouter/<id>`
    pub model_ref: String,
    /// Tokens.
    pub context_length: Option<u64>,
    /// Tokens.
    pub max_completion_tokens: Option<u64>,
    /// How many parameters a request may have.
    pub supported_parameters_count: usize,
    /// The list says that it can call tools.
    pub supports_tools_meta: bool,
    /// Such as `text+image->text`.
    pub modality: Option<String>,
    /// Billions of parameters, as far as id and name tell.
    #[serde(rename = "inferredParamB")]
    pub parameters: Option<f64>,
    /// Unix milliseconds.
    pub created_at_ms: Option<i64>,
    /// What it costs, a dollar a token.
    pub pricing: Option<Pricing>,
    /// It costs nothing.
    pub is_free: bool,
    /// Whether it calls a tool when told to.
    pub tool: Tried,
    /// Whether it takes an image.
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

/// What came of trying something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// It can.
    pub ok: bool,
    /// How long it took, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It was not tried.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Tried {
    /// Nobody tried.
    pub const SKIPPED: Self = Self { ok: false, latency_ms: None, error: None, skipped: true };
}

/// Why there is no list. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// Nobody answered.
    #[error("cannot list the models of OpenRouter: {0}")]
    Net(#[from] NetError),
    /// It took too long.
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
