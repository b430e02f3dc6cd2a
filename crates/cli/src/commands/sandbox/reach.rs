//! Reasons why the sandboxes that the config asks for can't be had.

use std::time::Duration;

use openclaw_config::Config;
use openclaw_config::settings::{GatewayMode, SandboxMode};
use openclaw_protocol::AgentId;
use openclaw_tools::sandbox::{SandboxSettings, Sandboxes};

use crate::client;
use crate::context::CliContext;

/// Longest wait for a container program.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reason why an agent's runs that are held in a sandbox would not begin; `None` where none are held, or there is a sandbox for them.
pub(super) fn problem(context: &CliContext, config: &Config, agent: &AgentId) -> Option<String> {
    let settings = SandboxSettings::of(config, agent);
    if settings.mode == SandboxMode::Off {
        return None;
    }
    let sandboxes = Sandboxes::of_this_process(context.paths().state_dir());
    let checked = async { Ok(sandboxes.check(&settings, config.environment(), PATIENCE).await) };
    client::block_on(checked).ok()?.err().map(|error| error.to_string())
}

/// Returns a sentence for each reason why runs would not begin, with the agents and the sessions it concerns. The sandboxes of a gateway
/// elsewhere are its own.
pub(in crate::commands) fn problems(context: &CliContext, config: &Config) -> Vec<String> {
    if config.gateway.mode == Some(GatewayMode::Remote) {
        return Vec::new();
    }
    let mut asked: Vec<(SandboxSettings, Option<String>)> = Vec::new();
    let mut found: Vec<(SandboxMode, String, Vec<AgentId>)> = Vec::new();
    for agent in config.agent_ids() {
        let settings = SandboxSettings::of(config, &agent);
        let mode = settings.mode;
        let known = asked.iter().find(|(known, _)| {
            (known.mode, known.backend) == (mode, settings.backend)
                && known.docker.image == settings.docker.image
        });
        let problem = match known {
            Some((_, problem)) => problem.clone(),
            None => {
                let problem = problem(context, config, &agent);
                asked.push((settings, problem.clone()));
                problem
            }
        };
        let Some(why) = problem else { continue };
        match found.iter_mut().find(|(of, known, _)| (*of, known.as_str()) == (mode, why.as_str())) {
            Some((_, _, agents)) => agents.push(agent),
            None => found.push((mode, why, vec![agent])),
        }
    }
    found.into_iter().map(|(mode, why, agents)| told(mode, &why, &agents)).collect()
}

fn told(mode: SandboxMode, why: &str, agents: &[AgentId]) -> String {
    let names: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
    let names = names.join(", ");
    let runs = match mode {
        SandboxMode::NonMain => format!("Runs of {names} outside of the main session"),
        SandboxMode::All | SandboxMode::Off => format!("Runs of {names}"),
    };
    let mode = mode.as_str();
    format!("{runs} do not begin, as there is no sandbox for them (sandbox.mode is \"{mode}\"): {why}.")
}
