//! `openclaw memory forget`: entries of memory files that hold some words, shown first and then taken out.

use std::io::IsTerminal as _;

use openclaw_runtime::memory::ForgetEntry;
use serde_json::json;

use super::here::with_memories;
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Works on the files themselves, also beside a gateway: its index follows them.
pub(super) fn run(
    context: &CliContext,
    agent: Option<&str>,
    query: &str,
    yes: bool,
    json: bool,
) -> CommandResult {
    let id = context.agent(agent)?;
    let failed = |error: String| CommandFailure::new("memory", format!("Memory forget failed: {error}"));
    let found = with_memories(context, async |memories| memories.forget_preview(&id, query).await)?
        .map_err(failed)?;
    if !json {
        preview(&found);
    }
    let is_meant = !found.is_empty() && (yes || !json && agreed(found.len())?);
    let removed = match is_meant {
        true => with_memories(context, async |memories| memories.forget(&id, found.clone()).await)?
            .map_err(failed)?,
        false => 0,
    };
    if json {
        let entries: Vec<_> = found
            .iter()
            .map(|entry| {
                json!({
                    "path": entry.path, "startLine": entry.start_line, "endLine": entry.end_line,
                    "since": entry.since, "text": entry.text,
                })
            })
            .collect();
        output::json(&json!({ "agentId": id, "entries": entries, "removed": removed }));
    } else if is_meant {
        output::line(&format!("Forgot {removed} of {} entries.", found.len()));
    } else if !found.is_empty() {
        output::line("Nothing was changed. Run it again with --yes to take these entries out.");
    }
    Ok(0)
}

fn preview(found: &[ForgetEntry]) {
    if found.is_empty() {
        output::line("No matches.");
    }
    for entry in found {
        let since = entry.since.as_ref().map(|since| format!(" (since {since})")).unwrap_or_default();
        output::line(&format!(
            "{}:{}-{}{since}\n{}\n",
            entry.path,
            entry.start_line,
            entry.end_line,
            entry.text.trim_end()
        ));
    }
}

/// Asks the person, if one is there.
fn agreed(entries: usize) -> Result<bool, CommandFailure> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    Questions::of_process().confirm(&format!("Take {entries} entries out of these files?"))
}
