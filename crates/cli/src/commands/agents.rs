//! `openclaw agents`: who there is, and who answers what (spec `cli.md` §4.3).

mod add;
mod credentials;
mod delete;
mod list;
mod route;
mod set_identity;
mod wizard;

use openclaw_agent::roster::RosterError;

use self::list::Detail;
use super::config::write_failure;
use crate::args::{AgentsArgs, AgentsCommand};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};

pub(super) fn run(args: &AgentsArgs, context: &CliContext) -> CommandResult {
    match &args.command {
        None => list::run(false, Detail::Count, context),
        Some(AgentsCommand::List { json, bindings, detail: _ }) => {
            let detail = if *bindings { Detail::Bindings } else { Detail::Count };
            list::run(*json, detail, context)
        }
        Some(AgentsCommand::Add(args)) => add::run(args, context),
        Some(AgentsCommand::Delete { id, force, json }) => delete::run(id, *force, *json, context),
        Some(AgentsCommand::SetIdentity(args)) => set_identity::run(args, context),
        Some(AgentsCommand::Route(args)) => route::run(args, context),
    }
}

/// Failure in the words of the reference where it has some.
fn failure(error: RosterError, context: &CliContext) -> CommandFailure {
    match error {
        RosterError::Reserved(id) => reserved(id.as_str()),
        RosterError::Exists(id) => exists(id.as_str()),
        RosterError::NotFound(id) => not_found(id.as_str()),
        RosterError::Undeletable(id) => {
            CommandFailure::new("agent-reserved", format!("\"{id}\" cannot be deleted."))
        }
        RosterError::Config(_) => context.invalid_config(),
        RosterError::Write(error) => write_failure(error),
        RosterError::Included(_) => CommandFailure::new("config-write", error.to_string()),
        RosterError::Workspace(_) | RosterError::Io { .. } => {
            CommandFailure::new("agent-files", error.to_string())
        }
    }
}

fn reserved(id: &str) -> CommandFailure {
    CommandFailure::new("agent-reserved", format!("\"{id}\" is reserved. Choose another name."))
}

fn exists(id: &str) -> CommandFailure {
    CommandFailure::new("agent-exists", format!("Agent \"{id}\" already exists."))
}

fn not_found(id: &str) -> CommandFailure {
    CommandFailure::new("agent-not-found", format!("Agent \"{id}\" not found."))
        .hint("Run `openclaw agents list` for those there are.")
}
