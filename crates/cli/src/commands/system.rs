//! `openclaw system event|heartbeat|presence` (spec `cli.md` §3.10).

use std::time::Duration;

use openclaw_protocol::Call;
use openclaw_protocol::params::heartbeat::{LastHeartbeat, SetHeartbeats, Wake};
use openclaw_protocol::params::system::SystemPresence;
use serde_json::{Value, json};

use crate::args::{AskArgs, HeartbeatCommand, SystemArgs, SystemCommand};
use crate::client::{self, TargetFlags, Wait};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Time for a call unless asked otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(args: &SystemArgs, context: &Context) -> Outcome {
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
            HeartbeatCommand::Enable { ask } => set(context, ask, Switch::On),
            HeartbeatCommand::Disable { ask } => set(context, ask, Switch::Off),
        },
        SystemCommand::Presence { ask } => {
            output::json(&call::<SystemPresence>(context, ask, json!({}))?);
            Ok(0)
        }
    }
}

fn event(context: &Context, text: Option<&str>, mode: &str, ask: &AskArgs) -> Outcome {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Failure::usage("--text is required"))?;
    let mode = mode.trim();
    if mode != "now" && mode != "next-heartbeat" {
        return Err(Failure::usage("--mode must be now or next-heartbeat"));
    }
    let answer = call::<Wake>(context, ask, json!({ "mode": mode, "text": text }))?;
    finish(ask, &answer)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

fn set(context: &Context, ask: &AskArgs, switch: Switch) -> Outcome {
    let answer = call::<SetHeartbeats>(context, ask, json!({ "enabled": switch == Switch::On }))?;
    finish(ask, &answer)
}

fn finish(ask: &AskArgs, answer: &Value) -> Outcome {
    if ask.json {
        output::json(answer);
    } else {
        output::line("ok");
    }
    Ok(0)
}

fn call<C: Call>(context: &Context, ask: &AskArgs, params: Value) -> Result<Value, Failure> {
    let timeout = client::timeout_of(ask.target.timeout.as_deref(), TIMEOUT)?;
    let flags = TargetFlags::from(&ask.target);
    client::block_on(client::call(context, &flags, C::NAME, params, Wait::First, timeout))
}
