//! Selects the models that are offered `apply_patch` (spec `tools.md` §2.1). Pure.

use openclaw_config::settings::ApplyPatch;

use crate::absence::Absence;

/// The providers whose models were trained on this format.
const PROVIDERS: [&str; 2] = ["openai", "openai-codex"];

/// Returns true if a model of a provider is offered the tool. The policy is asked besides.
pub fn is_offered(settings: &ApplyPatch, provider: &str, model: &str) -> bool {
    absence(settings, provider, model).is_none()
}

/// Returns the reason why a model of a provider is not offered the tool, if it is not.
pub fn absence(settings: &ApplyPatch, provider: &str, model: &str) -> Option<Absence> {
    if settings.enabled != Some(true) {
        return Some(Absence::SwitchedOff { setting: "tools.exec.applyPatch.enabled" });
    }
    let (provider, model) = (provider.trim().to_lowercase(), model.trim().to_lowercase());
    if !PROVIDERS.contains(&provider.as_str()) {
        return Some(Absence::OtherProviders);
    }
    let full = format!("{provider}/{model}");
    let is_named = |entry: &String| {
        let entry = entry.trim().to_lowercase();
        !entry.is_empty() && (entry == model || entry == full)
    };
    let allowed = settings.allow_models.as_deref().unwrap_or_default();
    (!allowed.is_empty() && !allowed.iter().any(is_named)).then_some(Absence::OtherModels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_offered_to_allowed_models_of_openai_only() {
        const OFF: Option<Absence> = Some(Absence::SwitchedOff { setting: "tools.exec.applyPatch.enabled" });
        const PROVIDER: Option<Absence> = Some(Absence::OtherProviders);
        const MODEL: Option<Absence> = Some(Absence::OtherModels);
        for (enabled, allow, provider, model, expect) in [
            (None, None, "openai", "gpt-5.2", OFF),
            (Some(false), None, "openai", "gpt-5.2", OFF),
            (Some(true), None, "openai", "gpt-5.2", None),
            (Some(true), Some(&[][..]), "openai-codex", "gpt-5.2", None),
            (Some(true), None, " OpenAI ", "gpt-5.2", None),
            (Some(true), None, "anthropic", "gpt-5.2", PROVIDER),
            (Some(true), None, "openrouter", "openai/gpt-5.2", PROVIDER),
            (Some(true), Some(&["gpt-5.2"]), "openai", "gpt-5.2", None),
            (Some(true), Some(&["GPT-5.2"]), "openai", "gpt-5.2", None),
            (Some(true), Some(&["gpt-5.2"]), "openai", "GPT-5.2", None),
            (Some(true), Some(&["x", " OpenAI/gpt-5.2 "]), "openai", "gpt-5.2", None),
            (Some(true), Some(&["openai/gpt-5.2"]), "openai-codex", "gpt-5.2", MODEL),
            (Some(true), Some(&["gpt-5"]), "openai", "gpt-5.2", MODEL),
            (Some(true), Some(&[""]), "openai", "", MODEL),
        ] {
            let allow_models = allow.map(|list| list.iter().map(|entry| (*entry).to_owned()).collect());
            let settings = ApplyPatch { enabled, allow_models };
            assert_eq!(absence(&settings, provider, model), expect, "{settings:?} {provider} {model}");
        }
    }
}
