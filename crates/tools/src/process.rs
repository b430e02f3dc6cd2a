//! `process`: watches, feeds and ends commands that `exec` left in the background (spec `tools.md` §4).

mod keys;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use openclaw_agent::tool::{Reach, ToolFuture};
use openclaw_agent::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_config::settings::ExecSecurity;
use openclaw_models::ToolSchema;
use openclaw_protocol::printable::one_line;
use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::command::session::{CommandEnding, CommandSession, signal_name};
use crate::exec::settings::ExecSettings;
use crate::row::ToolRow;
use crate::setup::Setup;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(Process(Arc::clone(setup))));

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:runtime"],
    description: "Look after commands that exec left in the background. Actions: list, poll (what is new), log (all of it, by \
                  lines), write, send-keys, submit, paste, kill, clear, remove.",
    summary: "Watch, feed and stop commands running in the background",
    prompt_position: 9,
    emoji: "🧰",
    label_arguments: &["sessionId"],
    reach: Reach::Sandboxed,
    effect: Effect::ActsExcept(&["list", "poll", "log"]),
    needs: Some("exec"),
    ..ToolFacts::named("process")
};

/// Characters of a command that name it in a list.
const NAME: usize = 80;
/// Marks around pasted text, so that a program does not take it for typed lines (bracketed paste).
const PASTE: (&str, &str) = ("\u{1b}[200~", "\u{1b}[201~");

struct Process(Arc<Setup>);

impl Tool for Process {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
            "type": "object",
            "properties": {
                "action": {"description": "What to do", "type": "string"},
                "sessionId": {"description": "Which command; all actions but list need it", "type": "string"},
                "data": {"description": "write: what goes to its standard input", "type": "string"},
                "keys": {"description": "send-keys: keys, such as enter, up, C-c, M-x", "type": "array", "items": {"type": "string"}},
                "hex": {"description": "send-keys: bytes in hex", "type": "array", "items": {"type": "string"}},
                "literal": {"description": "send-keys: text as it stands", "type": "string"},
                "text": {"description": "paste: the text", "type": "string"},
                "bracketed": {"description": "paste: mark it as pasted (default: yes)", "type": "boolean"},
                "eof": {"description": "write: end its standard input afterwards", "type": "boolean"},
                "offset": {"description": "log: lines to leave out at the start", "type": "number"},
                "limit": {"description": "log: how many lines; without offset the last ones", "type": "number"},
            },
            "required": ["action"],
        })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, _context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move { Ok::<_, ToolError>(act(&self.0.exec, &Args(args)).await) })
    }
}

async fn act(settings: &ExecSettings, args: &Args) -> ToolOutput {
    let action = args.word("action").unwrap_or_default();
    if action == "list" {
        return list(settings);
    }
    if !["poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove"].contains(&action)
    {
        return failed(format!("Unknown action {action}"));
    }
    let Some(id) = args.word("sessionId") else {
        return failed("sessionId is required for this action.");
    };
    let Some(session) = settings.scopes().find_map(|scope| settings.sessions.find(scope, id)) else {
        let missing = match action {
            "clear" => format!("No finished session found for {id}"),
            "poll" | "log" | "remove" => format!("No session found for {id}"),
            _ => format!("No active session found for {id}"),
        };
        return failed(match settings.sessions.is_lost(&settings.scope, id) {
            true => format!("{missing}: it ended when the gateway restarted, and its output is gone."),
            false => missing,
        });
    };
    if !session.is_in_background() {
        return failed(format!("Session {id} is not backgrounded."));
    }
    match action {
        "poll" => poll(&session),
        "log" => log(&session, args),
        "clear" if session.end().is_none() => failed(format!("No finished session found for {id}")),
        "clear" => {
            settings.sessions.forget(&session);
            said(&session, "completed", format!("Cleared session {id}."))
        }
        "remove" => {
            if session.end().is_none() {
                session.kill();
                session.ended().await;
            }
            settings.sessions.forget(&session);
            said(&session, status(&session), format!("Removed session {id}."))
        }
        _ if session.end().is_some() => failed(format!("No active session found for {id}")),
        "write" | "send-keys" | "submit" | "paste" if !may_feed(settings, &session) => failed(format!(
            "Nothing was written to session {id}: whoever asks may not run commands as it runs. It can be polled and killed."
        )),
        "kill" => {
            session.kill();
            session.ended().await;
            said(&session, "failed", format!("Killed session {id}."))
        }
        "write" => write(&session, args).await,
        "send-keys" => send_keys(&session, args).await,
        "submit" => feed(&session, b"\r", format!("Submitted session {id} (sent CR).")).await,
        _ => paste(&session, args).await,
    }
}

