//! `openclaw agents delete`.

use std::io::{IsTerminal as _, stdin};

use openclaw_agent::roster::{self, Files};
use openclaw_config::write::Actor;
use openclaw_config::{Config, load};
use openclaw_protocol::AgentId;
use serde::Serialize;

use super::{failure, not_found};
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// The result, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeletedRow {
    agent_id: String,
    workspace: String,
    agent_dir: String,
    sessions_dir: String,
    removed_bindings: usize,
    removed_allow: usize,
}

pub(super) fn run(id: &str, force: bool, json: bool, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    let id = named(id)?;
    if id.as_str() != AgentId::MAIN && !config.has_agent(&id) {
        return Err(not_found(id.as_str()));
    }
    if !force && id.as_str() != AgentId::MAIN && !confirmed(&id)? {
        output::error_line("Cancelled; nothing was changed.");
        return Ok(0);
    }
    let deleted = roster::delete(&context.loaded, &id, Files::Trash, Actor::Cli)
        .map_err(|error| failure(error, context))?;
    if let Some(default) = new_default(config, context) {
        output::error_line(&context.style.warn(&format!(
            "The default agent is \"{default}\" now. A running gateway keeps \"{id}\" as it until it is restarted."
        )));
    }
    for (dir, reason) in &deleted.kept {
        output::error_line(
            &context.style.warn(&format!("Not moved to the trash: {} ({reason})", context.short(dir))),
        );
    }
    if json {
        output::json(&DeletedRow {
            agent_id: id.to_string(),
            workspace: deleted.workspace.display().to_string(),
            agent_dir: deleted.agent_dir.display().to_string(),
            sessions_dir: deleted.sessions_dir.display().to_string(),
            removed_bindings: deleted.removed_bindings,
            removed_allow: deleted.removed_allow,
        });
        return Ok(0);
    }
    output::line(&format!("Deleted agent {id}"));
    for (from, to) in &deleted.trashed {
        output::line(&format!("  {} is now {}", context.short(from), context.short(to)));
    }
    if deleted.removed_bindings > 0 {
        output::line(&format!("  Routing rules removed: {}", deleted.removed_bindings));
    }
    Ok(0)
}

/// Default agent of the file as it is now, if it has changed: stored state depends on it, so a
/// running gateway does not take the change.
fn new_default(before: &Config, context: &CliContext) -> Option<AgentId> {
    let after = load(context.env()).config().ok()?.default_agent();
    (after != before.default_agent()).then_some(after)
}

/// Unusable text would be normalised to `main`, which is not what it says.
fn named(text: &str) -> Result<AgentId, CommandFailure> {
    let id = AgentId::normalize(text);
    let is_main = text.trim().eq_ignore_ascii_case(AgentId::MAIN);
    if id.as_str() == AgentId::MAIN && !is_main { Err(not_found(text)) } else { Ok(id) }
}

fn confirmed(id: &AgentId) -> Result<bool, CommandFailure> {
    if !stdin().is_terminal() {
        return Err(CommandFailure::usage("There is no terminal to ask on. Re-run with --force."));
    }
    Questions::of_process()
        .confirm(&format!("Delete agent \"{id}\" and move its workspace, state and sessions to the trash?"))
}
