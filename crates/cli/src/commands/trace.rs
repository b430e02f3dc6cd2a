//! `openclaw trace`: what became of a message, of a chat platform or of a client.

mod told;

use openclaw_protocol::params::channels::{Trace, TraceResult};
use serde_json::json;

use super::channels::call;
use crate::args::TraceArgs;
use crate::client;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(super) fn run(args: &TraceArgs, context: &CliContext) -> CommandResult {
    let id = Some(args.id.trim()).filter(|id| *id != "last");
    let answer = call::<Trace>(context, &args.target, &json!({ "id": id }))?;
    if args.json {
        output::json(&answer);
        return Ok(0);
    }
    let TraceResult { events, mut runs, deliveries, .. } = client::read::<Trace>(answer, "trace")?;
    // A run that is told with its event is not told once more.
    runs.retain(|run| {
        !events.iter().any(|event| event.run.as_ref().is_some_and(|own| own.run_id == run.run_id))
    });
    let stories: Vec<Vec<String>> =
        events.iter().map(told::event).chain(runs.iter().map(told::run_alone)).collect();
    let sent = (!deliveries.is_empty()).then(|| told::sent_alone(&deliveries));
    let stories: Vec<Vec<String>> = stories.into_iter().chain(sent).collect();
    if stories.is_empty() {
        let failure = match id {
            Some(id) => CommandFailure::new("unknown-message", format!("Nothing is remembered of {}.", output::one_line(id)))
                .hint(
                    "Events of platforms are remembered for three days, messages and answers for one. Give the platform's id of \
                     the message or of its answer, a run's id, or `last`.",
                ),
            None => CommandFailure::new("no-message", "Nobody has said anything yet.")
                .hint("`openclaw channels status` tells whether an account is connected."),
        };
        return Err(failure);
    }
    for (at, story) in stories.iter().enumerate() {
        if at > 0 {
            output::line("");
        }
        story.iter().for_each(|line| output::row(line));
    }
    Ok(0)
}
