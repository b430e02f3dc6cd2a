//! `openclaw message …`: what agents do by the `message` tool, by hand (spec `channels.md` §5.6, §6, `cli.md` §5.2). `send` and `poll` are
//! methods of their own; everything else is `message.action`.

mod undelivered;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Channel, TargetError};
use openclaw_config::normalize_account_id;
use openclaw_config::registry::ChannelInfo;
use openclaw_gateway::platforms;
use openclaw_protocol::Call;
use openclaw_protocol::params::channels::{ChannelsStatus, MessageAction, Poll, Send};
use openclaw_sessions::ids;
use serde_json::{Map, Value, json};

use super::channels::table::obstacle;
use super::channels::{call, example_of_add, platform};
use super::piped;
use crate::args::{DISCARD, FAILED, MessageArgs, RETRY, TargetArgs};
use crate::client::{self, AwaitedResponse, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output;

/// Time after which a person who still waits is told the reason.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Time limit; the gateway reports the outcome of a message within twenty seconds.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A broadcast takes as long as its messages.
const BROADCAST_TIMEOUT: Duration = Duration::from_secs(600);
/// The code of a failure that says that the message is stored and waits.
const STORED: &str = "waiting";
/// Name that stands for every platform.
const ALL: &str = "all";

pub(super) fn run(args: &mut MessageArgs, context: &CliContext) -> CommandResult {
    if let Some(Value::String(text)) = args.params.get_mut("message") {
        *text = piped::text(text)?;
    }
    let args = &*args;
    match args.row.action {
        "send" => send(args, context),
        "poll" => poll(args, context),
        "broadcast" => broadcast(args, context),
        FAILED => undelivered::list(args, context),
        RETRY => undelivered::retry(args, context),
        DISCARD => undelivered::discard(args, context),
        _ => other(args, context),
    }
}

/// Platform and target of the action.
struct ActionTarget {
    info: &'static ChannelInfo,
    /// The target as the gateway reads it.
    to: Option<String>,
}

/// Platform and target, checked.
fn place(args: &MessageArgs, context: &CliContext) -> Result<ActionTarget, CommandFailure> {
    let channel = channel(args, context)?;
    let info = channel.info();
    if !args.row.has_target {
        return Ok(ActionTarget { info, to: None });
    }
    let written = args.target.as_deref().unwrap_or_default();
    if written.trim().is_empty() {
        return Err(CommandFailure::usage("error: required option '-t, --target <dest>' not specified"));
    }
    Ok(ActionTarget { info, to: Some(read_target(channel.as_ref(), written)?) })
}

fn read_target(channel: &dyn Channel, written: &str) -> Result<String, CommandFailure> {
    let info = channel.info();
    let target = channel.target(written).map_err(|_| {
        let (written, hint) = (output::one_line(written), channel.target_hint());
        let text = format!("Error: Unknown target \"{written}\" for {}. Hint: {hint}", info.label);
        CommandFailure::new("unknown-target", text).hint(format!(
            "Targets of {}: {}",
            info.label,
            channel.target_forms()
        ))
    })?;
    let thread = target.thread.map(|thread| format!(":topic:{thread}")).unwrap_or_default();
    Ok(format!("{}:{}{thread}", info.id, target.id))
}

/// The platform that is named, or the only one that is configured.
fn channel(args: &MessageArgs, context: &CliContext) -> Result<Arc<dyn Channel>, CommandFailure> {
    if let Some(name) = &args.channel {
        return platform(name);
    }
    let config = context.config()?;
    let platforms = platforms();
    match platforms.usable(config).as_slice() {
        [] => {
            let failure =
                CommandFailure::new("channel-required", format!("Error: {}", platforms.none_usable(config)));
            Err(match platforms.obstacle(config) {
                Some(_) => failure,
                None => failure.hint(format!("Add one: `{}`", example_of_add())),
            })
        }
        [only] => platform(only),
        several => {
            let list = several.join(", ");
            let text = format!("Error: Channel is required when multiple channels are configured: {list}");
            Err(CommandFailure::new("channel-required", text))
        }
    }
}

fn send(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let ActionTarget { info, to } = place(args, context)?;
    check_ids(args, info)?;
    if args.text("card").is_some() {
        return Err(CommandFailure::usage(format!("--card: {} has no cards", info.label)));
    }
    let text = args.text("message").unwrap_or_default();
    let media = args.text("media").map(absolute);
    if text.trim().is_empty() && media.is_none() {
        return Err(CommandFailure::usage("Give --message, --media, or both"));
    }
    let buttons = args.text("buttons").map(serde_json::from_str::<Value>).transpose();
    let buttons =
        buttons.map_err(|error| CommandFailure::usage(format!("--buttons must be valid JSON: {error}")))?;
    if args.dry_run {
        rehearse(args, context, info, to.as_deref())?;
        let payload =
            json!({"channel": info.id, "to": to, "via": "direct", "mediaUrl": media, "dryRun": true});
        let said = format!("Would send to {} via {}. Nothing was sent.", to.unwrap_or_default(), info.label);
        return report(args, info.id, "core", &payload, &said);
    }
    let params = json!({
        "to": to, "message": text, "mediaUrl": media, "channel": info.id, "accountId": args.account,
        "replyTo": args.text("replyTo"), "threadId": args.text("threadId"), "buttons": buttons,
        "silent": args.flag("silent").then_some(true), "gifPlayback": args.flag("gifPlayback").then_some(true),
        "idempotencyKey": ids::uuid().to_string(),
    });
    let answer = wait_for::<Send>(args, context, info, &params)?;
    sent(args, info, &answer, &json!({"to": to, "mediaUrl": media}))
}

fn poll(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let ActionTarget { info, to } = place(args, context)?;
    let options = args.texts("pollOption");
    if options.len() < 2 {
        return Err(CommandFailure::usage("Give --poll-option twice or more"));
    }
    let most = if args.flag("pollMulti") { options.len() } else { 1 };
    let (question, hours) = (args.text("pollQuestion"), args.params.get("pollDurationHours"));
    let asked = json!({
        "channel": info.id, "to": to, "question": question, "options": options, "maxSelections": most,
        "durationHours": hours,
    });
    if args.dry_run {
        rehearse(args, context, info, to.as_deref())?;
        let payload = merged(&asked, &json!({"via": "direct", "dryRun": true}));
        let said = format!("Would ask {} via {}. Nothing was sent.", to.unwrap_or_default(), info.label);
        return report(args, info.id, "core", &payload, &said);
    }
    let more = json!({"accountId": args.account, "idempotencyKey": ids::uuid().to_string()});
    let answer = wait_for::<Poll>(args, context, info, &merged(&asked, &more))?;
    sent(args, info, &answer, &asked)
}

fn broadcast(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let is_all = args.channel.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(ALL));
    let id = if is_all { ALL } else { channel(args, context)?.info().id };
    let mut params = args.params.clone();
    params.insert("channel".to_owned(), json!(id));
    absolute_media(&mut params);
    let payload = act(args, context, &params, args.dry_run, BROADCAST_TIMEOUT)?;
    let results = payload.get("results").and_then(Value::as_array).cloned().unwrap_or_default();
    let failed: Vec<&Value> =
        results.iter().filter(|result| result.get("ok") != Some(&json!(true))).collect();
    let done = results.len() - failed.len();
    let would = if args.dry_run { "Would send" } else { "✅ Sent" };
    let mut said = format!("{would} to {done} of {} targets.", results.len());
    for result in &failed {
        let word = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
        said.push_str(&format!("\n❌ {} {}: {}", word("channel"), word("to"), word("error")));
    }
    report(args, id, "core", &payload, &said)?;
    Ok(if failed.is_empty() { 0 } else { ERROR })
}

