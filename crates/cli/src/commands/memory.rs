//! `openclaw memory status|index|search|forget` (spec `memory.md` §18). A gateway that runs here is asked, so that there is
//! one writer of an index; without one the files are opened by this process.

mod forget;
mod here;
mod text;

use std::time::Duration;

use openclaw_gateway::running_gateway;
use openclaw_protocol::AgentId;
use openclaw_protocol::Call;
use openclaw_protocol::params::memory::{
    MemoryAbsent, MemoryIndex, MemoryIndexResult, MemorySearch, MemorySearchResult, MemoryStatus,
    MemoryStatusResult,
};
use serde_json::{Value, json};

use crate::args::{MemoryArgs, MemoryCommand, positive};
use crate::client::{self, AwaitedResponse, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::output;

pub(super) use here::status_here;
pub(super) use text::row;

/// Time for a gateway to look or to search.
const LOOK: Duration = Duration::from_secs(60);
/// Time for it to index everything.
const INDEX: Duration = Duration::from_secs(24 * 60 * 60);

/// Text for a person where memory is switched off.
const DISABLED: &str = "Memory search disabled.";

pub(super) fn run(args: &MemoryArgs, context: &CliContext) -> CommandResult {
    context.config()?;
    context.print_warnings_about(&["memory"]);
    match &args.command {
        MemoryCommand::Status { agent, json, deep, index, verbose: _ } => {
            status(context, agent.as_deref(), *json, *deep || *index, *index)
        }
        MemoryCommand::Index { agent, force, verbose, json } => {
            index(context, agent.as_deref(), *force, *verbose, *json)
        }
        MemoryCommand::Search { query, agent, max_results, min_score, json } => {
            let most = max_results
                .as_deref()
                .map(|text| positive(text, "--max-results must be a positive integer"))
                .transpose()?;
            let least = min_score.as_deref().map(score).transpose()?;
            search(context, agent.as_deref(), query, (most, least), *json)
        }
        MemoryCommand::Forget { query, agent, yes, json } => {
            forget::run(context, agent.as_deref(), query, *yes, *json)
        }
    }
}

fn score(text: &str) -> Result<f64, CommandFailure> {
    let number = text.trim().parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| CommandFailure::usage("--min-score must be a number from 0 to 1"))
}

/// The agents that are meant: one that is named, else all.
fn agents(context: &CliContext, asked: Option<&str>) -> Result<Vec<AgentId>, CommandFailure> {
    match asked {
        Some(_) => Ok(vec![context.agent(asked)?]),
        None => Ok(context.config()?.agent_ids()),
    }
}

fn status(context: &CliContext, agent: Option<&str>, json: bool, deep: bool, index: bool) -> CommandResult {
    let agents = agents(context, agent)?;
    let asked = json!({ "deep": deep, "index": index });
    let found: MemoryStatusResult =
        match of_gateway::<MemoryStatus>(context, of(asked, agent), if index { INDEX } else { LOOK }) {
            Some(found) => found,
            None => status_here(context, &agents, deep, index)?,
        };
    if json {
        output::json(&found.agents);
    } else {
        for agent in &found.agents {
            text::status(agent, index, context).iter().for_each(|line| output::line(line));
        }
    }
    told_absent(&found.absent, json)
}

fn index(context: &CliContext, agent: Option<&str>, force: bool, verbose: bool, json: bool) -> CommandResult {
    let agents = agents(context, agent)?;
    let asked = json!({ "force": force });
    let done: MemoryIndexResult = match of_gateway::<MemoryIndex>(context, of(asked, agent), INDEX) {
        Some(done) => done,
        None => here::index(context, &agents, force)?,
    };
    let mut exit = 0;
    for agent in &done.agents {
        if verbose && !json {
            text::indexed(agent, context).iter().for_each(|line| output::line(line));
        }
        match &agent.error {
            None if !json => output::line(&format!("Memory index updated ({}).", agent.agent_id)),
            None => {}
            Some(error) => {
                output::error_line(&format!("Memory index failed ({}): {error}", agent.agent_id));
                exit = ERROR;
            }
        }
    }
    if json {
        output::json(&done.agents);
    }
    Ok(told_absent(&done.absent, json)?.max(exit))
}

fn search(
    context: &CliContext,
    agent: Option<&str>,
    query: &str,
    (most, least): (Option<u64>, Option<f64>),
    json: bool,
) -> CommandResult {
    let id = context.agent(agent)?;
    if context.config()?.memory_off(&id).is_some() {
        return told_absent(
            &[MemoryAbsent { agent_id: id.to_string(), reason: String::new(), switched_off: true }],
            json,
        );
    }
    let mut asked = json!({ "query": query, "agentId": id });
    if let Some(asked) = asked.as_object_mut() {
        asked.extend(most.map(|most| ("maxResults".to_owned(), json!(most))));
        asked.extend(least.map(|least| ("minScore".to_owned(), json!(least))));
    }
    let found = match query.trim().is_empty() {
        true => MemorySearchResult::default(),
        false => match of_gateway::<MemorySearch>(context, asked, LOOK) {
            Some(found) => found,
            None => here::search(context, &id, query, (most, least))
                .map_err(|error| CommandFailure::new("memory", format!("Memory search failed: {error}")))?,
        },
    };
    if let Some(warning) = &found.warning {
        output::error_line(&context.style.warn(warning));
    }
    if json {
        output::json(&json!({ "results": found.results }));
    } else if found.results.is_empty() {
        output::line("No matches.");
    } else {
        output::line(&text::hits(&found.results));
    }
    Ok(0)
}

/// Params with the agent that was named.
fn of(mut params: Value, agent: Option<&str>) -> Value {
    if let (Some(params), Some(agent)) = (params.as_object_mut(), agent) {
        params.insert("agentId".to_owned(), json!(agent));
    }
    params
}

/// Tells of agents that have no memory.
fn told_absent(absent: &[MemoryAbsent], json: bool) -> CommandResult {
    let mut exit = 0;
    for agent in absent {
        if !agent.switched_off {
            output::error_line(&format!("{}: {}", agent.agent_id, agent.reason));
            exit = ERROR;
        } else if json {
            output::error_line(DISABLED);
        } else {
            output::line(DISABLED);
        }
    }
    Ok(exit)
}

/// The answer of the gateway that runs with this state directory; `None` if none runs, or it can't be asked.
fn of_gateway<C: Call>(context: &CliContext, params: Value, timeout: Duration) -> Option<C::Output> {
    running_gateway(&context.loaded).filter(|running| running.port.is_some())?;
    let flags = TargetFlags::default();
    let asked = client::call(context, &flags, C::NAME, params, AwaitedResponse::First, timeout);
    let answer = client::block_on(asked).ok()?;
    client::read::<C>(answer, "memory").ok()
}
