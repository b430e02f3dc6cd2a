//! `models auth order get|set|clear`.

use openclaw_models::ProviderId;
use openclaw_models::credentials::OnDamage;
use serde::Serialize;

use super::keep::Keeper;
use crate::args::{AuthOrderCommand, OrderOf, given};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// The answer, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthOrder {
    agent_id: String,
    agent_dir: String,
    provider: String,
    auth_store_path: String,
    order: Option<Vec<String>>,
}

pub(super) fn run(command: AuthOrderCommand, agent: Option<&str>, context: &CliContext) -> CommandResult {
    let (of, ids, json) = match command {
        AuthOrderCommand::Get { of, json } => {
            let (keeper, provider) = open(&of, agent, context)?;
            let order = keeper.load()?.order(&provider).map(<[String]>::to_vec);
            report(&keeper, &provider, order, json);
            return Ok(0);
        }
        AuthOrderCommand::Clear { of } => (of, None, false),
        AuthOrderCommand::Set { of, profile_ids } => (of, Some(wanted(&profile_ids)?), false),
    };
    let (keeper, provider) = open(&of, agent, context)?;
    let path = keeper.path();
    let changed = keeper.update(OnDamage::Refuse, |store| {
        for id in ids.iter().flatten() {
            match store.get(id) {
                None => return Err(format!("Auth profile \"{id}\" not found in {}.", path.display())),
                Some(known) if known.provider != provider => {
                    return Err(format!("Auth profile \"{id}\" is for {}, not {provider}.", known.provider));
                }
                Some(_) => {}
            }
        }
        store.set_order(&provider, ids.clone());
        Ok(())
    })?;
    changed.map_err(|text| CommandFailure::new("auth-order", text))?;
    report(&keeper, &provider, ids, json);
    Ok(0)
}

/// Ids without repetitions.
fn wanted(ids: &[String]) -> Result<Vec<String>, CommandFailure> {
    let mut out: Vec<String> = Vec::new();
    for id in ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty()) {
        if !out.iter().any(|known| known == id) {
            out.push(id.to_owned());
        }
    }
    if out.is_empty() {
        Err(CommandFailure::usage("Missing profile ids. Provide one or more profile ids."))
    } else {
        Ok(out)
    }
}

fn open<'a>(
    of: &OrderOf,
    agent: Option<&str>,
    context: &'a CliContext,
) -> Result<(Keeper<'a>, ProviderId), CommandFailure> {
    let provider =
        given(of.provider.as_deref()).ok_or_else(|| CommandFailure::usage("Missing --provider."))?;
    let keeper = super::keeper(context, of.agent.as_deref().or(agent))?;
    Ok((keeper, ProviderId::normalize(provider)))
}

fn report(keeper: &Keeper<'_>, provider: &ProviderId, order: Option<Vec<String>>, json: bool) {
    let shown = AuthOrder {
        agent_id: keeper.agent.id.to_string(),
        agent_dir: keeper.agent.agent_dir.display().to_string(),
        provider: provider.to_string(),
        auth_store_path: keeper.path().display().to_string(),
        order,
    };
    if json {
        output::json(&shown);
        return;
    }
    output::line(&format!("Agent: {}", shown.agent_id));
    output::line(&format!("Provider: {}", shown.provider));
    output::line(&format!("Auth file: {}", keeper.context.short(&keeper.path())));
    let order =
        shown.order.filter(|ids| !ids.is_empty()).map_or_else(|| "(none)".to_owned(), |ids| ids.join(", "));
    output::line(&format!("Order override: {order}"));
}
