//! What only the running gateway knows of its platforms: names in allowlists that it could look up nowhere (decision 21), and that this
//! machine's clock is not theirs.

use std::time::Duration;

use openclaw_channels::{SET_THE_CLOCK, clock_is_wrong};
use openclaw_protocol::Call as _;
use openclaw_protocol::params::channels::ChannelsStatus;
use openclaw_sessions::checkup::{Finding, Severity};
use serde_json::{Value, json};

use crate::client::{self, TargetFlags, Wait};
use crate::context::Context;

/// A gateway that says nothing for so long is left alone.
const PATIENCE: Duration = Duration::from_secs(3);

/// What it says of them.
pub(super) fn findings(context: &Context) -> Vec<Finding> {
    let flags = TargetFlags::default();
    let asked = client::call(context, &flags, ChannelsStatus::NAME, json!({}), Wait::First, PATIENCE);
    let Ok(status) = client::block_on(asked) else { return Vec::new() };
    let channels = status.get("channelAccounts").and_then(Value::as_object).into_iter().flatten();
    let accounts = channels.flat_map(|(channel, accounts)| {
        accounts.as_array().into_iter().flatten().map(move |account| (channel, account))
    });
    accounts
        .flat_map(|(channel, account)| [unknown(channel, account), wrong_clock(channel, account)])
        .flatten()
        .collect()
}

fn wrong_clock(channel: &str, account: &Value) -> Option<Finding> {
    let ahead = account.get("clockAheadMs")?.as_i64()?;
    let platform = openclaw_channels::registry::by_name(channel).map_or(channel, |info| info.label);
    let message = format!("{}. {SET_THE_CLOCK}.", clock_is_wrong(ahead, platform));
    Some(Finding { id: "channels.clock", severity: Severity::Warning, message, repairs: Vec::new() })
}

fn unknown(channel: &str, account: &Value) -> Option<Finding> {
    let names = account.get("unknownNames")?.as_array()?.iter().filter_map(Value::as_str);
    let names = names.collect::<Vec<_>>().join(", ");
    let id = account.get("accountId")?.as_str()?;
    let message = format!(
        "Nobody is known by {names} in the lists of channels.{channel} (account {id}), commands.ownerAllowFrom and \
         tools.elevated.allowFrom: such a name matches nobody. Write the numeric id."
    );
    Some(Finding { id: "channels.names", severity: Severity::Warning, message, repairs: Vec::new() })
}
