//! Audit of the tools: what runs may do on this machine.

use std::collections::BTreeMap;

use openclaw_config::Config;
use openclaw_config::settings::{ExecGate, SandboxMode, TextOrNumber};
use openclaw_protocol::{DmScope, SessionScope};
use openclaw_tools::sandbox::SandboxSettings;

use super::channels::accounts;
use super::{AuditFinding, Severity};

/// Longest list of people who may have commands elevated that is not reported as large.
const MANY: usize = 25;

pub(super) fn findings(config: &Config) -> Vec<AuditFinding> {
    elevated(config).into_iter().chain(exec(config)).collect()
}

/// Lists of who may have commands elevated, of all agents and of single ones.
fn elevated(config: &Config) -> Vec<AuditFinding> {
    let own = config.agents.list.iter().enumerate();
    let own = own.map(|(at, entry)| (format!("agents.list.{at}.tools.elevated"), &entry.tools.elevated));
    let all = std::iter::once(("tools.elevated".to_owned(), &config.tools.elevated)).chain(own);
    all.filter(|(_, setting)| setting.enabled != Some(false))
        .flat_map(|(key, setting)| lists(&key, &setting.allow_from))
        .collect()
}

fn lists(key: &str, allow_from: &BTreeMap<String, Vec<TextOrNumber>>) -> Vec<AuditFinding> {
    let of_platform = |(platform, entries): (&String, &Vec<TextOrNumber>)| {
        let path = format!("{key}.allowFrom.{platform}");
        let id = format!("tools.elevated.allowFrom.{platform}");
        if entries.iter().any(|entry| entry.to_string() == "*") {
            let title = format!("Everybody on {platform} may have commands elevated");
            let detail = format!(
                "{path} holds \"*\": whoever is heard there may have commands run on this host unasked."
            );
            return Some(
                AuditFinding::new(format!("{id}.wildcard"), Severity::Critical, title, detail)
                    .remedy(format!("Write the ids of those who may into {path}.")),
            );
        }
        let count = entries.len();
        (count > MANY).then(|| {
            let title = format!("Many people on {platform} may have commands elevated");
            AuditFinding::new(
                format!("{id}.large"),
                Severity::Warn,
                title,
                format!("{path} has {count} entries."),
            )
        })
    };
    allow_from.iter().filter_map(of_platform).collect()
}

/// Commands that run on this host unasked, for agents that people on chat platforms can talk to.
fn exec(config: &Config) -> Option<AuditFinding> {
    if accounts(config).is_empty() {
        return None;
    }
    let is_open = |id: &openclaw_protocol::AgentId| {
        let is_outside = match SandboxSettings::of(config, id).mode {
            SandboxMode::All => false,
            SandboxMode::NonMain => people_reach_main(config),
            SandboxMode::Off => true,
        };
        is_outside && config.agent(id).exec.gate() == ExecGate::Open
    };
    let open: Vec<String> =
        config.agent_ids().iter().filter(|id| is_open(id)).map(ToString::to_string).collect();
    (!open.is_empty()).then(|| {
        AuditFinding::new(
            "exec.full_without_sandbox",
            Severity::Warn,
            "Commands run on this host unasked",
            format!(
                "People on chat platforms talk to these agents, whose commands run outside of a sandbox without a question: {}.",
                open.join(", ")
            ),
        )
        .remedy(REMEDY)
    })
}

/// Each of the three ends the finding.
const REMEDY: &str = "Set sandbox.mode of these agents (or agents.defaults.sandbox.mode) to \"all\"; or to \"non-main\" with \
                      session.dmScope \"per-channel-peer\", as non-main leaves out the main session, where private chats are \
                      by default; or set tools.exec.ask to \"always\" and approvals.exec.enabled to true, so that whoever writes \
                      is asked in the chat: without the second only clients of the gateway are.";

/// True if people on chat platforms may be in an agent's main session, which the sandbox mode `non-main` leaves out.
fn people_reach_main(config: &Config) -> bool {
    let session = &config.session;
    session.dm_scope == DmScope::Main || session.scope == SessionScope::Global
}
