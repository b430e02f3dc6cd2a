//! `openclaw gateway call|health|status|probe|usage-cost` (spec `cli.md` §3.4).

use std::time::Duration;

use openclaw_models::usage::{dollars, short_count};
use openclaw_protocol::Call as _;
use openclaw_protocol::params::usage::{UsageCost, UsageTotals};
use serde_json::{Value, json};

use super::{gateway_probe, gateway_status, health};
use crate::args::{GatewayCommand, RunArgs, TargetArgs, positive};
use crate::client::{self, AwaitedResponse, DEFAULT_TIMEOUT, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Time for `gateway probe` unless asked otherwise.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn run(command: GatewayCommand, parent: &RunArgs, context: &CliContext) -> CommandResult {
    match command {
        // Handled by the caller: it needs the parent's flags whole.
        GatewayCommand::Run(args) => super::gateway_run::run(args, context),
        GatewayCommand::Call { method, params, expect_final, json, target } => {
            let wait = if expect_final { AwaitedResponse::Final } else { AwaitedResponse::First };
            call(context, &merged(target, parent), &method, &params, wait, json)
        }
        GatewayCommand::Health { json, target, .. } => {
            let health = health::ask(context, &merged(target, parent), json!({}))?;
            if json {
                output::json(&health);
            } else {
                output::line(&context.style.accent("Gateway Health"));
                let duration = health.get("durationMs").and_then(Value::as_u64).unwrap_or_default();
                output::line(&format!("{} ({duration}ms)", context.style.success("OK")));
                health::print(health)?;
            }
            Ok(0)
        }
        GatewayCommand::Status { json, no_probe, strict, target, deep: _ } => {
            let probe = if no_probe {
                gateway_status::ProbeChoice::Skip
            } else {
                gateway_status::ProbeChoice::Connect
            };
            gateway_status::run(context, &merged(target, parent), probe, strict, json)
        }
        GatewayCommand::UsageCost { days, json, target, .. } => {
            usage_cost(context, &merged(target, parent), &days, json)
        }
        GatewayCommand::Probe { json, target, ssh, ssh_identity, ssh_auto } => {
            if ssh.is_some() || ssh_identity.is_some() || ssh_auto {
                return Err(CommandFailure::usage(
                    "gateway probe --ssh: not implemented yet in this version",
                )
                .hint(
                    "Open the tunnel yourself (ssh -N -L 18789:127.0.0.1:18789 user@host) and probe again.",
                ));
            }
            let target = merged(target, parent);
            let timeout = client::timeout_of(target.timeout.as_deref(), PROBE_TIMEOUT)?;
            gateway_probe::run(context, &TargetFlags::from(&target), timeout, json)
        }
    }
}

fn usage_cost(context: &CliContext, target: &TargetArgs, days: &str, json: bool) -> CommandResult {
    let days: u32 = positive(
        days,
        format!(
            "--days must be a positive integer of at most {}, not \"{}\"",
            u32::MAX,
            output::one_line(days)
        ),
    )?;
    let timeout = client::timeout_of(target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let flags = TargetFlags::from(target);
    let asked = client::call(
        context,
        &flags,
        UsageCost::NAME,
        json!({ "days": days }),
        AwaitedResponse::First,
        timeout,
    );
    let answer = client::block_on(asked)?;
    if json {
        output::json(&answer);
        return Ok(0);
    }
    let cost = client::read::<UsageCost>(answer, "cost")?;
    output::line(&context.style.accent(&format!("Usage cost ({days} days)")));
    output::line(&format!("Total: {}", spent(&cost.totals)));
    match cost.daily.last() {
        Some(day) => output::line(&format!("Latest day: {} · {}", day.date, spent(&day.totals))),
        None => output::line("Nothing was used in this time."),
    }
    Ok(0)
}

/// `$0.0010 · 1.0k tokens`, and the number of answers without a known price.
fn spent(totals: &UsageTotals) -> String {
    let missing = match totals.missing_cost_entries {
        0 => String::new(),
        count => format!(" · {count} without a known price"),
    };
    format!("{} · {} tokens{missing}", dollars(totals.total_cost), short_count(totals.total_tokens))
}

/// Options bind to the command that declares them; the parent's count where the command has none of its own.
fn merged(target: TargetArgs, parent: &RunArgs) -> TargetArgs {
    TargetArgs {
        token: target.token.or_else(|| parent.token.clone()),
        password: target.password.or_else(|| parent.password.clone()),
        ..target
    }
}

fn call(
    context: &CliContext,
    target: &TargetArgs,
    method: &str,
    params: &str,
    wait: AwaitedResponse,
    json: bool,
) -> CommandResult {
    let failed = |failure: CommandFailure| CommandFailure {
        message: format!("Gateway call failed: Error: {}", failure.message),
        ..failure
    };
    let params: Value = serde_json::from_str(params).map_err(|error| {
        CommandFailure::usage(format!("Gateway call failed: SyntaxError: --params: {error}"))
    })?;
    let timeout = client::timeout_of(target.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let flags = TargetFlags::from(target);
    let answer = client::call(context, &flags, method, params, wait, timeout);
    let payload = client::block_on(answer).map_err(failed)?;
    if !json {
        output::line(&format!("{}: {method}", context.style.accent("Gateway call")));
    }
    output::json(&payload);
    Ok(0)
}
