//! `openclaw channels list|status|add|remove|login|logout|capabilities|logs|resolve|start|stop` (spec `cli.md` §3.9, `channels.md` §15).

mod capabilities;
mod logs;
mod remove;
mod resolve;
pub(super) mod table;
pub(super) mod warnings;
mod wizard;

use std::io::{IsTerminal as _, stdin};
use std::time::Duration;

use openclaw_channels::account_keys::{names_of, without_credentials};
use openclaw_channels::{Channel, Platforms, Unusable, registry, switched_off};
use openclaw_config::write::{Actor, WriteError, write};
use openclaw_config::{Config, value_path};
use openclaw_protocol::Call;
use openclaw_protocol::params::channels::{ChannelsLogout, ChannelsStart, ChannelsStatus, ChannelsStop};
use openclaw_sessions::key::normalize_account_id;
use serde_json::{Map, Value, json};
use warnings::Warning;

use crate::args::{AccountArgs, ChannelsAddArgs, ChannelsArgs, ChannelsCommand, TargetArgs};
use crate::client::{self, TargetFlags, Wait};
use crate::commands::message::absolute;
use crate::commands::questions::Questions;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Time for a call unless asked otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How much longer a gateway may take than the platforms that it asks.
const GRACE: Duration = Duration::from_secs(2);
const DEFAULT: &str = "default";
/// What a gateway does that can be reached and does not do what it was asked.
const REFUSALS: [&str; 4] = ["refused", "pairing-required", "protection-missing", "request"];

