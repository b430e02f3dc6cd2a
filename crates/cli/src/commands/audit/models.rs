//! Models that are easily talked into something, by what their names say.

use openclaw_config::Config;
use openclaw_config::settings::SandboxMode;
use openclaw_models::scan::parameters;
use openclaw_protocol::AgentId;
use openclaw_tools::sandbox::SandboxSettings;

use super::{AuditFinding, Severity};

/// Limit in billions of parameters up to which a model is called small.
const SMALL: f64 = 300.0;
/// Parts of names of families that are no longer kept up.
const LEGACY: &[(&str, &str)] = &[
    ("gpt-3.5", "GPT-3.5"),
    ("gpt-4-0314", "GPT-4 of 2023"),
    ("gpt-4-0613", "GPT-4 of 2023"),
    ("claude-2", "Claude 2"),
    ("claude-instant", "Claude Instant"),
];
/// Tools that bring words of strangers in.
const WEB_TOOLS: [&str; 3] = ["web_fetch", "web_search", "group:web"];

pub(super) fn findings(config: &Config) -> Vec<AuditFinding> {
    let used: Vec<(AgentId, String)> =
        config.agent_ids().iter().flat_map(|id| models_of(config, id)).collect();
    let named = |says: &dyn Fn(&str) -> Option<String>| -> Vec<String> {
        let mut found: Vec<String> =
            used.iter().filter_map(|(_, model)| Some(format!("{model} ({})", says(model)?))).collect();
        found.sort();
        found.dedup();
        found
    };
    let told = |id: &str, title: &str, found: Vec<String>| {
        (!found.is_empty()).then(|| {
            let detail = format!(
                "Such models follow instructions in what they read more easily: {}.",
                found.join(", ")
            );
            AuditFinding::new(id, Severity::Warn, title, detail)
                .remedy("Use a newer and larger model where strangers are heard or tools are dangerous.")
        })
    };
    let legacy = told(
        "models.legacy",
        "Models of old families are configured",
        named(&|model| legacy(model).map(str::to_owned)),
    );
    let weak = told(
        "models.weak_tier",
        "Weak models are configured",
        named(&|model| weak(model).map(str::to_owned)),
    );
    legacy.into_iter().chain(weak).chain(small(config, &used)).collect()
}

/// The models an agent may be answered by, as they are written.
fn models_of(config: &Config, id: &AgentId) -> Vec<(AgentId, String)> {
    let agent = config.agent(id);
    let all = agent.model_primary.into_iter().chain(agent.model_fallbacks);
    all.map(|model| (id.clone(), model)).collect()
}

/// Small models: critical where one reads the web and runs outside of a sandbox.
fn small(config: &Config, used: &[(AgentId, String)]) -> Option<AuditFinding> {
    let small: Vec<(&AgentId, String)> = used
        .iter()
        .filter_map(|(agent, model)| {
            let size = parameters(model).filter(|size| *size <= SMALL)?;
            Some((agent, format!("{model} ({size}B, agent {agent})")))
        })
        .collect();
    if small.is_empty() {
        return None;
    }
    let is_exposed = |agent: &AgentId| {
        SandboxSettings::of(config, agent).mode != SandboxMode::All && reads_the_web(config, agent)
    };
    let severity =
        if small.iter().any(|(agent, _)| is_exposed(agent)) { Severity::Critical } else { Severity::Info };
    let names: Vec<&str> = small.iter().map(|(_, name)| name.as_str()).collect();
    let detail = format!(
        "Small models follow instructions in what they read: {}. Critical where one reads the web and its sessions are not all sandboxed.",
        names.join(", ")
    );
    Some(
        AuditFinding::new("models.small_params", severity, "Small models are configured", detail)
            .remedy("Set agents.defaults.sandbox.mode to \"all\", and deny group:web to such agents."),
    )
}

fn reads_the_web(config: &Config, agent: &AgentId) -> bool {
    let is_there = config.tools.web.fetch.enabled || config.tools.web.search.enabled;
    let shared = config.tools.policy.deny.as_ref();
    let own = config.agent(agent).tool_policy.deny;
    let denied =
        |name: &str| shared.into_iter().chain(&own).flatten().any(|entry| entry == name || entry == "*");
    let [fetch, search, group] = WEB_TOOLS;
    is_there && !denied(group) && !(denied(fetch) && denied(search))
}

fn legacy(model: &str) -> Option<&'static str> {
    let name = model.to_lowercase();
    LEGACY.iter().find(|(part, _)| name.contains(part)).map(|(_, family)| *family)
}

/// Reason why a model of a maintained family is weak: a small tier, or an older generation.
fn weak(model: &str) -> Option<&'static str> {
    if legacy(model).is_some() {
        return None;
    }
    let name = model.to_lowercase();
    if name.contains("haiku") {
        return Some("Haiku tier");
    }
    if let Some((_, rest)) = name.split_once("gpt-")
        && generation(rest).is_some_and(|generation| generation < 5.0)
    {
        return Some("below GPT-5");
    }
    let (_, rest) = name.split_once("claude-")?;
    // Both orders are in use: claude-3-5-sonnet and claude-opus-4-5.
    let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    generation(rest).filter(|generation| *generation < 4.5).map(|_| "below Claude 4.5")
}

/// The number a name begins with: `4-5-20250929` is 4.5, `4o` is 4, and the date in `4-20250514`
/// does not count.
fn generation(name: &str) -> Option<f64> {
    let mut parts = name.split(['-', '.']);
    let number = |part: &str| -> Option<f64> {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        if digits.len() > 2 { None } else { digits.parse().ok() }
    };
    let first = number(parts.next()?)?;
    let second = parts.next().and_then(number).unwrap_or_default();
    Some(if second < 10.0 { first + second / 10.0 } else { first + second / 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_and_old_models_are_told_by_their_names() {
        let rows = [
            ("openai/gpt-3.5-turbo", Some("GPT-3.5"), None),
            ("openai/gpt-4-0613", Some("GPT-4 of 2023"), None),
            ("openai/gpt-4o", None, Some("below GPT-5")),
            ("openai/gpt-4.1", None, Some("below GPT-5")),
            ("openai/gpt-5.2", None, None),
            ("openai/gpt-oss-120b", None, None),
            ("anthropic/claude-2.1", Some("Claude 2"), None),
            ("anthropic/claude-3-5-sonnet-20241022", None, Some("below Claude 4.5")),
            ("anthropic/claude-sonnet-4-20250514", None, Some("below Claude 4.5")),
            ("anthropic/claude-opus-4-1", None, Some("below Claude 4.5")),
            ("anthropic/claude-opus-4-5", None, None),
            ("anthropic/claude-opus-4-6", None, None),
            ("anthropic/claude-sonnet-4.5", None, None),
            ("anthropic/claude-haiku-4-5", None, Some("Haiku tier")),
            ("local/qwen3", None, None),
        ];
        for (model, old, small) in rows {
            assert_eq!((legacy(model), weak(model)), (old, small), "{model}");
        }
    }
}