/// Runs the actions that send no message of their own.
fn other(args: &MessageArgs, context: &CliContext) -> CommandResult {
    let ActionTarget { info, to } = place(args, context)?;
    if args.dry_run {
        rehearse(args, context, info, to.as_deref())?;
        let message = args.text("messageId");
        let payload = json!({
            "ok": true, "dryRun": true, "channel": info.id, "action": args.row.action, "to": to, "messageId": message,
        });
        let message = message.map(|id| format!(" with message {}", output::one_line(id))).unwrap_or_default();
        let to = to.map(|to| format!(" in {to}")).unwrap_or_default();
        let said = format!("Would do {}{message}{to} via {}. Nothing was done.", args.row.action, info.label);
        return report(args, info.id, "dry-run", &without_nulls(payload), &said);
    }
    let params = params_at(args, info, to.as_deref());
    let payload = act(args, context, &params, false, TIMEOUT)?;
    let said = described(args.row.action, info.label, &payload);
    report(args, info.id, "plugin", &payload, &said)
}

/// The params of an action, with where it is done.
fn params_at(args: &MessageArgs, info: &ChannelInfo, to: Option<&str>) -> Map<String, Value> {
    let mut params = args.params.clone();
    params.insert("channel".to_owned(), json!(info.id));
    params.extend(to.map(|to| ("target".to_owned(), json!(to))));
    absolute_media(&mut params);
    params
}

/// The ids of threads and messages that no platform could have.
fn check_ids(args: &MessageArgs, info: &ChannelInfo) -> Result<(), CommandFailure> {
    let channel = platform(info.id)?;
    let refuse = |flag: &str, error: TargetError| CommandFailure::usage(format!("{flag}: {error}"));
    if let Some(thread) = args.text("threadId") {
        channel.check_thread_id(thread).map_err(|error| refuse("--thread-id", error))?;
    }
    if let Some(message) = args.text("replyTo") {
        channel.message_id(message).map_err(|error| refuse("--reply-to", error))?;
    }
    Ok(())
}

