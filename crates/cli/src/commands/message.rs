//! `openclaw message send|poll` (spec `channels.md` §6, `cli.md`).

use std::time::Duration;

use openclaw_protocol::params::channels::{Poll, Send};
use openclaw_sessions::ids;
use serde_json::{Value, json};

use super::channels::{call, platform};
use crate::args::{
    MessageArgs, MessageCommand, MessageCommonArgs, MessagePollArgs, MessageSendArgs, TargetArgs,
};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

/// The gateway tells within twenty seconds what came of a message.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(args: &MessageArgs, context: &Context) -> Outcome {
    match &args.command {
        MessageCommand::Send(args) => send(args, context),
        MessageCommand::Poll(args) => poll(args, context),
    }
}

/// Platform and target, checked.
fn place(common: &MessageCommonArgs) -> Result<(String, &'static str, String), Failure> {
    let name = common.channel.as_deref().unwrap_or("telegram");
    let channel = platform(name)?;
    let info = channel.info();
    let target = channel.target(&common.target).map_err(|error| {
        Failure::new(
            "unknown-target",
            format!(
                "Error: Unknown target \"{}\" for {}. Hint: <chatId>",
                output::one_line(&common.target),
                info.label
            ),
        )
        .hint(error.to_string())
    })?;
    let thread = target.thread.map(|thread| format!(":topic:{thread}")).unwrap_or_default();
    Ok((info.id.to_owned(), info.label, format!("{}:{}{thread}", info.id, target.id)))
}

fn send(args: &MessageSendArgs, context: &Context) -> Outcome {
    let common = &args.common;
    let (channel, label, to) = place(common)?;
    if args.buttons.is_some() || args.card.is_some() {
        return Err(Failure::usage("--buttons and --card: not implemented yet in this version"));
    }
    let text = args.message.clone().unwrap_or_default();
    if text.trim().is_empty() && args.media.is_none() {
        return Err(Failure::usage("Give --message, --media, or both"));
    }
    if common.dry_run {
        let payload =
            json!({"channel": channel, "to": to, "via": "gateway", "mediaUrl": args.media, "dryRun": true});
        return dry(
            common,
            "send",
            &channel,
            &payload,
            &format!("Would send to {to} via {label}. Nothing was sent."),
        );
    }
    let media = args.media.as_deref().map(absolute);
    let params = json!({
        "to": to, "message": text, "mediaUrl": media, "channel": channel, "accountId": common.account,
        "replyTo": args.reply_to, "threadId": args.thread_id, "silent": args.silent.then_some(true),
        "gifPlayback": args.gif_playback.then_some(true), "idempotencyKey": ids::uuid().to_string(),
    });
    let answer = call::<Send>(context, &target(), &params)?;
    done(common, "send", &channel, label, &answer)
}

fn poll(args: &MessagePollArgs, context: &Context) -> Outcome {
    let common = &args.common;
    let (channel, label, to) = place(common)?;
    if args.poll_option.len() < 2 {
        return Err(Failure::usage("Give --poll-option twice or more"));
    }
    let most = if args.poll_multi { args.poll_option.len() } else { 1 };
    if common.dry_run {
        let payload = json!({
            "channel": channel, "to": to, "question": args.poll_question, "options": args.poll_option,
            "maxSelections": most, "durationHours": args.poll_duration_hours, "via": "gateway", "dryRun": true,
        });
        return dry(
            common,
            "poll",
            &channel,
            &payload,
            &format!("Would ask {to} via {label}. Nothing was sent."),
        );
    }
    let params = json!({
        "to": to, "question": args.poll_question, "options": args.poll_option, "maxSelections": most,
        "durationHours": args.poll_duration_hours, "channel": channel, "accountId": common.account,
        "idempotencyKey": ids::uuid().to_string(),
    });
    let answer = call::<Poll>(context, &target(), &params)?;
    done(common, "poll", &channel, label, &answer)
}

fn target() -> TargetArgs {
    TargetArgs { timeout: Some(TIMEOUT.as_millis().to_string()), ..TargetArgs::default() }
}

/// A path as the gateway finds it, which has another working directory.
fn absolute(path: &str) -> String {
    if path.contains("://") {
        return path.to_owned();
    }
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn dry(common: &MessageCommonArgs, action: &str, channel: &str, payload: &Value, said: &str) -> Outcome {
    if common.json {
        output::json(&json!({
            "action": action, "channel": channel, "dryRun": true, "handledBy": "core", "payload": payload,
        }));
    } else {
        output::line(said);
    }
    Ok(0)
}

fn done(common: &MessageCommonArgs, action: &str, channel: &str, label: &str, answer: &Value) -> Outcome {
    if common.json {
        output::json(&json!({
            "action": action, "channel": channel, "dryRun": false, "handledBy": "core", "payload": answer,
        }));
    } else {
        let id =
            answer.get("messageId").and_then(Value::as_str).filter(|id| !id.is_empty()).unwrap_or("unknown");
        output::line(&format!("✅ Sent via {label}. Message ID: {id}"));
    }
    Ok(0)
}
