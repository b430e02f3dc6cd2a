//! `openclaw pairing list|approve` (spec `channels.md` §2.2): reads and writes the files that a gateway reads with every message.

use openclaw_channels::Channel;
use openclaw_channels::access::{PairingRequest, PairingStore};
use openclaw_config::{normalize_account_id, registry};
use openclaw_protocol::params::channels::Send;
use serde_json::{Value, json};

use super::channels::{call, platform_or_only};
use crate::args::{PairingArgs, PairingCommand, TargetArgs};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

const DEFAULT: &str = "default";
/// Message to somebody who was let in. Clients of the reference know these words.
const APPROVED: &str = "✅ OpenClaw access approved. Send a message to start chatting.";

pub(super) fn run(args: &PairingArgs, context: &CliContext) -> CommandResult {
    match &args.command {
        PairingCommand::List { name, channel, account, json } => {
            let name = channel.as_deref().or(name.as_deref());
            list(context, platform_or_only(name)?.as_ref(), account.as_deref(), *json)
        }
        PairingCommand::Approve { code_or_channel, code, channel, account, notify, target } => {
            let word = code_or_channel.as_deref();
            let (name, code) = match (channel.as_deref(), code.as_deref()) {
                (Some(name), code) => (Some(name), code.or(word)),
                (None, Some(code)) => (word, Some(code)),
                // A word alone is the platform or the code.
                (None, None) if word.is_some_and(|word| registry::by_name(word).is_some()) => (word, None),
                (None, None) => (None, word),
            };
            let channel = platform_or_only(name)?;
            let Some(code) = code else {
                return Err(which_code(context, channel.as_ref(), account.as_deref()));
            };
            let wanted = PairingApproval { code, account: account.as_deref(), notify: *notify, target };
            approve(context, channel.as_ref(), &wanted)
        }
    }
}

/// Returns the error for a missing code: it lists the people who wait, each with the command that lets them in.
fn which_code(context: &CliContext, channel: &dyn Channel, account: Option<&str>) -> CommandFailure {
    let id = channel.info().id;
    let accounts = accounts(context, channel, account).into_iter();
    let waiting = accounts.flat_map(|account| store(context, id, &account).pending().unwrap_or_default());
    let command = |request: PairingRequest| {
        let command = context.hint_command(&format!("openclaw pairing approve {id} {}", request.code));
        format!("{command}   (id {}, asked {})", request.id, request.created_at)
    };
    let lines: Vec<String> = waiting.map(command).collect();
    let failure = CommandFailure::usage("Whose code? It stands in what the bot told them.");
    match lines.is_empty() {
        true => failure.hint(format!("Nobody waits on {id} now.")),
        false => failure.hint(format!("Who waits:\n{}", lines.join("\n"))),
    }
}

fn store(context: &CliContext, channel: &str, account: &str) -> PairingStore {
    PairingStore::new(context.paths().credentials_dir(), channel, account)
}

/// The accounts whose files are looked at: the one that is named, or all of them.
fn accounts(context: &CliContext, channel: &dyn Channel, named: Option<&str>) -> Vec<String> {
    if let Some(named) = named {
        return vec![normalize_account_id(named)];
    }
    let mut all = channel.account_ids(&context.config_or_default());
    if !all.iter().any(|id| id == DEFAULT) {
        all.push(DEFAULT.to_owned());
    }
    all
}

fn list(context: &CliContext, channel: &dyn Channel, account: Option<&str>, json: bool) -> CommandResult {
    context.print_warnings_about(&["channels"]);
    let id = channel.info().id;
    let mut requests: Vec<(String, PairingRequest)> = Vec::new();
    for account in accounts(context, channel, account) {
        let pending = store(context, id, &account).pending().map_err(|error| unreadable(&error))?;
        requests.extend(pending.into_iter().map(|request| (account.clone(), request)));
    }
    requests.sort_by(|a, b| a.1.created_at.cmp(&b.1.created_at));
    if json {
        let requests: Vec<&PairingRequest> = requests.iter().map(|(_, request)| request).collect();
        output::json(&json!({"channel": id, "requests": requests}));
        return Ok(0);
    }
    if requests.is_empty() {
        output::line(&format!("No pending {id} pairing requests."));
        return Ok(0);
    }
    let row = |(account, request): (String, PairingRequest)| {
        let meta = |key: &str| request.meta.as_ref()?.get(key)?.as_str().map(str::to_owned);
        let parts = [meta("firstName"), meta("lastName")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let whole = || Some(parts).filter(|name| !name.is_empty()).or_else(|| meta("name"));
        let name = meta("username").map(|name| format!("@{name}")).or_else(whole).unwrap_or_default();
        vec![request.code, request.id, name, account, request.created_at]
    };
    let rows: Vec<Vec<String>> = requests.into_iter().map(row).collect();
    output::fitting(&["Code", "Id", "Who", "Account", "Asked"], &rows)
        .iter()
        .for_each(|line| output::row(line));
    output::line("");
    output::line(&format!(
        "Let somebody in: {}",
        context.hint_command(&format!("openclaw pairing approve {id} <code>"))
    ));
    Ok(0)
}

struct PairingApproval<'a> {
    code: &'a str,
    account: Option<&'a str>,
    notify: bool,
    target: &'a TargetArgs,
}

fn approve(context: &CliContext, channel: &dyn Channel, wanted: &PairingApproval<'_>) -> CommandResult {
    let id = channel.info().id;
    for account in accounts(context, channel, wanted.account) {
        let approved = store(context, id, &account).approve(channel, wanted.code);
        let Some(request) = approved.map_err(|error| unreadable(&error))? else { continue };
        output::line(&format!("Approved {id} sender {}.", request.id));
        if wanted.notify {
            notify(context, id, &account, &request, wanted.target);
        }
        return Ok(0);
    }
    let code = output::one_line(wanted.code);
    Err(CommandFailure::new("unknown-code", format!("No pending pairing request found for code: {code}"))
        .hint(format!(
            "Codes count for an hour. Those that wait: {}",
            context.hint_command(&format!("openclaw pairing list {id}"))
        )))
}

/// Tells the person that they were let in. A failure only prints a note: they are in, whether they
/// hear of it or not.
fn notify(context: &CliContext, channel: &str, account: &str, request: &PairingRequest, target: &TargetArgs) {
    let params = json!({
        "channel": channel, "accountId": account, "to": request.id, "message": APPROVED,
        "idempotencyKey": format!("pairing:{channel}:{}:{}", request.id, request.code),
    });
    let told: Result<Value, CommandFailure> = call::<Send>(context, target, &params);
    match told {
        Ok(_) => output::line("They were told."),
        Err(failure) => output::error_line(&format!("They were not told: {}", failure.message)),
    }
}

fn unreadable(error: &std::io::Error) -> CommandFailure {
    CommandFailure::new("pairing-store", format!("the list of who waits can't be used: {error}"))
        .hint("Mend or move the file away; who was let in before has to be let in again then.")
}
