//! `openclaw agent`: one turn, through the gateway or in this process (spec `cli.md` §5.1).

pub(super) mod retries;

use std::time::Duration;

use openclaw_protocol::event::AgentEvent;
use openclaw_protocol::{AgentId, SessionKey};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::local_run::{self, LocalReason};
use super::{config_pickup, piped};
use crate::args::{AgentArgs, given, given_text, positive};
use crate::client::{self, AwaitedResponse, GatewayTarget, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output;

/// Levels of `--thinking`.
const THINKING: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh"];
/// Extra time that the call may take beyond the run.
const CALL_MARGIN: Duration = Duration::from_secs(30);
const MIN_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Notice for a reply that waits.
const QUEUED: &str = "The reply is stored and is delivered as soon as the channel can be reached.";

/// The checked arguments.
#[derive(Debug, PartialEq)]
pub(super) struct AgentRequest {
    pub(super) message: String,
    /// The default one where none is named.
    pub(super) agent: Option<AgentId>,
    to: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) thinking: Option<String>,
    verbose: Option<String>,
    pub(super) timeout_seconds: Option<u64>,
}

pub(super) fn run(args: &AgentArgs, context: &CliContext) -> CommandResult {
    let request = check(args, context)?;
    context.print_warnings_about(&["agents", "models"]);
    if args.local {
        if args.deliver {
            return Err(CommandFailure::usage("--deliver needs the gateway; leave out --local"));
        }
        return run_local(request, args.json, context, LocalReason::Asked);
    }
    let configured = context.config()?.agents.defaults.run_timeout();
    let of_run = request.timeout_seconds.map_or(configured, Duration::from_secs);
    let timeout = (of_run + CALL_MARGIN).max(MIN_CALL_TIMEOUT);
    let answer = client::block_on(async {
        config_pickup::settle(context).await;
        if let Some(level) = &request.verbose {
            set_verbose(context, &request, level).await?;
        }
        let run_id = uuid::Uuid::new_v4().to_string();
        let params = params(&request, args, &run_id);
        let mut hear = |event: client::ReceivedEvent<'_>| {
            if event.name == "agent" {
                retries::tell(&run_id, AgentEvent::deserialize(event.payload));
            }
        };
        let flags = TargetFlags::default();
        client::call_hearing(context, &flags, "agent", params, AwaitedResponse::Final, timeout, &mut hear)
            .await
    });
    match answer {
        Ok(payload) => Ok(report(&payload, args)),
        Err(failure) => {
            // Only the gateway delivers.
            let here = may_run_here(&failure, context).filter(|_| !args.deliver);
            let Some(target) = here else { return Err(failure) };
            output::error_line(&format!(
                "Gateway agent failed; falling back to embedded: no gateway answers at {}",
                target.url
            ));
            run_local(request, args.json, context, LocalReason::NoGateway)
        }
    }
}

/// Prints how the run ended and gives the exit code.
fn report(payload: &Value, args: &AgentArgs) -> u8 {
    let failure = failed_run(payload).map(str::to_owned);
    let was_stopped = payload.pointer("/result/meta/aborted") == Some(&Value::Bool(true));
    let is_done = failure.is_none() && !was_stopped;
    let undelivered = payload.get("deliveryError").and_then(Value::as_str).map(str::to_owned);
    let is_queued = payload.get("deliveryStatus").and_then(Value::as_str) == Some("queued");
    match &failure {
        _ if args.json => output::json(payload),
        Some(summary) => {
            said_before_failure(payload).iter().for_each(|line| output::line(line));
            output::error_line(summary);
        }
        None => print_reply(payload.get("result").unwrap_or(&Value::Null)),
    }
    undelivered.iter().for_each(|why| output::error_line(why));
    if is_queued {
        output::error_line(QUEUED);
    }
    if is_done && undelivered.is_none() { 0 } else { ERROR }
}

/// Reason why the run failed, if it did: the gateway answers the request all the same.
fn failed_run(payload: &Value) -> Option<&str> {
    let failed = payload.get("status").and_then(Value::as_str) == Some("error");
    failed.then(|| payload.get("summary").and_then(Value::as_str).unwrap_or("The run failed."))
}

