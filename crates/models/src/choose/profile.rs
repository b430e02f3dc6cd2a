//! The credential a person wants a session to use: the `@profile` of `/model name@profile` (spec `models.md` §1.3, §8.6).

use std::path::Path;

use crate::credentials::AuthStore;
use crate::reference::ProviderId;
use crate::select::Models;

/// Reason why a profile can't be used; people are told these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The agent has none of that id.
    #[error("Auth profile \"{0}\" not found.")]
    Unknown(String),
    /// The profile belongs to another provider.
    #[error("Auth profile \"{profile}\" is for {of}, not {wanted}.")]
    Foreign {
        /// The profile.
        profile: String,
        /// Provider of the profile.
        of: ProviderId,
        /// The provider of the model.
        wanted: ProviderId,
    },
}

impl Models {
    /// Checks that an agent has a profile for a provider. Reads the agent's credentials.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub async fn check_profile(
        &self,
        agent_dir: &Path,
        provider: &ProviderId,
        profile: &str,
    ) -> Result<(), ProfileError> {
        let (store, _) = self.credentials(agent_dir).await;
        check(&store, provider, profile)
    }
}

fn check(store: &AuthStore, provider: &ProviderId, profile: &str) -> Result<(), ProfileError> {
    let Some(credential) = store.get(profile) else {
        return Err(ProfileError::Unknown(profile.to_owned()));
    };
    if credential.provider == *provider {
        return Ok(());
    }
    let (profile, of, wanted) = (profile.to_owned(), credential.provider.clone(), provider.clone());
    Err(ProfileError::Foreign { profile, of, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_one_of_the_agents_and_of_the_models_provider() {
        let text = r#"{"profiles":{"anthropic:work":{"type":"api_key","provider":"anthropic","key":"k"},
            "z":{"type":"token","provider":"z.ai","token":"t"}}}"#;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(crate::credentials::FILE), text).unwrap();
        let store = AuthStore::load(dir.path()).unwrap();
        let rows = [
            ("anthropic:work", "anthropic", Ok(())),
            ("z", "zai", Ok(())),
            ("gone", "anthropic", Err("Auth profile \"gone\" not found.")),
            (
                "anthropic:work",
                "openai",
                Err("Auth profile \"anthropic:work\" is for anthropic, not openai."),
            ),
        ];
        for (profile, provider, expect) in rows {
            let found = check(&store, &ProviderId::normalize(provider), profile);
            assert_eq!(found.map_err(|error| error.to_string()), expect.map_err(str::to_owned), "{profile}");
        }
    }
}
