//! Broadcast: the same message to several conversations, on one platform or on all (spec
//! `channels.md` §6.2). Each has its own result.

use serde_json::{Value, json};

use super::MessageError;
use super::actions::BROADCAST;
use super::arguments::ActionArguments;
use super::perform::Acting;

/// Conversations of one call.
const MOST: usize = 100;
/// `channel` that means every platform.
const ALL: &str = "all";

/// Sends it to all of them, one after the other.
pub(super) async fn broadcast(acting: &Acting<'_>, args: ActionArguments<'_>) -> Result<Value, MessageError> {
    if !acting.config.tools.message.broadcast.enabled {
        let text = "Broadcast is disabled. Set tools.message.broadcast.enabled to true to enable.";
        return Err(MessageError::Invalid(text.to_owned()));
    }
    let targets = args.list("targets");
    if targets.is_empty() {
        return Err(MessageError::Invalid("Broadcast requires at least one target in --targets.".to_owned()));
    }
    let channels = channels(acting, args)?;
    if channels.len() * targets.len() > MOST {
        return Err(MessageError::Invalid(format!("a broadcast goes to at most {MOST} conversations")));
    }
    let mut results = Vec::new();
    for channel in &channels {
        for target in &targets {
            let mut one = args.0.clone();
            if let Some(fields) = one.as_object_mut() {
                for key in ["targets", "to", "channelId"] {
                    fields.remove(key);
                }
                fields.insert("channel".to_owned(), json!(channel));
                fields.insert("target".to_owned(), json!(target));
            }
            let id = format!("{}.{}", acting.id, results.len() + 1);
            // Boxed: it is the whole of an action again.
            let sent = Box::pin(acting.one_of_many(id).send_one(&one)).await;
            match sent {
                Err(MessageError::Stopped) => return Err(MessageError::Stopped),
                Ok(result) => {
                    results.push(json!({"channel": channel, "to": target, "ok": true, "result": result}));
                }
                Err(error) => {
                    let error = error.to_string();
                    results.push(json!({"channel": channel, "to": target, "ok": false, "error": error}));
                }
            }
        }
    }
    let failed = results.iter().filter(|result| result.get("ok") == Some(&json!(false))).count();
    let mut told =
        json!({"action": BROADCAST, "sent": results.len() - failed, "failed": failed, "results": results});
    if let Some(fields) = told.as_object_mut()
        && acting.is_dry_run
    {
        fields.insert("dryRun".to_owned(), json!(true));
    }
    Ok(told)
}

/// The platforms: the named one, or all that are configured.
fn channels(acting: &Acting<'_>, args: ActionArguments<'_>) -> Result<Vec<String>, MessageError> {
    let named = args.word("channel").filter(|name| !name.eq_ignore_ascii_case(ALL));
    let finder = acting.finder();
    if let Some(name) = named {
        return Ok(vec![finder.channel(Some(&name))?.info().id.to_owned()]);
    }
    let configured = finder.configured();
    if configured.is_empty() {
        return Err(MessageError::Invalid("Broadcast requires at least one configured channel.".to_owned()));
    }
    Ok(configured.into_iter().map(str::to_owned).collect())
}
