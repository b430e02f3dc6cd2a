//! `openclaw trace`: what became of a message of a chat platform.

use openclaw_protocol::params::channels::{Trace, TraceEvent, TraceResult, TraceRun};
use openclaw_sessions::time::iso;
use serde_json::json;

use super::channels::call;
use crate::args::TraceArgs;
use crate::client;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

pub(super) fn run(args: &TraceArgs, context: &Context) -> Outcome {
    let id = Some(args.id.trim()).filter(|id| *id != "last");
    let answer = call::<Trace>(context, &args.target, &json!({ "id": id }))?;
    if args.json {
        output::json(&answer);
        return Ok(0);
    }
    let TraceResult { events, .. } = client::read::<Trace>(answer, "trace")?;
    if events.is_empty() {
        let failure = match id {
            Some(id) => Failure::new("unknown-message", format!("Nothing is remembered of {}.", output::one_line(id)))
                .hint("Events are remembered for three days. Give the platform's id of the message, a run's id, or `last`."),
            None => Failure::new("no-message", "No platform has brought anything yet.")
                .hint("openclaw channels status tells whether an account is connected."),
        };
        return Err(failure);
    }
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            output::line("");
        }
        told(event).iter().for_each(|line| output::line(line));
    }
    Ok(0)
}

fn told(event: &TraceEvent) -> Vec<String> {
    let message = event.message_id.as_ref().map(|id| format!(", message {id}")).unwrap_or_default();
    let mut lines = vec![
        format!("{} {} in {}: {}{message}", event.channel, event.account_id, event.target, event.event_id),
        format!("  {}  received, number {}", iso(event.received_at), event.number),
    ];
    let at = event.decided_at.map(iso).unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or_default();
    lines.push(match event.fate.as_str() {
        "waiting" => {
            "  it waits: for its files, for more of the same message, or for the database".to_owned()
        }
        "noted" => format!("  {at}  nobody was spoken to: it is told with the next message of the group"),
        "handled" => format!("  {at}  the gateway answered it by itself: {reason}"),
        "dropped" => format!("  {at}  dropped: {}", explained(reason)),
        _ => format!("  {at}  became a message for the agent"),
    });
    lines.extend(event.run.as_ref().map(of_run).unwrap_or_default());
    lines
}

fn of_run(run: &TraceRun) -> Vec<String> {
    let parts =
        if run.events.len() > 1 { format!(", of {} events", run.events.len()) } else { String::new() };
    let mut lines = vec![format!("  run {}{parts}", run.run_id)];
    if let Some(at) = run.started_at {
        lines.push(format!("  {}  started", iso(at)));
    }
    let error = run.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    match (run.state.as_str(), run.ended_at) {
        ("accepted", _) => lines.push("  it waits, or runs".to_owned()),
        ("forgotten", _) => lines.push("  it ended more than a day ago".to_owned()),
        (state, Some(at)) => lines.push(format!("  {}  ended: {state}{error}", iso(at))),
        (state, None) => lines.push(format!("  ended: {state}{error}")),
    }
    for delivery in &run.deliveries {
        let ids = if delivery.message_ids.is_empty() {
            String::new()
        } else {
            format!(" as {}", delivery.message_ids.join(", "))
        };
        let why = delivery.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let tries =
            if delivery.attempts > 1 { format!(", {} tries", delivery.attempts) } else { String::new() };
        let twice = if delivery.uncertain { ", uncertain: the reader may see it twice" } else { "" };
        lines.push(format!("  answer {}: {}{ids}{tries}{twice}{why}", delivery.id, delivery.state));
    }
    lines
}

/// What a reason code means, and where it is set.
fn explained(reason: &str) -> String {
    let meaning = match reason {
        "dm-policy" => "its sender is not let in (channels.<id>.dmPolicy, allowFrom, openclaw pairing)",
        "group-policy" => {
            "the group or its sender is not let in (channels.<id>.groupPolicy, groups, groupAllowFrom)"
        }
        "no-mention" => "it spoke to nobody (requireMention), and no history is kept",
        "command-unauthorised" => {
            "a command in a group of somebody who may give none (allowFrom, commands.ownerAllowFrom)"
        }
        "send-policy" => "the session may not send (session.sendPolicy, /send)",
        "bot" => "a program said it, or the account itself",
        "duplicate" => "it was accepted before",
        "config" => "the channel's section can't be read",
        "unreadable" => "it could not be read any more",
        _ => return reason.to_owned(),
    };
    format!("{reason}: {meaning}")
}
