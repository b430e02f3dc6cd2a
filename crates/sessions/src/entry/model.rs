//! The model and the credential a session was switched to.

use super::{AuthProfileSource, SessionEntry};

/// A provider and a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelName {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model: String,
}

impl ModelName {
    /// A model of a provider.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// The model of a row: its override, else the default. An override without provider is one of the default's.
    pub fn of_entry(entry: &SessionEntry, default: &Self) -> Self {
        match entry.model_override_ref() {
            None => default.clone(),
            Some((provider, model)) => Self::new(provider.unwrap_or(&default.provider), model),
        }
    }
}

impl SessionEntry {
    /// Switches to a model (provider and id), or to the agent's own. Another model needs other credentials: the profile
    /// chosen before goes, and the one a person names with the model comes.
    pub fn switch_model(&mut self, model: Option<(&str, &str)>, profile: Option<&str>) {
        self.provider_override = model.map(|(provider, _)| provider.into());
        self.model_override = model.map(|(_, model)| model.into());
        self.auth_profile_override = profile.map(Box::from);
        self.auth_profile_override_source = profile.map(|_| AuthProfileSource::User);
        self.auth_profile_override_compaction_count = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_takes_the_place_of_the_old_one_and_of_its_credentials() {
        let old = r#"{"providerOverride":"a","modelOverride":"b","authProfileOverride":"a:me","authProfileOverrideSource":"auto",
            "authProfileOverrideCompactionCount":2,"label":"x"}"#;
        let rows = [
            (None, None, r#"{"label":"x"}"#),
            (
                Some(("openai", "gpt-5.2")),
                None,
                r#"{"providerOverride":"openai","modelOverride":"gpt-5.2","label":"x"}"#,
            ),
            (
                Some(("a", "c")),
                Some("a:you"),
                r#"{"providerOverride":"a","modelOverride":"c","authProfileOverride":"a:you","authProfileOverrideSource":"user",
                    "label":"x"}"#,
            ),
            (
                None,
                Some("d:me"),
                r#"{"authProfileOverride":"d:me","authProfileOverrideSource":"user","label":"x"}"#,
            ),
        ];
        for (model, profile, expect) in rows {
            let mut entry: SessionEntry = serde_json::from_str(old).unwrap();
            entry.switch_model(model, profile);
            assert_eq!(entry, serde_json::from_str(expect).unwrap(), "{model:?} {profile:?}");
        }
    }
}
