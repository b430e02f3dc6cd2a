//! `openclaw system event|heartbeat|presence` (spec `cli.md` §3.10).

use std::time::Duration;

use openclaw_protocol::Call;
use openclaw_protocol::params::heartbeat::{LastHeartbeat, SetHeartbeats, Wake};
use openclaw_protocol::params::system::SystemPresence;
use serde_json::{Value, json};

use crate::args::{AskArgs, HeartbeatCommand, SystemArgs, SystemCommand};
use crate::client::{self, AwaitedResponse, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Time for a call unless asked otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(args: &SystemArgs, context: &CliContext) -> CommandResult {
    match &args.command {
        SystemCommand::Event { text, mode, ask } => event(context, text.as_deref(), mode, ask),
        SystemCommand::Heartbeat { command } => match command {
            HeartbeatCommand::Last { ask } => {
                let last = call::<LastHeartbeat>(context, ask, json!({}))?;
                match last.is_null() && !ask.json {
                    true => output::line("No heartbeat has run since the gateway started."),
                    false => output::json(&last),
                }
                Ok(0)
            }
            HeartbeatCommand::Enable { ask } => set(context, ask, HeartbeatSwitch::On),
            HeartbeatCommand::Disable { ask } => set(context, ask, HeartbeatSwitch::Off),
        },
        SystemCommand::Presence { ask } => {
            output::json(&call::<SystemPresence>(context, ask, json!({}))?);
            Ok(0)
        }
    }
}

fn event(context: &CliContext, text: Option<&str>, mode: &str, ask: &AskArgs) -> CommandResult {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| CommandFailure::usage("--text is required"))?;
    let mode = mode.trim();
    if mode != "now" && mode != "next-heartbeat" {
        return Err(CommandFailure::usage("--mode must be now or next-heartbeat"));
    }
    let answer = call::<Wake>(context, ask, json!({ "mode": mode, "text": text }))?;
    finish(ask, &answer)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HeartbeatSwitch {
    On,
    Off,
}

fn set(context: &CliContext, ask: &AskArgs, switch: HeartbeatSwitch) -> CommandResult {
    let answer = call::<SetHeartbeats>(context, ask, json!({ "enabled": switch == HeartbeatSwitch::On }))?;
    finish(ask, &answer)
}

fn finish(ask: &AskArgs, answer: &Value) -> CommandResult {
    if ask.json {
        output::json(answer);
    } else {
        output::line("ok");
    }
    Ok(0)
}

fn call<C: Call>(context: &CliContext, ask: &AskArgs, params: Value) -> Result<Value, CommandFailure> {
    let timeout = client::timeout_of(ask.target.timeout.as_deref(), TIMEOUT)?;
    let flags = TargetFlags::from(&ask.target);
    client::block_on(client::call(context, &flags, C::NAME, params, AwaitedResponse::First, timeout))
}
