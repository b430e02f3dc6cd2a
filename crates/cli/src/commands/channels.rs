//! `openclaw channels list|status|add|remove|logout|start|stop` (spec `cli.md` §3.9, `channels.md` §15).

use std::time::Duration;

use openclaw_channels::{Channel, Platforms, Unusable, registry};
use openclaw_config::write::{Actor, WriteError, set_value, unset_value};
use openclaw_config::{Config, value_path};
use openclaw_protocol::Call;
use openclaw_protocol::params::channels::{ChannelsLogout, ChannelsStart, ChannelsStatus, ChannelsStop};
use openclaw_sessions::key::normalize_account_id;
use serde_json::{Map, Value, json};

use crate::args::{AccountArgs, ChannelsAddArgs, ChannelsArgs, ChannelsCommand, TargetArgs};
use crate::client::{self, TargetFlags, Wait};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Time for a call unless asked otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT: &str = "default";

pub(super) fn run(args: &ChannelsArgs, context: &Context) -> Outcome {
    match &args.command {
        ChannelsCommand::List { json, .. } => list(context, *json),
        ChannelsCommand::Status { probe, json, target } => status(context, target, *probe, *json),
        ChannelsCommand::Add(add) => self::add(context, add),
        ChannelsCommand::Remove { channel, account, delete } => {
            remove(context, channel.as_deref(), account.as_deref(), *delete)
        }
        ChannelsCommand::Logout { channel, account, target } => {
            let id = platform(channel)?.info().id;
            let answer =
                call::<ChannelsLogout>(context, target, &json!({"channel": id, "accountId": account}))?;
            let cleared = answer.get("cleared").and_then(Value::as_bool).unwrap_or_default();
            output::line(if cleared {
                "Cleared the token."
            } else {
                "There was no token in the configuration."
            });
            if answer.get("envToken").and_then(Value::as_bool).unwrap_or_default() {
                output::line("The environment still has one: take it out of there too.");
            }
            Ok(0)
        }
        ChannelsCommand::Start(args) => switch::<ChannelsStart>(context, args, "started"),
        ChannelsCommand::Stop(args) => switch::<ChannelsStop>(context, args, "stopped"),
    }
}

/// The platform of a name.
pub(super) fn platform(name: &str) -> Result<std::sync::Arc<dyn Channel>, Failure> {
    let Some(info) = registry::by_name(name) else {
        return Err(Failure::new(
            "unknown-channel",
            format!("Error: Unknown channel: {}", output::one_line(name)),
        ));
    };
    let platforms = Platforms::default();
    platforms.channel(info.id).cloned().ok_or_else(|| {
        let known: Vec<&str> = platforms.channels().iter().map(|channel| channel.info().id).collect();
        Failure::new("not-implemented", format!("{}: not implemented yet in this version", info.label))
            .hint(format!("This version has: {}, and webchat.", known.join(", ")))
    })
}

pub(super) fn call<C: Call>(
    context: &Context,
    target: &TargetArgs,
    params: &Value,
) -> Result<Value, Failure> {
    let timeout = client::timeout_of(target.timeout.as_deref(), TIMEOUT)?;
    let flags = TargetFlags::from(target);
    let params = without_nulls(params);
    client::block_on(client::call(context, &flags, C::NAME, params, Wait::First, timeout))
}

