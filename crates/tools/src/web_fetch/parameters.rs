//! What a call of `web_fetch` asks for.

use openclaw_agent::ToolError;
use openclaw_config::settings::WebFetch;

use crate::args::Args;

const MIN_CHARS: usize = 100;

/// How a page is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageFormat {
    Markdown,
    Text,
}

impl PageFormat {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Text => "text",
        }
    }
}

/// One call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) url: String,
    pub(super) mode: PageFormat,
    /// Characters of the text, its wrapper among them.
    pub(super) max_chars: usize,
}

impl Parameters {
    pub(super) fn read(args: &Args, settings: &WebFetch) -> Result<Self, ToolError> {
        let url = args.required("url")?;
        let mode = match args.word("extractMode") {
            Some("text") => PageFormat::Text,
            Some(_) | None => PageFormat::Markdown,
        };
        let size = |chars: u64| usize::try_from(chars).unwrap_or(usize::MAX);
        let cap = size(settings.max_chars_cap).max(MIN_CHARS);
        let usual = settings.max_chars.map_or(cap, size);
        let max_chars = match args.number("maxChars") {
            Some(_) => args.count("maxChars").unwrap_or(MIN_CHARS),
            None => usual,
        };
        Ok(Self { url: url.to_owned(), mode, max_chars: max_chars.clamp(MIN_CHARS, cap) })
    }

    /// Addresses that differ in the case of their letters may be different pages.
    pub(super) fn cache_key(&self) -> String {
        format!("{}\n{}\n{}", self.mode.as_str(), self.max_chars, self.url)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_stay_within_the_settings() {
        let unset = WebFetch::default();
        let set = WebFetch { max_chars: Some(1000), max_chars_cap: 2000, ..WebFetch::default() };
        for (settings, args, expect) in [
            (&unset, json!({}), 50_000),
            (&unset, json!({"maxChars": 60_000}), 50_000),
            (&unset, json!({"maxChars": "700.9"}), 700),
            (&unset, json!({"maxChars": 99}), 100),
            (&unset, json!({"maxChars": -3}), 100),
            (&unset, json!({"maxChars": 0}), 100),
            (&unset, json!({"maxChars": "many"}), 50_000),
            (&set, json!({}), 1000),
            (&set, json!({"maxChars": 1500}), 1500),
            (&set, json!({"maxChars": 2500}), 2000),
        ] {
            let mut args = args;
            args["url"] = json!(" http://a.b/C ");
            let read = Parameters::read(&Args(args.clone()), settings).unwrap();
            assert_eq!((read.max_chars, read.url.as_str()), (expect, "http://a.b/C"), "{args}");
        }
    }

    #[test]
    fn an_address_is_required_and_the_mode_is_markdown_unless_text() {
        let read = |args| Parameters::read(&Args(args), &WebFetch::default());
        for args in [json!({}), json!({"url": " "}), json!({"url": 5})] {
            assert_eq!(read(args).unwrap_err().to_string(), "url required");
        }
        for (mode, expect) in
            [("text", PageFormat::Text), ("markdown", PageFormat::Markdown), ("x", PageFormat::Markdown)]
        {
            assert_eq!(read(json!({"url": "u", "extractMode": mode})).unwrap().mode, expect);
        }
    }
}
