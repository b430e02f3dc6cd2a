//! Words in which the fate of a message is reported.

use openclaw_protocol::params::channels::{TraceDelivery, TraceEvent, TraceRun, TraceTool};
use openclaw_sessions::time::iso;

/// An event of a platform, with its run.
pub(super) fn event(event: &TraceEvent) -> Vec<String> {
    let message = event.message_id.as_ref().map(|id| format!(", message {id}")).unwrap_or_default();
    let mut lines = vec![
        format!("{} {} in {}: {}{message}", event.channel, event.account_id, event.target, event.event_id),
        format!("  {}  received, number {}", iso(event.received_at), event.number),
    ];
    if let (Some(said_at), Some(true)) = (event.said_at, event.is_late) {
        lines
            .push(format!("  {}  it was said, while nobody was there: received while offline", iso(said_at)));
    }
    match event.repeats {
        0 => {}
        1 => lines.push("  brought once more, and passed over".to_owned()),
        times => lines.push(format!("  brought {times} times more, and passed over")),
    }
    let at = event.decided_at.map(iso).unwrap_or_default();
    let reason = event.reason.as_deref().unwrap_or_default();
    lines.push(match (event.fate.as_str(), &event.told_in) {
        ("waiting", _) => {
            "  it waits: for its files, for more of the same message, or for the database".to_owned()
        }
        ("noted", None) if event.is_late == Some(true) => {
            format!("  {at}  it waits as context: it is told with the next message that is answered there")
        }
        ("noted", None) => {
            format!("  {at}  nobody was spoken to: it is told with the next message of the group")
        }
        ("noted", Some(run)) if event.is_late == Some(true) => {
            format!("  {at}  it waited as context: it was told with the message of run {run}")
        }
        ("noted", Some(run)) => {
            format!("  {at}  nobody was spoken to: it was told with the message of run {run}")
        }
        ("handled", _) => format!("  {at}  {}", handled(reason)),
        ("dropped", _) => format!("  {at}  dropped: {}", explained(reason)),
        _ if event.run.as_ref().is_some_and(|run| run.is_command == Some(true)) => {
            format!("  {at}  a command, which the gateway answers by itself")
        }
        _ => format!("  {at}  became a message for the agent"),
    });
    if let Some(session) = &event.session_key {
        let by = event.matched_by.as_deref().unwrap_or("default");
        lines.push(format!("  led to {session} by {}", binding(by)));
    }
    lines.extend(event.answers.iter().map(|answer| delivery("said", answer)));
    lines.extend(event.run.as_ref().map(run).unwrap_or_default());
    lines
}

/// The run of a client's message.
pub(super) fn run_alone(traced: &TraceRun) -> Vec<String> {
    let kind = match traced.is_command {
        Some(true) => "command",
        Some(false) | None => traced.kind.as_deref().unwrap_or("message"),
    };
    let session = traced.session_key.as_ref().map(|key| format!(" in {key}")).unwrap_or_default();
    let mut lines = vec![format!("{kind} of a client{session}")];
    lines.extend(run(traced));
    lines
}

/// Lines about a send that answers no message: by `openclaw message`, a tool, or the gateway
/// itself.
pub(super) fn sent_alone(deliveries: &[TraceDelivery]) -> Vec<String> {
    let mut lines = vec!["sent on purpose, not as an answer".to_owned()];
    for each in deliveries {
        let (channel, account, target) =
            (each.channel.as_deref(), each.account_id.as_deref(), each.target.as_deref());
        let thread = each.thread_id.as_ref().map(|id| format!(", thread {id}")).unwrap_or_default();
        if let (Some(channel), Some(account), Some(target)) = (channel, account, target) {
            lines.push(format!("  by {channel} {account} to {target}{thread}"));
        }
        lines.push(delivery("delivery", each));
    }
    lines
}

fn run(run: &TraceRun) -> Vec<String> {
    let parts = if run.events.len() > 1 {
        format!(", of the events {}", run.events.join(", "))
    } else {
        String::new()
    };
    let mut lines = vec![format!("  run {}{parts}", run.run_id)];
    if let Some(at) = run.accepted_at {
        let mode = run.queue_mode.as_ref().map(|mode| format!(", queue mode {mode}")).unwrap_or_default();
        lines.push(format!("  {}  accepted{mode}", iso(at)));
    }
    match &run.taken_by {
        Some(by) if run.is_dropped == Some(true) => lines.push(format!(
            "  dropped by a full queue (messages.queue.cap): run {by} tells the agent its first words in a summary"
        )),
        Some(by) => lines.push(format!("  taken into run {by}, whose answer is its answer")),
        None if run.is_dropped == Some(true) => lines.push(
            "  dropped by a full queue (messages.queue.cap): the agent is told its first words in a summary"
                .to_owned(),
        ),
        None => {}
    }
    if !run.took.is_empty() {
        lines.push(format!("  it took into itself: {}", run.took.join(", ")));
    }
    if run.was_read_before == Some(true) {
        let by = run.read_by.as_ref().map(|by| format!(": run {by}")).unwrap_or_default();
        lines.push(format!(
            "  the run before has read it too (steer-backlog){by}; this one answers it by itself"
        ));
    }
    if let Some(at) = run.started_at {
        let again = run.attempts.filter(|attempts| *attempts > 1);
        let again = again.map(|times| format!(", begun {times} times")).unwrap_or_default();
        lines.push(format!("  {}  started{again}", iso(at)));
    }
    lines.extend(worked(run));
    lines.extend(run.tools.iter().filter(|tool| tool.is_interrupted == Some(true)).map(|tool| {
        format!("  the gateway ended during {}: it may have happened, and the model was told so", tool.name)
    }));
    lines.extend(run.silence.as_deref().map(|silence| match silence {
        "silent" => "  the model chose to say nothing (NO_REPLY or the like): nobody was answered".to_owned(),
        _ => "  the model said nothing: its answer was empty, so nobody was answered".to_owned(),
    }));
    let error = run.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    match (run.state.as_str(), run.ended_at, &run.stopped_by) {
        ("accepted", _, Some(by)) => lines.push(format!("  it is being stopped ({by})")),
        ("accepted", _, None) => lines.push("  it waits, or runs".to_owned()),
        ("forgotten", _, _) => lines.push("  it ended more than a day ago".to_owned()),
        (state, Some(at), _) => lines.push(format!("  {}  ended: {state}{error}", iso(at))),
        (state, None, _) => lines.push(format!("  ended: {state}{error}")),
    }
    lines.extend(run.deliveries.iter().map(|part| delivery("answer", part)));
    lines
}