fn without_nulls(params: &Value) -> Value {
    let Value::Object(fields) = params else { return params.clone() };
    let given = fields.iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn switch<C: Call>(context: &Context, args: &AccountArgs, done: &str) -> Outcome {
    let id = platform(&args.channel)?.info().id;
    let answer = call::<C>(context, &args.target, &json!({"channel": id, "accountId": args.account}))?;
    let account = answer.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    output::line(&format!("{id} {account}: {done}."));
    Ok(0)
}

fn list(context: &Context, json: bool) -> Outcome {
    let config = context.config()?;
    let platforms = Platforms::default();
    let configured: Vec<_> =
        platforms.channels().iter().filter(|channel| is_set(config, channel.as_ref())).collect();
    if json {
        let chat: Map<String, Value> = configured
            .iter()
            .map(|channel| (channel.info().id.to_owned(), json!(channel.account_ids(config))))
            .collect();
        output::json(&json!({"chat": chat, "auth": []}));
        return Ok(0);
    }
    output::line("Chat channels:");
    if configured.is_empty() {
        output::line("- none");
        output::line("");
        output::line("Add one: openclaw channels add --channel telegram --token <token>");
    }
    for channel in configured {
        for account in channel.account_ids(config) {
            output::line(&described(config, channel.as_ref(), &account));
        }
    }
    Ok(0)
}

fn is_set(config: &Config, channel: &dyn Channel) -> bool {
    let section = config.document().get("channels").and_then(|channels| channels.get(channel.info().id));
    section.is_some() || channel.account(config, DEFAULT).is_ok()
}

fn described(config: &Config, channel: &dyn Channel, account: &str) -> String {
    let source = channel.credential_source(config, account);
    let made = channel.account(config, account);
    let enabled = if matches!(made, Err(Unusable::Disabled)) { "disabled" } else { "enabled" };
    let configured =
        if source == "none" { "not configured".to_owned() } else { format!("configured, token={source}") };
    format!("- {} {account}: {configured}, {enabled}", channel.info().label)
}

fn status(context: &Context, target: &TargetArgs, probe: bool, json: bool) -> Outcome {
    let asked = call::<ChannelsStatus>(context, target, &json!({"probe": probe}));
    let answer = match asked {
        Ok(answer) => answer,
        Err(failure) if json => return Err(failure),
        Err(failure) => return offline(context, &failure),
    };
    if json {
        output::json(&answer);
        return Ok(0);
    }
    output::line("Gateway reachable.");
    let accounts = answer.get("channelAccounts").and_then(Value::as_object);
    let mut warnings = Vec::new();
    for (id, list) in accounts.into_iter().flatten() {
        let label = registry::by_name(id).map_or(id.as_str(), |info| info.label);
        for account in list.as_array().into_iter().flatten() {
            output::line(&line_of(label, account));
            let name = account.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
            let error = account.get("lastError").and_then(Value::as_str);
            warnings.extend(error.map(|error| format!("- {id} {name}: {error}")));
        }
    }
    if !warnings.is_empty() {
        output::line("");
        output::line("Warnings:");
        warnings.iter().for_each(|line| output::line(line));
        output::line("- Run: openclaw doctor");
    }
    Ok(0)
}

fn line_of(label: &str, account: &Value) -> String {
    let text = |key: &str| account.get(key).and_then(Value::as_str);
    let is = |key: &str| account.get(key).and_then(Value::as_bool).unwrap_or_default();
    let mut words = vec![
        if is("enabled") { "enabled" } else { "disabled" }.to_owned(),
        if is("configured") { "configured" } else { "not configured" }.to_owned(),
        if is("running") { "running" } else { "stopped" }.to_owned(),
    ];
    if is("running") {
        words.push(if is("connected") { "connected" } else { "not connected" }.to_owned());
    }
    words.extend(text("mode").map(|mode| format!("mode:{mode}")));
    words.extend(text("tokenSource").map(|source| format!("token:{source}")));
    words.extend(text("dmPolicy").map(|policy| format!("dm:{policy}")));
    if let Some(probe) = account.get("probe") {
        let works = probe.get("ok").and_then(Value::as_bool).unwrap_or_default();
        words.push(if works { "works" } else { "probe failed" }.to_owned());
        words.extend(
            probe.pointer("/bot/username").and_then(Value::as_str).map(|name| format!("bot:@{name}")),
        );
    }
    let id = text("accountId").unwrap_or(DEFAULT);
    format!("- {label} {id}: {}", words.join(", "))
}

/// What the configuration says, where no gateway answers.
fn offline(context: &Context, failure: &Failure) -> Outcome {
    let config = context.config()?;
    output::error_line(&format!("Gateway not reachable: {}", failure.message));
    output::line("Gateway not reachable; showing config-only status.");
    output::line(&format!("Config: {}", context.paths().config_path().display()));
    for channel in Platforms::default().channels() {
        for account in channel.account_ids(config) {
            output::line(&described(config, channel.as_ref(), &account));
        }
    }
    Ok(0)
}

fn add(context: &Context, args: &ChannelsAddArgs) -> Outcome {
    let name = args.channel.as_deref().ok_or_else(|| {
        Failure::usage("--channel is required")
            .hint("Example: openclaw channels add --channel telegram --token <token>")
    })?;
    let channel = platform(name)?;
    let id = channel.info().id;
    let account = normalize_account_id(args.account.as_deref().unwrap_or_default());
    let token = args.token.as_deref().or(args.bot_token.as_deref()).map(str::trim);
    let given =
        [token.is_some(), args.token_file.is_some(), args.use_env].iter().filter(|given| **given).count();
    if given != 1 {
        return Err(Failure::usage("Give one of --token, --token-file and --use-env")
            .hint("Telegram's @BotFather tells the token of a bot: /newbot makes one, /token shows it."));
    }
    if args.use_env && account != DEFAULT {
        return Err(Failure::usage("--use-env is for the default account alone"));
    }
    if let Some(token) = token
        && !is_token(token)
    {
        return Err(Failure::usage("That is not a bot token: it looks like 123456789:AA…")
            .hint("Copy it whole from @BotFather, with the number and the colon in front."));
    }
    let loaded = &context.loaded;
    let has_accounts = loaded.snapshot.config.pointer(&format!("/channels/{id}/accounts")).is_some();
    let mut path = vec!["channels".to_owned(), id.to_owned()];
    if account != DEFAULT || has_accounts {
        path.extend(["accounts".to_owned(), account.clone()]);
    }
    let mut next = value_path::get(&loaded.snapshot.parsed, &path)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    next.insert("enabled".to_owned(), json!(true));
    let fields = [
        ("name", args.name.clone()),
        ("botToken", token.map(str::to_owned)),
        ("tokenFile", args.token_file.clone()),
        ("webhookUrl", args.webhook_url.clone()),
        ("webhookPath", args.webhook_path.clone()),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            next.insert(key.to_owned(), json!(value));
        }
    }
    if token.is_some() {
        next.remove("tokenFile");
    } else {
        next.remove("botToken");
    }
    set_value(loaded, &path, Value::Object(next), Actor::Cli).map_err(|error| refused(&error))?;
    output::line(&format!("Added {} account \"{account}\".", channel.info().label));
    output::line(
        "A running gateway starts it at once. Who may write to it: openclaw pairing list, and channels.telegram.allowFrom.",
    );
    Ok(0)
}

