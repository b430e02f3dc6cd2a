//! Obstacles that keep an account from working, with advice: the same for every page that reports
//! account status.

use openclaw_channels::{AccountStatus, Channel, Platforms};
use openclaw_config::Config;
use serde_json::{Value, json};

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
    platforms: &Platforms,
    config: &Config,
    channel: &dyn Channel,
    id: &str,
) -> Option<String> {
    let at_work = platforms.at_work(channel.info().id, id).map(|at_work| at_work.status.now());
    channel.account(config, id).is_ok().then(|| obstacle(at_work.as_ref())).flatten()
}

/// The same by the names of a channel and an account.
pub(crate) fn why_not(platforms: &Platforms, config: &Config, channel: &str, id: &str) -> Option<String> {
    obstacle_of(platforms, config, platforms.channel(channel)?.as_ref(), id)
}

/// Probe result of the platform, for the health snapshot. A good result counts only for an account
/// that works. Without a probe, the state of the account's own connection stands in its place, with
/// what the platform said of the account at its start: OpenClaw 2026.2.9 asks every minute, and
/// shows an account without an answer as no more than `configured`.
pub(super) fn answer(
    asked: Option<&Value>,
    obstacle: Option<&str>,
    stands: Option<&AccountStatus>,
) -> Option<Value> {
    let was_good = asked.and_then(|asked| asked.get("ok")) == Some(&json!(true));
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
        (None, None) => {
            let connected = stands.filter(|stands| stands.connected)?;
            let mut shown = connected.identity.clone();
            let works = json!({"ok": true, "status": null, "error": null, "elapsedMs": 0});
            shown.extend(works.as_object().cloned().unwrap_or_default());
            Some(Value::Object(shown))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_an_account_that_works() {
        let bot = json!({"username": "b"});
        let status = |connected: bool| {
            let identity = [("bot".to_owned(), bot.clone())].into_iter().collect();
            AccountStatus { connected, identity, ..AccountStatus::default() }
        };
        let good = json!({"ok": true, "status": 200, "error": null, "elapsedMs": 3, "bot": bot});
        let bad = json!({"ok": false, "status": 401, "error": "Unauthorized", "elapsedMs": 3});
        let (stopped, unauthorized) = (json!("it is stopped"), json!("Unauthorized"));
        let nobody = Value::Null;
        let rows = [
            (Some(&good), None, true, Some((true, &nobody, &bot))),
            (Some(&good), Some("it is stopped"), false, Some((false, &stopped, &bot))),
            (Some(&bad), Some("it is stopped"), false, Some((false, &unauthorized, &nobody))),
            (None, Some("it is stopped"), false, Some((false, &stopped, &nobody))),
            (None, None, true, Some((true, &nobody, &bot))),
            (None, None, false, None),
        ];
        for (asked, obstacle, connected, expect) in rows {
            let shown = answer(asked, obstacle, Some(&status(connected)));
            let shown =
                shown.as_ref().map(|shown| (shown["ok"] == json!(true), &shown["error"], &shown["bot"]));
            assert_eq!(shown, expect, "{asked:?} {obstacle:?} {connected}");
        }
    }
}
