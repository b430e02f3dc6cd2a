//! `openclaw channels remove [--delete]`.

use std::io::{IsTerminal as _, stdin};

use openclaw_channels::Channel;
use openclaw_channels::account_keys::{names_of, take_account};
use openclaw_config::write::{Actor, set_value};
use openclaw_config::{Config, normalize_account_id};
use serde_json::{Map, Value, json};

use super::{DEFAULT, first_platform, platform, refused};
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(super) fn run(
    context: &CliContext,
    channel: Option<&str>,
    account: Option<&str>,
    delete: bool,
) -> CommandResult {
    let asks = channel.is_none() && stdin().is_terminal();
    let name = match channel {
        Some(name) => name.to_owned(),
        None if asks => Questions::of_process().ask("Channel", first_platform())?,
        None => return Err(CommandFailure::usage("--channel is required")),
    };
    let channel = platform(&name)?;
    let id = channel.info().id;
    if asks && delete {
        let question = format!("Delete the section of {id} {}", account.unwrap_or(DEFAULT));
        if !Questions::of_process().confirm(&question)? {
            return Err(CommandFailure::new("cancelled", "Cancelled; nothing was changed."));
        }
    }
    let account = normalize_account_id(account.unwrap_or_default());
    let keys = context.loaded.snapshot.config.pointer(&format!("/channels/{id}"));
    let accounts = keys.and_then(|keys| keys.get("accounts")).and_then(Value::as_object);
    // The channel's own keys are the account `default` where no account has a name.
    let is_unnamed = account == DEFAULT && accounts.is_none_or(Map::is_empty);
    let is_of_environment = is_unnamed
        && context.config().is_ok_and(|config| channel.credential_source(config, DEFAULT) == "env");
    let is_done = if delete {
        take_account(&context.loaded, channel.as_ref(), &account, Actor::Cli)
            .map_err(|error| refused(&error))?
    } else {
        let may_be_section = is_unnamed && (keys.is_some() || is_of_environment);
        disable(context, channel.as_ref(), &account, may_be_section)?
    };
    if !is_done {
        let hint = if is_of_environment {
            let variables = channel.info().credentials.join(", ");
            format!("Its token is in the environment: take {variables} out of there.")
        } else {
            "`openclaw channels list` shows those there are; name one with --account.".to_owned()
        };
        let text = format!("{id} has no account \"{account}\" in the configuration; nothing was changed.");
        return Err(CommandFailure::new("unknown-account", text).hint(hint));
    }
    let done = if delete { "Deleted" } else { "Disabled" };
    output::line(&format!("{done} {} account \"{account}\".", channel.info().label));
    if delete {
        let before = context.config_or_default();
        tell_of_those_that_begin(&before, &context.reread().config_or_default(), channel.as_ref(), &account);
    }
    Ok(0)
}

/// Switches an account off. `false`: there is none.
fn disable(
    context: &CliContext,
    channel: &dyn Channel,
    account: &str,
    may_be_section: bool,
) -> Result<bool, CommandFailure> {
    let section = ["channels", channel.info().id].map(str::to_owned).to_vec();
    let own = names_of(&context.loaded.snapshot.config, channel, account).into_iter().next();
    let path = match own {
        Some(name) => [section, vec!["accounts".to_owned(), name]].concat(),
        None if may_be_section => section,
        None => return Ok(false),
    };
    let switch = [path, vec!["enabled".to_owned()]].concat();
    set_value(&context.loaded, &switch, json!(false), Actor::Cli).map_err(|error| refused(&error))?;
    Ok(true)
}

/// Prints the accounts that come to life by a removal: once the last named account is gone, the
/// channel's own keys and the environment are the account `default` again.
fn tell_of_those_that_begin(before: &Config, after: &Config, channel: &dyn Channel, deleted: &str) {
    let known = channel.account_ids(before);
    for account in channel.account_ids(after) {
        let source = channel.credential_source(after, &account);
        if source == "env" && account == deleted {
            let variables = channel.info().credentials.join(", ");
            output::line(&format!(
                "The environment still has a token for it, with which it runs: take {variables} out of there too."
            ));
        } else if source != "none" && !known.contains(&account) {
            output::line(&format!("The account \"{account}\" runs from now on (token: {source})."));
        }
    }
}
