//! The table of channels in `openclaw status`: what the gateway knows of the accounts at work, or what the configuration says where no
//! gateway was asked.

use openclaw_channels::{Channel, SwitchedOff, Unusable, switched_off};
use openclaw_config::Config;
use openclaw_gateway::platforms;
use serde_json::Value;

use super::{DEFAULT, is_set};
use crate::context::CliContext;

/// Answers of a gateway about its accounts.
pub(in crate::commands) struct AccountAnswers<'a> {
    /// Answer to `channels.status`.
    pub(in crate::commands) status: Option<&'a Value>,
    /// Health snapshot, for which the platforms were asked.
    pub(in crate::commands) health: Option<&'a Value>,
}

/// A row for each platform that is set up: its name, whether it is on, its status, the source of
/// its credentials, and its problem.
pub(in crate::commands) fn table(context: &CliContext, told: &AccountAnswers<'_>) -> Vec<Vec<String>> {
    let Ok(config) = context.config() else { return Vec::new() };
    let platforms = platforms();
    let set = platforms.channels().iter().filter(|channel| is_set(config, channel.as_ref()));
    set.map(|channel| row(config, channel.as_ref(), told)).collect()
}

fn row(config: &Config, channel: &dyn Channel, told: &AccountAnswers<'_>) -> Vec<String> {
    let info = channel.info();
    let ids = channel.account_ids(config);
    let source = |id: &String| channel.credential_source(config, id);
    let is_on = ids.iter().any(|id| !matches!(channel.account(config, id), Err(Unusable::Disabled)));
    let configured: Vec<&str> = ids.iter().map(source).filter(|source| *source != "none").collect();
    let mut detail = match configured.first() {
        Some(source) => format!("token {source} · accounts {}/{}", configured.len(), ids.len()),
        None => "no token".to_owned(),
    };
    let accounts =
        told.status.and_then(|status| status.get("channelAccounts")?.get(info.id)?.as_array().cloned());
    let troubles = match &accounts {
        Some(accounts) => accounts
            .iter()
            .flat_map(|account| {
                trouble(info.id, account, told).into_iter().chain(late(account)).chain(given_up(account))
            })
            .collect(),
        None if is_on => vec!["no gateway to ask how it works".to_owned()],
        None => Vec::new(),
    };
    let state = match (is_on, configured.is_empty(), &accounts) {
        (false, _, _) => "OFF",
        (true, false, None) => "UNKNOWN",
        (true, false, Some(_)) if troubles.is_empty() => "OK",
        (true, _, _) => "WARN",
    };
    let off = ids.iter().filter(|_| !is_on).find_map(|id| switched_off(config, info.id, id));
    if let Some(off) = off.filter(SwitchedOff::is_unwanted) {
        detail.push_str(&format!(" · {off} · run: {}", off.remedy()));
    }
    troubles.iter().for_each(|trouble| detail.push_str(&format!(" · {trouble}")));
    let enabled = if is_on { "ON" } else { "OFF" };
    [info.label, enabled, state, detail.as_str()].map(str::to_owned).to_vec()
}

/// Problem of an account that is switched on, with its name.
fn trouble(channel: &str, account: &Value, told: &AccountAnswers<'_>) -> Option<String> {
    let id = account.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    let why = obstacle(account).or_else(|| {
        let probe = told.health?.pointer(&format!("/channels/{channel}/accounts/{id}/probe"))?;
        let is_bad = probe.get("ok").and_then(Value::as_bool) == Some(false);
        is_bad.then(|| probe.get("error").and_then(Value::as_str).unwrap_or("no answer").to_owned())
    })?;
    Some(format!("{id}: {why}"))
}

/// Notice that messages were given up, with the command that lists them.
fn given_up(account: &Value) -> Option<String> {
    let failed = account.get("outboxFailed").and_then(Value::as_u64).filter(|failed| *failed > 0)?;
    let id = account.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    Some(format!("{id}: {failed} given up (openclaw message failed)"))
}

/// Notice that sends of conversations keep failing, with the command that names them.
fn late(account: &Value) -> Option<String> {
    let late = account.get("outboxLate").and_then(Value::as_u64).filter(|late| *late > 0)?;
    let id = account.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    let chats = if late == 1 { "chat" } else { "chats" };
    Some(format!("{id}: sends to {late} {chats} keep failing (openclaw channels status)"))
}

/// Reason why an account does not work, from its snapshot. `None`: it works, or is switched off.
pub(in crate::commands) fn obstacle(account: &Value) -> Option<String> {
    let is = |key: &str| account.get(key).and_then(Value::as_bool);
    let error = || account.get("lastError").and_then(Value::as_str).map(str::to_owned);
    if is("enabled") == Some(false) {
        return None;
    }
    let short = match (is("configured"), is("running"), is("connected")) {
        (Some(false), _, _) => "not configured",
        (_, Some(false), _) => "stopped",
        (_, _, Some(false)) => "not connected yet",
        _ => return None,
    };
    Some(error().unwrap_or_else(|| short.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_that_does_not_work_says_why() {
        let rows = [
            (json!({"enabled": true, "configured": true, "running": true, "connected": true}), None),
            // 2.9 does not say of Telegram whether it is connected.
            (json!({"enabled": true, "configured": true, "running": true, "lastError": null}), None),
            (json!({"enabled": false, "configured": true, "running": false}), None),
            (
                json!({"enabled": true, "configured": true, "running": false, "lastError": null}),
                Some("stopped"),
            ),
            (json!({"configured": true, "running": false, "lastError": "401"}), Some("401")),
            (json!({"configured": true, "running": true, "connected": false}), Some("not connected yet")),
            (json!({"configured": false, "running": false}), Some("not configured")),
        ];
        for (account, expect) in rows {
            assert_eq!(obstacle(&account).as_deref(), expect, "{account}");
        }
    }
}
