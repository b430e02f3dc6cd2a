//! Answers of `/model` (spec `messages.md` §5).

use std::fmt::Write;

use openclaw_models::credentials::AuthLabel;
use openclaw_models::{Choices, Chosen, ModelRef, ProviderCard};

/// Refusal of a number as a model: lists in chats have no numbers.
const NUMBER: &str = "Numeric model selection is not supported in chat.\n\nBrowse: /models or /models <provider>\nSwitch: /model <provider/model>";
/// `/model @profile`
pub const PROFILE_ALONE: &str = "Auth profile override requires a model selection.";

/// Returns the reason for which a text is not even looked for among the models.
pub fn refusal(model: &str) -> Option<&'static str> {
    (!model.is_empty() && model.bytes().all(|b| b.is_ascii_digit())).then_some(NUMBER)
}

/// Tells which model a session was switched to, with a warning if there is one.
pub fn switched(chosen: &Chosen, profile: Option<&str>, warning: Option<&str>) -> String {
    let mut text = if chosen.is_default {
        format!("Model reset to default ({chosen}).")
    } else {
        format!("Model set to {chosen}.")
    };
    if let Some(profile) = profile {
        let _ = write!(text, " Auth profile set to {profile}.");
    }
    if let Some(warning) = warning {
        let _ = write!(text, "\n\n{warning}");
    }
    text
}

/// The model in use.
pub fn current(model: &ModelRef) -> String {
    format!(
        "Current: {model}\n\nSwitch: /model <provider/model>\nBrowse: /models (providers) or /models <provider> \
         (models)\nMore: /model status"
    )
}

/// Names the model in use, above a button that leads to the others.
pub fn current_above_buttons(model: &ModelRef) -> String {
    format!(
        "Current: {model}\n\nTap below to browse models, or use:\n/model <provider/model> to switch\n/model status for details"
    )
}

/// Facts that `/model status` shows.
pub struct ModelStatus<'a> {
    /// The model in use.
    pub current: &'a ModelRef,
    /// Models that may be chosen.
    pub choices: &'a Choices,
    /// The agent.
    pub agent: &'a str,
    /// Path of the agent's credentials file.
    pub auth_file: &'a str,
    /// True if the session's own choice was dropped just now because it is not allowed any more.
    pub was_reset: bool,
    /// Providers of the models that may be chosen.
    pub providers: &'a [ProviderCard],
}

/// Full status of the models.
pub fn status(status: &ModelStatus<'_>) -> String {
    let mut text = format!(
        "Current: {}\nDefault: {}\nAgent: {}\nAuth file: {}",
        status.current,
        status.choices.default_model(),
        status.agent,
        status.auth_file
    );
    if status.was_reset {
        text.push_str("\n(previous selection reset to default)");
    }
    // If the owner lists no models, providers without a credential have hundreds that nobody here
    // can use: only their names are given.
    let in_use = [&status.current.provider, &status.choices.default_model().provider];
    let (shown, idle): (Vec<_>, Vec<_>) = status.providers.iter().partition(|card| {
        status.choices.is_limited() || card.auth.is_some() || in_use.contains(&&card.provider)
    });
    for card in shown {
        let endpoint = card.endpoint.as_deref().unwrap_or("default");
        let api = card.api.as_deref().map(|api| format!(" api: {api}")).unwrap_or_default();
        let auth = card.auth.as_ref().map_or_else(|| "missing".to_owned(), auth_of);
        let _ = write!(text, "\n\n[{}] endpoint: {endpoint}{api} auth: {auth}", card.provider);
        for model in status.choices.known().iter().filter(|model| model.provider == card.provider) {
            let aliases: Vec<&str> = status.choices.aliases_of(model).collect();
            let aliases =
                if aliases.is_empty() { String::new() } else { format!(" ({})", aliases.join(", ")) };
            let _ = write!(text, "\n  • {model}{aliases}");
        }
    }
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|card| card.provider.as_str()).collect();
        let _ = write!(text, "\n\nWithout a credential: {}", names.join(", "));
    }
    text
}

