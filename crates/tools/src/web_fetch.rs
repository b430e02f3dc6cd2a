//! `web_fetch`: a page of the public web as text (spec `tools.md` §5.2). Which addresses may be asked is decided in
//! [`openclaw_models::net::public`] alone.
//!
//! [`parameters`] reads the call, [`page`] takes what came apart: [`html`] parses within bounds, [`readable`] finds the article of a
//! page that is [`tame`] if it is not too heavy by its [`weight`], and otherwise gives its [`plain`] words; [`mod@json`] is indented.
//! [`stop`] ends all of it, in one of few [places](crate::web::places). [`firecrawl`] is asked where that gives nothing.

mod firecrawl;
mod html;
mod json;
mod page;
mod parameters;
mod plain;
mod readable;
mod stop;
mod tame;
mod walk;
mod weight;

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_config::clock::now_ms;
use openclaw_models::ToolSchema;
use openclaw_models::net::public::{self, Compression, Document, FetchOptions, Overflow, Statuses, WebError};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::absence::Absence;
use crate::args::Args;
use crate::external::{ExternalSource, Wrapper};
use crate::row::ToolRow;
use crate::setup::Setup;
use crate::web::places::PlaceError;
use crate::web::{self, WebSettings};
use page::{Extracted, RawPage};
use parameters::Parameters;
use stop::StopSignal;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(WebFetch(Arc::clone(setup))))
    .absent_if(|conditions| (!conditions.web.fetch.enabled).then_some(OFF));

const OFF: Absence = Absence::SwitchedOff { setting: "tools.web.fetch.enabled" };

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:web", "group:openclaw"],
    description: "Fetch a page or file of the public web by its address and give its readable text, as Markdown or \
                  plain. Pages that need a login or a browser do not work.",
    summary: "Fetch a page and extract its readable text",
    prompt_position: 11,
    emoji: "🧾",
    label_arguments: &["url"],
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("web_fetch")
};

/// Bytes of a document that are read, unpacked.
const MAX_BYTES: u64 = 5 * 1024 * 1024;
/// Time to take a document apart, all steps together. Each step looks at it but the libraries' own.
const EXTRACTION: Duration = Duration::from_secs(8);
/// Time after which nobody waits for a step that does not end.
const MAX_EXTRACTION: Duration = Duration::from_secs(10);
/// Characters of an error page that are told.
const MAX_DETAIL: usize = 4000;
/// Redirects that a setting can allow.
const MAX_REDIRECTS: usize = 20;

struct WebFetch(Arc<Setup>);

