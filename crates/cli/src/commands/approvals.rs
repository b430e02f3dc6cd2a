//! `openclaw approvals get|set|allowlist` (spec `cli.md` §10): the file that says which commands may run on a host without a
//! person's word. The file of this host is changed directly, that of a running gateway by its methods.

mod input;
mod place;
mod report;

use openclaw_config::clock::now_ms;
use openclaw_protocol::AgentId;
use openclaw_tools::exec_approvals::file::ApprovalsFile;
use openclaw_tools::exec_approvals::store::{Loaded, mint};

use crate::args::{AllowlistArgs, AllowlistCommand, ApprovalsArgs, ApprovalsAtArgs, ApprovalsCommand};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;
use place::Place;

/// The agent that stands for all of them.
const EVERY_AGENT: &str = "*";
/// What older versions called the agent `main`. The file's reader moves its rules there.
const LEGACY_MAIN: (&str, &str) = ("default", "main");

pub(super) fn run(args: &ApprovalsArgs, context: &Context) -> Outcome {
    match &args.command {
        ApprovalsCommand::Get { at } => {
            let place = Place::of(context, at)?;
            let loaded = place.load()?;
            print(&place, at, &loaded, &[format!("Showing {} approvals.", place.label()), String::new()]);
        }
        ApprovalsCommand::Set { file, stdin, at } => {
            let place = Place::of(context, at)?;
            let file = input::read(file.as_deref(), *stdin)?;
            print_written(&place, at, &place.replace(file)?);
        }
        ApprovalsCommand::Allowlist { command: AllowlistCommand::Add(entry) } => {
            change(context, entry, "Already allowlisted.", add)?;
        }
        ApprovalsCommand::Allowlist { command: AllowlistCommand::Remove(entry) } => {
            change(context, entry, "Pattern not found.", remove)?;
        }
    }
    Ok(0)
}

/// Changes one list. `unchanged` is said where there was nothing to do.
fn change(
    context: &Context,
    entry: &AllowlistArgs,
    unchanged: &str,
    change: fn(&mut ApprovalsFile, agent: &str, pattern: &str) -> bool,
) -> Result<(), Failure> {
    let place = Place::of(context, &entry.at)?;
    let pattern = entry.pattern.trim();
    if pattern.is_empty() {
        return Err(Failure::usage("Pattern required."));
    }
    let agent = agent_key(&entry.agent);
    let changed = place.change(|file| change(file, &agent, pattern))?;
    match changed {
        Some(loaded) => print_written(&place, &entry.at, &loaded),
        None if entry.at.ask.json => output::json(&report::document(&place.load()?)),
        None => output::line(unchanged),
    }
    Ok(())
}

/// The name that runs of an agent look its rules up by.
fn agent_key(named: &str) -> String {
    let named = named.trim();
    let (legacy, main) = LEGACY_MAIN;
    match named {
        "" | EVERY_AGENT => EVERY_AGENT.to_owned(),
        _ if named == legacy => main.to_owned(),
        _ => AgentId::normalize(named).to_string(),
    }
}

/// `false` where the pattern is there already. A new entry counts as just used, as in the reference.
fn add(file: &mut ApprovalsFile, agent: &str, pattern: &str) -> bool {
    if !file.allow(agent, pattern, &mut mint) {
        return false;
    }
    let entries = file.agents.get_mut(agent).into_iter().flat_map(|agent| &mut agent.allowlist);
    for entry in entries.filter(|entry| entry.pattern == pattern) {
        entry.last_used_at = Some(now_ms().into());
    }
    true
}

/// `false` where the pattern is not there. An agent of whom nothing is left to say goes too.
fn remove(file: &mut ApprovalsFile, agent: &str, pattern: &str) -> bool {
    let Some(rules) = file.agents.get_mut(agent) else { return false };
    let before = rules.allowlist.len();
    rules.allowlist.retain(|entry| entry.pattern.trim() != pattern);
    let has_changed = rules.allowlist.len() < before;
    if has_changed && *rules == Default::default() {
        file.agents.remove(agent);
    }
    has_changed
}

fn print_written(place: &Place<'_>, at: &ApprovalsAtArgs, loaded: &Loaded) {
    let label = place.label();
    print(place, at, loaded, &[format!("Writing {label} approvals."), format!("Target: {label}")]);
}

fn print(place: &Place<'_>, at: &ApprovalsAtArgs, loaded: &Loaded, heading: &[String]) {
    if at.ask.json {
        output::json(&report::document(loaded));
        return;
    }
    let style = place.context().style;
    heading.iter().for_each(|line| output::row(&style.muted(line)));
    report::lines(place.context(), place.label(), loaded, now_ms()).iter().for_each(|line| output::row(line));
}

#[cfg(test)]
mod tests;