/// True if a run may write to a command: its input is executed with the rights of the command.
fn may_feed(settings: &ExecSettings, session: &CommandSession) -> bool {
    let may_elevate = settings.elevated.refusal.is_none();
    let is_denied = settings.security == Some(ExecSecurity::Deny) && !may_elevate;
    !is_denied && (may_elevate || !session.is_elevated)
}

/// Returns a result that reports a failure to the model, which goes on.
fn failed(text: impl Into<String>) -> ToolOutput {
    ToolOutput { details: Some(json!({"status": "failed"})), ..ToolOutput::text(text) }
}

fn said(session: &CommandSession, status: &str, text: impl Into<String>) -> ToolOutput {
    let details = json!({"status": status, "sessionId": session.id, "name": name(session)});
    ToolOutput { details: Some(details), ..ToolOutput::text(text) }
}

fn name(session: &CommandSession) -> String {
    one_line(session.command.trim()).chars().take(NAME).collect()
}

fn status(session: &CommandSession) -> &'static str {
    match session.end().map(|end| end.ending) {
        None => "running",
        Some(CommandEnding::Exited(0)) => "completed",
        Some(CommandEnding::Killed) => "killed",
        Some(CommandEnding::Exited(_) | CommandEnding::Signalled(_) | CommandEnding::TimedOut) => "failed",
    }
}

/// The code or the signal that it ended with.
fn exit(session: &CommandSession) -> Map<String, Value> {
    let entry = match session.end().map(|end| end.ending) {
        None => return Map::new(),
        Some(CommandEnding::Exited(code)) => ("exitCode".to_owned(), json!(code)),
        Some(CommandEnding::Signalled(signal)) => ("exitSignal".to_owned(), json!(signal_name(signal))),
        Some(CommandEnding::TimedOut | CommandEnding::Killed) => ("exitSignal".to_owned(), json!("SIGKILL")),
    };
    Map::from_iter([entry])
}

fn list(settings: &ExecSettings) -> ToolOutput {
    let sessions: Vec<_> = settings.scopes().flat_map(|scope| settings.sessions.list(scope)).collect();
    let lines: Vec<String> = sessions
        .iter()
        .map(|session| {
            let runtime = duration(session.runtime());
            format!("{} {:<9} {runtime} :: {}", session.id, status(session), name(session))
        })
        .collect();
    let text = if lines.is_empty() { "No running or recent sessions.".to_owned() } else { lines.join("\n") };
    let rows: Vec<Value> = sessions.iter().map(|session| row(session)).collect();
    ToolOutput { details: Some(json!({"status": "completed", "sessions": rows})), ..ToolOutput::text(text) }
}

fn row(session: &CommandSession) -> Value {
    let mut row = json!({
        "sessionId": session.id,
        "status": status(session),
        "pid": session.pid,
        "startedAt": session.started_at,
        "endedAt": session.end().map(|end| end.at),
        "runtimeMs": ms(session.runtime()),
        "cwd": session.cwd,
        "command": session.command,
        "name": name(session),
        "tail": session.tail(),
        "truncated": session.size().1,
    });
    if let Some(row) = row.as_object_mut() {
        row.retain(|_, value| !value.is_null());
        row.extend(exit(session));
    }
    row
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `850ms`, `12s`, `3m5s`, `2h10m`
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}

fn poll(session: &CommandSession) -> ToolOutput {
    let news = session.poll();
    let news = news.trim_end();
    let news = if news.is_empty() { "(no new output)" } else { news };
    let state = match session.end().map(|end| end.ending) {
        None => "Process still running.".to_owned(),
        Some(CommandEnding::Exited(code)) => format!("Process exited with code {code}."),
        Some(CommandEnding::Signalled(signal)) => {
            format!("Process exited with signal {}.", signal_name(signal))
        }
        Some(CommandEnding::Killed) => "Process exited with signal SIGKILL.".to_owned(),
        Some(CommandEnding::TimedOut) => {
            "Process exited with signal SIGKILL (it ran out of time).".to_owned()
        }
    };
    let mut details = json!({
        "status": status(session), "sessionId": session.id, "aggregated": session.printed(), "name": name(session),
    });
    if let Some(details) = details.as_object_mut() {
        details.extend(exit(session));
    }
    ToolOutput { details: Some(details), ..ToolOutput::text(format!("{news}\n\n{state}")) }
}