/// A number, a colon, and what is secret.
fn is_token(token: &str) -> bool {
    let parts = token.split_once(':');
    let is_secret = |text: &str| {
        text.len() >= 8 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    parts.is_some_and(|(id, secret)| id.parse::<u64>().is_ok() && is_secret(secret))
}

fn remove(context: &Context, channel: Option<&str>, account: Option<&str>, delete: bool) -> Outcome {
    let name = channel.ok_or_else(|| Failure::usage("--channel is required"))?;
    let channel = platform(name)?;
    let id = channel.info().id;
    let account = normalize_account_id(account.unwrap_or_default());
    let loaded = &context.loaded;
    let pointer = format!("/channels/{id}/accounts");
    let accounts = loaded.snapshot.config.pointer(&pointer).and_then(Value::as_object);
    let own = accounts.into_iter().flatten().find(|(name, _)| normalize_account_id(name) == account);
    let own = own.map(|(name, _)| name.clone());
    let section = vec!["channels".to_owned(), id.to_owned()];
    let path = match own {
        Some(name) => [section, vec!["accounts".to_owned(), name]].concat(),
        None if account == DEFAULT => section,
        None => {
            return Err(Failure::new("unknown-account", format!("{id} has no account \"{account}\"."))
                .hint("openclaw channels list shows those there are."));
        }
    };
    if delete {
        unset_value(loaded, &path, Actor::Cli).map_err(|error| refused(&error))?;
        output::line(&format!("Deleted {} account \"{account}\".", channel.info().label));
    } else {
        let switch = [path, vec!["enabled".to_owned()]].concat();
        set_value(loaded, &switch, json!(false), Actor::Cli).map_err(|error| refused(&error))?;
        output::line(&format!("Disabled {} account \"{account}\".", channel.info().label));
    }
    Ok(0)
}

fn refused(error: &WriteError) -> Failure {
    Failure::new("config", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_told_from_nonsense() {
        for (token, expect) in
            [("123:TEST-token-1", true), ("token", false), ("x:TEST-token", false), ("1:a b c d e f", false)]
        {
            assert_eq!(is_token(token), expect, "{token}");
        }
    }
}
