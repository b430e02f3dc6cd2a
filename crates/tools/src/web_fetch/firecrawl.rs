//! Firecrawl, a service that reads pages which the gateway can't: `tools.web.fetch.firecrawl`.

use openclaw_config::settings::Firecrawl;
use pulldown_cmark::{Event, Options, Parser, TagEnd};
use serde_json::{Value, json};
use url::Url;

use super::Fetched;
use super::page::{Extracted, Extractor};
use super::parameters::{PageFormat, Parameters};
use crate::external::{ExternalSource, Wrapper};
use crate::web::json_api::{JsonApiError, JsonCall, ask};
use crate::web::{self, WebSettings};

/// Its reading of the page, or why there is none; `None` where it is not in use.
pub(super) async fn scrape(web: &WebSettings, parameters: &Parameters) -> Option<Result<Fetched, String>> {
    let fetch = &web.config.fetch;
    let settings = &fetch.firecrawl;
    let key = web::key(settings.api_key.as_ref(), web.keys.firecrawl.as_ref())?;
    if settings.enabled == Some(false) {
        return None;
    }
    let seconds = settings.timeout_seconds.unwrap_or(fetch.timeout_seconds);
    let answer = match call(settings, key, &parameters.url, seconds) {
        Ok(call) => ask(web.shared.http(), call).await.map_err(|error| told(&error)),
        Err(error) => Err(error),
    };
    Some(answer.and_then(|answer| page(&answer, parameters)))
}

fn call(settings: &Firecrawl, key: &str, url: &str, seconds: u64) -> Result<JsonCall, String> {
    let timeout = web::timeout(seconds);
    Ok(JsonCall {
        url: endpoint(&settings.base_url)?,
        headers: vec![("authorization", format!("Bearer {key}"))],
        body: Some(json!({
            "url": url,
            "formats": ["markdown"],
            "onlyMainContent": settings.only_main_content,
            "timeout": u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            "maxAge": settings.max_age_ms,
            "proxy": "auto",
            "storeInCache": true,
        })),
        timeout,
    })
}

/// A base address with a path of its own is the endpoint.
fn endpoint(base: &str) -> Result<String, String> {
    let mut url = Url::parse(base.trim())
        .map_err(|_| "tools.web.fetch.firecrawl.baseUrl is no address of the web".to_owned())?;
    if matches!(url.path(), "" | "/") {
        url.set_path("/v2/scrape");
    }
    Ok(url.into())
}

/// Its words come from outside.
fn told(error: &JsonApiError) -> String {
    match error {
        JsonApiError::Status { status, detail } => {
            let detail = Wrapper::of(ExternalSource::WebFetch).wrap(detail);
            format!("Firecrawl fetch failed ({status}): {detail}")
        }
        JsonApiError::TimedOut(_) | JsonApiError::NotJson | JsonApiError::Net(_) => {
            format!("Firecrawl fetch failed: {error}")
        }
    }
}

fn page(answer: &Value, parameters: &Parameters) -> Result<Fetched, String> {
    let text_at = |pointer: &str| {
        let text = answer.pointer(pointer).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if answer.get("success") == Some(&Value::Bool(false)) {
        let why = text_at("/error").unwrap_or_else(|| "it did not say why".to_owned());
        return Err(format!("Firecrawl fetch failed: {}", Wrapper::of(ExternalSource::WebFetch).wrap(&why)));
    }
    let Some(markdown) = text_at("/data/markdown").or_else(|| text_at("/data/content")) else {
        return Err("Web fetch extraction failed: Readability and Firecrawl returned no content.".to_owned());
    };
    let status = answer.pointer("/data/metadata/statusCode").and_then(Value::as_u64);
    let text = match parameters.mode {
        PageFormat::Markdown => markdown,
        PageFormat::Text => plain(&markdown),
    };
    Ok(Fetched {
        url: text_at("/data/metadata/sourceURL").unwrap_or_else(|| parameters.url.clone()),
        status: status.and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
        content_type: "text/markdown".to_owned(),
        extracted: Extracted {
            title: text_at("/data/metadata/title"),
            text,
            extractor: Extractor::Firecrawl,
            warning: text_at("/warning")
                .map(|warning| Wrapper::of_part(ExternalSource::WebFetch).wrap(&warning)),
            is_cut: false,
        },
    })
}

/// The words of Markdown, a paragraph a block.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Text(words) | Event::Code(words) => text.push_str(&words),
            Event::SoftBreak | Event::HardBreak => text.push('\n'),
            Event::End(TagEnd::TableCell) => text.push(' '),
            Event::End(TagEnd::Item | TagEnd::TableRow | TagEnd::TableHead) if !text.ends_with('\n') => {
                text.push('\n');
            }
            Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::List(_)) => {
                let text_before = text.trim_end().len();
                text.truncate(text_before);
                text.push_str("\n\n");
            }
            _ => {}
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests;
