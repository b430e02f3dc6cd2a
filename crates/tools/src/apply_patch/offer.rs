//! Which models are offered `apply_patch` (spec `tools.md` §2.1). Pure.

use openclaw_config::settings::ApplyPatch;

/// The providers whose models were trained on this format.
const PROVIDERS: [&str; 2] = ["openai", "openai-codex"];

/// Whether a model of a provider is offered the tool. The policy is asked besides.
pub fn is_offered(settings: &ApplyPatch, provider: &str, model: &str) -> bool {
    let (provider, model) = (provider.trim().to_lowercase(), model.trim().to_lowercase());
    let full = format!("{provider}/{model}");
    let is_named = |entry: &String| {
        let entry = entry.trim().to_lowercase();
        !entry.is_empty() && (entry == model || entry == full)
    };
    let allowed = settings.allow_models.as_deref().unwrap_or_default();
    settings.enabled == Some(true)
        && PROVIDERS.contains(&provider.as_str())
        && (allowed.is_empty() || allowed.iter().any(is_named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_offered_to_allowed_models_of_openai_only() {
        for (enabled, allow, provider, model, expect) in [
            (None, None, "openai", "gpt-5.2", false),
            (Some(false), None, "openai", "gpt-5.2", false),
            (Some(true), None, "openai", "gpt-5.2", true),
            (Some(true), Some(&[][..]), "openai-codex", "gpt-5.2", true),
            (Some(true), None, " OpenAI ", "gpt-5.2", true),
            (Some(true), None, "anthropic", "gpt-5.2", false),
            (Some(true), None, "openrouter", "openai/gpt-5.2", false),
            (Some(true), Some(&["gpt-5.2"]), "openai", "gpt-5.2", true),
            (Some(true), Some(&["GPT-5.2"]), "openai", "gpt-5.2", true),
            (Some(true), Some(&["gpt-5.2"]), "openai", "GPT-5.2", true),
            (Some(true), Some(&["x", " OpenAI/gpt-5.2 "]), "openai", "gpt-5.2", true),
            (Some(true), Some(&["openai/gpt-5.2"]), "openai-codex", "gpt-5.2", false),
            (Some(true), Some(&["gpt-5"]), "openai", "gpt-5.2", false),
            (Some(true), Some(&[""]), "openai", "", false),
        ] {
            let allow_models = allow.map(|list| list.iter().map(|entry| (*entry).to_owned()).collect());
            let settings = ApplyPatch { enabled, allow_models };
            assert_eq!(is_offered(&settings, provider, model), expect, "{settings:?} {provider} {model}");
        }
    }
}
