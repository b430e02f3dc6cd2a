//! Errors of looking for a credential.

use std::fmt::Display;

/// Reason why a provider can't be called. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The profile asked for does not exist or holds nothing.
    #[error("No credentials found for profile \"{0}\".")]
    NoProfile(String),
    /// The profile asked for is another provider's.
    #[error("Auth profile \"{profile}\" is for {is}, not {wanted}.")]
    ForeignProfile {
        /// The profile.
        profile: String,
        /// Actual provider of the profile.
        is: String,
        /// Expected provider.
        wanted: String,
    },
    /// Every profile is in cooldown or disabled. Clients match the beginning of the text.
    #[error("No available auth profile for {provider} (all in cooldown or unavailable). {why}")]
    AllCoolingDown {
        /// The provider.
        provider: String,
        /// Cause of each cooldown, its end, and the next step.
        why: String,
    },
    /// A token or login has expired, and this version can't renew it.
    #[error(
        "the login of profile \"{0}\" has expired and can't be renewed; log in again with \
         `openclaw models auth login`, or use an API key"
    )]
    Expired(String),
    /// A login could not be renewed: the person must try again or log in again.
    #[error("OAuth token refresh failed for {provider}: {what}. Please try again or re-authenticate.")]
    Renewal {
        /// The provider.
        provider: String,
        /// Description of the error.
        what: String,
    },
    /// The process is ending.
    #[error("reading the credentials was interrupted")]
    Interrupted,
    /// Only a ChatGPT login exists, which serves another provider.
    #[error(
        "No API key found for provider \"openai\". You are logged in with OpenAI Codex (ChatGPT): use \
         openai-codex/gpt-5.3-codex, or set OPENAI_API_KEY to use openai models."
    )]
    CodexInstead,
    /// A key command failed.
    #[error("the apiKey command of provider \"{provider}\" {what}")]
    Command {
        /// The provider.
        provider: String,
        /// Description of the failure.
        what: String,
    },
    /// Google's application default credentials can't be used.
    #[error("{0}")]
    Google(String),
    /// AWS's profile gives no keys.
    #[error("{0}")]
    Aws(String),
    /// No credential was found anywhere.
    #[error(
        "No API key found for provider \"{provider}\". Auth store: {store} (agentDir: {agent_dir}). {fix}"
    )]
    NoKey {
        /// The provider.
        provider: String,
        /// The file that was looked into.
        store: String,
        /// Directory of the agent.
        agent_dir: String,
        /// Advice on how to add a credential.
        fix: String,
    },
}

impl CredentialError {
    /// A login that could not be renewed.
    pub(crate) fn renewal(provider: impl Display, what: impl Display) -> Self {
        Self::Renewal { provider: provider.to_string(), what: what.to_string() }
    }
}
