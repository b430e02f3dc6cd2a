//! `gateway`: reads and changes the configuration of the gateway that runs this, and has it start again (spec `tools.md` §7.4). For the
//! owner alone.
//!
//! The reference takes the address of another gateway and a token for it from the model. A person
//! who talks a model into naming one would get the token of ours, so both are ignored here.

use std::sync::LazyLock;
use std::time::Duration;

use openclaw_agent::host::{ConfigText, ControlAsk, ControlCall, HostError, RestartNotice};
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use crate::absence::Absence;
use crate::args::Args;
use crate::row::ToolRow;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |_| Box::new(GatewayTool))
    .owner_only()
    .not_for_subagents()
    .absent_if(|conditions| (!conditions.has_gateway).then_some(Absence::NoGateway));

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:automation", "group:openclaw"],
    description: "Read or change this gateway's configuration, or have it start again, when the user asks for that. \
                  config.patch changes single settings by a merge patch in raw; config.apply replaces all of them. Look at \
                  config.get and config.schema first. note is told to the session after a restart.",
    summary: "Read and change the gateway's configuration, restart or update it",
    prompt_position: 17,
    emoji: "🔌",
    label_arguments: &["action"],
    effect: Effect::ActsExcept(&["config.get", "config.schema"]),
    ..ToolFacts::named("gateway")
};

const ACTIONS: &[&str] =
    &["restart", "config.get", "config.schema", "config.apply", "config.patch", "update.run"];
/// Longest reason for a restart, in characters.
const MAX_REASON: usize = 200;
/// Longest time until a restart, in milliseconds.
const MAX_DELAY: f64 = 60_000.0;
const ELSEWHERE: &str =
    "gatewayUrl and gatewayToken are ignored: this tool acts on the gateway that runs it.";

struct GatewayTool;

impl Tool for GatewayTool {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ACTIONS},
                    "delayMs": {"description": "restart: time until then, 2000 if absent", "type": "number"},
                    "reason": {"description": "restart: why, for the log", "type": "string"},
                    "gatewayUrl": {"description": "Ignored", "type": "string"},
                    "gatewayToken": {"description": "Ignored", "type": "string"},
                    "timeoutMs": {"description": "Ignored", "type": "number"},
                    "raw": {"description": "config.apply, config.patch: JSON5", "type": "string"},
                    "baseHash": {
                        "description": "config.apply, config.patch: hash of config.get; refused if the file changed since",
                        "type": "string",
                    },
                    "sessionKey": {"description": "Who is told of the restart; this session if absent", "type": "string"},
                    "note": {"description": "What is told after the restart", "type": "string"},
                    "restartDelayMs": {
                        "description": "config.apply, config.patch, update.run: time until a restart",
                        "type": "number",
                    },
                },
                "required": ["action"],
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let args = Args(args);
            let call = read(&args)?;
            let is_restart = matches!(call.ask, ControlAsk::Restart { .. });
            let gateway = context.host.control();
            let gateway =
                gateway.ok_or_else(|| ToolError::Failed("this run is made without a gateway".to_owned()))?;
            let done = tokio::select! { biased;
                () = context.cancel.cancelled() => return Err(ToolError::Aborted),
                done = gateway.control(call) => done,
            };
            let result = done.map_err(|error| match error {
                HostError::Aborted => ToolError::Aborted,
                error => ToolError::Failed(error.to_string()),
            })?;
            let told = if is_restart { result } else { json!({"ok": true, "result": result}) };
            let elsewhere = ["gatewayUrl", "gatewayToken"].iter().any(|name| args.word(name).is_some());
            Ok(ToolOutput { notice: elsewhere.then(|| ELSEWHERE.to_owned()), ..ToolOutput::json(told) })
        })
    }
}

/// Reads the request from the arguments.
fn read(args: &Args) -> Result<ControlCall, ToolError> {
    let text = |name: &str| args.word(name).map(str::to_owned);
    let config = || {
        let raw = args.text("raw").filter(|raw| !raw.trim().is_empty());
        let raw = raw.ok_or_else(|| ToolError::Failed("raw required".to_owned()))?.to_owned();
        Ok::<_, ToolError>(ConfigText { raw, base_hash: text("baseHash") })
    };
    let (ask, delay) = match args.required("action")? {
        "restart" => {
            let reason = args.word("reason").map(|reason| reason.chars().take(MAX_REASON).collect());
            (ControlAsk::Restart { reason }, "delayMs")
        }
        "config.get" => (ControlAsk::ConfigGet, "restartDelayMs"),
        "config.schema" => (ControlAsk::ConfigSchema, "restartDelayMs"),
        "config.apply" => (ControlAsk::ConfigApply(config()?), "restartDelayMs"),
        "config.patch" => (ControlAsk::ConfigPatch(config()?), "restartDelayMs"),
        "update.run" => (ControlAsk::Update, "restartDelayMs"),
        other => return Err(ToolError::Failed(format!("Unknown action: {other}"))),
    };
    let delay = args.number(delay).map(|ms| Duration::from_secs_f64(ms.clamp(0.0, MAX_DELAY) / 1000.0));
    let notice = RestartNotice { session: text("sessionKey"), note: text("note"), delay };
    Ok(ControlCall { ask, notice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_what_is_asked() {
        let plain = RestartNotice::default();
        let noted = RestartNotice {
            session: Some("agent:main:main".to_owned()),
            note: Some("done".to_owned()),
            delay: Some(Duration::from_millis(500)),
        };
        let config = |raw: &str, base_hash: Option<&str>| ConfigText {
            raw: raw.to_owned(),
            base_hash: base_hash.map(str::to_owned),
        };
        let later = RestartNotice { delay: Some(Duration::from_secs(60)), ..RestartNotice::default() };
        let long = "x".repeat(300);
        let rows = [
            (json!({"action": "config.get"}), Ok((ControlAsk::ConfigGet, plain.clone()))),
            (json!({"action": " config.schema "}), Ok((ControlAsk::ConfigSchema, plain.clone()))),
            (json!({"action": "update.run"}), Ok((ControlAsk::Update, plain.clone()))),
            (
                json!({"action": "config.patch", "raw": " {a: 1} ", "baseHash": " h "}),
                Ok((ControlAsk::ConfigPatch(config(" {a: 1} ", Some("h"))), plain)),
            ),
            (
                json!({"action": "config.apply", "raw": "{}", "sessionKey": "agent:main:main", "note": "done",
                       "restartDelayMs": "500", "delayMs": 9}),
                Ok((ControlAsk::ConfigApply(config("{}", None)), noted)),
            ),
            (
                json!({"action": "restart", "delayMs": 1e9, "restartDelayMs": 5, "reason": long}),
                Ok((ControlAsk::Restart { reason: Some("x".repeat(200)) }, later)),
            ),
            (json!({"action": "config.patch"}), Err("raw required")),
            (json!({"action": "config.apply", "raw": " "}), Err("raw required")),
            (json!({"action": "fly"}), Err("Unknown action: fly")),
            (json!({}), Err("action required")),
        ];
        for (args, expect) in rows {
            let call = read(&Args(args.clone())).map_err(|error| error.to_string());
            let expect = expect.map(|(ask, notice)| ControlCall { ask, notice }).map_err(str::to_owned);
            assert_eq!(call, expect, "{args}");
        }
    }
}
