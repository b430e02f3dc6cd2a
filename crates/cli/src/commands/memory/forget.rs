//! `openclaw memory forget`: entries of memory files that hold some words, shown first and then taken out.

use std::io::IsTerminal as _;

use openclaw_protocol::printable::one_line;
use openclaw_runtime::memory::{ForgetEntry, ForgetOutcome};
use serde_json::json;

use super::here::with_memories;
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
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
    // With --yes the index is purged also of what an interrupted removal has left.
    let is_meant = yes || (!found.is_empty() && !json && agreed(found.len())?);
    let ForgetOutcome { removed, failed: left } = match is_meant {
        true => with_memories(context, async |memories| memories.forget(&id, found.clone()).await)?
            .map_err(failed)?,
        false => ForgetOutcome::default(),
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
        output::json(&json!({ "agentId": id, "entries": entries, "removed": removed, "failed": left }));
    } else if is_meant {
        output::line(&format!("Forgot {removed} of {} entries.", found.len()));
    } else if !found.is_empty() {
        let how = if std::io::stdin().is_terminal() {
            ""
        } else {
            " Run it again with --yes to take these entries out."
        };
        output::line(&format!("Nothing was changed.{how}"));
    }
    left.iter().for_each(|left| output::error_line(&format!("Memory forget failed: {left}")));
    Ok(if left.is_empty() { 0 } else { ERROR })
}

fn preview(found: &[ForgetEntry]) {
    if found.is_empty() {
        output::line("No matches in memory files. Transcripts are never changed.");
    }
    for entry in found {
        let since = entry.since.as_ref().map(|since| format!(" (since {since})")).unwrap_or_default();
        output::line(&format!(
            "{}:{}-{}{since}\n{}\n",
            one_line(&entry.path),
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