fn log(session: &CommandSession, args: &Args) -> ToolOutput {
    let printed = session.printed();
    let (slice, total) =
        lines(&printed, args.number("offset").is_some(), args.count("offset"), args.count("limit"));
    let offset = args.count("offset").unwrap_or(0);
    let text = if total > 0 && offset >= total && args.number("offset").is_some() {
        format!("(offset {offset} is past the end: the log has {total} lines, 0 to {})", total - 1)
    } else if slice.is_empty() {
        "(no output yet)".to_owned()
    } else {
        slice
    };
    let (chars, truncated) = session.size();
    let mut details = json!({
        "status": status(session), "sessionId": session.id, "total": chars, "totalLines": total, "totalChars": chars,
        "truncated": truncated, "name": name(session),
    });
    if let Some(details) = details.as_object_mut() {
        details.extend(exit(session));
    }
    ToolOutput { details: Some(details), ..ToolOutput::text(text) }
}

/// Selects lines of a text; returns them and the number of all. `offset` counts from 0; without
/// one, `limit` means the last lines.
fn lines(text: &str, has_offset: bool, offset: Option<usize>, limit: Option<usize>) -> (String, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let total = lines.len();
    let most = limit.unwrap_or(total);
    let start = if has_offset { offset.unwrap_or(0).min(total) } else { total.saturating_sub(most) };
    let slice: Vec<&str> = lines.into_iter().skip(start).take(most).collect();
    (slice.join("\n"), total)
}

async fn write(session: &CommandSession, args: &Args) -> ToolOutput {
    let data = args.text("data").unwrap_or_default();
    let eof = args.flag("eof");
    let id = &session.id;
    if session.write(data.as_bytes()).await.is_err() || (eof && session.close_input().await.is_err()) {
        return failed(format!("Session {id} stdin is not writable."));
    }
    let closed = if eof { " (stdin closed)" } else { "" };
    said(session, "running", format!("Wrote {} bytes to session {id}.{closed}", data.len()))
}

async fn send_keys(session: &CommandSession, args: &Args) -> ToolOutput {
    let named = args.texts("keys");
    let unknown: Vec<&str> = named.iter().map(String::as_str).filter(|key| !keys::is_known(key)).collect();
    if !unknown.is_empty() {
        return failed(format!("Unknown keys: {}. Nothing was sent. {}", unknown.join(", "), keys::KNOWN));
    }
    let keys = keys::encoded(&named, &args.texts("hex"), args.text("literal").unwrap_or_default());
    let warnings = match keys.warnings.is_empty() {
        true => String::new(),
        false => format!("\nWarnings:\n- {}", keys.warnings.join("\n- ")),
    };
    if keys.bytes.is_empty() {
        return failed(format!("No key data provided.{warnings}"));
    }
    let text = format!("Sent {} bytes to session {}.{warnings}", keys.bytes.len(), session.id);
    feed(session, &keys.bytes, text).await
}

async fn paste(session: &CommandSession, args: &Args) -> ToolOutput {
    let text = args.text("text").unwrap_or_default();
    if text.is_empty() {
        return failed("No paste text provided.");
    }
    let is_bracketed = args.0.get("bracketed").and_then(Value::as_bool).unwrap_or(true);
    // An end mark inside of the text could let the rest be typed as a command.
    let plain = text.replace(PASTE.1, "");
    let sent = if is_bracketed { format!("{}{plain}{}", PASTE.0, PASTE.1) } else { text.to_owned() };
    let told = format!("Pasted {} chars to session {}.", text.chars().count(), session.id);
    feed(session, sent.as_bytes(), told).await
}

async fn feed(session: &CommandSession, bytes: &[u8], told: String) -> ToolOutput {
    match session.write(bytes).await {
        Ok(()) => said(session, "running", told),
        Err(_) => failed(format!("Session {} stdin is not writable.", session.id)),
    }
}

#[cfg(test)]
mod tests;
