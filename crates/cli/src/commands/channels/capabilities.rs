//! `openclaw channels capabilities` (spec `cli.md` §3.9): what the platforms can do, and what they say of our account.

use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{Capabilities, Channel, Probe, UnknownAccount};
use openclaw_config::{Config, normalize_account_id};
use openclaw_gateway::platforms;
use serde_json::{Value, json};

use super::{is_set, platform};
use crate::args::{CapabilitiesArgs, positive};
use crate::client;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Report on one account.
struct AccountCapabilities {
    channel: Arc<dyn Channel>,
    account: String,
    configured: bool,
    enabled: bool,
    actions: Vec<&'static str>,
    probe: Option<Probe>,
    target: Option<Value>,
}

pub(super) fn run(context: &CliContext, args: &CapabilitiesArgs) -> CommandResult {
    let config = context.config()?;
    let timeout = positive::<u64>(&args.timeout, "--timeout must be a positive integer (milliseconds)")?;
    let all = platforms();
    let channels: Vec<Arc<dyn Channel>> = match args.channel.as_deref() {
        None | Some("all") => {
            all.channels().iter().filter(|one| is_set(config, one.as_ref())).cloned().collect()
        }
        Some(name) => vec![platform(name)?],
    };
    if (args.account.is_some() || args.target.is_some()) && args.channel.is_none() {
        return Err(CommandFailure::usage("--account and --target need --channel"));
    }
    let mut reports = Vec::new();
    for channel in channels {
        let accounts = match &args.account {
            Some(account) => {
                let account = normalize_account_id(account);
                UnknownAccount::check(channel.as_ref(), config, &account)
                    .map_err(|unknown| CommandFailure::new("unknown-account", format!("Error: {unknown}")))?;
                vec![account]
            }
            None => channel.account_ids(config),
        };
        for account in accounts {
            let patience = Duration::from_millis(timeout);
            let report = report(config, Arc::clone(&channel), account, args.target.as_deref(), patience);
            reports.push(client::block_on(async { Ok(report.await) })?);
        }
    }
    if args.json {
        output::json(&json!({"channels": reports.iter().map(AccountCapabilities::json).collect::<Vec<_>>()}));
    } else if reports.is_empty() {
        output::line("No channels configured.");
    } else {
        for (at, report) in reports.iter().enumerate() {
            if at > 0 {
                output::line("");
            }
            report.lines().iter().for_each(|line| output::row(line));
        }
    }
    Ok(0)
}

async fn report(
    config: &Config,
    channel: Arc<dyn Channel>,
    account: String,
    target: Option<&str>,
    patience: Duration,
) -> AccountCapabilities {
    let made = channel.account(config, &account);
    let enabled = !matches!(made, Err(openclaw_channels::Unusable::Disabled));
    let configured = channel.credential_source(config, &account) != "none";
    let Ok(bot) = made else {
        return AccountCapabilities {
            channel,
            account,
            configured,
            enabled,
            actions: Vec::new(),
            probe: None,
            target: None,
        };
    };
    let probe = tokio::time::timeout(patience, bot.probe(patience)).await.unwrap_or_else(|_| Probe {
        error: Some(format!("no answer within {} ms", patience.as_millis())),
        ..Probe::default()
    });
    let target = match target.map(|written| channel.target(written)) {
        None => None,
        Some(Err(error)) => Some(json!({"error": error.to_string()})),
        Some(Ok(target)) => Some(match bot.look_up(&target).await {
            Ok(Some(peer)) => json!({"id": peer.id, "name": peer.name}),
            Ok(None) => json!({"id": target.id, "error": "the platform does not know it"}),
            Err(error) => json!({"id": target.id, "error": error.to_string()}),
        }),
    };
    let actions = bot.actions();
    AccountCapabilities { channel, account, configured, enabled, actions, probe: Some(probe), target }
}

impl AccountCapabilities {
    fn json(&self) -> Value {
        let Capabilities { chat_types, poll_options, reactions, threads, media, block_streaming, .. } =
            *self.channel.capabilities();
        let probe = self.probe.as_ref().map(|probe| {
            let mut shown = probe.details.clone();
            shown.insert("ok".to_owned(), json!(probe.ok));
            shown.insert("error".to_owned(), json!(probe.error));
            shown
        });
        json!({
            "channel": self.channel.info().id,
            "accountId": self.account,
            "configured": self.configured,
            "enabled": self.enabled,
            "support": {
                "chatTypes": chat_types,
                "polls": poll_options.is_some(),
                "reactions": reactions,
                "threads": threads,
                "media": media,
                "nativeCommands": self.channel.info().native_commands,
                "blockStreaming": block_streaming,
            },
            "actions": self.actions,
            "probe": probe,
            "target": self.target,
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} {}", self.channel.info().label, self.account)];
        lines.push(format!("Support: {}", support(self.channel.as_ref())));
        if !self.actions.is_empty() {
            lines.push(format!("Actions: {}", self.actions.join(", ")));
        }
        if !self.configured || !self.enabled {
            let states = [(!self.configured, "not configured"), (!self.enabled, "disabled")];
            let said: Vec<&str> = states.iter().filter(|(is, _)| *is).map(|(_, state)| *state).collect();
            lines.push(format!("Status: {}", said.join(", ")));
        }
        if let Some(probe) = &self.probe {
            let name = probe.details.get("bot").and_then(|bot| bot.get("username")).and_then(Value::as_str);
            lines.extend(name.map(|name| format!("Bot: @{name}")));
            lines.push(match &probe.error {
                _ if probe.ok => "Probe: ok".to_owned(),
                Some(error) => format!("Probe: failed ({error})"),
                None => "Probe: failed".to_owned(),
            });
        }
        if let Some(target) = &self.target {
            let text = |key: &str| target.get(key).and_then(Value::as_str).map(str::to_owned);
            let name = text("name").map(|name| format!(" ({name})")).unwrap_or_default();
            let error = text("error").map(|error| format!(": {error}")).unwrap_or_default();
            lines.push(format!("Target: {}{name}{error}", text("id").unwrap_or_default()));
        }
        lines
    }
}

fn support(channel: &dyn Channel) -> String {
    let can = channel.capabilities();
    let words = [
        (can.poll_options.is_some(), "polls"),
        (can.reactions, "reactions"),
        (can.threads, "threads"),
        (can.media, "media"),
        (channel.info().native_commands, "nativeCommands"),
        (can.block_streaming, "blockStreaming"),
    ];
    let words = words.iter().filter(|(can, _)| *can).map(|(_, word)| *word);
    let types = format!("chatTypes={}", can.chat_types.join(","));
    std::iter::once(types.as_str()).chain(words).collect::<Vec<_>>().join(" ")
}
