//! Advice for a provider that has no credential.

use std::fmt;

use openclaw_config::profile::Instance;
use openclaw_protocol::AgentId;

use crate::catalog::own_key_variables;
use crate::reference::ProviderId;
use crate::settings::ModelSettings;

/// `--agent <id>` of a command, for an agent other than the default one, with the words of its
/// instance. Each agent has credentials of its own, and commands mean the default agent's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFlag {
    agent: Option<AgentId>,
    instance: Instance,
}

impl AgentFlag {
    /// Returns the flag that commands need for an agent.
    pub fn of(settings: &ModelSettings, agent: &AgentId) -> Self {
        let agent = (*agent != settings.default_agent).then(|| agent.clone());
        Self { agent, instance: settings.instance.clone() }
    }

    /// Returns the flag of the default agent.
    pub fn of_default(settings: &ModelSettings) -> Self {
        Self::of(settings, &settings.default_agent)
    }

    /// Returns a text as it is told to people of this instance; see [`Instance::in_text`].
    pub fn in_text(&self, text: &str) -> String {
        self.instance.in_text(text)
    }
}

impl fmt::Display for AgentFlag {
    /// Formats the flag with a blank before it; nothing for the default agent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.agent {
            Some(agent) => write!(f, " --agent {agent}"),
            None => Ok(()),
        }
    }
}

/// Returns a sentence that explains how to add a credential.
pub fn how_to_add(provider: &ProviderId, agent: &AgentFlag) -> String {
    let auth = format!("openclaw models auth{agent}");
    let paste = format!("run `{auth} paste-token --provider {provider}`");
    let told = match (provider.as_str(), own_key_variables(provider).last()) {
        ("anthropic", _) => {
            let set = set_variable("ANTHROPIC_API_KEY");
            format!("{set}; or, without a restart, run `claude setup-token`, then `{auth} setup-token`.")
        }
        ("openai-codex", _) => format!("Run `{auth} login --provider openai-codex`."),
        ("github-copilot", _) => format!("Run `{auth} login-github-copilot`."),
        (_, Some(name)) => format!("{}; or, without a restart, {paste}.", set_variable(name)),
        (_, None) => format!("Set models.providers.{provider}.apiKey in the config, or {paste}."),
    };
    agent.in_text(&told)
}

/// Returns the command that stores another credential of a provider, in backticks.
pub(super) fn how_to_replace(provider: &ProviderId, agent: &AgentFlag) -> String {
    let auth = format!("openclaw models auth{agent}");
    agent.in_text(&match provider.as_str() {
        "openai-codex" => format!("`{auth} login --provider openai-codex`"),
        "github-copilot" => format!("`{auth} login-github-copilot`"),
        _ => format!("`{auth} paste-token --provider {provider}`"),
    })
}

/// Returns the clause that says where a variable is set so that the gateway has it: it reads its environment and `.env` when it starts,
/// and a service has no variables of a shell.
fn set_variable(name: &str) -> String {
    format!(
        "Set {name} in ~/.openclaw/.env or in the environment of the gateway's service and restart the gateway"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_what_can_be_done_and_the_agent_if_it_is_another() {
        let settings = ModelSettings::default();
        let rows = [
            (
                "openai",
                "main",
                "Set OPENAI_API_KEY in ~/.openclaw/.env or in the environment of the gateway's service and \
                 restart the gateway; or, without a restart, run `openclaw models auth paste-token --provider \
                 openai`.",
            ),
            (
                "openai",
                "work",
                "Set OPENAI_API_KEY in ~/.openclaw/.env or in the environment of the gateway's service and \
                 restart the gateway; or, without a restart, run `openclaw models auth --agent work paste-token \
                 --provider openai`.",
            ),
            ("openai-codex", "main", "Run `openclaw models auth login --provider openai-codex`."),
            ("github-copilot", "work", "Run `openclaw models auth --agent work login-github-copilot`."),
            (
                "mine",
                "main",
                "Set models.providers.mine.apiKey in the config, or run `openclaw models auth paste-token --provider mine`.",
            ),
            (
                "anthropic",
                "work",
                "Set ANTHROPIC_API_KEY in ~/.openclaw/.env or in the environment of the gateway's service and \
                 restart the gateway; or, without a restart, run `claude setup-token`, then `openclaw models \
                 auth --agent work setup-token`.",
            ),
        ];
        for (provider, agent, expect) in rows {
            let flag = AgentFlag::of(&settings, &AgentId::normalize(agent));
            assert_eq!(how_to_add(&ProviderId::normalize(provider), &flag), expect);
        }
    }

    #[test]
    fn the_advice_means_the_instance_that_gives_it() {
        let vars = [("HOME", "/nowhere"), ("OPENCLAW_PROFILE", "job"), ("OPENCLAW_STATE_DIR", "/x")];
        let instance = Instance::of(&openclaw_config::Environment::new(vars, "/"));
        let settings = ModelSettings { instance, ..ModelSettings::default() };
        assert_eq!(
            how_to_add(&ProviderId::normalize("openai"), &AgentFlag::of_default(&settings)),
            "Set OPENAI_API_KEY in /x/.env or in the environment of the gateway's service and restart the gateway; or, without \
             a restart, run `openclaw --profile job models auth paste-token --provider openai`."
        );
    }
}
