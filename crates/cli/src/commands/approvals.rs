//! `openclaw approvals get|set|allowlist` (spec `cli.md` §10): the file that says which commands may run on a host without a
//! person's word. The file of this host is changed directly, that of a running gateway by its methods.

mod advice;
mod input;
mod place;
mod report;

use openclaw_config::clock::now_ms;
use openclaw_protocol::AgentId;
use openclaw_tools::exec_approvals::file::{AllowlistEntry, ApprovalsFile};
use openclaw_tools::exec_approvals::store::{Loaded, mint};

use crate::args::{AllowlistArgs, AllowlistCommand, ApprovalsArgs, ApprovalsAtArgs, ApprovalsCommand};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;
use place::ApprovalsPlace;

/// The agent that stands for all of them.
const EVERY_AGENT: &str = "*";
/// Key that older versions used for the agent `main`, and the key of today. The file's reader moves
/// its rules there.
const LEGACY_MAIN: (&str, &str) = ("default", "main");

pub(super) fn run(args: &ApprovalsArgs, context: &CliContext) -> CommandResult {
    match &args.command {
        ApprovalsCommand::Get { at } => {
            let place = ApprovalsPlace::of(context, at)?;
            let loaded = place.load()?;
            print(&place, at, &loaded, &[format!("Showing {} approvals.", place.label()), String::new()]);
        }
        ApprovalsCommand::Set { file, stdin, at } => {
            let place = ApprovalsPlace::of(context, at)?;
            let file = input::read(file.as_deref(), *stdin)?;
            // The text ends with it.
            if at.ask.json {
                advice::of_unknown_fields(&file).iter().for_each(|warning| output::error_line(warning));
            }
            print_written(&place, at, &place.replace(file)?);
        }
        ApprovalsCommand::Allowlist { command: AllowlistCommand::Add(entry) } => add_entry(context, entry)?,
        ApprovalsCommand::Allowlist { command: AllowlistCommand::Remove(entry) } => {
            remove_entry(context, entry)?;
        }
    }
    Ok(0)
}

fn add_entry(context: &CliContext, entry: &AllowlistArgs) -> Result<(), CommandFailure> {
    let place = ApprovalsPlace::of(context, &entry.at)?;
    let (agent, pattern) = named(entry)?;
    let changed = place.change(|file| file.allow(&agent, pattern, &mut mint))?;
    if changed.is_some() {
        advice::of_entry(context, &agent, pattern).iter().for_each(|warning| output::error_line(warning));
    }
    print_change(&place, entry, changed.as_ref(), "Already allowlisted.")
}

fn remove_entry(context: &CliContext, entry: &AllowlistArgs) -> Result<(), CommandFailure> {
    let place = ApprovalsPlace::of(context, &entry.at)?;
    let (agent, pattern) = named(entry)?;
    let changed = place.change(|file| remove(file, &agent, pattern))?;
    if changed.is_none() {
        let elsewhere = holders(&place.load()?.file, pattern);
        if let Some(first) = elsewhere.first() {
            let message = format!(
                "\"{pattern}\" is not on the list of {}. It stands under {}.",
                whose(&agent),
                elsewhere.join(", ")
            );
            return Err(CommandFailure::new("other-agent", message)
                .hint(format!("Nothing was changed. Name the list with --agent '{first}'.")));
        }
    }
    print_change(&place, entry, changed.as_ref(), "Pattern not found.")
}

/// The agent and the pattern of an entry.
fn named(entry: &AllowlistArgs) -> Result<(String, &str), CommandFailure> {
    match entry.pattern.trim() {
        "" => Err(CommandFailure::usage("Pattern required.")),
        pattern => Ok((agent_key(&entry.agent), pattern)),
    }
}

/// Prints the result of a change; `unchanged` is printed where there was nothing to do.
fn print_change(
    place: &ApprovalsPlace<'_>,
    entry: &AllowlistArgs,
    changed: Option<&Loaded>,
    unchanged: &str,
) -> Result<(), CommandFailure> {
    match changed {
        Some(loaded) => print_written(place, &entry.at, loaded),
        None if entry.at.ask.json => output::json(&report::document(&place.load()?)),
        None => output::line(unchanged),
    }
    Ok(())
}

/// The agents on whose list a pattern stands.
fn holders(file: &ApprovalsFile, pattern: &str) -> Vec<String> {
    let has = |entry: &AllowlistEntry| entry.pattern.trim() == pattern;
    let holding = file.agents.iter().filter(|(_, rules)| rules.allowlist.iter().any(has));
    holding.map(|(agent, _)| agent.clone()).collect()
}

fn whose(agent: &str) -> String {
    if agent == EVERY_AGENT { "every agent (*)".to_owned() } else { format!("agent {agent}") }
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

/// Removes a pattern; returns `false` where it is not there. An agent without any other entry is
/// removed too.
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

fn print_written(place: &ApprovalsPlace<'_>, at: &ApprovalsAtArgs, loaded: &Loaded) {
    let label = place.label();
    print(place, at, loaded, &[format!("Writing {label} approvals."), format!("Target: {label}")]);
}

fn print(place: &ApprovalsPlace<'_>, at: &ApprovalsAtArgs, loaded: &Loaded, heading: &[String]) {
    if at.ask.json {
        output::json(&report::document(loaded));
        return;
    }
    let style = place.context().style;
    heading.iter().for_each(|line| output::row(&style.muted(line)));
    report::lines(place.context(), place.label(), loaded, now_ms()).iter().for_each(|line| output::row(line));
    let advice = [advice::of_unknown_fields(&loaded.file), advice::of_config(place.context())];
    for line in advice.iter().flatten() {
        output::row("");
        output::row(line);
    }
}

#[cfg(test)]
mod tests;
