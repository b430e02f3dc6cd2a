//! `openclaw channels list|status|add|remove|login|logout|capabilities|logs|resolve|start|stop` (spec `cli.md` §3.9, `channels.md` §15).

mod add;
mod capabilities;
mod credentials;
mod logs;
mod remove;
mod resolve;
pub(super) mod table;
mod taken_up;
mod token_source;
pub(super) mod warnings;
mod wizard;

use std::time::Duration;

use openclaw_channels::{Channel, Unusable, switched_off};
use openclaw_config::Config;
use openclaw_config::registry;
use openclaw_config::write::WriteError;
use openclaw_gateway::{platforms, running_gateway};
use openclaw_protocol::Call;
use openclaw_protocol::params::channels::{ChannelsLogout, ChannelsStart, ChannelsStatus, ChannelsStop};
use serde_json::{Map, Value, json};
use taken_up::ReloadAnswer;
use warnings::Warning;

use crate::args::{AccountArgs, ChannelsArgs, ChannelsCommand, TargetArgs};
use crate::client::{self, AwaitedResponse, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Time for a call unless asked otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Extra time that a gateway may take beyond the platforms that it asks.
const GRACE: Duration = Duration::from_secs(2);
const DEFAULT: &str = "default";
/// Failure ids of a gateway that can be reached and does not do what it was asked.
const REFUSALS: [&str; 4] = ["refused", "pairing-required", "protection-missing", "request"];

pub(super) fn run(args: &ChannelsArgs, context: &CliContext) -> CommandResult {
    match &args.command {
        ChannelsCommand::List { json, no_usage } => list(context, *json, !no_usage),
        ChannelsCommand::Login { channel, .. } => login(channel.as_deref()),
        ChannelsCommand::Capabilities(args) => capabilities::run(context, args),
        ChannelsCommand::Logs { channel, lines, json } => logs::run(context, channel, lines, *json),
        ChannelsCommand::Resolve(args) => resolve::run(context, args),
        ChannelsCommand::Status { probe, json, target } => status(context, target, *probe, *json),
        ChannelsCommand::Add(add) => add::run(context, add),
        ChannelsCommand::Remove { channel, account, delete } => {
            remove::run(context, channel.as_deref(), account.as_deref(), *delete)
        }
        ChannelsCommand::Logout { channel, account, target } => {
            let id = platform_or_only(channel.as_deref())?.info().id;
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
pub(super) fn platform(name: &str) -> Result<std::sync::Arc<dyn Channel>, CommandFailure> {
    let info = registry::by_name(name).ok_or_else(|| unknown(name))?;
    if info.id == registry::WEBCHAT {
        let text = format!("{} has no accounts: the gateway serves it by itself.", info.label);
        return Err(CommandFailure::new("unsupported", text).hint(
            "`openclaw dashboard` opens it; `openclaw agent --agent main -m <text>` says something there.",
        ));
    }
    platforms().channel(info.id).cloned().ok_or_else(|| {
        CommandFailure::new("not-implemented", format!("{}: not implemented yet in this version", info.label))
            .hint(those_there_are())
    })
}

/// The platform that is named, or the only one this version has.
pub(super) fn platform_or_only(name: Option<&str>) -> Result<std::sync::Arc<dyn Channel>, CommandFailure> {
    if let Some(name) = name {
        return platform(name);
    }
    match platforms().channels() {
        [only] => Ok(std::sync::Arc::clone(only)),
        several => {
            let known: Vec<&str> = several.iter().map(|channel| channel.info().id).collect();
            Err(CommandFailure::usage(format!(
                "Channel required. Use --channel <channel> (expected one of: {})",
                known.join(", ")
            )))
        }
    }
}

/// Failure for a platform that does not exist.
fn unknown(name: &str) -> CommandFailure {
    CommandFailure::new("unknown-channel", format!("Error: Unknown channel: {}", output::one_line(name)))
        .hint(those_there_are())
}

fn those_there_are() -> String {
    let platforms = platforms();
    let known: Vec<&str> = platforms.channels().iter().map(|channel| channel.info().id).collect();
    format!("This version has: {}, and webchat.", known.join(", "))
}

pub(super) fn call<C: Call>(
    context: &CliContext,
    target: &TargetArgs,
    params: &Value,
) -> Result<Value, CommandFailure> {
    let timeout = client::timeout_of(target.timeout.as_deref(), TIMEOUT)?;
    let flags = TargetFlags::from(target);
    let params = without_nulls(params);
    client::block_on(client::call(context, &flags, C::NAME, params, AwaitedResponse::First, timeout))
}

fn without_nulls(params: &Value) -> Value {
    let Value::Object(fields) = params else { return params.clone() };
    let given = fields.iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Fails: no platform of this version has a login of its own, they have tokens.
fn login(channel: Option<&str>) -> CommandResult {
    let id = platform_or_only(channel)?.info().id;
    Err(CommandFailure::new("unsupported", format!("Channel {id} does not support login"))
        .hint(format!("Give it a token instead: `openclaw channels add --channel {id} --token <token>`")))
}

fn switch<C: Call>(context: &CliContext, args: &AccountArgs, done: &str) -> CommandResult {
    let id = platform(&args.channel)?.info().id;
    let answer = call::<C>(context, &args.target, &json!({"channel": id, "accountId": args.account}))?;
    let account = answer.get("accountId").and_then(Value::as_str).unwrap_or(DEFAULT);
    output::line(&format!("{id} {account}: {done}."));
    Ok(0)
}

fn list(context: &CliContext, json: bool, with_usage: bool) -> CommandResult {
    let config = context.config()?;
    context.print_warnings_about(&["channels"]);
    let platforms = platforms();
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
        tell_none(context);
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
        let usage = context.hint_command("openclaw status --usage");
        output::line(&format!("Usage: {usage} shows the quotas of providers."));
    }
    output::line("");
    output::line("Docs: https://docs.openclaw.ai/gateway/configuration");
    Ok(0)
}

/// Returns the id of the platform that is shown as an example.
fn first_platform() -> &'static str {
    registry::built_channels().next().map_or("<name>", |platform| platform.id)
}

/// Returns an example of the command that adds an account.
pub(super) fn example_of_add() -> String {
    format!("openclaw channels add --channel {} --token <token>", first_platform())
}

/// Tells that no account is set up, and how to add one.
fn tell_none(context: &CliContext) {
    output::line("- none");
    output::line("");
    let add = context.hint_command(&example_of_add());
    output::line(&format!("Add one: {add}"));
}

/// The credential profiles of the default agent.
fn profiles(context: &CliContext, config: &Config) -> Vec<Value> {
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
        Err(Unusable::NotConfigured { why, .. }) => format!("not configured: {why}"),
        Ok(_) | Err(Unusable::Disabled | Unusable::Unknown(_)) if source != "none" => {
            format!("configured, token={source}")
        }
        Ok(_) | Err(Unusable::Disabled | Unusable::Unknown(_)) => "not configured".to_owned(),
    };
    format!("- {} {account}: {configured}, {enabled}", channel.info().label)
}

fn status(context: &CliContext, target: &TargetArgs, probe: bool, json: bool) -> CommandResult {
    // The platforms may take as long as the person waits; the gateway answers a little later then.
    let patience = client::timeout_of(target.timeout.as_deref(), TIMEOUT)?;
    let params =
        json!({"probe": probe, "timeoutMs": u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)});
    let later = (patience + GRACE).as_millis().to_string();
    let patient = TargetArgs { timeout: Some(later), ..target.clone() };
    let ask = || call::<ChannelsStatus>(context, &patient, &params);
    // Another gateway's accounts are not those of this configuration.
    let asked = match target.url {
        Some(_) => ask().map(|answer| ReloadAnswer { answer, ..ReloadAnswer::default() }),
        None => taken_up::ask(context, ask),
    };
    let ReloadAnswer { answer, pending, when } = match asked {
        Ok(asked) => asked,
        // A gateway that answers, and refuses, is there.
        Err(failure) if json || REFUSALS.contains(&failure.code) => return Err(failure),
        Err(failure) => return offline(context, target, &failure),
    };
    if json {
        output::json(&answer);
        return Ok(0);
    }
    output::line("Checking channel status…");
    output::line("Gateway reachable.");
    let accounts = answer.get("channelAccounts").and_then(Value::as_object);
    // What another gateway's configuration names is not known here.
    let set_up = target.url.is_none().then(|| warnings::set_up(&context.config_or_default()));
    let is_wanted = |id: &str| set_up.as_ref().is_none_or(|set_up| set_up.contains(&id));
    let mut has_any = !pending.is_empty();
    let mut warnings = Vec::new();
    for (id, list) in accounts.into_iter().flatten() {
        let label = registry::by_name(id).map_or(id.as_str(), |info| info.label);
        for account in list.as_array().into_iter().flatten() {
            let is_pending = |(channel, of): &(String, String)| {
                channel == id && account.get("accountId") == Some(&json!(of))
            };
            if pending.iter().any(is_pending) || !(is_wanted(id) || is_in_use(account)) {
                continue;
            }
            has_any = true;
            let is_running = account.get("running").and_then(Value::as_bool).unwrap_or_default();
            output::row(&line_of(label, account, if is_running { "running" } else { "stopped" }));
            warnings.extend(warnings::told(id, account).iter().map(Warning::line));
        }
    }
    for (id, account) in &pending {
        let label = registry::by_name(id).map_or(id.as_str(), |info| info.label);
        output::row(&format!("- {label} {account}: {when}"));
    }
    if !has_any {
        tell_none(context);
    }
    if !warnings.is_empty() {
        output::line("");
        output::line("Warnings:");
        warnings.iter().for_each(|line| output::row(line));
        output::line(&format!("- Run: {}", context.hint_command("openclaw doctor")));
    }
    output::line("");
    output::line(
        "Tip: https://docs.openclaw.ai/cli#status adds gateway health probes to status output (requires a reachable gateway).",
    );
    Ok(0)
}

/// True if an account has credentials or messages, whether the configuration names it or not.
fn is_in_use(account: &Value) -> bool {
    let has = |key: &str| account.get(key).and_then(Value::as_u64).is_some_and(|count| count > 0);
    account.get("configured") == Some(&Value::Bool(true)) || has("outboxPending") || has("outboxFailed")
}

/// Status line of an account; `runs` says whether it runs.
fn line_of(label: &str, account: &Value, runs: &str) -> String {
    let text = |key: &str| account.get(key).and_then(Value::as_str);
    let is = |key: &str| account.get(key).and_then(Value::as_bool).unwrap_or_default();
    let mut words = vec![
        if is("enabled") { "enabled" } else { "disabled" }.to_owned(),
        if is("configured") { "configured" } else { "not configured" }.to_owned(),
        runs.to_owned(),
    ];
    // A gateway of OpenClaw 2026.2.9 does not say it of every platform.
    if let (true, Some(connected)) = (is("running"), account.get("connected").and_then(Value::as_bool)) {
        words.push(if connected { "connected" } else { "disconnected" }.to_owned());
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

/// Prints the status from the configuration, where no gateway answers.
fn offline(context: &CliContext, target: &TargetArgs, failure: &CommandFailure) -> CommandResult {
    let config = context.config()?;
    context.print_warnings_about(&["channels"]);
    output::error_line(&format!("Gateway not reachable: {}", failure.message));
    output::line("Gateway not reachable; showing config-only status.");
    output::line(&format!("Config: {}", context.paths().config_path().display()));
    let mode = config.document().pointer("/gateway/mode").and_then(Value::as_str);
    let is_here = target.url.is_none() && mode != Some("remote");
    let mode = mode.unwrap_or("not set (openclaw setup sets it)");
    output::line(&format!("Mode: {mode}"));
    output::line("");
    let warnings = warnings::of_configuration(config);
    let runs = match is_here && running_gateway(&context.loaded).is_none() {
        true => "not known whether it runs (no gateway runs here)",
        false => "not known whether it runs (the gateway can't be asked)",
    };
    let platforms = platforms();
    let configured: Vec<_> =
        platforms.channels().iter().filter(|channel| is_set(config, channel.as_ref())).collect();
    if configured.is_empty() {
        tell_none(context);
    }
    for channel in configured {
        for account in channel.account_ids(config) {
            output::row(&offline_line(config, channel.as_ref(), &account, runs));
        }
    }
    if !warnings.is_empty() {
        output::line("");
        output::line("Warnings:");
        warnings.iter().for_each(|warning| output::row(&warning.line()));
    }
    Ok(0)
}

/// Status line as a running gateway would print it, as far as the configuration knows.
fn offline_line(config: &Config, channel: &dyn Channel, account: &str, runs: &str) -> String {
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
    line_of(channel.info().label, &stands, runs)
}

fn refused(error: &WriteError) -> CommandFailure {
    CommandFailure::new("config", error.to_string())
}