pub(super) fn run(args: &ChannelsArgs, context: &Context) -> Outcome {
    match &args.command {
        ChannelsCommand::List { json, no_usage } => list(context, *json, !no_usage),
        ChannelsCommand::Login { channel, .. } => login(channel),
        ChannelsCommand::Capabilities(args) => capabilities::run(context, args),
        ChannelsCommand::Logs { channel, lines, json } => logs::run(context, channel, lines, *json),
        ChannelsCommand::Resolve(args) => resolve::run(context, args),
        ChannelsCommand::Status { probe, json, target } => status(context, target, *probe, *json),
        ChannelsCommand::Add(add) => self::add(context, add),
        ChannelsCommand::Remove { channel, account, delete } => {
            remove::run(context, channel.as_deref(), account.as_deref(), *delete)
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
    let info = registry::by_name(name).ok_or_else(|| unknown(name))?;
    if info.id == registry::WEBCHAT {
        let text = format!("{} has no accounts: the gateway serves it by itself.", info.label);
        return Err(Failure::new("unsupported", text)
            .hint("openclaw dashboard opens it; openclaw agent --message says something there."));
    }
    Platforms::default().channel(info.id).cloned().ok_or_else(|| {
        Failure::new("not-implemented", format!("{}: not implemented yet in this version", info.label))
            .hint(those_there_are())
    })
}

/// There is no platform of that name.
fn unknown(name: &str) -> Failure {
    Failure::new("unknown-channel", format!("Error: Unknown channel: {}", output::one_line(name)))
        .hint(those_there_are())
}

fn those_there_are() -> String {
    let platforms = Platforms::default();
    let known: Vec<&str> = platforms.channels().iter().map(|channel| channel.info().id).collect();
    format!("This version has: {}, and webchat.", known.join(", "))
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

/// No platform of this version has a login of its own: they have tokens.
fn login(channel: &str) -> Outcome {
    let id = platform(channel)?.info().id;
    Err(Failure::new("unsupported", format!("Channel {id} does not support login"))
        .hint(format!("Give it a token instead: openclaw channels add --channel {id} --token <token>")))
}

fn switch<C: Call>(context: &Context, args: &AccountArgs, done: &str) -> Outcome {
    let id = platform(&args.channel)?.info().id;
    let answer = call::<C>(context, &args.target, &json!({"channel": id, "accountId": args.account}))?;
    let account = answer.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    output::line(&format!("{id} {account}: {done}."));
    Ok(0)
}

fn list(context: &Context, json: bool, with_usage: bool) -> Outcome {
    let config = context.config()?;
    context.print_warnings();
    let platforms = Platforms::default();
    let configured: Vec<_> =
        platforms.channels().iter().filter(|channel| is_set(config, channel.as_ref())).collect();
    let profiles = profiles(context, config);
    if json {
        let chat: Map<String, Value> = configured
            .iter()
            .map(|channel| (channel.info().id.to_owned(), json!(channel.account_ids(config))))
            .collect();
        output::json(&json!({"chat": chat, "auth": profiles}));
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
    output::line("");
    output::line("Auth providers (OAuth + API keys):");
    if profiles.is_empty() {
        output::line("- none");
    }
    for profile in &profiles {
        let text = |key: &str| profile.get(key).and_then(Value::as_str).unwrap_or_default();
        output::line(&format!("- {} ({})", text("id"), text("type")));
    }
    if with_usage {
        output::line("");
        output::line("Usage: openclaw models status shows the quotas of providers.");
    }
    output::line("");
    output::line("Docs: https://docs.openclaw.ai/gateway/configuration");
    Ok(0)
}

/// The credential profiles of the default agent.
fn profiles(context: &Context, config: &Config) -> Vec<Value> {
    let dir = context.paths().agent_dir(&config.default_agent());
    let text = std::fs::read_to_string(dir.join("auth-profiles.json")).unwrap_or_default();
    let store: Value = serde_json::from_str(&text).unwrap_or_default();
    let profiles = store.get("profiles").and_then(Value::as_object);
    let shown = |(id, profile): (&String, &Value)| json!({"id": id, "provider": profile.get("provider"), "type": profile.get("type"), "isExternal": false});
    profiles.into_iter().flatten().map(shown).collect()
}

fn is_set(config: &Config, channel: &dyn Channel) -> bool {
    let section = config.document().get("channels").and_then(|channels| channels.get(channel.info().id));
    section.is_some() || channel.credential_source(config, DEFAULT) != "none"
}

fn described(config: &Config, channel: &dyn Channel, account: &str) -> String {
    let source = channel.credential_source(config, account);
    let made = channel.account(config, account);
    let off =
        switched_off(config, channel.info().id, account).filter(|_| matches!(made, Err(Unusable::Disabled)));
    let enabled = match off {
        Some(off) if off.is_unwanted() => format!("disabled: {off}; run: {}", off.remedy()),
        Some(_) => "disabled".to_owned(),
        None => "enabled".to_owned(),
    };
    let configured = match &made {
        Err(Unusable::NotConfigured(why)) => format!("not configured: {why}"),
        Ok(_) | Err(Unusable::Disabled | Unusable::Unknown(_)) if source != "none" => {
            format!("configured, token={source}")
        }
        Ok(_) | Err(Unusable::Disabled | Unusable::Unknown(_)) => "not configured".to_owned(),
    };
    format!("- {} {account}: {configured}, {enabled}", channel.info().label)
}

fn status(context: &Context, target: &TargetArgs, probe: bool, json: bool) -> Outcome {
    // The platforms may take as long as the person waits; the gateway answers a little later then.
    let patience = client::timeout_of(target.timeout.as_deref(), TIMEOUT)?;
    let params =
        json!({"probe": probe, "timeoutMs": u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)});
    let later = (patience + GRACE).as_millis().to_string();
    let patient = TargetArgs { timeout: Some(later), ..target.clone() };
    let asked = call::<ChannelsStatus>(context, &patient, &params);
    let answer = match asked {
        Ok(answer) => answer,
        // A gateway that answers, and refuses, is there.
        Err(failure) if json || REFUSALS.contains(&failure.code) => return Err(failure),
        Err(failure) => return offline(context, &failure),
    };
    if json {
        output::json(&answer);
        return Ok(0);
    }
    output::line("Checking channel status…");
    output::line("Gateway reachable.");
    let accounts = answer.get("channelAccounts").and_then(Value::as_object);
    let mut warnings = Vec::new();
    for (id, list) in accounts.into_iter().flatten() {
        let label = registry::by_name(id).map_or(id.as_str(), |info| info.label);
        for account in list.as_array().into_iter().flatten() {
            output::line(&line_of(label, account));
            warnings.extend(warnings::told(id, account).iter().map(Warning::line));
        }
    }
    if !warnings.is_empty() {
        output::line("");
        output::line("Warnings:");
        warnings.iter().for_each(|line| output::line(line));
        output::line("- Run: openclaw doctor");
    }
    output::line("");
    output::line(
        "Tip: https://docs.openclaw.ai/cli#status adds gateway health probes to status output (requires a reachable gateway).",
    );
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
        words.push(if is("connected") { "connected" } else { "disconnected" }.to_owned());
    }
    words.extend(text("mode").map(|mode| format!("mode:{mode}")));
    words.extend(text("tokenSource").map(|source| format!("token:{source}")));
    words.extend(text("dmPolicy").map(|policy| format!("dm:{policy}")));
    let count = |key: &str| account.get(key).and_then(Value::as_u64).filter(|count| *count > 0);
    for (key, word) in [
        ("inboxDepth", "waiting"),
        ("outboxPending", "unsent"),
        ("outboxFailed", "failed"),
        ("restartCount", "restarts"),
    ] {
        words.extend(count(key).map(|count| format!("{word}:{count}")));
    }
    if let Some(probe) = account.get("probe") {
        let works = probe.get("ok").and_then(Value::as_bool).unwrap_or_default();
        words.push(if works { "works" } else { "probe failed" }.to_owned());
        words.extend(
            probe.pointer("/bot/username").and_then(Value::as_str).map(|name| format!("bot:@{name}")),
        );
        let reads_all = probe.pointer("/bot/canReadAllGroupMessages").and_then(Value::as_bool);
        words.extend(reads_all.map(|reads_all| {
            let how = if reads_all { "yes" } else { "no (privacy mode)" };
            format!("reads all group messages: {how}")
        }));
    }
    let id = text("accountId").unwrap_or(DEFAULT);
    format!("- {label} {id}: {}", words.join(", "))
}

/// What the configuration says, where no gateway answers.
fn offline(context: &Context, failure: &Failure) -> Outcome {
    let config = context.config()?;
    context.print_warnings();
    output::error_line(&format!("Gateway not reachable: {}", failure.message));
    output::line("Gateway not reachable; showing config-only status.");
    output::line(&format!("Config: {}", context.paths().config_path().display()));
    let mode = config.document().pointer("/gateway/mode").and_then(Value::as_str);
    let mode = mode.unwrap_or("not set (openclaw setup sets it)");
    output::line(&format!("Mode: {mode}"));
    output::line("");
    let warnings = warnings::of_configuration(config);
    for channel in Platforms::default().channels() {
        for account in channel.account_ids(config) {
            output::line(&offline_line(config, channel.as_ref(), &account));
        }
    }
    if !warnings.is_empty() {
        output::line("");
        output::line("Warnings:");
        warnings.iter().for_each(|warning| output::line(&warning.line()));
    }
    Ok(0)
}

/// As a running gateway would tell, as far as the configuration knows.
fn offline_line(config: &Config, channel: &dyn Channel, account: &str) -> String {
    let source = channel.credential_source(config, account);
    let made = channel.account(config, account);
    let section = config.document().pointer(&format!("/channels/{}", channel.info().id));
    let own = section.and_then(|keys| keys.pointer(&format!("/accounts/{account}")));
    let pushes = [own, section].into_iter().flatten().any(|keys| keys.get("webhookUrl").is_some());
    let stands = json!({
        "accountId": account,
        "enabled": !matches!(made, Err(Unusable::Disabled)),
        "configured": source != "none",
        "mode": if pushes { "webhook" } else { "polling" },
        "tokenSource": source,
    });
    line_of(channel.info().label, &stands)
}

fn add(context: &Context, args: &ChannelsAddArgs) -> Outcome {
    if args.channel.is_none() && stdin().is_terminal() {
        let answers = wizard::ask(&mut Questions::of_process(), args)?;
        let more = [
            ("dmPolicy", answers.dm_policy.map(Value::from)),
            ("allowFrom", Some(json!(answers.allow_from)).filter(|_| !answers.allow_from.is_empty())),
        ];
        return add_account(
            context,
            &answers.add,
            more.into_iter().filter_map(|(key, value)| Some((key, value?))),
        );
    }
    add_account(context, args, std::iter::empty())
}

/// Writes an account into the configuration, with these keys besides.
fn add_account(
    context: &Context,
    args: &ChannelsAddArgs,
    more: impl Iterator<Item = (&'static str, Value)>,
) -> Outcome {
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
    let token_file = args.token_file.as_deref().map(str::trim).map(lasting);
    let loaded = &context.loaded;
    let has_accounts = loaded.snapshot.config.pointer(&format!("/channels/{id}/accounts")).is_some();
    let mut path = vec!["channels".to_owned(), id.to_owned()];
    if account != DEFAULT || has_accounts {
        let own = names_of(&loaded.snapshot.parsed, channel.as_ref(), &account).into_iter().next();
        path.extend(["accounts".to_owned(), own.unwrap_or_else(|| account.clone())]);
    }
    // What it had before, in whichever place, would go before what it gets now, or beside it.
    let bare = without_credentials(&loaded.snapshot.parsed, channel.as_ref(), &account);
    let mut document = bare.unwrap_or_else(|| loaded.snapshot.parsed.clone());
    let mut next = value_path::get(&document, &path).and_then(Value::as_object).cloned().unwrap_or_default();
    next.insert("enabled".to_owned(), json!(true));
    let fields = [
        ("name", args.name.clone()),
        ("botToken", token.map(str::to_owned)),
        ("tokenFile", token_file.clone()),
        ("webhookUrl", args.webhook_url.clone()),
        ("webhookPath", args.webhook_path.clone()),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            next.insert(key.to_owned(), json!(value));
        }
    }
    // Where no account is named, the channel's own keys are the account `default`; where one is, that has to be named too.
    let section = loaded.snapshot.parsed.pointer(&format!("/channels/{id}")).and_then(Value::as_object);
    let has_default =
        section.is_some_and(|own| own.contains_key("botToken") || own.contains_key("tokenFile"));
    let names_default = account != DEFAULT && !has_accounts && has_default;
    next.extend(more.map(|(key, value)| (key.to_owned(), value)));
    let mut next = Value::Object(next);
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
    output::line(&format!("Added {} account \"{account}\".", channel.info().label));
    output::line("A running gateway starts it at once; openclaw setup prepares the first start of one.");
    output::line(&format!("Who may write to it: openclaw pairing list {id}, and channels.{id}.allowFrom."));
    if let Some(file) = &token_file {
        output::line(&format!("Its token is read from {file} at each start."));
        match std::fs::read_to_string(context.env().expand_path(file)) {
            Ok(written) if is_token(written.trim()) => {}
            Ok(_) => {
                output::error_line(&format!("There is no bot token in {file}: it looks like 123456789:AA…"))
            }
            Err(error) => output::error_line(&format!("The token file {file} can't be read: {error}")),
        }
    }
    let unset = channel.info().credentials.iter().filter(|name| context.env().get_nonblank(name).is_none());
    for name in unset.filter(|_| args.use_env) {
        output::error_line(&format!("{name} is not set here: the gateway has to be started with it."));
    }
    Ok(0)
}

/// A path that means the same wherever the gateway is started: whole, or from the home directory.
fn lasting(file: &str) -> String {
    if file.starts_with('~') || file.starts_with("${") { file.to_owned() } else { absolute(file) }
}

/// A number, a colon, and what is secret.
fn is_token(token: &str) -> bool {
    let parts = token.split_once(':');
    let is_secret = |text: &str| {
        text.len() >= 8 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    parts.is_some_and(|(id, secret)| id.parse::<u64>().is_ok() && is_secret(secret))
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
