//! `web_search`: asks a search provider (spec `tools.md` §5.1).
//!
//! [`parameters`] reads the call. A provider is one file of two pure functions, what to ask and
//! what to make of the answer; [`provider`] chooses it and finds its key. A query that can't be
//! asked is a normal result with the reason.

mod brave;
mod freshness;
mod grok;
mod parameters;
mod perplexity;
mod provider;

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Map, Value, json};

use crate::absence::Absence;
use crate::args::Args;
use crate::external::{ExternalSource, Wrapper};
use crate::row::ToolRow;
use crate::setup::Setup;
use crate::web::json_api::{JsonApiError, ask};
use crate::web::{self, WebSettings};
use parameters::Parameters;
use provider::SearchBackend;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(WebSearch(Arc::clone(setup))))
    .absent_if(|conditions| (!conditions.web.search.enabled).then_some(OFF));

const OFF: Absence = Absence::SwitchedOff { setting: "tools.web.search.enabled" };

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:web", "group:openclaw"],
    description: "Search the web. Gives titles, addresses and descriptions of pages, or an answer with its sources, \
                  depending on the configured provider.",
    summary: "Search the web",
    prompt_position: 10,
    emoji: "🔎",
    label_arguments: &["query"],
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("web_search")
};

const DOCS: &str = "https://docs.openclaw.ai/tools/web";

struct WebSearch(Arc<Setup>);

impl Tool for WebSearch {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {
                    "query": {"description": "What to search for", "type": "string"},
                    "count": {"description": "How many results, 1 to 10", "type": "number"},
                    "country": {
                        "description": "Where results are for, two letters such as DE or US, or ALL",
                        "type": "string",
                    },
                    "search_lang": {"description": "Language of the results, such as de or en", "type": "string"},
                    "ui_lang": {"description": "Language of what the provider says itself", "type": "string"},
                    "freshness": {
                        "description": "Only what is this new (Brave alone): pd (a day), pw (a week), pm (a month), \
                                        py (a year), or YYYY-MM-DDtoYYYY-MM-DD",
                        "type": "string",
                    },
                },
                "required": ["query"],
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            tokio::select! { biased;
                () = context.cancel.cancelled() => Err(ToolError::Aborted),
                result = Box::pin(run(&self.0.web, &args)) => result.map(ToolOutput::json),
            }
        })
    }
}

/// Reason why a search can't be made; the model gets it as a result.
#[derive(Debug, PartialEq, Eq)]
struct NotAsked {
    error: &'static str,
    message: String,
}

impl NotAsked {
    fn into_result(self) -> Value {
        json!({"error": self.error, "message": self.message, "docs": DOCS})
    }
}

async fn run(web: &WebSettings, args: &Args) -> Result<Value, ToolError> {
    let settings = &web.config.search;
    let provider = match SearchBackend::of(web) {
        Ok(provider) => provider,
        Err(not_asked) => return Ok(not_asked.into_result()),
    };
    let parameters = match Parameters::read(args, settings)? {
        Ok(parameters) => parameters,
        Err(not_asked) => return Ok(not_asked.into_result()),
    };
    let key = provider.cache_key(&parameters);
    if let Some(kept) = web.shared.searches().get(&key, Instant::now()) {
        return Ok(kept);
    }
    let begun = Instant::now();
    let call = provider.call(&parameters, web::timeout(settings.timeout_seconds));
    let answer = ask(web.shared.http(), call).await.map_err(|error| failed(&provider, &error))?;
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let result = provider.result(&parameters, &answer, took);
    web.shared.searches().put(key, &result, Instant::now(), web::cache_ttl(settings.cache_ttl_minutes));
    Ok(result)
}

/// `Brave Search API error (429): too many`
fn failed(provider: &SearchBackend<'_>, error: &JsonApiError) -> ToolError {
    let name = provider.api_name();
    ToolError::Failed(match error {
        JsonApiError::Status { .. } => format!("{name} API error {error}"),
        JsonApiError::TimedOut(_) | JsonApiError::NotJson | JsonApiError::Net(_) => {
            format!("{name} API error: {error}")
        }
    })
}

/// A result with the fields that there are, in this order.
fn fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Words of a page or an answer, marked as such.
fn wrapped(text: &str) -> String {
    if text.is_empty() { String::new() } else { Wrapper::of(ExternalSource::WebSearch).wrap(text) }
}

#[cfg(test)]
mod tests;