/// Asks the gateway whether it would do it. Without an answer, only this command's own checks were
/// made.
fn rehearse(
    args: &MessageArgs,
    context: &CliContext,
    info: &ChannelInfo,
    to: Option<&str>,
) -> Result<(), CommandFailure> {
    let params = params_at(args, info, to);
    match act(args, context, &params, true, TIMEOUT) {
        Ok(_) => Ok(()),
        // OpenClaw 2026.2.9 has no such method.
        Err(failure) if failure.code == "unreachable" || failure.message.contains("unknown method") => {
            output::error_line("No gateway was asked: it may refuse what this dry run allows.");
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// A call that waits for the platform. If that takes a while, the person is told at once what it
/// waits for.
fn wait_for<C: Call>(
    args: &MessageArgs,
    context: &CliContext,
    info: &ChannelInfo,
    params: &Value,
) -> Result<Value, CommandFailure> {
    let flags = TargetFlags::default();
    let ask = async |name: &'static str, params: Value, limit: Duration| {
        client::call(context, &flags, name, params, AwaitedResponse::First, limit).await
    };
    client::block_on(async {
        let mut sending = pin!(ask(C::NAME, without_nulls(params.clone()), TIMEOUT));
        tokio::select! { biased;
            answer = &mut sending => return answer.map_err(|failure| or_stored(context, failure)),
            () = tokio::time::sleep(AT_ONCE) => {}
        }
        let mut telling = pin!(ask(ChannelsStatus::NAME, json!({}), TIMEOUT));
        tokio::select! { biased;
            answer = &mut sending => return answer.map_err(|failure| or_stored(context, failure)),
            status = &mut telling => {
                output::error_line(&waiting(info, args.account.as_deref(), status.ok().as_ref()));
            }
        }
        sending.await.map_err(|failure| or_stored(context, failure))
    })
}

/// A message that is stored and waits has not failed: scripts see that in the exit code, people in
/// the hint that shows how to follow it. A part that was given up is reported instead.
fn or_stored(context: &CliContext, failure: CommandFailure) -> CommandFailure {
    let detail = |key: &str| failure.details.as_ref()?.get(key);
    let waits = detail("waiting").and_then(Value::as_u64).is_some_and(|parts| parts > 0);
    let has_failed = ["failed", "leftOut"]
        .iter()
        .any(|key| detail(key).and_then(Value::as_array).is_some_and(|reasons| !reasons.is_empty()));
    if !waits || has_failed {
        return failure;
    }
    let ids = detail("deliveryIds").and_then(Value::as_array);
    let ids: Vec<&str> = ids.into_iter().flatten().filter_map(Value::as_str).collect();
    let hint = format!(
        "Its id: {}. How it goes: {}; what waits: {}",
        ids.join(", "),
        context.hint_command(&format!("openclaw trace {}", ids.first().unwrap_or(&"<id>"))),
        context.hint_command("openclaw message failed")
    );
    CommandFailure { code: STORED, ..failure.hint(hint) }
}

/// Reason for the wait, as far as the gateway knows.
fn waiting(info: &ChannelInfo, account: Option<&str>, status: Option<&Value>) -> String {
    let default = || status?.get("channelDefaultAccountId")?.get(info.id)?.as_str();
    let named = account.map(normalize_account_id).or_else(|| default().map(str::to_owned));
    let id = named.unwrap_or_else(|| normalize_account_id(""));
    let accounts = status.and_then(|status| status.get("channelAccounts")?.get(info.id)?.as_array());
    let own = accounts.into_iter().flatten().find(|own| own.get("accountId") == Some(&json!(id)));
    match own.and_then(obstacle) {
        Some(why) => format!(
            "{} account \"{id}\" does not work now: {why}\nThe message is kept and sent as soon as it does. Waiting up to 20 seconds for that…",
            info.label
        ),
        None => format!("Waiting for {} (account \"{id}\")…", info.label),
    }
}

fn act(
    args: &MessageArgs,
    context: &CliContext,
    params: &Map<String, Value>,
    dry_run: bool,
    limit: Duration,
) -> Result<Value, CommandFailure> {
    let request = json!({
        "action": args.row.action, "params": params, "accountId": args.account,
        "dryRun": dry_run.then_some(true), "idempotencyKey": ids::uuid().to_string(),
    });
    let answer = call::<MessageAction>(context, &timeout(limit), &request);
    answer.map_err(|failure| CommandFailure { message: args.naming_flags(&failure.message), ..failure })
}

fn timeout(limit: Duration) -> TargetArgs {
    TargetArgs { timeout: Some(limit.as_millis().to_string()), ..TargetArgs::default() }
}

fn absolute_media(params: &mut Map<String, Value>) {
    if let Some(Value::String(media)) = params.get_mut("media") {
        *media = absolute(media);
    }
}

/// A path as the gateway finds it, which has another working directory.
pub(super) fn absolute(path: &str) -> String {
    if path.contains("://") {
        return path.to_owned();
    }
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn merged(first: &Value, second: &Value) -> Value {
    let fields = [first, second].into_iter().filter_map(Value::as_object).flatten();
    Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

/// Prints a receipt under the names that scripts read: the ids at the top, and the whole receipt
/// below `result`.
fn sent(args: &MessageArgs, info: &ChannelInfo, answer: &Value, about: &Value) -> CommandResult {
    let word = |key: &str| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (message, chat) = (word("messageId"), word("chatId"));
    let frame = json!({"channel": info.id, "via": "gateway"});
    let ids = json!({"messageId": message, "chatId": chat, "result": answer});
    let payload = merged(&merged(&frame, about), &ids);
    let chat = chat.map(|chat| format!(" (chat {chat})")).unwrap_or_default();
    let what = if args.row.action == "poll" { "Poll sent" } else { "Sent" };
    let said = format!("✅ {what} via {}. Message ID: {}{chat}", info.label, message.unwrap_or("unknown"));
    report(args, info.id, "core", &payload, &said)
}

/// Description of the result, for people.
fn described(action: &str, label: &str, payload: &Value) -> String {
    let word =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let lines = |key: &str, line: &dyn Fn(&Value) -> String| {
        let items = payload.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let shown: Vec<String> = items.iter().map(line).collect();
        if shown.is_empty() { format!("None ({label}).") } else { shown.join("\n") }
    };
    if word(payload, "status") == "queued" {
        return word(payload, "note");
    }
    match action {
        "react" if payload.get("removed") == Some(&json!(true)) => "✅ Reaction removed".to_owned(),
        "react" => format!("✅ Reaction added: {}", word(payload, "added")),
        "edit" => format!("✅ Edited via {label}. Message ID: {}", word(payload, "messageId")),
        "delete" => format!("✅ Deleted via {label}."),
        "pin" => format!("✅ Pinned via {label}. Message ID: {}", word(payload, "messageId")),
        "unpin" => format!("✅ Unpinned via {label}."),
        "thread-create" => format!(
            "✅ Thread \"{}\" made via {label}. Thread ID: {}",
            word(payload, "threadName"),
            word(payload, "threadId")
        ),
        "list-pins" => lines("pins", &|pin| format!("{}  {}", word(pin, "messageId"), word(pin, "text"))),
        "sticker-search" => lines("stickers", &|sticker| {
            format!(
                "{}  {}  {}",
                word(sticker, "fileId"),
                word(sticker, "emoji"),
                word(sticker, "description")
            )
        }),
        "sticker" | "thread-reply" => {
            let id = payload.pointer("/result/messageId").and_then(Value::as_str).unwrap_or("unknown");
            let chat = payload.pointer("/result/chatId").and_then(Value::as_str);
            let chat = chat.map(|chat| format!(" (chat {chat})")).unwrap_or_default();
            format!("✅ Sent via {label}. Message ID: {id}{chat}")
        }
        _ => format!("✅ {action} via {label}."),
    }
}

fn report(args: &MessageArgs, channel: &str, handled_by: &str, payload: &Value, said: &str) -> CommandResult {
    if args.json {
        output::json(&json!({
            "action": args.row.action, "channel": channel, "dryRun": args.dry_run, "handledBy": handled_by,
            "payload": payload,
        }));
    } else {
        said.lines().for_each(output::line);
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_in_words() {
        let rows = [
            ("react", json!({"ok": true, "added": "👍"}), "✅ Reaction added: 👍"),
            ("react", json!({"ok": true, "removed": true}), "✅ Reaction removed"),
            ("delete", json!({"ok": true}), "✅ Deleted via Telegram."),
            ("list-pins", json!({"pins": [{"messageId": "4", "text": "hi"}]}), "4  hi"),
            ("list-pins", json!({"pins": []}), "None (Telegram)."),
            (
                "sticker",
                json!({"result": {"messageId": "7", "chatId": "5"}}),
                "✅ Sent via Telegram. Message ID: 7 (chat 5)",
            ),
            ("ban", json!({}), "✅ ban via Telegram."),
            ("sticker", json!({"ok": true, "status": "queued", "note": "It waits."}), "It waits."),
        ];
        for (action, payload, expect) in rows {
            assert_eq!(described(action, "Telegram", &payload), expect);
        }
    }
}