/// The model and its tool calls.
fn worked(run: &TraceRun) -> Option<String> {
    let model = match (&run.provider, &run.model) {
        (Some(provider), Some(model)) => format!("{provider}/{model}"),
        (None, Some(model)) => model.clone(),
        (_, None) => "a model".to_owned(),
    };
    let calls = run.model_calls.filter(|calls| *calls > 0)?;
    let tools: Vec<String> = run.tools.iter().map(tool).collect();
    let tools = if tools.is_empty() { String::new() } else { format!(", tools: {}", tools.join(", ")) };
    let times = if calls == 1 { "once".to_owned() } else { format!("{calls} times") };
    Some(format!("  {model} answered {times}{tools}"))
}

fn tool(tool: &TraceTool) -> String {
    let end = match tool.failed {
        Some(true) => " (failed)",
        Some(false) => "",
        None => " (no result)",
    };
    format!("{}{end}", tool.name)
}

fn delivery(what: &str, delivery: &TraceDelivery) -> String {
    let ids = if delivery.message_ids.is_empty() {
        String::new()
    } else {
        format!(" as {}", delivery.message_ids.join(", "))
    };
    let why = delivery.error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let tries = if delivery.attempts > 1 { format!(", {} tries", delivery.attempts) } else { String::new() };
    let twice = if delivery.uncertain { ", uncertain: the reader may see it twice" } else { "" };
    let gone = if delivery.is_discarded == Some(true) { ", thrown away by hand" } else { "" };
    let at = delivery.ended_at.or(Some(delivery.accepted_at)).map(iso).unwrap_or_default();
    let next = match (&delivery.waits_for_account, &delivery.waits_for) {
        (Some(account), _) => format!(", waits for {account}"),
        (None, Some(other)) => format!(", waits behind {other}"),
        (None, None) => {
            let next = delivery.next_at.filter(|at| *at > delivery.accepted_at);
            next.map(|at| format!(", next try not before {}", iso(at))).unwrap_or_default()
        }
    };
    format!("  {at}  {what} {}: {}{ids}{tries}{next}{gone}{twice}{why}", delivery.id, delivery.state)
}

/// Meaning of a binding's name.
fn binding(name: &str) -> String {
    match name {
        "default" => "no binding: the default agent".to_owned(),
        name => format!("{name} (bindings)"),
    }
}

/// Sentence on an event that became no message, by its reason code.
fn handled(reason: &str) -> String {
    let done = match reason {
        "edited" => "nobody answers an edit: the message has its new words where it still waits",
        "reaction" => "nobody answers a reaction: the agent hears of it with its next turn",
        "moved" => "the group has another id from now on: nobody answers that",
        "stopped" => "somebody stopped it before the agent had it",
        _ => return format!("the gateway answered it by itself: {reason}"),
    };
    format!("{done} ({reason})")
}

/// Sentence that explains a reason code, and where it is set.
fn explained(reason: &str) -> String {
    let meaning = match reason {
        "dm-policy" => "its sender is not let in (channels.<id>.dmPolicy, allowFrom, openclaw pairing)",
        "pairing-unreadable" => {
            "who was let in could not be read (credentials/<channel>-allowFrom.json; see the log)"
        }
        "group-policy" => {
            "the group or its sender is not let in (channels.<id>.groupPolicy, groups, groupAllowFrom)"
        }
        "no-mention" => "it spoke to nobody (requireMention), and no history is kept",
        "command-unauthorised" => {
            "a command of somebody who may give none there (commands.ownerAllowFrom, channels.<id>.groupAllowFrom or allowFrom)"
        }
        "inline-buttons" => {
            "a button that may not be pressed there, or by its presser (channels.<id>.capabilities.inlineButtons)"
        }
        "send-policy" => "the session may not send (session.sendPolicy, /send)",
        "bot" => "a program said it, or the account itself",
        "duplicate" => "it was accepted before",
        "config" => "the channel's section can't be read",
        "route" => "there is no session it could be for (bindings)",
        "no-channel" => "this version knows no such channel",
        "unreadable" => "it could not be read; the log says why",
        "stale" => "it was said more than a day before it was received, and no history is kept",
        _ => return reason.to_owned(),
    };
    format!("{reason}: {meaning}")
}
