//! Prefix before every reply (spec `messages.md` §10.3).

use openclaw_agent::text::silent::HEARTBEAT_TOKEN;
use openclaw_channels::markdown::begins_with_block;

/// Values of the variables in a prefix. A variable without a value stays as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrefixContext {
    /// Provider of the model that answers, fallbacks included.
    pub provider: Option<String>,
    /// Id of the model at its provider.
    pub model: Option<String>,
    /// Thinking level of the model.
    pub thinking: Option<String>,
    /// The agent's name.
    pub identity: Option<String>,
}

/// The prefix with its variables filled in; `None` without one. `auto` is the agent's name in brackets.
pub fn prefix(written: Option<&str>, context: &PrefixContext) -> Option<String> {
    let written = written.filter(|text| !text.trim().is_empty())?;
    if written.trim() == "auto" {
        return context.identity.as_ref().map(|name| format!("[{name}]"));
    }
    let mut out = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}').and_then(|(name, behind)| Some((value(name, context)?, behind))) {
            Some((value, behind)) => {
                out.push_str(&value);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Some(out)
}

/// Puts the prefix before a text: not twice, not before nothing, not before a heartbeat's
/// acknowledgement. The prefix is a paragraph of its own if words on the same line would break the
/// text's first line, such as a list or code.
pub fn with_prefix(text: &str, prefix: Option<&str>) -> String {
    let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) else { return text.to_owned() };
    if text.trim().is_empty() || text.trim() == HEARTBEAT_TOKEN || text.starts_with(prefix) {
        return text.to_owned();
    }
    match begins_with_block(text) {
        true => format!("{prefix}\n\n{}", text.trim_start_matches('\n')),
        false => format!("{prefix} {text}"),
    }
}

fn value(name: &str, context: &PrefixContext) -> Option<String> {
    match name.trim().to_ascii_lowercase().as_str() {
        "model" => context.model.as_deref().map(short_model),
        "modelfull" => Some(format!("{}/{}", context.provider.as_ref()?, context.model.as_ref()?)),
        "provider" => context.provider.clone(),
        "thinkinglevel" | "think" => context.thinking.clone(),
        "identity.name" | "identityname" => context.identity.clone(),
        _ => None,
    }
}

/// A model's id as people call it: without its vendor, its date and `-latest`.
fn short_model(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_date = |end: &str| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit());
    let name = match name.rsplit_once('-') {
        Some((head, end)) if is_date(end) => head,
        _ => name,
    };
    name.strip_suffix("-latest").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `messages.md` §10.3.
    #[test]
    fn variables_are_filled_in_as_far_as_they_are_known() {
        let context = PrefixContext {
            provider: Some("openai".to_owned()),
            model: Some("gpt-5.2".to_owned()),
            thinking: Some("high".to_owned()),
            identity: Some("Molly".to_owned()),
        };
        let none = PrefixContext::default();
        let rows = [
            (Some("[{model} | think:{thinkingLevel}]"), &context, Some("[gpt-5.2 | think:high]")),
            (Some("[{model}]"), &none, Some("[{model}]")),
            (
                Some("{MODELFULL} {provider} {Think} {identityName}"),
                &context,
                Some("openai/gpt-5.2 openai high Molly"),
            ),
            (Some("{identity.name}: {x} {"), &context, Some("Molly: {x} {")),
            (Some("auto"), &context, Some("[Molly]")),
            (Some("auto"), &none, None),
            (Some(""), &context, None),
            (None, &context, None),
        ];
        for (written, context, expect) in rows {
            assert_eq!(prefix(written, context).as_deref(), expect, "{written:?}");
        }
        let rows = [
            ("claude-opus-4-6-20260205", "claude-opus-4-6"),
            ("gpt-5.2-latest", "gpt-5.2"),
            ("openrouter/moonshotai/kimi-k2", "kimi-k2"),
            ("model-123456789", "model-123456789"),
        ];
        for (model, expect) in rows {
            assert_eq!(short_model(model), expect);
        }
    }

    #[test]
    fn a_text_gets_its_prefix_once() {
        let rows = [
            ("hi", Some("[M]"), "[M] hi"),
            ("[M] hi", Some("[M]"), "[M] hi"),
            ("HEARTBEAT_OK", Some("[M]"), "HEARTBEAT_OK"),
            ("", Some("[M]"), ""),
            ("hi", Some(""), "hi"),
            ("hi", None, "hi"),
            ("# Title", Some("[M]"), "[M]\n\n# Title"),
            ("\n```\nx\n```", Some("[M]"), "[M]\n\n```\nx\n```"),
            ("[M]\n\n# Title", Some("[M]"), "[M]\n\n# Title"),
            ("- a\n- b", Some("[M]"), "[M]\n\n- a\n- b"),
            ("hi\n\n# Title", Some("[M]"), "[M] hi\n\n# Title"),
        ];
        for (text, prefix, expect) in rows {
            assert_eq!(with_prefix(text, prefix), expect, "{text:?}");
        }
    }
}
