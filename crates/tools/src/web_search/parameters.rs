//! Parameters of a call of `web_search`.

use openclaw_agent::ToolError;
use openclaw_config::settings::{SearchProvider, WebSearch};

use super::{NotAsked, freshness};
use crate::args::Args;

const MAX_RESULTS: usize = 10;

/// Parameters of one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) query: String,
    pub(super) count: usize,
    pub(super) country: Option<String>,
    pub(super) search_lang: Option<String>,
    pub(super) ui_lang: Option<String>,
    pub(super) freshness: Option<String>,
}

impl Parameters {
    pub(super) fn read(args: &Args, settings: &WebSearch) -> Result<Result<Self, NotAsked>, ToolError> {
        let query = args.required("query")?;
        let usual = usize::try_from(settings.max_results).unwrap_or(MAX_RESULTS);
        let count = match args.number("count") {
            Some(_) => args.count("count").unwrap_or(1),
            None => usual,
        };
        let word = |name| args.word(name).map(str::to_owned);
        let freshness = match args.word("freshness") {
            None => None,
            Some(_) if settings.provider != SearchProvider::Brave => {
                return Ok(Err(NotAsked {
                    error: "unsupported_freshness",
                    message: format!(
                        "freshness works with Brave only; the provider here is {}. Search without it.",
                        settings.provider.as_str()
                    ),
                }));
            }
            Some(value) => match freshness::normalized(value) {
                Some(value) => Some(value),
                None => {
                    return Ok(Err(NotAsked {
                        error: "invalid_freshness",
                        message:
                            "freshness has to be pd, pw, pm, py or a range such as 2024-01-01to2024-01-31."
                                .to_owned(),
                    }));
                }
            },
        };
        Ok(Ok(Self {
            query: query.to_owned(),
            count: count.clamp(1, MAX_RESULTS),
            country: word("country"),
            search_lang: word("search_lang"),
            ui_lang: word("ui_lang"),
            freshness,
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_to_ten_results_are_asked_for() {
        for (configured, count, expect) in [
            (5, json!(null), 5),
            (0, json!(null), 1),
            (90, json!(null), 10),
            (5, json!(3), 3),
            (5, json!("7"), 7),
            (5, json!(2.9), 2),
            (5, json!(0), 1),
            (5, json!(-4), 1),
            (5, json!(11), 10),
            (5, json!("many"), 5),
        ] {
            let settings = WebSearch { max_results: configured, ..WebSearch::default() };
            let args = Args(json!({"query": " a ", "count": count}));
            let read = Parameters::read(&args, &settings).unwrap().unwrap();
            assert_eq!((read.count, read.query.as_str()), (expect, "a"), "{configured} {args:?}");
        }
    }

    #[test]
    fn a_query_is_required_and_freshness_is_for_brave() {
        let read = |provider, args| {
            let settings = WebSearch { provider, ..WebSearch::default() };
            match Parameters::read(&Args(args), &settings) {
                Err(error) => error.to_string(),
                Ok(Err(not_asked)) => not_asked.error.to_owned(),
                Ok(Ok(parameters)) => format!("{:?}", parameters.freshness),
            }
        };
        use SearchProvider::{Brave, Grok, Perplexity};
        for (provider, args, expect) in [
            (Brave, json!({}), "query required"),
            (Brave, json!({"query": " "}), "query required"),
            (Brave, json!({"query": "a"}), "None"),
            (Brave, json!({"query": "a", "freshness": ""}), "None"),
            (Brave, json!({"query": "a", "freshness": "PW"}), "Some(\"pw\")"),
            (Brave, json!({"query": "a", "freshness": "yesterday"}), "invalid_freshness"),
            (Perplexity, json!({"query": "a", "freshness": "pw"}), "unsupported_freshness"),
            (Grok, json!({"query": "a", "freshness": "pw"}), "unsupported_freshness"),
            (Grok, json!({"query": "a"}), "None"),
        ] {
            assert_eq!(read(provider, args.clone()), expect, "{provider:?} {args}");
        }
    }
}