/// `api-key sk-a…cdef (env: NAME)`
fn auth_of(label: &AuthLabel) -> String {
    let source = Some(&label.source).filter(|source| !source.is_empty());
    let parts = [
        Some(label.mode.to_owned()),
        Some(label.snippet.clone()).filter(|snippet| !snippet.is_empty()),
        source.map(|source| format!("({source})")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use openclaw_models::settings::ListedModel;
    use openclaw_models::{ModelSettings, ProviderId};

    use super::*;

    fn chosen(alias: Option<&str>, is_default: bool) -> Chosen {
        Chosen { model: ModelRef::new("p", "m"), is_default, alias: alias.map(str::to_owned) }
    }

    #[test]
    fn a_switch_is_told_as_clients_know_it() {
        let rows = [
            (chosen(None, false), None, "Model set to p/m."),
            (chosen(Some("x"), false), None, "Model set to x (p/m)."),
            (chosen(Some("x"), false), Some("p:me"), "Model set to x (p/m). Auth profile set to p:me."),
            (chosen(None, true), None, "Model reset to default (p/m)."),
        ];
        for (chosen, profile, expect) in rows {
            assert_eq!(switched(&chosen, profile, None), expect);
        }
        assert_eq!(
            switched(&chosen(None, false), None, Some("There is no credential.")),
            "Model set to p/m.\n\nThere is no credential."
        );
        assert_eq!(refusal("99"), Some(NUMBER));
        assert_eq!(refusal("4o"), None);
    }

    #[test]
    fn the_status_lists_what_may_be_chosen_by_provider() {
        let listed = ListedModel {
            key: "openai/gpt-5.2".to_owned(),
            alias: Some("g".to_owned()),
            ..ListedModel::default()
        };
        let settings = ModelSettings { listed: vec![listed], ..ModelSettings::default() };
        let choices = Choices::new(&settings, Vec::new(), ModelRef::new("fake", "fake-1"));
        let card = |provider: &str, endpoint: Option<&str>, auth| ProviderCard {
            provider: ProviderId::normalize(provider),
            endpoint: endpoint.map(str::to_owned),
            api: endpoint.map(|_| "openai-completions".to_owned()),
            auth,
        };
        let label = AuthLabel {
            mode: "api-key",
            source: "models.json".to_owned(),
            masked: String::new(),
            snippet: "fake…-key".to_owned(),
            card: String::new(),
            profile: None,
        };
        let text = status(&ModelStatus {
            current: choices.default_model(),
            choices: &choices,
            agent: "main",
            auth_file: "~/auth-profiles.json",
            was_reset: true,
            providers: &[card("openai", None, None), card("fake", Some("http://x"), Some(label))],
        });
        assert_eq!(
            text,
            "Current: fake/fake-1\nDefault: fake/fake-1\nAgent: main\nAuth file: ~/auth-profiles.json\n\
             (previous selection reset to default)\n\n\
             [openai] endpoint: default auth: missing\n  • openai/gpt-5.2 (g)\n\n\
             [fake] endpoint: http://x api: openai-completions auth: api-key fake…-key (models.json)\n  • fake/fake-1"
        );
        let all = ["openai/gpt-5.2", "fake/fake-1"].map(|name| name.split_once('/').unwrap());
        let all = all.map(|(provider, model)| ModelRef::new(provider, model)).to_vec();
        let unlimited = Choices::new(&ModelSettings::default(), all, ModelRef::new("fake", "fake-1"));
        let text = status(&ModelStatus {
            current: unlimited.default_model(),
            choices: &unlimited,
            agent: "main",
            auth_file: "~/auth-profiles.json",
            was_reset: false,
            providers: &[card("openai", None, None), card("fake", Some("http://x"), None)],
        });
        assert_eq!(
            text,
            "Current: fake/fake-1\nDefault: fake/fake-1\nAgent: main\nAuth file: ~/auth-profiles.json\n\n\
             [fake] endpoint: http://x api: openai-completions auth: missing\n  • fake/fake-1\n\n\
             Without a credential: openai"
        );
    }
}
