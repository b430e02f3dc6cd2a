//! `openclaw channels add`: an account is written into the configuration.

use std::io::{IsTerminal as _, stdin};

use openclaw_channels::access::{AccessSettings, DmPolicy, Entry};
use openclaw_channels::account_keys::{names_of, without_credentials};
use openclaw_channels::{Channel, TokenSetup, Unusable};
use openclaw_config::write::{Actor, write};
use openclaw_config::{Config, normalize_account_id, value_path};
use serde_json::{Map, Value, json};

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
    let id = channel.info().id;
    let account = normalize_account_id(args.account.as_deref().unwrap_or_default());
    let keeps_token = keeps_token(context, args, channel.as_ref(), &account);
    let token_setup = &channel.setup().token;
    let token = if keeps_token { None } else { token_of(args, token_setup, &account)? };
    let token_file = args.token_file.as_deref().map(str::trim).map(lasting);
    let loaded = &context.loaded;
    let before = Before::of(context, channel.as_ref());
    if !keeps_token {
        refuse_token_of_another(context, channel.as_ref(), &account, token, token_file.as_deref())?;
    }
    let mut path = vec!["channels".to_owned(), id.to_owned()];
    if account != DEFAULT || before.has_accounts {
        let own = names_of(&loaded.snapshot.parsed, channel.as_ref(), &account).into_iter().next();
        path.extend(["accounts".to_owned(), own.unwrap_or_else(|| account.clone())]);
    }
    // A former credential, in whichever place, would go before the new one, or beside it.
    let bare = (!keeps_token)
        .then(|| without_credentials(&loaded.snapshot.parsed, channel.as_ref(), &account))
        .flatten();
    let mut document = bare.unwrap_or_else(|| loaded.snapshot.parsed.clone());
    let mut next = value_path::get(&document, &path).and_then(Value::as_object).cloned().unwrap_or_default();
    let webhook = webhook_fields(context, args, channel.as_ref(), &next)?;
    next.insert("enabled".to_owned(), json!(true));
    let fields = [
        ("name", args.name.clone()),
        (token_setup.key, token.map(str::to_owned)),
        (token_setup.file_key, token_file.clone()),
    ];
    let fields = fields.into_iter().chain(webhook);
    next.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))));
    next.extend(more.map(|(key, value)| (key.to_owned(), value)));
    let mut next = Value::Object(next);
    // The channel's own keys are the account `default` where no account is named; where one is,
    // that has to be named too.
    let is_first_named = account != DEFAULT && before.is_default;
    let names_default = is_first_named && before.has_credentials;
    if names_default {
        path.pop();
        next = json!({DEFAULT: {}, account.as_str(): next});
    }
    value_path::set(&mut document, &path, next);
    let was_off = openclaw_config::plugin_switches(&loaded.snapshot.config, id);
    was_off.iter().for_each(|switch| switch.turn_on(&mut document));
    write(loaded, &document, Actor::Cli).map_err(|error| refused(&error))?;
    for switch in &was_off {
        output::line(&format!("Switched on. It was switched off by {switch}."));
    }
    if names_default {
        output::line(&format!("The account that was there before is called \"{DEFAULT}\" from now on."));
    }
    let done = if keeps_token { "Changed" } else { "Added" };
    output::line(&format!("{done} {} account \"{account}\".", channel.info().label));
    let setup = context.hint_command("openclaw setup");
    output::line(&format!("A running gateway starts it at once; {setup} prepares the first start of one."));
    output::line(&who_may_write(context, id, &account));
    if is_first_named && !before.has_credentials && before.has_section {
        tell_of_a_hidden_token(context, channel.as_ref());
    }
    if let Some(file) = &token_file {
        tell_of_the_token_file(context, token_setup, file);
    }
    let unset = channel.info().credentials.iter().filter(|name| context.env().get_nonblank(name).is_none());
    for name in unset.filter(|_| args.use_env) {
        output::error_line(&format!("{name} is not set here: the gateway has to be started with it."));
    }
    if !keeps_token {
        credentials::tell(context, channel.as_ref(), &account);
    }
    Ok(0)
}

/// The platform as it was configured before.
struct Before {
    has_section: bool,
    has_accounts: bool,
    /// True if the platform's own keys are the account `default`, because no account has a name.
    is_default: bool,
    /// True if that account has a token, in the configuration or in the environment.
    has_credentials: bool,
}

impl Before {
    fn of(context: &CliContext, channel: &dyn Channel) -> Self {
        let section = context.loaded.snapshot.config.pointer(&format!("/channels/{}", channel.info().id));
        let section = section.and_then(Value::as_object);
        let accounts = section.and_then(|keys| keys.get("accounts")).and_then(Value::as_object);
        let has_accounts = accounts.is_some_and(|accounts| !accounts.is_empty());
        let config = context.config_or_default();
        let in_section = channel
            .info()
            .credential_keys
            .iter()
            .any(|key| section.is_some_and(|section| section.contains_key(*key)));
        Self {
            has_section: section.is_some_and(|keys| !keys.is_empty()),
            has_accounts,
            is_default: !has_accounts && channel.account_ids(&config).iter().any(|id| id == DEFAULT),
            // A token file that can't be read is no token, and will be one.
            has_credentials: in_section || channel.credential_source(&config, DEFAULT) != "none",
        }
    }
}

/// True if the account exists, something else of it changes, and it keeps its token.
fn keeps_token(context: &CliContext, args: &ChannelsAddArgs, channel: &dyn Channel, account: &str) -> bool {
    let changes = args.name.is_some() || args.webhook_url.is_some() || args.webhook_path.is_some();
    let names_one =
        args.token.is_some() || args.bot_token.is_some() || args.token_file.is_some() || args.use_env;
    let config = context.config_or_default();
    let is_there = channel.account_ids(&config).iter().any(|id| id == account);
    changes && !names_one && is_there && channel.credential_source(&config, account) != "none"
}

/// Fails if another account has the same token: of two accounts with one bot, only one can receive.
fn refuse_token_of_another(
    context: &CliContext,
    channel: &dyn Channel,
    account: &str,
    token: Option<&str>,
    token_file: Option<&str>,
) -> Result<(), CommandFailure> {
    let (id, label) = (channel.info().id, channel.info().label);
    let keys = &channel.setup().token;
    let given = [(keys.key, token), (keys.file_key, token_file)];
    let given: Map<String, Value> =
        given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
    let alone = json!({"channels": {id: given}});
    let Ok(alone) = Config::from_json5(&alone.to_string(), context.env()) else { return Ok(()) };
    let Some(mark) = channel.credential_mark(&alone, DEFAULT) else { return Ok(()) };
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
    own: &Map<String, Value>,
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
    if args.webhook_url.is_none() || own.contains_key(keys.secret) || shared.is_some() {
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

fn tell_of_the_token_file(context: &CliContext, setup: &TokenSetup, file: &str) {
    output::line(&format!("Its token is read from {file} at each start."));
    match std::fs::read_to_string(context.env().expand_path(file)) {
        Ok(written) if (setup.has_form)(written.trim()) => {}
        Ok(_) => {
            let TokenSetup { name, form, .. } = setup;
            output::error_line(&format!("There is no {name} in {file}: it looks like {form}"));
        }
        Err(error) => output::error_line(&format!("The token file {file} can't be read: {error}")),
    }
}

/// A path that means the same wherever the gateway is started: whole, or from the home directory.
fn lasting(file: &str) -> String {
    if file.starts_with('~') || file.starts_with("${") { file.to_owned() } else { absolute(file) }
}
