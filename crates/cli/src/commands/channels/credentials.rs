//! Check that a platform accepts credentials before they are written.

use std::time::Duration;

use openclaw_channels::{Channel, Probe};
use openclaw_config::Config;

use crate::client;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::output;

/// Longest wait for the platform. If it does not answer, the gateway asks it later.
const PATIENCE: Duration = Duration::from_secs(5);
/// HTTP status that means that the credentials themselves are refused.
const REFUSAL: u16 = 401;
/// HTTP statuses that mean so as well, or that something else than the platform answered.
const DOUBTS: [u16; 2] = [403, 404];
/// Advice for a person whose token is refused.
const ADVICE: &str =
    "Copy it again from where the bot was made, then run this command again with the right one.";

/// Answer of a platform that does not refuse the credentials.
pub(super) enum TokenAnswer {
    /// Valid credentials, with the account's name on the platform, if it says one.
    Taken(Option<String>),
    /// Credentials that are probably wrong, with the reason.
    Doubted(String),
    /// The platform could not be asked.
    Unasked(String),
}

/// Asks the platform about an account of a configuration that is not written yet. `None` where the account can't be made.
///
/// # Errors
/// The platform refuses the credentials.
pub(super) fn ask(
    channel: &dyn Channel,
    config: &Config,
    account: &str,
) -> Result<Option<TokenAnswer>, CommandFailure> {
    let Ok(bot) = channel.account(config, account) else { return Ok(None) };
    let probe = client::block_on(async {
        tokio::time::timeout(PATIENCE, bot.probe(PATIENCE))
            .await
            .map_err(|_| CommandFailure::new("timeout", format!("no answer within {} s", PATIENCE.as_secs())))
    });
    let why = |error: Option<String>, status: u16| error.unwrap_or_else(|| status.to_string());
    Ok(Some(match probe {
        Ok(Probe { ok: true, details, .. }) => {
            let name = details.get("bot").and_then(|bot| bot.get("username")?.as_str());
            TokenAnswer::Taken(name.map(str::to_owned))
        }
        Ok(Probe { status: Some(REFUSAL), error, .. }) => {
            let (label, why) = (channel.info().label, why(error, REFUSAL));
            let failure = format!("{label} does not take this token ({why}): nothing was changed.");
            return Err(CommandFailure::new("token-refused", failure).hint(ADVICE));
        }
        Ok(Probe { status: Some(status), error, .. }) if DOUBTS.contains(&status) => {
            TokenAnswer::Doubted(why(error, status))
        }
        Ok(Probe { error, .. }) => TokenAnswer::Unasked(error.unwrap_or_else(|| "no answer".to_owned())),
        Err(failure) => TokenAnswer::Unasked(failure.message),
    }))
}

/// Prints the answer, after the account was written.
pub(super) fn tell(context: &CliContext, channel: &dyn Channel, answer: TokenAnswer) {
    let label = channel.info().label;
    match answer {
        TokenAnswer::Taken(name) => {
            let name = name.map(|name| format!(": it is @{name}")).unwrap_or_default();
            output::line(&format!("{label} takes the token{name}."));
        }
        TokenAnswer::Doubted(why) => output::error_line(&context.style.error(&format!(
            "{label} does not take this token ({why}). It is stored all the same. {ADVICE}"
        ))),
        TokenAnswer::Unasked(why) => unasked(context, label, &why),
    }
}

fn unasked(context: &CliContext, label: &str, why: &str) {
    let later = context.hint_command("openclaw channels status --probe");
    output::error_line(&context.style.warn(&format!(
        "{label} could not be asked whether it takes the token ({why}). To ask again, with a gateway running: {later}"
    )));
}
