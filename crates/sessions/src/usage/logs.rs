//! `sessions.usage.logs`: what was said in a session, with what each answer cost.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use openclaw_protocol::params::usage::{
    SessionsUsageLogsParams, SessionsUsageLogsResult, UsageLog, UsageLogRole,
};
use serde_json::Value;

use super::line::{self, CountedRole, UsageLine};
use super::series::cost_of;
use super::{Ledger, Prices, UsageError};
use crate::display;
use crate::mend::mend;
use crate::transcript::{Part, TranscriptReader};

/// Characters of a message.
const MOST_CHARS: usize = 2000;

/// Answers `sessions.usage.logs`: the last messages of the session's branch. None of a session without a transcript.
pub async fn logs(
    ledger: Ledger<'_>,
    params: &SessionsUsageLogsParams,
) -> Result<SessionsUsageLogsResult, UsageError> {
    let limit =
        params.limit.filter(|limit| *limit >= 1.0).map_or(SessionsUsageLogsResult::DEFAULT_LIMIT, whole);
    let limit = limit.min(SessionsUsageLogsResult::MAX_LIMIT);
    let read = move |path: &Path, prices: &Prices| read(path, limit, prices);
    let found = ledger.read_one(params.key.as_deref(), "logs", read).await?;
    Ok(SessionsUsageLogsResult { logs: found.map(|(_, logs)| logs).unwrap_or_default() })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1, and saturates")]
fn whole(limit: f64) -> usize {
    limit as usize
}

fn read(path: &Path, limit: usize, prices: &Prices) -> io::Result<Vec<UsageLog>> {
    let mut logs = Vec::new();
    TranscriptReader::of_file(path).visit(Part::Branch, &mut |kind, _, line| {
        if kind.is_message() {
            logs.extend(log(line, prices));
        }
        if logs.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    logs.reverse();
    Ok(logs)
}

/// Log line of one message; `None` when there is nothing to show.
fn log(bytes: &[u8], prices: &Prices) -> Option<UsageLog> {
    let UsageLine::Message(counted) = line::read(bytes) else { return None };
    let value: Value = serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&mend(bytes))).ok()?;
    let message = value.get("message")?;
    let said = display::message_text(message);
    let (role, content, tokens, cost) = match &counted.said {
        // Without what was added for the model, as everywhere else (KB-17).
        CountedRole::User => (UsageLogRole::User, display::strip_user_text(&said), None, None),
        CountedRole::Assistant(answer) => {
            let calls = display::tool_names(message).into_iter().map(|name| format!("[Tool: {name}]"));
            let parts: Vec<String> =
                Some(said).filter(|said| !said.trim().is_empty()).into_iter().chain(calls).collect();
            let tokens = answer.tokens.filter(|_| answer.is_of_a_model()).map(|tokens| tokens.total);
            let cost = tokens.and_then(|_| cost_of(answer, prices));
            (UsageLogRole::Assistant, parts.join("\n"), tokens, cost)
        }
        CountedRole::Summary(_) => return None,
        CountedRole::ToolResult { .. } => {
            (UsageLogRole::ToolResult, format!("[Tool Result]\n{said}"), None, None)
        }
    };
    let content = display::cut(content.trim(), MOST_CHARS, "…");
    let timestamp = counted.written_at.or(counted.said_at).unwrap_or_default();
    (!content.is_empty()).then_some(UsageLog { timestamp, role, content, tokens, cost })
}