impl Tool for WebFetch {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {
                    "url": {"description": "The address, http or https", "type": "string"},
                    "extractMode": {
                        "type": "string",
                        "enum": ["markdown", "text"],
                        "description": "Markdown with links, or plain text",
                        "default": "markdown",
                    },
                    "maxChars": {"description": "Characters that are given at most (at least 100)", "type": "number"},
                },
                "required": ["url"],
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

async fn run(web: &WebSettings, args: &Args) -> Result<Value, ToolError> {
    let settings = &web.config.fetch;
    let parameters = Parameters::read(args, settings)?;
    let key = parameters.cache_key();
    if let Some(kept) = web.shared.pages().get(&key, Instant::now()) {
        return Ok(kept);
    }
    let begun = Instant::now();
    let fetched = obtain(web, &parameters).await?;
    let result = fetched.into_result(&parameters, begun.elapsed());
    web.shared.pages().put(key, &result, Instant::now(), web::cache_ttl(settings.cache_ttl_minutes));
    Ok(result)
}

/// The page itself, or Firecrawl's reading of it.
async fn obtain(web: &WebSettings, parameters: &Parameters) -> Result<Fetched, ToolError> {
    match direct(web, parameters).await {
        Ok(fetched) => Ok(fetched),
        Err(PageFailure { error, is_final: true }) => Err(error),
        // What Firecrawl says of its own trouble is told only where it was the last hope.
        Err(PageFailure { error, is_final: false }) => match firecrawl::scrape(web, parameters).await {
            None => Err(error),
            Some(scraped) => scraped.map_err(ToolError::Failed),
        },
    }
}

/// Why the page itself gave nothing.
struct PageFailure {
    error: ToolError,
    /// Whether nobody else is asked for it.
    is_final: bool,
}

impl From<WebError> for PageFailure {
    fn from(error: WebError) -> Self {
        Self { is_final: error.is_refusal(), error: ToolError::Failed(error.to_string()) }
    }
}

impl PageFailure {
    fn soft(message: String) -> Self {
        Self { error: ToolError::Failed(message), is_final: false }
    }
}

async fn direct(web: &WebSettings, parameters: &Parameters) -> Result<Fetched, PageFailure> {
    let timeout = web::timeout(web.config.fetch.timeout_seconds);
    let downloaded = tokio::time::timeout(timeout, download(web, parameters)).await;
    let (document, body) = downloaded.map_err(|_| {
        PageFailure::soft(format!("Web fetch failed: not all of it came within {} s", timeout.as_secs()))
    })??;
    let raw = RawPage {
        body,
        content_type: document.content_type.as_deref().map(page::bare_type),
        url: document.url.to_string(),
        is_cut: document.is_cut(),
        mode: parameters.mode,
        max_chars: parameters.max_chars,
        readability: web.config.fetch.readability,
    };
    let content_type = raw.content_type.clone();
    let is_ok = (200..300).contains(&document.status);
    // The wait for a place counts too: other pages may be in work.
    let limit = timeout.max(MAX_EXTRACTION);
    let extracted = tokio::time::timeout(limit, extract(web, raw)).await;
    let extracted =
        extracted.unwrap_or_else(|_| Err(format!("Web fetch failed: {}", PlaceError::TooLong(limit))));
    if !is_ok {
        return Err(PageFailure::soft(refused(document.status, extracted.ok())));
    }
    let extracted = extracted.map_err(PageFailure::soft)?;
    Ok(Fetched {
        url: document.url.to_string(),
        status: document.status,
        content_type: content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        extracted,
    })
}

async fn download(web: &WebSettings, parameters: &Parameters) -> Result<(Document, Vec<u8>), WebError> {
    let settings = &web.config.fetch;
    let options = FetchOptions {
        overflow: Overflow::Cut,
        statuses: Statuses::Any,
        compression: Compression::Gzip,
        max_redirects: usize::try_from(settings.max_redirects).unwrap_or(usize::MAX).min(MAX_REDIRECTS),
        user_agent: settings.user_agent.clone(),
        idle: web::timeout(settings.timeout_seconds),
        ..FetchOptions::file(MAX_BYTES, &web.allowed_hosts)
    };
    let mut document = public::fetch(&parameters.url, &options).await?;
    let body = document.whole().await?;
    Ok((document, body))
}

/// Takes it apart on a blocking thread: a large page takes a while.
async fn extract(web: &WebSettings, raw: RawPage) -> Result<Extracted, String> {
    let given_up = CancellationToken::new();
    // Dropped with the call: the work sees it and ends with its step. Its place is free at once.
    let _gives_up = given_up.clone().drop_guard();
    let work = move || raw.extract(&StopSignal::within(EXTRACTION, given_up));
    let done = web.shared.places().work(MAX_EXTRACTION, work).await;
    done.unwrap_or_else(|error| Err(format!("Web fetch failed: {error}")))
}

/// What is told of an answer that is no page.
fn refused(status: u16, page: Option<Extracted>) -> String {
    let detail = page.map(|page| page.text).unwrap_or_default();
    let detail: String = detail.trim().chars().take(MAX_DETAIL).collect();
    if detail.is_empty() {
        format!("Web fetch failed ({status}): the answer is empty")
    } else {
        let wrapped = Wrapper::of(ExternalSource::WebFetch).wrap_within(&detail, MAX_DETAIL);
        format!("Web fetch failed ({status}): {}", wrapped.text)
    }
}

/// A page as it was found.
struct Fetched {
    /// Where it was found in the end.
    url: String,
    status: u16,
    content_type: String,
    extracted: Extracted,
}

impl Fetched {
    /// The result, its fields in the order of the reference.
    fn into_result(self, parameters: &Parameters, took: Duration) -> Value {
        let Extracted { title, text, extractor, warning, is_cut } = self.extracted;
        let wrapped = Wrapper::of(ExternalSource::WebFetch).wrap_within(&text, parameters.max_chars);
        let title = title.map(|title| Wrapper::of_part(ExternalSource::WebFetch).wrap(&title));
        let fields = [
            ("url", Some(json!(parameters.url))),
            ("finalUrl", Some(json!(self.url))),
            ("status", Some(json!(self.status))),
            ("contentType", Some(json!(self.content_type))),
            ("title", title.map(Value::from)),
            ("extractMode", Some(json!(parameters.mode.as_str()))),
            ("extractor", Some(json!(extractor.as_str()))),
            ("truncated", Some(json!(wrapped.is_cut || is_cut))),
            ("length", Some(json!(wrapped.wrapped_chars))),
            ("rawLength", Some(json!(wrapped.raw_chars))),
            ("wrappedLength", Some(json!(wrapped.wrapped_chars))),
            ("fetchedAt", Some(json!(iso(now_ms())))),
            ("tookMs", Some(json!(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)))),
            ("text", Some(json!(wrapped.text))),
            ("warning", warning.map(Value::from)),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

/// `2026-02-09T10:11:12.123Z`
fn iso(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|stamp| format!("{stamp:.3}")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
