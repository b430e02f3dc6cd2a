//! Obstacles that keep an account from working, with advice: the same for every page that reports
//! account status.

use openclaw_channels::{AccountStatus, Channel};
use openclaw_config::Config;
use serde_json::{Map, Value, json};

use crate::state::GatewayState;

const DEFAULT: &str = "default";

/// A command for an account, such as `openclaw channels start --channel telegram --account work`.
pub(super) fn command(verb: &str, channel: &str, account: &str) -> String {
    let named = if account == DEFAULT { String::new() } else { format!(" --account {account}") };
    format!("openclaw channels {verb} --channel {channel}{named}")
}

/// The command that gives an account a token.
pub(super) fn add_command(channel: &str, account: &str) -> String {
    format!("{} --token <token>", command("add", channel, account))
}

/// Reason why an account that can be started does not work. `None`: it works, or has just begun.
/// `stands` is `None` for one that is not started.
pub(super) fn obstacle(stands: Option<&AccountStatus>) -> Option<String> {
    let Some(stands) = stands else { return Some("it is stopped".to_owned()) };
    match &stands.last_error {
        _ if stands.connected => None,
        Some(error) => Some(error.clone()),
        None => (!stands.running).then(|| "it is stopped".to_owned()),
    }
}

/// The same for an account of the configuration; `None` also where it is switched off or lacks its credentials.
pub(super) fn obstacle_of(
    state: &GatewayState,
    config: &Config,
    channel: &dyn Channel,
    id: &str,
) -> Option<String> {
    let at_work = state.platforms.at_work(channel.info().id, id).map(|at_work| at_work.status.now());
    channel.account(config, id).is_ok().then(|| obstacle(at_work.as_ref())).flatten()
}

/// The same by the names of a channel and an account.
pub(crate) fn why_not(state: &GatewayState, channel: &str, id: &str) -> Option<String> {
    obstacle_of(state, &state.config(), state.platforms.channel(channel)?.as_ref(), id)
}

/// Probe result of the platform, for the health snapshot. A good result counts only for an account
/// that works. Without a probe, the state of the account's own connection stands in its place:
/// OpenClaw 2026.2.9 asks every minute, and shows an account without an answer as no more than
/// `configured`.
pub(super) fn answer(
    asked: Option<&Value>,
    obstacle: Option<&str>,
    fields: &Map<String, Value>,
) -> Option<Value> {
    let was_good = asked.and_then(|asked| asked.get("ok")) == Some(&json!(true));
    let is_connected = fields.get("connected") == Some(&json!(true));
    match (asked, obstacle) {
        (Some(asked), None) => Some(asked.clone()),
        (Some(asked), Some(_)) if !was_good => Some(asked.clone()),
        (asked, Some(why)) => {
            let mut shown = asked.and_then(Value::as_object).cloned().unwrap_or_default();
            shown.insert("ok".to_owned(), json!(false));
            shown.insert("error".to_owned(), json!(why));
            // Telegram's answer was good: its status says nothing of this.
            shown.insert("status".to_owned(), Value::Null);
            shown.entry("elapsedMs").or_insert(json!(0));
            Some(Value::Object(shown))
        }
        (None, None) if is_connected => {
            Some(json!({"ok": true, "status": null, "error": null, "elapsedMs": 0}))
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_an_account_that_works() {
        let fields = |connected: bool| {
            let value = json!({"connected": connected});
            value.as_object().cloned().unwrap_or_default()
        };
        let good =
            json!({"ok": true, "status": 200, "error": null, "elapsedMs": 3, "bot": {"username": "b"}});
        let bad = json!({"ok": false, "status": 401, "error": "Unauthorized", "elapsedMs": 3});
        let rows = [
            (Some(&good), None, true, Some((true, Value::Null))),
            (Some(&good), Some("it is stopped"), false, Some((false, json!("it is stopped")))),
            (Some(&bad), Some("it is stopped"), false, Some((false, json!("Unauthorized")))),
            (None, Some("it is stopped"), false, Some((false, json!("it is stopped")))),
            (None, None, true, Some((true, Value::Null))),
            (None, None, false, None),
        ];
        for (asked, obstacle, connected, expect) in rows {
            let shown = answer(asked, obstacle, &fields(connected));
            let shown = shown.map(|shown| (shown["ok"] == json!(true), shown["error"].clone()));
            assert_eq!(shown, expect, "{asked:?} {obstacle:?} {connected}");
        }
    }
}
