//! Checks that a gateway runs and answers, that its sandboxes can be had, and that the security audit has nothing against it.

use std::time::Duration;

use openclaw_config::Config;
use openclaw_gateway::RunningGateway;
use openclaw_protocol::Call as _;
use openclaw_protocol::params::health::Health;
use openclaw_sessions::checkup::{Finding, Severity};
use serde_json::json;

use super::config_findings;
use crate::client::{self, AwaitedResponse, GatewayTarget, TargetFlags};
use crate::commands::sandbox::reach;
use crate::commands::{audit, dashboard};
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::output;
use crate::service::{self, process};

/// Longest wait for a gateway or a model server, which count as down after that.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Results of the checks.
#[derive(Debug, Default)]
pub(super) struct AtWork {
    /// Problems.
    pub(super) findings: Vec<Finding>,
    /// Things that are as they should be, or that nobody has set up yet, as sentences.
    pub(super) facts: Vec<String>,
}

impl AtWork {
    pub(super) fn warn(&mut self, id: &'static str, message: String) {
        self.findings.push(Finding { id, severity: Severity::Warning, message, repairs: Vec::new() });
    }
}

/// Checks all of it. Without a usable config nothing is known of them.
pub(super) fn look(context: &CliContext, running: Option<RunningGateway>) -> AtWork {
    let mut seen = AtWork::default();
    let Ok(config) = context.config().cloned() else { return seen };
    if context.loaded.snapshot.exists {
        gateway(context, &config, running, &mut seen);
        audit(context, &config, &mut seen);
        seen.findings.extend(reach::problems(context, &config).into_iter().map(|message| Finding {
            id: "sandbox.unavailable",
            severity: Severity::Error,
            message,
            repairs: Vec::new(),
        }));
    }
    seen
}

fn gateway(context: &CliContext, config: &Config, running: Option<RunningGateway>, seen: &mut AtWork) {
    let flags = TargetFlags::default();
    let Ok(target) = GatewayTarget::of(config, context.env(), &flags) else { return };
    // A remote one that can't be meant is a finding about the config.
    if target.note.is_some() {
        return;
    }
    let who = match (target.bind.is_some(), running) {
        (true, None) => return no_gateway(context, &target, seen),
        (true, Some(running)) => format!("The gateway{}", process(running)),
        (false, _) => format!("The gateway at {}", target.url),
    };
    let asked = client::call(context, &flags, Health::NAME, json!({}), AwaitedResponse::First, PATIENCE);
    match client::block_on(asked) {
        Ok(_) => match dashboard::refused_token(context, config, &target) {
            Some(refused) => seen.warn("gateway.token", format!("{refused}.")),
            None => seen.facts.push(format!("{who} runs and answers.")),
        },
        Err(failure) => seen.warn("gateway.silent", silent(&who, &failure)),
    }
}

/// Tells how to start a gateway, or what keeps one from starting.
fn no_gateway(context: &CliContext, target: &GatewayTarget, seen: &mut AtWork) {
    match client::another_program(context, target) {
        Some(held) => {
            seen.warn("gateway.port", format!("No gateway runs here now, and none can start. {held}"))
        }
        None => seen.facts.push(format!(
            "No gateway runs here now, so nobody is answered. To start one: {}",
            service::start_command(context)
        )),
    }
}

/// Sentences about a gateway that does not answer: the cause, and the next step.
fn silent(who: &str, failure: &CommandFailure) -> String {
    let why = failure.message.lines().next().unwrap_or_default().trim_end_matches('.');
    let told = match failure.code {
        // The message itself says which gateway is meant.
        "other-port" | "no-port" => format!("{why}."),
        _ => format!("{who} does not answer as it should: {why}."),
    };
    match &failure.hint {
        Some(hint) => format!("{told} {hint}"),
        None => told,
    }
}

/// Counts what the security audit calls critical. Modes of files are findings of the doctor's own, and so is a secret that is
/// missing.
fn audit(context: &CliContext, config: &Config, seen: &mut AtWork) {
    let report = audit::report(context, config);
    let is_refused = config_findings::refused(context).is_some();
    let is_own = |id: &str| id.starts_with("fs.") || (is_refused && id.ends_with("_no_auth"));
    let is_counted = |finding: &&audit::AuditFinding| {
        finding.severity == audit::Severity::Critical && !is_own(&finding.check_id)
    };
    let titles: Vec<&str> =
        report.findings.iter().filter(is_counted).map(|finding| finding.title.as_str()).collect();
    if titles.is_empty() {
        return;
    }
    let list = context.hint_command("openclaw security audit");
    let count = match titles.len() {
        1 => "a critical finding".to_owned(),
        more => format!("{more} critical findings"),
    };
    let message = format!(
        "The security audit has {count}: {}. What to do: {list}",
        output::one_line(&titles.join("; "))
    );
    seen.findings.push(Finding {
        id: "security.critical",
        severity: Severity::Error,
        message,
        repairs: Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_does_not_answer_is_told_with_the_next_step() {
        let elsewhere =
            "The gateway (pid 7) listens on port 1; this command asked ws://h:2 (port from gateway.port).";
        let rows = [
            (
                CommandFailure::new("other-port", elsewhere).hint("Pass OPENCLAW_GATEWAY_PORT=1 to this command."),
                format!("{elsewhere} Pass OPENCLAW_GATEWAY_PORT=1 to this command."),
            ),
            (
                CommandFailure::new("timeout", "gateway timeout after 3000ms\nGateway target: ws://h:2")
                    .hint("Look at `openclaw logs`."),
                "The gateway does not answer as it should: gateway timeout after 3000ms. Look at `openclaw logs`."
                    .to_owned(),
            ),
            (
                CommandFailure::new("closed", "the connection was closed."),
                "The gateway does not answer as it should: the connection was closed.".to_owned(),
            ),
        ];
        for (failure, expect) in rows {
            assert_eq!(silent("The gateway", &failure), expect);
        }
    }
}
