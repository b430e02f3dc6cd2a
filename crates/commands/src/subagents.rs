//! `/subagents`: the agents that a session has started (spec `messages.md` §5).

mod told;

use std::time::Duration;

use openclaw_journal::api::{DispatchError, RunOutcome, Waited};
use openclaw_journal::child_run::{ChildRun, provenance};
use openclaw_journal::request::RunRequest;
use openclaw_journal::rights::Rights;
use openclaw_journal::source::RequestSource;
use openclaw_protocol::RunId;
use openclaw_protocol::message::Message;

use super::command::{Category, ChatCommand, Does, Takes};
use super::{Answering, CommandContext, CommandError};

pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new("subagents", Category::Management, Does::Answers(run), "List and steer sub-agents.")
        .taking(Takes::Words, "list|stop <id>|log <id>|info <id>|send <id> <message>|help")
        .keeping_lines();

const HELP: &str = "🧭 Subagents\nUsage:\n- /subagents list\n- /subagents stop <id|#|all>\n- /subagents log <id|#> [limit] [tools]\n\
                    - /subagents info <id|#>\n- /subagents send <id|#> <message>\n\n\
                    Ids: the number in the list (#), the beginning of a run id, a session key, or \"last\".";
/// Entries that a log shows, and at most.
const SHOWN: usize = 20;
const MOST_SHOWN: usize = 200;
/// Time for which the answer to a message is awaited, if nothing else of the session waits
/// meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// The global lane of sub-agents.
const LANE: &str = "subagent";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let runs = context.services.host.subagents_of(context.key);
        let arguments = arguments.trim();
        let (action, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let rest = rest.trim();
        match action.to_lowercase().as_str() {
            "" | "list" => Ok(list(context, &runs)),
            "stop" => stop(context, &runs, rest).await,
            "info" => match named(&runs, rest, "info", "") {
                Ok(run) => info(context, run).await,
                Err(told) => Ok(told),
            },
            "log" => log(context, &runs, rest).await,
            "send" => send(context, &runs, rest).await,
            _ => Ok(HELP.to_owned()),
        }
    })
}

fn list(context: &CommandContext<'_>, runs: &[ChildRun]) -> String {
    let now = context.services.clock.now_ms();
    let rows: Vec<(&ChildRun, &'static str)> = runs.iter().map(|run| (run, state(context, run))).collect();
    told::list(&rows, now)
}

/// State of a child, in a word.
fn state(context: &CommandContext<'_>, run: &ChildRun) -> &'static str {
    run.state(context.services.registry.is_running(&run.id()))
}

/// Returns the child that an id means, which is the first word; the error is the answer.
fn named<'a>(runs: &'a [ChildRun], words: &str, action: &str, more: &str) -> Result<&'a ChildRun, String> {
    let id = words.split_whitespace().next();
    let id = id.ok_or_else(|| format!("🧭 Usage: /subagents {action} <id|#>{more}"))?;
    told::find(runs, id)
}

async fn stop(context: &CommandContext<'_>, runs: &[ChildRun], rest: &str) -> Result<String, CommandError> {
    let Some(agents) = context.services.host.subagents() else { return Ok(GOING_DOWN.to_owned()) };
    if rest.is_empty() {
        return Ok("🧭 Usage: /subagents stop <id|#|all>".to_owned());
    }
    if rest.eq_ignore_ascii_case("all") || rest == "*" {
        if runs.is_empty() {
            return Ok(told::NONE.to_owned());
        }
        let stopped = agents.stop_all(context.key).await;
        let plural = if stopped == 1 { "" } else { "s" };
        return Ok(format!("⚙️ Stopped {stopped} subagent{plural}."));
    }
    let run = match named(runs, rest, "stop", "") {
        Ok(run) => run,
        Err(told) => return Ok(told),
    };
    let label = told::label(run);
    if run.has_ended() {
        return Ok(format!("{label} is already finished."));
    }
    agents.stop(run).await;
    Ok(format!("⚙️ Stop requested for {label}."))
}