/// Target for a run in this process: the gateway of this host, if nothing listens there, so that
/// nothing can have been accepted. The lock of the state directory makes sure of the rest.
fn may_run_here(failure: &CommandFailure, context: &CliContext) -> Option<GatewayTarget> {
    let target = GatewayTarget::resolve(context, &TargetFlags::default()).ok()?;
    (failure.code == "unreachable" && target.bind.is_some()).then_some(target)
}

fn check(args: &AgentArgs, context: &CliContext) -> Result<AgentRequest, CommandFailure> {
    let Some(message) = &args.message else {
        return Err(CommandFailure::usage("error: required option '-m, --message <text>' not specified"));
    };
    let message = piped::text(message)?;
    if message.trim().is_empty() {
        return Err(CommandFailure::usage("Message (--message) is required"));
    }
    let (to, session_id, agent) =
        (given_text(&args.to), given_text(&args.session_id), given_text(&args.agent));
    if to.is_none() && session_id.is_none() && agent.is_none() {
        return Err(CommandFailure::usage("Pass --to <E.164>, --session-id, or --agent to choose a session"));
    }
    if let Some(name) = &agent
        && !context.config()?.has_agent(&AgentId::normalize(name))
    {
        return Err(CommandFailure::new(
            "unknown-agent",
            format!("Unknown agent id \"{name}\". Use \"openclaw agents list\" to see configured agents."),
        ));
    }
    let seconds = |text| positive(text, "--timeout must be a positive integer (seconds)");
    let timeout_seconds = given(args.timeout.as_deref()).map(seconds).transpose()?;
    let thinking = given_text(&args.thinking).map(|level| level.to_lowercase());
    if let Some(level) = thinking.as_deref().filter(|level| !THINKING.contains(level)) {
        let known = THINKING.join(", ");
        return Err(CommandFailure::usage(format!(
            "Invalid thinking level \"{level}\". Use one of: {known}."
        )));
    }
    let verbose = given_text(&args.verbose).map(|level| level.to_lowercase());
    if let Some(level) = verbose.as_deref().filter(|level| !matches!(*level, "on" | "full" | "off")) {
        return Err(CommandFailure::usage(format!(
            "Invalid verbose level \"{level}\". Use \"on\", \"full\", or \"off\"."
        )));
    }
    let agent = agent.map(|name| AgentId::normalize(&name));
    Ok(AgentRequest { message, agent, to, session_id, thinking, verbose, timeout_seconds })
}

