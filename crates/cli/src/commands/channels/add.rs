//! `openclaw channels add`: an account is written into the configuration.

use std::io::{IsTerminal as _, stdin};

use openclaw_channels::access::{AccessSettings, DmPolicy, Entry};
use openclaw_channels::account_keys::{names_of, without_credentials};
use openclaw_channels::{Channel, TokenSetup};
use openclaw_config::write::{Actor, write};
use openclaw_config::{Config, PluginSwitch, normalize_account_id, value_path};
use serde_json::{Map, Value, json};

use super::token_source::{NewToken, unset_variables};
use super::{DEFAULT, credentials, example_of_add, platform, refused, wizard};
use crate::args::ChannelsAddArgs;
use crate::commands::message::absolute;
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(super) fn run(context: &CliContext, args: &ChannelsAddArgs) -> CommandResult {
    if args.channel.is_some() || !stdin().is_terminal() {
        return add(context, args, std::iter::empty());
    }
    let answers = wizard::ask(&mut Questions::of_process(), args)?;
    let more = [
        ("dmPolicy", answers.dm_policy.map(Value::from)),
        ("allowFrom", Some(json!(answers.allow_from)).filter(|_| !answers.allow_from.is_empty())),
    ];
    add(context, &answers.add, more.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

/// Writes an account into the configuration, with these keys besides.
fn add(
    context: &CliContext,
    args: &ChannelsAddArgs,
    more: impl Iterator<Item = (&'static str, Value)>,
) -> CommandResult {
    let name = args.channel.as_deref().ok_or_else(|| {
        CommandFailure::usage("--channel is required").hint(format!("Example: `{}`", example_of_add()))
    })?;
    let channel = platform(name)?;
    let channel = channel.as_ref();
    let id = channel.info().id;
    let account = normalize_account_id(args.account.as_deref().unwrap_or_default());
    let loaded = &context.loaded;
    let before = Before::of(context, channel, &account);
    let keeps_token = before.is_set_up && changes_other_than_token(args);
    let token_setup = &channel.setup().token;
    let token = if keeps_token { None } else { token_of(args, token_setup, &account)? };
    let token_file = args.token_file.as_deref().map(str::trim).map(lasting);
    if !keeps_token {
        let (text, file) = (token, token_file.as_deref());
        let has_stored = before.has_stored_token;
        NewToken { channel, account: &account, text, file, has_stored }.check(context, args)?;
    }
    let mut path = vec!["channels".to_owned(), id.to_owned()];
    if account != DEFAULT || before.has_accounts {
        let own = names_of(&loaded.snapshot.parsed, channel, &account).into_iter().next();
        path.extend(["accounts".to_owned(), own.unwrap_or_else(|| account.clone())]);
    }
    let own = value_path::get(&loaded.snapshot.parsed, &path).and_then(Value::as_object);
    let webhook = webhook_fields(context, args, channel, own)?;
    let fields = [
        ("name", args.name.clone()),
        (token_setup.key, token.map(str::to_owned)),
        (token_setup.file_key, token_file.clone()),
    ];
    let fields = fields.into_iter().chain(webhook);
    let fields = fields.filter_map(|(key, value)| Some((key, json!(value?))));
    let keys: Vec<_> = [("enabled", json!(true))].into_iter().chain(fields).chain(more).collect();
    // The channel's own keys are the account `default` where no account is named; where one is,
    // that has to be named too.
    let is_first_named = account != DEFAULT && before.is_default;
    let names_default = is_first_named && before.has_credentials;
    let was_off = openclaw_config::plugin_switches(&loaded.snapshot.config, id);
    let edit = AccountEdit { channel, account: &account, path, keys, keeps_token, names_default, was_off };
    let next = Config::from_json5(&edit.applied_to(&loaded.snapshot.config).to_string(), context.env()).ok();
    let answer = match &next {
        Some(next) if !keeps_token => credentials::ask(channel, next, &account)?,
        Some(_) | None => None,
    };
    write(loaded, &edit.applied_to(&loaded.snapshot.parsed), Actor::Cli).map_err(|error| refused(&error))?;
    for switch in &edit.was_off {
        output::line(&format!("Switched on. It was switched off by {switch}."));
    }
    if names_default {
        output::line(&format!("The account that was there before is called \"{DEFAULT}\" from now on."));
    }
    let done = if keeps_token || before.has_token() { "Changed" } else { "Added" };
    output::line(&format!("{done} {} account \"{account}\".", channel.info().label));
    if !keeps_token && before.has_token() {
        let mark = next.as_ref().and_then(|next| channel.credential_mark(next, &account));
        tell_of_the_former_token(args, channel, mark.is_some() && mark == before.mark);
    }
    let setup = context.hint_command("openclaw setup");
    output::line(&format!("A running gateway starts it at once; {setup} prepares the first start of one."));
    output::line(&who_may_write(context, id, &account));
    if is_first_named && !before.has_credentials && before.has_section {
        tell_of_a_hidden_token(context, channel);
    }
    if let Some(file) = &token_file {
        output::line(&format!("Its token is read from {file} at each start."));
    }
    if let (true, Some(next)) = (keeps_token, &next)
        && let Err(why) = channel.account(next, &account)
    {
        output::error_line(
            &context.style.warn(&format!("As it is seen from here, it can't be started: {why}")),
        );
    }
    let unset = unset_variables(context, channel);
    for name in unset.filter(|_| args.use_env) {
        output::error_line(&format!("{name} is not set here: the gateway has to be started with it."));
    }
    if let Some(answer) = answer {
        credentials::tell(context, channel, answer);
    }
    Ok(0)
}

/// Change of the configuration that adds an account, or changes one.
struct AccountEdit<'a> {
    channel: &'a dyn Channel,
    account: &'a str,
    /// Path of its section.
    path: Vec<String>,
    /// Keys that are set there.
    keys: Vec<(&'static str, Value)>,
    keeps_token: bool,
    /// True if the account that the platform's own keys are has to be named.
    names_default: bool,
    /// Switches that are turned on.
    was_off: Vec<PluginSwitch>,
}

impl AccountEdit<'_> {
    /// The document with the change, in the form of the file or with its includes and variables replaced.
    fn applied_to(&self, document: &Value) -> Value {
        // A former credential, in whichever place, would go before the new one, or beside it.
        let without = || without_credentials(document, self.channel, self.account);
        let bare = if self.keeps_token { None } else { without() };
        let mut document = bare.unwrap_or_else(|| document.clone());
        let next = value_path::get(&document, &self.path).and_then(Value::as_object);
        let mut next = next.cloned().unwrap_or_default();
        next.extend(self.keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        match self.path.split_last() {
            Some((_, accounts)) if self.names_default => {
                value_path::set(&mut document, accounts, json!({DEFAULT: {}, self.account: next}));
            }
            Some(_) | None => value_path::set(&mut document, &self.path, Value::Object(next)),
        }
        self.was_off.iter().for_each(|switch| switch.turn_on(&mut document));
        document
    }
}

/// The platform as it was configured before.
struct Before {
    has_section: bool,
    has_accounts: bool,
    /// True if the platform's own keys are the account `default`, because no account has a name.
    is_default: bool,
    /// True if that account has a token, in the configuration or in the environment.
    has_credentials: bool,
    /// True if the account that is asked for exists, whether its token can be used from here or not.
    is_set_up: bool,
    /// True if that one has a token, or the path of one, in the configuration.
    has_stored_token: bool,
    /// Fingerprint of its token.
    mark: Option<[u8; 32]>,
}

impl Before {
    fn of(context: &CliContext, channel: &dyn Channel, account: &str) -> Self {
        let document = &context.loaded.snapshot.config;
        let section = document.pointer(&format!("/channels/{}", channel.info().id));
        let section = section.and_then(Value::as_object);
        let accounts = section.and_then(|keys| keys.get("accounts")).and_then(Value::as_object);
        let has_accounts = accounts.is_some_and(|accounts| !accounts.is_empty());
        let config = context.config_or_default();
        let has = |key: &str| section.is_some_and(|section| section.contains_key(key));
        let in_section = channel.info().credential_keys.iter().any(|key| has(key));
        let is_default = !has_accounts && channel.account_ids(&config).iter().any(|id| id == DEFAULT);
        // `channels add` wrote the switch. Other keys may have been set before there is an account.
        let is_section = account == DEFAULT && is_default && (in_section || has("enabled"));
        let mark = channel.credential_mark(&config, account);
        Self {
            has_section: section.is_some_and(|keys| !keys.is_empty()),
            has_accounts,
            is_default,
            // A token file that can't be read is no token, and will be one.
            has_credentials: in_section || channel.credential_source(&config, DEFAULT) != "none",
            is_set_up: is_section
                || !names_of(document, channel, account).is_empty()
                || (mark.is_some() && channel.account_ids(&config).iter().any(|id| id == account)),
            has_stored_token: without_credentials(document, channel, account).is_some(),
            mark,
        }
    }

    /// Returns true if the account has a token, wherever it is.
    fn has_token(&self) -> bool {
        self.has_stored_token || self.mark.is_some()
    }
}

/// True if something else of an account is given, and no token: it keeps its own.
fn changes_other_than_token(args: &ChannelsAddArgs) -> bool {
    let changes = args.name.is_some() || args.webhook_url.is_some() || args.webhook_path.is_some();
    let names_one =
        args.token.is_some() || args.bot_token.is_some() || args.token_file.is_some() || args.use_env;
    changes && !names_one
}

/// The token that is given, where it is given as a text.
fn token_of<'a>(
    args: &'a ChannelsAddArgs,
    setup: &TokenSetup,
    account: &str,
) -> Result<Option<&'a str>, CommandFailure> {
    let token = args.token.as_deref().or(args.bot_token.as_deref()).map(str::trim);
    let given =
        [token.is_some(), args.token_file.is_some(), args.use_env].iter().filter(|given| **given).count();
    if given != 1 {
        return Err(
            CommandFailure::usage("Give one of --token, --token-file and --use-env").hint(setup.origin)
        );
    }
    if args.use_env && account != DEFAULT {
        return Err(CommandFailure::usage("--use-env is for the default account alone"));
    }
    if token.is_some_and(|token| !(setup.has_form)(token)) {
        return Err(CommandFailure::usage(not_a_token(setup)).hint(setup.advice));
    }
    Ok(token)
}

/// Returns the text for a person who gave something else in the place of a token.
pub(super) fn not_a_token(setup: &TokenSetup) -> String {
    format!("That is not a {}: it looks like {}", setup.name, setup.form)
}

/// Returns the keys of the webhook that is given. A webhook is refused without a secret, for which
/// OpenClaw 2026.2.9 has no flag.
fn webhook_fields(
    context: &CliContext,
    args: &ChannelsAddArgs,
    channel: &dyn Channel,
    own: Option<&Map<String, Value>>,
) -> Result<Vec<(&'static str, Option<String>)>, CommandFailure> {
    if args.webhook_url.is_none() && args.webhook_path.is_none() {
        return Ok(Vec::new());
    }
    let info = channel.info();
    let Some(keys) = channel.setup().webhook else {
        return Err(CommandFailure::usage(format!("{} has no webhook", info.label)));
    };
    let fields = vec![(keys.url, args.webhook_url.clone()), (keys.path, args.webhook_path.clone())];
    let key = format!("channels.{}.{}", info.id, keys.secret);
    let shared = context.loaded.snapshot.config.pointer(&format!("/{}", key.replace('.', "/")));
    if args.webhook_url.is_none() || own.is_some_and(|own| own.contains_key(keys.secret)) || shared.is_some()
    {
        return Ok(fields);
    }
    Err(CommandFailure::usage(format!("--webhook-url needs a secret, and {key} is not set")).hint(format!(
        "Set one of your own making, then run this again: `openclaw config set {key} <secret>`"
    )))
}

/// Explains who is heard by a new account in private chats.
fn who_may_write(context: &CliContext, id: &str, account: &str) -> String {
    let settings = AccessSettings::of(&context.reread().config_or_default(), id, account);
    let Ok(AccessSettings { dm_policy, allow_from, .. }) = settings else {
        let doctor = context.hint_command("openclaw doctor");
        return format!("Who may write to it can't be read from channels.{id}: {doctor} says why.");
    };
    let lets_all_in = allow_from.iter().flatten().any(|Entry(entry)| entry.trim() == "*");
    match dm_policy {
        DmPolicy::Disabled => "Nobody may write to it in private (dmPolicy \"disabled\").".to_owned(),
        DmPolicy::Pairing | DmPolicy::Allowlist | DmPolicy::Open if lets_all_in => {
            "Everybody may write to it (\"*\" in its allowFrom).".to_owned()
        }
        DmPolicy::Allowlist | DmPolicy::Open => {
            "Who may write to it: those in its allowFrom (dmPolicy \"allowlist\").".to_owned()
        }
        DmPolicy::Pairing => {
            let list = context.hint_command(&format!("openclaw pairing list {id}"));
            format!("Who may write to it: {list}, and channels.{id}.allowFrom.")
        }
    }
}

/// The gateway may have a token that this command does not see.
fn tell_of_a_hidden_token(context: &CliContext, channel: &dyn Channel) {
    let (id, variables) = (channel.info().id, channel.info().credentials.join(", "));
    let keep = format!("openclaw config set channels.{id}.accounts.{DEFAULT} '{{}}'");
    let keep = context.hint_command(&keep);
    output::error_line(&format!(
        "If the gateway is started with {variables}, which is not set here: the bot of that token is off now. To keep it, as the \
         account \"{DEFAULT}\": {keep}"
    ));
}

/// An account that had a token has another one now, or the same.
fn tell_of_the_former_token(args: &ChannelsAddArgs, channel: &dyn Channel, is_same: bool) {
    let variables = channel.info().credentials.join(", ");
    match (args.use_env, is_same) {
        (true, _) => {
            output::line(&format!("Its token is no longer in the configuration: {variables} counts."))
        }
        (false, true) => output::line("Its token is the same as before."),
        (false, false) => output::line("Its former token was replaced."),
    }
}

/// A path that means the same wherever the gateway is started: whole, or from the home directory.
fn lasting(file: &str) -> String {
    if file.starts_with('~') || file.starts_with("${") { file.to_owned() } else { absolute(file) }
}
