//! Check that a platform accepts the credentials that were just written.

use std::time::Duration;

use openclaw_channels::{Channel, Probe};

use crate::client;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::output;

/// Longest wait for the platform. If it does not answer, the gateway asks it later.
const PATIENCE: Duration = Duration::from_secs(5);
/// HTTP statuses that mean the credentials themselves are refused.
const REFUSALS: [u16; 3] = [401, 403, 404];

/// Asks the platform about the account and prints the result. The account is written in any case.
pub(super) fn tell(context: &CliContext, channel: &dyn Channel, account: &str) {
    let config = context.reread().config_or_default();
    // The reason why the account can't be asked has been printed already.
    let Ok(bot) = channel.account(&config, account) else { return };
    let probe = client::block_on(async {
        tokio::time::timeout(PATIENCE, bot.probe(PATIENCE))
            .await
            .map_err(|_| CommandFailure::new("timeout", format!("no answer within {} s", PATIENCE.as_secs())))
    });
    let label = channel.info().label;
    match probe {
        Ok(Probe { ok: true, details, .. }) => {
            let name = details.get("bot").and_then(|bot| bot.get("username")?.as_str());
            let name = name.map(|name| format!(": it is @{name}")).unwrap_or_default();
            output::line(&format!("{label} takes the token{name}."));
        }
        Ok(Probe { status: Some(status), error, .. }) if REFUSALS.contains(&status) => {
            let why = error.unwrap_or_else(|| status.to_string());
            output::error_line(&context.style.error(&format!(
                "{label} does not take this token ({why}). Copy it again from where the bot was made, then run this command again \
                 with the right one."
            )));
        }
        Ok(Probe { error, .. }) => unasked(context, label, &error.unwrap_or_else(|| "no answer".to_owned())),
        Err(failure) => unasked(context, label, &failure.message),
    }
}

fn unasked(context: &CliContext, label: &str, why: &str) {
    let later = context.hint_command("openclaw channels status --probe");
    output::error_line(&context.style.warn(&format!(
        "{label} could not be asked whether it takes the token ({why}). To ask again, with a gateway running: {later}"
    )));
}