/// Parameters of the `agent` method; the gateway finds the session. The run gets the id that the request has.
fn params(request: &AgentRequest, args: &AgentArgs, run_id: &str) -> Value {
    let fields = [
        ("message", json!(request.message)),
        ("agentId", json!(request.agent)),
        ("to", json!(request.to)),
        ("sessionId", json!(request.session_id)),
        ("thinking", json!(request.thinking)),
        ("deliver", json!(args.deliver.then_some(true))),
        ("channel", json!(args.channel)),
        ("replyTo", json!(args.reply_to)),
        ("replyChannel", json!(args.reply_channel)),
        ("replyAccountId", json!(args.reply_account)),
        ("timeout", json!(request.timeout_seconds)),
        ("idempotencyKey", json!(run_id)),
    ];
    // Fields that were not given are not sent.
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// `--verbose` is kept with the session.
async fn set_verbose(
    context: &CliContext,
    request: &AgentRequest,
    level: &str,
) -> Result<(), CommandFailure> {
    let flags = TargetFlags::default();
    let key = match (&request.session_id, &request.agent) {
        (Some(id), _) => {
            let found = client::call(
                context,
                &flags,
                "sessions.resolve",
                json!({ "sessionId": id }),
                AwaitedResponse::First,
                client::DEFAULT_TIMEOUT,
            );
            let found = found.await?;
            found.get("key").and_then(Value::as_str).unwrap_or("main").to_owned()
        }
        (None, Some(agent)) => SessionKey::main(agent, "main").to_string(),
        (None, None) => "main".to_owned(),
    };
    let patch = json!({ "key": key, "verboseLevel": level });
    client::call(context, &flags, "sessions.patch", patch, AwaitedResponse::First, client::DEFAULT_TIMEOUT)
        .await?;
    Ok(())
}

fn run_local(request: AgentRequest, json: bool, context: &CliContext, why: LocalReason) -> CommandResult {
    if request.verbose.is_some() {
        return Err(CommandFailure::usage(
            "--verbose needs the gateway; leave it away, or start one with `openclaw gateway`",
        ));
    }
    let result = client::block_on(local_run::run(context, request, why))?;
    if json {
        output::json(&result);
    } else {
        print_reply(&result);
    }
    Ok(0)
}

fn print_reply(result: &Value) {
    reply_lines(result).iter().for_each(|line| output::line(line));
}

/// The texts that a run gave before it failed.
fn said_before_failure(payload: &Value) -> Vec<String> {
    let payloads = payload.pointer("/result/payloads").and_then(Value::as_array).into_iter().flatten();
    let said: Vec<&Value> =
        payloads.filter(|payload| payload.get("isError") != Some(&Value::Bool(true))).collect();
    if said.is_empty() { Vec::new() } else { reply_lines(&json!({ "payloads": said })) }
}

/// The texts of a reply; media as `MEDIA:<url>`.
fn reply_lines(result: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for payload in result.get("payloads").and_then(Value::as_array).into_iter().flatten() {
        let text =
            payload.get("text").and_then(Value::as_str).map(str::trim_end).filter(|text| !text.is_empty());
        lines.extend(text.map(str::to_owned));
        let many = payload.get("mediaUrls").and_then(Value::as_array).filter(|urls| !urls.is_empty());
        let urls: Vec<&str> = match many {
            Some(urls) => urls.iter().filter_map(Value::as_str).collect(),
            None => payload.get("mediaUrl").and_then(Value::as_str).into_iter().collect(),
        };
        lines.extend(urls.into_iter().map(|url| format!("MEDIA:{url}")));
    }
    if lines.is_empty() {
        lines.push("No reply from agent.".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use openclaw_config::Environment;

    use super::*;
    use crate::args::{Cli, CliCommand};

    fn parsed(line: &str) -> AgentArgs {
        match Cli::try_parse_from(format!("openclaw agent {line}").split_whitespace()).unwrap().command {
            Some(CliCommand::Agent(args)) => args,
            _ => panic!("agent"),
        }
    }

    #[test]
    fn arguments_are_checked_in_the_words_of_the_reference() {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let context = CliContext::new(&env, true);
        let rows = [
            ("--session-id s", "error: required option '-m, --message <text>' not specified"),
            ("--message hi", "Pass --to <E.164>, --session-id, or --agent to choose a session"),
            (
                "--agent nope --message hi",
                "Unknown agent id \"nope\". Use \"openclaw agents list\" to see configured agents.",
            ),
            ("--agent main --message hi --timeout -5", "--timeout must be a positive integer (seconds)"),
            (
                "--agent main -m hi --thinking ultra",
                "Invalid thinking level \"ultra\". Use one of: off, minimal, low, medium, high, xhigh.",
            ),
        ];
        for (line, expect) in rows {
            assert_eq!(check(&parsed(line), &context).unwrap_err().message, expect, "{line}");
        }
    }

    #[test]
    fn only_what_was_given_is_sent() {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let args = parsed("--agent Main -m hi --timeout 5 --deliver --reply-channel telegram --reply-to @c");
        let request = check(&args, &CliContext::new(&env, true)).unwrap();
        assert_eq!(
            params(&request, &args, "run"),
            json!({
                "message": "hi", "agentId": "main", "deliver": true, "replyTo": "@c", "replyChannel": "telegram",
                "timeout": 5, "idempotencyKey": "run",
            })
        );
    }

    #[test]
    fn replies_are_printed_with_their_media() {
        let result = json!({ "payloads": [
            { "text": "Hello.\n", "mediaUrl": null },
            { "text": "", "mediaUrl": "a.png", "mediaUrls": ["a.png", "b.png"] },
        ] });
        assert_eq!(reply_lines(&result), ["Hello.", "MEDIA:a.png", "MEDIA:b.png"]);
        assert_eq!(reply_lines(&Value::Null), ["No reply from agent."]);
    }
}
