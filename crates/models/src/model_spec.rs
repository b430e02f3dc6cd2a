//! A model with everything needed to call it.

use openclaw_config::settings::ModelCost;
use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::api::Api;
use crate::history::{HistoryRules, IdRule};
use crate::provider_entry::Compat;
use crate::reference::ModelRef;
use crate::thinking;
use crate::thinking::ThinkingLevel;

/// A model resolved from the catalog and the configuration, credentials aside.
#[derive(Debug, Clone)]
pub struct ModelSpec {
    /// Provider and id.
    pub reference: ModelRef,
    /// Name for people.
    pub name: String,
    /// Protocol.
    pub api: Api,
    /// Address of the API, without a trailing slash.
    pub base_url: String,
    /// True if the model reasons.
    pub reasoning: bool,
    /// True if the model accepts images.
    pub images: bool,
    /// US dollars for a million tokens.
    pub price: ModelCost,
    /// Tokens; absent when neither the catalog nor the configuration says.
    pub context_window: Option<u64>,
    /// The owner set the window, rather than the catalog.
    pub window_configured: bool,
    /// Largest answer in tokens.
    pub max_tokens: u64,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
    /// Send the key as `Authorization: Bearer` whatever the protocol does by itself.
    pub auth_header: bool,
    /// Differences from OpenAI's own server.
    pub compat: Compat,
    /// Ask for a stream also when tools are offered.
    pub streaming: bool,
}

impl ModelSpec {
    /// Output cap of a request: what was asked, else `min(maxTokens, 32000)` (spec `models.md` §3).
    pub fn output_cap(&self, asked: Option<u32>) -> u64 {
        const DEFAULT_CAP: u64 = 32_000;
        asked.map_or(self.max_tokens.min(DEFAULT_CAP), u64::from)
    }

    /// The nearest thinking level it has.
    pub(crate) fn level(&self, asked: ThinkingLevel) -> ThinkingLevel {
        thinking::clamp(asked, self.reasoning, thinking::has_xhigh(self.provider(), self.id()))
    }

    /// Provider id.
    pub fn provider(&self) -> &str {
        self.reference.provider.as_str()
    }

    /// Model id.
    pub fn id(&self) -> &str {
        &self.reference.model
    }

    /// Returns true if a history is adapted and written in the same way for another model.
    pub(crate) fn writes_as(&self, other: &Self) -> bool {
        // Every field is named: whoever adds one decides whether messages are written by it.
        let Self {
            reference,
            api,
            base_url,
            reasoning,
            images,
            compat,
            name: _,
            price: _,
            context_window: _,
            window_configured: _,
            max_tokens: _,
            headers: _,
            auth_header: _,
            streaming: _,
        } = self;
        *reference == other.reference
            && *api == other.api
            && *base_url == other.base_url
            && (*reasoning, *images) == (other.reasoning, other.images)
            && *compat == other.compat
    }

    /// Returns the rules that adapt a history to this model, with ids of calls in the form of its
    /// protocol.
    pub(crate) fn history_rules(&self, ids: IdRule) -> HistoryRules<'_> {
        HistoryRules::of(self.provider(), self.api.as_str(), self.id(), ids)
    }
}

#[cfg(test)]
impl ModelSpec {
    /// A plain model for tests.
    pub(crate) fn sample(provider: &str, model: &str, api: &str) -> Self {
        Self {
            reference: ModelRef::new(provider, model),
            name: model.to_owned(),
            api: Api::from(api),
            base_url: "http://127.0.0.1:1".to_owned(),
            reasoning: false,
            images: false,
            price: ModelCost::default(),
            context_window: Some(200_000),
            window_configured: false,
            max_tokens: 8192,
            headers: BTreeMap::new(),
            auth_header: false,
            compat: Compat::default(),
            streaming: true,
        }
    }
}
