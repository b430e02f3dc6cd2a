//! `openclaw message failed|retry|discard`: what could not be sent and was given up (spec `channels.md` §5.5), and what waits.

use openclaw_protocol::Call as _;
use openclaw_protocol::params::channels::{
    FailedMessage, MessageDiscard, MessageDiscardResult, MessageFailed, MessageFailedResult, MessageRetry,
    MessageRetryResult, Trace, TraceResult,
};
use openclaw_sessions::time::{iso, now_ms};
use serde_json::{Map, Value, json};

use super::super::channels::call;
use crate::args::{MessageArgs, RETRY, TargetArgs};
use crate::client;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output::{self, age};

pub(super) fn list(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let answer = failed(args, context)?;
    if args.json {
        output::json(&answer);
        return Ok(0);
    }
    let MessageFailedResult { failed, total, waiting, waiting_total } =
        client::read::<MessageFailed>(answer, MessageFailed::NAME)?;
    let left = |total: u64, shown: usize| total.saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
    if failed.is_empty() {
        output::line("Nothing was given up.");
    }
    failed.iter().flat_map(lines).for_each(|line| output::line(&line));
    match left(total, failed.len()) {
        0 => {}
        left => output::line(&format!("… and {left} older (--limit <n> lists more)")),
    }
    if !waiting.is_empty() {
        output::line("");
        output::line("What waits and is sent by itself:");
        waiting.iter().flat_map(lines).for_each(|line| output::line(&line));
    }
    match left(waiting_total, waiting.len()) {
        0 => {}
        left => output::line(&format!("… and {left} more (--limit <n> lists more)")),
    }
    if failed.is_empty() && waiting.is_empty() {
        return Ok(0);
    }
    let all = if failed.is_empty() { "" } else { " (or --all that were given up)" };
    output::line("");
    for (what, command) in [
        ("Try now:    ", format!("openclaw message retry <id>…{all}")),
        ("Throw away: ", format!("openclaw message discard <id>…{all}")),
        ("What it was:", "openclaw trace <id>".to_owned()),
    ] {
        output::line(&format!("{what} {}", context.hint_command(&command)));
    }
    Ok(0)
}

pub(super) fn retry(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let params = match which(args, context, "send again")? {
        MessageSelection::Asked(params) => params,
        MessageSelection::Rehearsed(exit) => return Ok(exit),
    };
    let answer = call::<MessageRetry>(context, &TargetArgs::default(), &params)?;
    if args.json {
        output::json(&answer);
    }
    let MessageRetryResult { retried, hastened, waiting, refused, others } =
        client::read::<MessageRetry>(answer, MessageRetry::NAME)?;
    if !args.json {
        let again = retried.iter().map(|id| ("✅ Will be sent again, in its place in the order", id));
        let now = hastened.iter().map(|id| ("✅ Will be tried now, in its place in the order", id));
        for (again, id) in again.chain(now) {
            let id = output::one_line(id);
            match waiting.get(id.as_ref()) {
                Some(account) => {
                    let account = output::one_line(account);
                    output::line(&format!("{again}, as soon as its account works: {id}"));
                    output::line(&format!(
                        "   It waits for {account}: {}",
                        context.hint_command("openclaw channels status")
                    ));
                }
                None => output::line(&format!("{again}: {id}")),
            }
        }
        for (id, account) in &refused {
            let (id, account) = (output::one_line(id), output::one_line(account));
            output::error_line(&format!(
                "❌ {id} can't be sent: {account} is not configured any more. Set it up again (openclaw channels add), or throw the \
                 message away: openclaw message discard {id}"
            ));
        }
        if retried.is_empty() && hastened.is_empty() && refused.is_empty() && others.is_empty() {
            output::line("Nothing was given up.");
        }
    }
    let exit = told(args, others.iter().map(|(id, state)| (id.as_str(), state.as_str())))?;
    Ok(if refused.is_empty() { exit } else { ERROR })
}

pub(super) fn discard(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let params = match which(args, context, "throw away")? {
        MessageSelection::Asked(params) => params,
        MessageSelection::Rehearsed(exit) => return Ok(exit),
    };
    let answer = call::<MessageDiscard>(context, &TargetArgs::default(), &params)?;
    if args.json {
        output::json(&answer);
    }
    let MessageDiscardResult { discarded, others } =
        client::read::<MessageDiscard>(answer, MessageDiscard::NAME)?;
    if !args.json {
        for id in &discarded {
            output::line(&format!("✅ Thrown away: {}", output::one_line(id)));
        }
        if discarded.is_empty() && others.is_empty() {
            output::line("Nothing was given up.");
        }
    }
    told(args, others.iter().map(|(id, state)| (id.as_str(), state.as_str())))
}

fn failed(args: &MessageArgs, context: &CliContext) -> Result<Value, CommandFailure> {
    let limit = args.params.get("limit");
    let params = json!({"channel": args.channel, "accountId": args.account, "limit": limit});
    call::<MessageFailed>(context, &TargetArgs::default(), &params)
}

/// Messages that are meant.
enum MessageSelection {
    /// The request for them.
    Asked(Value),
    /// Dry run: the plan was only printed; holds the exit code.
    Rehearsed(u8),
}

