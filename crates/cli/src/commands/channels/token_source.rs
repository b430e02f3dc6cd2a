//! Checks of the source of a new token, before anything is written: a working token is not given up for none.

use std::sync::Arc;

use openclaw_channels::{Channel, Unusable};
use openclaw_config::Config;
use serde_json::{Map, Value, json};

use super::DEFAULT;
use crate::args::ChannelsAddArgs;
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Token that is given, and the account that it is for.
pub(super) struct NewToken<'a> {
    pub(super) channel: &'a dyn Channel,
    pub(super) account: &'a str,
    /// The token, where it is given as a text.
    pub(super) text: Option<&'a str>,
    /// Path of a file with it.
    pub(super) file: Option<&'a str>,
    /// True if the account has a token, or the path of one, in the configuration.
    pub(super) has_stored: bool,
}

impl NewToken<'_> {
    /// Fails if the source has no token, or one that another account has.
    pub(super) fn check(&self, context: &CliContext, args: &ChannelsAddArgs) -> Result<(), CommandFailure> {
        if args.use_env && self.has_stored {
            self.require_variable(context)?;
        }
        match self.alone(context) {
            Some(alone) => {
                self.require_token_in_file(&alone)?;
                self.refuse_token_of_another(context, &alone)
            }
            None => Ok(()),
        }
    }

    /// A configuration with the token and nothing else.
    fn alone(&self, context: &CliContext) -> Option<Arc<Config>> {
        let keys = &self.channel.setup().token;
        let given = [(keys.key, self.text), (keys.file_key, self.file)];
        let given: Map<String, Value> =
            given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
        let alone = json!({"channels": {self.channel.info().id: given}});
        Config::from_json5(&alone.to_string(), context.env()).ok()
    }

    /// Fails if a stored token would go for a variable that is not set.
    fn require_variable(&self, context: &CliContext) -> Result<(), CommandFailure> {
        let Some(name) = unset_variables(context, self.channel).next() else { return Ok(()) };
        let (id, label, account) = (self.channel.info().id, self.channel.info().label, self.account);
        let env_file = context.short(&context.paths().state_dir().join(".env"));
        let text = format!(
            "{name} is not set here, and {label} account \"{account}\" has a token in the configuration: nothing was changed"
        );
        Err(CommandFailure::new("no-token", text).hint(format!(
            "Set it here or in {env_file}, and run this again. If only the gateway has it: `openclaw channels logout --channel {id} \
             --account {account}` takes the stored token away"
        )))
    }

    fn require_token_in_file(&self, alone: &Config) -> Result<(), CommandFailure> {
        let Some(file) = self.file else { return Ok(()) };
        let setup = &self.channel.setup().token;
        // As the gateway reads it, variables replaced.
        let key = format!("/channels/{}/{}", self.channel.info().id, setup.file_key);
        let path = alone.document().pointer(&key).and_then(Value::as_str).unwrap_or(file);
        let why = match std::fs::read_to_string(alone.environment().expand_path(path)) {
            Ok(written) if (setup.has_form)(written.trim()) => return Ok(()),
            Ok(_) => format!("There is no {} in {file}: it looks like {}", setup.name, setup.form),
            Err(error) => format!("The token file {file} can't be read: {error}"),
        };
        Err(CommandFailure::new("no-token", why)
            .hint("Nothing was changed. Put the token into that file first."))
    }

    /// Fails if another account has the same token: of two accounts with one bot, only one can receive.
    fn refuse_token_of_another(&self, context: &CliContext, alone: &Config) -> Result<(), CommandFailure> {
        let Self { channel, account, .. } = self;
        let (id, label) = (channel.info().id, channel.info().label);
        let Some(mark) = channel.credential_mark(alone, DEFAULT) else { return Ok(()) };
        let config = context.config_or_default();
        let has_it = |other: &String| {
            other != account
                && channel.credential_mark(&config, other) == Some(mark)
                && !matches!(channel.account(&config, other), Err(Unusable::Disabled))
        };
        let Some(other) = channel.account_ids(&config).into_iter().find(has_it) else { return Ok(()) };
        let failure =
            format!("{label} account \"{other}\" has this token already, and only one of them could receive");
        let remove = format!("`openclaw channels remove --channel {id} --account {other} --delete`");
        Err(CommandFailure::usage(failure)
            .hint(format!("Give \"{account}\" a bot of its own, or remove that account first: {remove}")))
    }
}

/// Variables of a platform's tokens that are not set here.
pub(super) fn unset_variables(
    context: &CliContext,
    channel: &dyn Channel,
) -> impl Iterator<Item = &'static str> {
    channel.info().credentials.iter().copied().filter(|name| context.env().get_nonblank(name).is_none())
}