const GOING_DOWN: &str = "⚠️ The gateway is shutting down.";

async fn info(context: &CommandContext<'_>, run: &ChildRun) -> Result<String, CommandError> {
    let entry = context.services.store.get(&run.child_session_key).await.ok().flatten().map(|row| row.entry);
    let now = context.services.clock.now_ms();
    Ok(told::info(run, state(context, run), entry.as_deref(), now))
}

async fn log(context: &CommandContext<'_>, runs: &[ChildRun], rest: &str) -> Result<String, CommandError> {
    let run = match named(runs, rest, "log", " [limit] [tools]") {
        Ok(run) => run,
        Err(told) => return Ok(told),
    };
    let options: Vec<&str> = rest.split_whitespace().skip(1).collect();
    let limit = options.iter().find_map(|option| option.parse::<usize>().ok()).unwrap_or(SHOWN);
    let with_tools = options.iter().any(|option| option.eq_ignore_ascii_case("tools"));
    let key = &run.child_session_key;
    let messages = context.services.host.messages_of(key, MOST_SHOWN).await;
    let shown = |message: &&Message| with_tools || !matches!(message, Message::ToolResult(_));
    let lines: Vec<String> =
        messages.iter().filter(shown).filter_map(|message| told::line(message, with_tools)).collect();
    let from = lines.len().saturating_sub(limit.clamp(1, MOST_SHOWN));
    let lines = lines.get(from..).unwrap_or_default();
    let header = format!("📜 Subagent log: {}", told::label(run));
    Ok(if lines.is_empty() {
        format!("{header}\n(no messages)")
    } else {
        format!("{header}\n{}", lines.join("\n"))
    })
}

async fn send(context: &CommandContext<'_>, runs: &[ChildRun], rest: &str) -> Result<String, CommandError> {
    let run = match named(runs, rest, "send", " <message>") {
        Ok(run) => run,
        Err(told) => return Ok(told),
    };
    let message = rest.split_once(char::is_whitespace).map(|(_, message)| message.trim());
    let Some(message) = message.filter(|message| !message.is_empty()) else {
        return Ok("🧭 Usage: /subagents send <id|#> <message>".to_owned());
    };
    let Some(agents) = context.services.host.subagents() else { return Ok(GOING_DOWN.to_owned()) };
    let request = RunRequest {
        source: RequestSource::SubagentMessage(provenance(context.key)),
        agent_id: Some(context.services.store.rules().agent_of(&run.child_session_key)),
        text: message.to_owned(),
        lane: Some(LANE.to_owned()),
        rights: context.row.payload.rights.as_ref().map(Rights::caused),
        ..RunRequest::default()
    };
    // The same where a crash has it sent once more.
    let run_id = RunId::new(format!("{}:send", context.row.run_id));
    let short = told::short(run_id.as_str());
    match agents.send(run_id.clone(), &run.child_session_key, request).await {
        Ok(()) | Err(DispatchError::KeyReused(_)) => {}
        Err(error) => return Ok(format!("⚠️ Subagent error: {error}")),
    }
    let overtaken = async {
        match context.overtaken {
            Some(overtaken) => overtaken.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let waited = tokio::select! { biased;
        () = context.stop.cancelled() => Waited::TimedOut,
        () = overtaken => Waited::TimedOut,
        waited = agents.wait(&run_id, PATIENCE) => waited,
    };
    Ok(match waited {
        Waited::TimedOut => format!("⏳ Subagent still running (run {short})."),
        Waited::Ended(record) => match &record.outcome {
            RunOutcome::Ok { result } => match result.last_text() {
                Some(text) => text.to_owned(),
                None => format!("✅ Sent to {} (run {short}).", told::label(run)),
            },
            RunOutcome::Error { message, .. } => format!("⚠️ Subagent error: {message} (run {short})."),
            RunOutcome::Aborted { reason, .. } => {
                format!("⚠️ Subagent error: stopped ({reason}) (run {short}).")
            }
        },
    })
}