fn which(args: &MessageArgs, context: &CliContext, what: &str) -> Result<MessageSelection, CommandFailure> {
    let (ids, all) = (args.texts("ids"), args.flag("all"));
    if ids.is_empty() != all {
        return Err(CommandFailure::usage("Give the ids, or --all")
            .hint(format!("{} lists them.", context.hint_command("openclaw message failed"))));
    }
    if args.dry_run {
        let answer = failed(args, context)?;
        let MessageFailedResult { mut failed, waiting, .. } =
            client::read::<MessageFailed>(answer, MessageFailed::NAME)?;
        failed.extend(waiting.into_iter().filter(|_| !all));
        failed.retain(|one| all || ids.contains(&one.id));
        let is_listed = |id: &String| failed.iter().any(|one| one.id == *id);
        let mut others = Vec::new();
        for id in ids.iter().filter(|id| !is_listed(id)) {
            others.push((id.as_str(), state_of(context, id)?));
        }
        if args.json {
            let others: Map<String, Value> =
                others.iter().map(|(id, state)| ((*id).to_owned(), json!(state))).collect();
            output::json(
                &json!({"action": args.row.action, "dryRun": true, "failed": failed, "others": others}),
            );
        } else if !failed.is_empty() || others.is_empty() {
            output::line(&format!("Would {what} {}. Nothing was done.", failed.len()));
            failed.iter().flat_map(lines).for_each(|line| output::line(&line));
        }
        return told(args, others.into_iter()).map(MessageSelection::Rehearsed);
    }
    let ids = (!all).then_some(ids);
    let all = all.then_some(true);
    Ok(MessageSelection::Asked(
        json!({"ids": ids, "all": all, "channel": args.channel, "accountId": args.account}),
    ))
}

/// State of a message that neither was given up nor waits.
fn state_of(context: &CliContext, id: &str) -> Result<&'static str, CommandFailure> {
    let answer = call::<Trace>(context, &TargetArgs::default(), &json!({ "id": id }))?;
    let TraceResult { events, runs, deliveries, .. } = client::read::<Trace>(answer, Trace::NAME)?;
    let runs = runs.iter().chain(events.iter().filter_map(|event| event.run.as_ref()));
    let answers = runs.flat_map(|run| &run.deliveries).chain(events.iter().flat_map(|event| &event.answers));
    let found = deliveries.iter().chain(answers).find(|delivery| delivery.id == id);
    Ok(match found {
        None => "unknown",
        Some(delivery) if delivery.is_discarded == Some(true) => "discarded",
        Some(delivery) => match delivery.state.as_str() {
            "sent" => "sent",
            "sending" | "uncertain" => "sending",
            _ => "unlisted",
        },
    })
}

/// Reports the state of the other messages and returns the exit code. An unknown message is a
/// failure, as is one that can't be sent again because it was thrown away; a message that is sent
/// already, or will be, is none.
fn told<'a>(args: &MessageArgs, others: impl Iterator<Item = (&'a str, &'a str)>) -> CommandResult {
    let mut exit = 0;
    for (id, state) in others {
        let id = output::one_line(id);
        let failure = match (args.row.action, state) {
            (_, "unknown") => Some(format!("❌ Nothing is known of {id}.")),
            (RETRY, "discarded") => Some(format!("❌ {id} was thrown away: it can't be sent any more.")),
            _ => None,
        };
        if let Some(failure) = failure {
            exit = ERROR;
            if !args.json {
                output::error_line(&failure);
            }
            continue;
        }
        let words = match state {
            "sent" => format!("{id} was sent already."),
            "discarded" => format!("{id} was thrown away."),
            "unlisted" => {
                format!("{id} is not among the newest of --channel and --account, and was not looked at.")
            }
            _ => format!("{id} is being sent right now: nothing was done. Try again in a moment."),
        };
        if !args.json {
            output::line(&words);
        }
    }
    Ok(exit)
}

/// Description of one message: when, by whom, to whom, how often, why, what it waits for, and how
/// it begins.
fn lines(one: &FailedMessage) -> Vec<String> {
    let thread = one.thread_id.as_ref().map(|id| format!(", thread {id}")).unwrap_or_default();
    let tries = if one.attempts == 1 { "1 try".to_owned() } else { format!("{} tries", one.attempts) };
    let at = one.failed_at.unwrap_or(one.accepted_at);
    let when = format!("{} ({})", age(now_ms() - at), iso(at));
    let twice = if one.uncertain { " (it may have arrived: its reader may see it twice)" } else { "" };
    let begins = match (&one.text, &one.file, &one.kind) {
        (Some(text), None, _) => format!("\"{}\"", output::one_line(text)),
        (Some(text), Some(file), _) => {
            format!("\"{}\", with the file {}", output::one_line(text), output::one_line(file))
        }
        (None, Some(file), _) => format!("the file {}", output::one_line(file)),
        (None, None, Some(kind)) => format!("a {kind} without words"),
        (None, None, None) => "it can't be read any more".to_owned(),
    };
    let waits = match (one.state.as_deref(), &one.waits_for_account, &one.waits_behind) {
        (None, ..) => None,
        (Some("sending"), ..) => Some("it is being sent right now".to_owned()),
        (Some(_), Some(account), _) => Some(format!("it waits for {account}")),
        (Some(_), None, Some(other)) => Some(format!("it waits behind {other}")),
        (Some(_), None, None) => {
            let next = one.next_at.filter(|at| *at > now_ms());
            Some(next.map_or("it is its turn".to_owned(), |at| format!("next try not before {}", iso(at))))
        }
    };
    let why = [waits, Some(one.error.clone()).filter(|error| !error.is_empty())];
    let why = why.into_iter().flatten().collect::<Vec<_>>().join(": ");
    vec![
        output::one_line(&one.id).into_owned(),
        output::one_line(&format!(
            "  {when}  by {} {} to {}{thread}, after {tries}",
            one.channel, one.account_id, one.to
        ))
        .into_owned(),
        format!("  {}{twice}", output::one_line(&why)),
        format!("  {begins}"),
    ]
}
