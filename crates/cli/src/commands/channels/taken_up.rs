//! Accounts that were written into the configuration a moment ago: the running gateway takes them up by itself, a little
//! later.

use std::time::{Duration, Instant, SystemTime};

use openclaw_config::Config;
use openclaw_config::settings::ReloadMode;
use openclaw_gateway::{platforms, running_gateway};
use serde_json::Value;

use crate::commands::config_pickup;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::service;

/// Longest wait for the gateway to have the accounts of the file.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause before it is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// An older edit is not waited for.
const FRESH: Duration = Duration::from_secs(10);

/// Answer of the gateway, and the accounts of the configuration that it does not have yet.
#[derive(Debug, Default)]
pub(super) struct ReloadAnswer {
    pub(super) answer: Value,
    /// Platform and account.
    pub(super) pending: Vec<(String, String)>,
    /// When it has them, for people.
    pub(super) when: String,
}

/// Asks until the gateway has every account that was written a moment ago, or the time for that is over.
///
/// # Errors
/// As `ask`.
pub(super) fn ask(
    context: &CliContext,
    ask: impl Fn() -> Result<Value, CommandFailure>,
) -> Result<ReloadAnswer, CommandFailure> {
    let Some(running) = running_gateway(&context.loaded) else {
        return Ok(ReloadAnswer { answer: ask()?, ..ReloadAnswer::default() });
    };
    let config = context.config_or_default();
    if matches!(config.gateway.reload.mode, Some(ReloadMode::Off | ReloadMode::Restart)) {
        let answer = ask()?;
        let restart = service::restart_advice(context, running);
        let when = format!("in the configuration, not in the running gateway; to have it there, {restart}");
        return Ok(ReloadAnswer { pending: missing(&config, &answer), answer, when });
    }
    let is_fresh = config_pickup::age(context, SystemTime::now()).is_some_and(|age| age < FRESH);
    let begun = Instant::now();
    loop {
        let answer = ask()?;
        let pending = if is_fresh { missing(&config, &answer) } else { Vec::new() };
        if pending.is_empty() || begun.elapsed() >= PATIENCE {
            let when = "added, the gateway is taking it up; ask again in a moment".to_owned();
            return Ok(ReloadAnswer { answer, pending, when });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Accounts that could work by the configuration, and of which the gateway does not know that.
fn missing(config: &Config, answer: &Value) -> Vec<(String, String)> {
    let platforms = platforms();
    let wanted = platforms.channels().iter().flat_map(|channel| {
        let usable = channel.account_ids(config).into_iter().filter(|id| channel.account(config, id).is_ok());
        usable.map(|id| (channel.info().id.to_owned(), id)).collect::<Vec<_>>()
    });
    wanted.filter(|(channel, id)| !is_known(answer, channel, id)).collect()
}

fn is_known(answer: &Value, channel: &str, id: &str) -> bool {
    let accounts = answer.pointer(&format!("/channelAccounts/{channel}")).and_then(Value::as_array);
    accounts.into_iter().flatten().any(|account| {
        account.get("accountId").and_then(Value::as_str) == Some(id)
            && account.get("configured") == Some(&Value::Bool(true))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing;

    #[test]
    fn an_account_is_missing_until_the_gateway_has_its_token() {
        let context = testing::context("{channels: {telegram: {botToken: '1:TEST-token-x'}}}", &[]);
        let config = context.config_or_default();
        let answer = |configured| json!({"channelAccounts": {"telegram": [{"accountId": "default", "configured": configured}]}});
        let pending = [("telegram".to_owned(), "default".to_owned())];
        assert_eq!(missing(&config, &json!({})), pending);
        assert_eq!(missing(&config, &answer(false)), pending);
        assert_eq!(missing(&config, &answer(true)), []);
    }
}
