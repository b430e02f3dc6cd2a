//! Findings about accounts of platforms, the same that `openclaw channels status` warns of. Only a
//! running gateway knows which names in allowlists it could look up nowhere (decision 21), that
//! this machine's clock is not theirs, and what they refuse; without one the configuration says
//! what it can.

use std::time::Duration;

use openclaw_protocol::Call as _;
use openclaw_protocol::params::channels::ChannelsStatus;
use openclaw_sessions::checkup::{Finding, Severity};
use serde_json::{Value, json};

use crate::client::{self, AwaitedResponse, TargetFlags};
use crate::commands::channels::warnings::{self, Warning};
use crate::context::CliContext;

/// A gateway that says nothing for so long is left alone.
const PATIENCE: Duration = Duration::from_secs(3);

/// Findings from the running gateway.
pub(super) fn findings(context: &CliContext) -> Vec<Finding> {
    let flags = TargetFlags::default();
    let asked =
        client::call(context, &flags, ChannelsStatus::NAME, json!({}), AwaitedResponse::First, PATIENCE);
    let Ok(status) = client::block_on(asked) else { return of_configuration(context) };
    let channels = status.get("channelAccounts").and_then(Value::as_object).into_iter().flatten();
    let accounts = channels.flat_map(|(channel, accounts)| {
        accounts.as_array().into_iter().flatten().map(move |account| (channel, account))
    });
    let set_up = warnings::set_up(&context.config_or_default());
    accounts
        .filter(|(channel, _)| set_up.contains(&channel.as_str()))
        .flat_map(|(channel, account)| issues(channel, account))
        .collect()
}

/// Findings from the configuration alone. The config's own warnings tell which platforms are
/// switched off.
pub(super) fn of_configuration(context: &CliContext) -> Vec<Finding> {
    let config = context.config_or_default();
    warnings::of_configuration(&config).iter().filter(|warning| !warning.is_switch).map(finding).collect()
}

/// Findings about an account, except the setting that switches its platform off.
fn issues(channel: &str, account: &Value) -> Vec<Finding> {
    let told = warnings::told(channel, account).into_iter();
    told.filter(|warning| !warning.is_switch).map(|warning| finding(&warning)).collect()
}

fn finding(warning: &Warning) -> Finding {
    let message = warning.line();
    let message = message.trim_start_matches("- ").to_owned();
    Finding { id: "channels.account", severity: Severity::Warning, message, repairs: Vec::new() }
}
