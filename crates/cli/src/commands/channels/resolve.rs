//! `openclaw channels resolve` (spec `cli.md` §3.9): from names of people and groups to ids.

use std::sync::Arc;

use openclaw_channels::{Account, Channel, ConversationKind, told_unusable};
use openclaw_gateway::platforms;
use serde::Serialize;
use serde_json::json;

use super::{is_set, platform};
use crate::args::ResolveArgs;
use crate::client;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Result for an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ResolvedEntry {
    input: String,
    resolved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(super) fn run(context: &CliContext, args: &ResolveArgs) -> CommandResult {
    let config = context.config()?;
    let channel = chosen(context, args.channel.as_deref())?;
    let default = platforms().sending_account(config, channel.info().id).unwrap_or_default();
    let id = args.account.as_deref().map_or(default, openclaw_config::normalize_account_id);
    let account =
        channel.account(config, &id).map_err(|why| told_unusable(config, channel.info().id, &id, &why));
    let account = account.map_err(|why| CommandFailure::new("account", format!("Error: {why}")))?;
    let found = client::block_on(async {
        let mut found = Vec::new();
        for entry in &args.entries {
            found.push(resolve(channel.as_ref(), account.as_ref(), entry, &args.kind).await);
        }
        Ok(found)
    })?;
    if args.json {
        output::json(&json!(found));
        return Ok(0);
    }
    found.iter().for_each(|one| output::line(&one.line()));
    Ok(0)
}

/// The platform that is named, or the only one that is configured.
fn chosen(context: &CliContext, name: Option<&str>) -> Result<Arc<dyn Channel>, CommandFailure> {
    if let Some(name) = name {
        return platform(name);
    }
    let config = context.config()?;
    let all = platforms();
    let set: Vec<_> = all.channels().iter().filter(|one| is_set(config, one.as_ref())).collect();
    match set.as_slice() {
        [] => Err(CommandFailure::usage("Channel is required (no configured channels detected).")),
        [only] => Ok(Arc::clone(only)),
        several => {
            let names: Vec<&str> = several.iter().map(|one| one.info().id).collect();
            let names = names.join(", ");
            Err(CommandFailure::usage(format!(
                "Channel is required when multiple channels are configured: {names}"
            )))
        }
    }
}

async fn resolve(channel: &dyn Channel, account: &dyn Account, entry: &str, kind: &str) -> ResolvedEntry {
    let unresolved = |note: String| ResolvedEntry {
        input: entry.to_owned(),
        resolved: false,
        id: None,
        name: None,
        note: Some(note),
    };
    let target = match channel.target(entry) {
        Ok(target) => target,
        Err(error) => return unresolved(error.to_string()),
    };
    let peer = match account.look_up(&target).await {
        Ok(Some(peer)) => peer,
        Ok(None) => return unresolved(format!("{} does not know it", channel.info().label)),
        Err(error) => return unresolved(error.to_string()),
    };
    let is_direct = peer.kind.or(target.kind).map(|kind| kind == ConversationKind::Direct);
    match (kind, is_direct) {
        ("user", Some(false)) => unresolved("it is a group".to_owned()),
        ("group", Some(true)) => unresolved("it is a person".to_owned()),
        _ => ResolvedEntry {
            input: entry.to_owned(),
            resolved: true,
            id: Some(peer.id),
            name: peer.name,
            note: None,
        },
    }
}

impl ResolvedEntry {
    fn line(&self) -> String {
        let Self { input, id, name, note, .. } = self;
        let input = output::one_line(input);
        let name = name.as_ref().map(|name| format!(" ({})", output::one_line(name))).unwrap_or_default();
        match (id, note) {
            (Some(id), _) => format!("{input} -> {id}{name}"),
            (None, Some(note)) => format!("{input} -> unresolved ({})", output::one_line(note)),
            (None, None) => format!("{input} -> unresolved"),
        }
    }
}
