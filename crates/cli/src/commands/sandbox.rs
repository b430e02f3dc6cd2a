//! `openclaw sandbox explain|list|recreate` (spec `cli.md`, recorded in `cli-system.json`).

mod explain;
pub(super) mod reach;

use openclaw_tools::sandbox::{Entry, Registry, Sandboxes};
use serde_json::json;

use super::questions::Questions;
use crate::args::{SandboxArgs, SandboxCommand};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::{client, output};

pub(super) fn run(args: &SandboxArgs, context: &CliContext) -> CommandResult {
    match &args.command {
        SandboxCommand::Explain { agent, session, json } => {
            explain::run(context, agent.as_deref(), session.as_deref(), *json)
        }
        SandboxCommand::List { browser, json } => Ok(list(context, *browser, *json)),
        SandboxCommand::Recreate { all, agent, session, browser, force } => {
            let which = which(*all, agent.as_deref(), session.as_deref())?;
            // There are no browsers in sandboxes yet.
            let found = if *browser { Vec::new() } else { entries(context) };
            let found: Vec<Entry> = found.into_iter().filter(|entry| which.holds(entry)).collect();
            recreate(context, &found, *force)
        }
    }
}

fn entries(context: &CliContext) -> Vec<Entry> {
    let state = context.paths().state_dir();
    [Registry::containers(state), Registry::local(state)].iter().flat_map(Registry::entries).collect()
}

fn list(context: &CliContext, browser: bool, json: bool) -> u8 {
    let found = if browser { Vec::new() } else { entries(context) };
    if json {
        output::json(&json!({"containers": found, "browsers": []}));
        return 0;
    }
    if found.is_empty() {
        output::line("No sandboxes.");
    }
    for entry in found {
        output::row(&format!("{}  {}  {}", entry.container_name, entry.session_key, entry.image));
    }
    0
}

/// Sandboxes that are meant.
enum SandboxFilter<'a> {
    All,
    Agent(&'a str),
    Session(&'a str),
}

fn which<'a>(
    all: bool,
    agent: Option<&'a str>,
    session: Option<&'a str>,
) -> Result<SandboxFilter<'a>, CommandFailure> {
    match (all, agent, session) {
        (true, None, None) => Ok(SandboxFilter::All),
        (false, Some(agent), None) => Ok(SandboxFilter::Agent(agent)),
        (false, None, Some(session)) => Ok(SandboxFilter::Session(session)),
        (false, None, None) => {
            Err(CommandFailure::usage("Please specify --all, --session <key>, or --agent <id>"))
        }
        _ => Err(CommandFailure::usage("Please specify only one of: --all, --session, --agent")),
    }
}

impl SandboxFilter<'_> {
    fn holds(&self, entry: &Entry) -> bool {
        let key = &entry.session_key;
        match self {
            Self::All => true,
            Self::Session(session) => key == session.trim(),
            Self::Agent(agent) => {
                let whole = format!("agent:{agent}");
                *key == whole || key.starts_with(&format!("{whole}:"))
            }
        }
    }
}

fn recreate(context: &CliContext, found: &[Entry], force: bool) -> CommandResult {
    if found.is_empty() {
        output::line("No sandboxes found matching the criteria.");
        return Ok(0);
    }
    for entry in found {
        output::row(&format!("{} ({})", entry.container_name, entry.session_key));
    }
    if !force && !Questions::of_process().confirm("Remove them? Their files stay.")? {
        output::line("Cancelled.");
        return Ok(0);
    }
    let sandboxes = Sandboxes::of_this_process(context.paths().state_dir());
    let config = context.config()?;
    client::block_on(async {
        for entry in found {
            let removed = sandboxes.remove(config, entry).await;
            removed.map_err(|error| {
                CommandFailure::new("not-removed", format!("{}: {error}", entry.container_name))
            })?;
        }
        Ok(())
    })?;
    output::line(&format!("Removed {}. The next run makes what it needs.", found.len()));
    Ok(0)
}
