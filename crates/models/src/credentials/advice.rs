//! Advice for a provider that has no credential.

use crate::catalog::own_key_variables;
use crate::reference::ProviderId;

/// Returns a sentence that explains how to add a credential.
pub fn how_to_add(provider: &ProviderId) -> String {
    let paste = format!("run `openclaw models auth paste-token --provider {provider}`");
    match (provider.as_str(), own_key_variables(provider).last()) {
        ("anthropic", _) => {
            "Set ANTHROPIC_API_KEY, or run `claude setup-token`, then `openclaw models auth setup-token`."
                .to_owned()
        }
        ("openai-codex", _) => "Run `openclaw models auth login --provider openai-codex`.".to_owned(),
        ("github-copilot", _) => "Run `openclaw models auth login-github-copilot`.".to_owned(),
        (_, Some(name)) => format!("Set {name}, or {paste}."),
        (_, None) => format!("Set models.providers.{provider}.apiKey in the config, or {paste}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_what_can_be_done() {
        let rows = [
            ("openai", "Set OPENAI_API_KEY, or run `openclaw models auth paste-token --provider openai`."),
            ("openai-codex", "Run `openclaw models auth login --provider openai-codex`."),
            (
                "mine",
                "Set models.providers.mine.apiKey in the config, or run `openclaw models auth paste-token --provider mine`.",
            ),
        ];
        for (provider, expect) in rows {
            assert_eq!(how_to_add(&ProviderId::normalize(provider)), expect);
        }
        assert!(how_to_add(&ProviderId::normalize("anthropic")).contains("claude setup-token"));
    }
}
