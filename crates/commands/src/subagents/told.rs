//! Answers of `/subagents`. Pure.

use jiff::Timestamp;
use openclaw_delivery::status_card::ago;
use openclaw_journal::child_run::ChildRun;
use openclaw_protocol::message::{Block, Message, UserContent};
use openclaw_protocol::printable::excerpt;
use openclaw_sessions::SessionEntry;

use openclaw_runtime::durations::compact_duration;

pub(crate) const NONE: &str = "🧭 Subagents: none for this session.";
/// Characters of a label, and of an entry of a log.
const LABEL: usize = 48;
const ENTRY: usize = 500;
/// Characters of a run id that people read.
const ID: usize = 8;

/// Lists the children of a session with their states, the newest first.
pub(crate) fn list(runs: &[(&ChildRun, &str)], now: i64) -> String {
    if runs.is_empty() {
        return NONE.to_owned();
    }
    let active = runs.iter().filter(|(run, _)| !run.has_ended()).count();
    let head = format!("🧭 Subagents (current session)\nActive: {active} · Done: {}", runs.len() - active);
    let rows = (1..).zip(runs).map(|(number, (run, state))| {
        let since = ago(now - run.started_at.unwrap_or(run.created_at));
        let (label, id, key) = (label(run), short(&run.run_id), &run.child_session_key);
        format!("{number}) {state} · {label} · {since} · run {id} · {key}")
    });
    std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
}

/// The child that an id means: its number in the list, `last`, its session, or how its run id begins.
pub(crate) fn find<'a>(runs: &'a [ChildRun], id: &str) -> Result<&'a ChildRun, String> {
    let unknown = || format!("⚠️ Unknown subagent id: {id}");
    if id.eq_ignore_ascii_case("last") {
        return runs.first().ok_or_else(unknown);
    }
    if let Ok(number) = id.trim_start_matches('#').parse::<usize>()
        && number < 10_000
    {
        let at = number.checked_sub(1);
        let found = at.and_then(|at| runs.get(at));
        return found.ok_or_else(|| format!("⚠️ Invalid subagent index: {id}"));
    }
    if id.contains(':') {
        let found = runs.iter().find(|run| run.child_session_key.as_str() == id);
        return found.ok_or_else(|| format!("⚠️ Unknown subagent session: {id}"));
    }
    let mut found = runs.iter().filter(|run| run.run_id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(format!("⚠️ Ambiguous run id prefix: {id}")),
        (found, _) => found.ok_or_else(unknown),
    }
}

/// Text with all facts about one sub-agent.
pub(crate) fn info(run: &ChildRun, state: &str, entry: Option<&SessionEntry>, now: i64) -> String {
    let at = |ms: Option<i64>| {
        ms.map_or_else(|| "n/a".to_owned(), |ms| format!("{} ({})", time(ms), ago(now - ms)))
    };
    let runtime = run.started_at.map(|from| compact_duration(run.ended_at.unwrap_or(now) - from));
    let session_id = entry.and_then(|entry| entry.session_id.as_ref()).map(ToString::to_string);
    let transcript = entry.and_then(|entry| entry.session_file.as_deref()).map(str::to_owned);
    let outcome = run.outcome.as_ref().and_then(|outcome| outcome.error.clone());
    let told = run.announced.as_ref().map(|announced| {
        let why = announced.error.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{:?}{why}", announced.status).to_lowercase()
    });
    let cleanup = format!("{:?}", run.cleanup).to_lowercase();
    let lines = [
        ("Status", Some(state.to_owned())),
        ("Label", Some(label(run))),
        ("Task", Some(excerpt(&run.task, ENTRY).into_owned())),
        ("Run", Some(run.run_id.clone())),
        ("Session", Some(run.child_session_key.to_string())),
        ("SessionId", Some(session_id.unwrap_or_else(|| "n/a".to_owned()))),
        ("Transcript", Some(transcript.unwrap_or_else(|| "n/a".to_owned()))),
        ("Runtime", Some(runtime.unwrap_or_else(|| "n/a".to_owned()))),
        ("Created", Some(at(Some(run.created_at)))),
        ("Started", Some(at(run.started_at))),
        ("Ended", Some(at(run.ended_at))),
        ("Cleanup", Some(cleanup)),
        ("Archive", run.archive_at_ms.map(time)),
        ("Announce", told),
        ("Error", outcome),
    ];
    let lines = lines.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    std::iter::once("ℹ️ Subagent info".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// An entry of a log; nothing for one without words.
pub(crate) fn line(message: &Message, with_tools: bool) -> Option<String> {
    let (who, text) = match message {
        Message::User(said) => ("User", user_text(&said.content)),
        Message::Assistant(said) => {
            let calls = said.tool_calls().filter(|_| with_tools).map(|call| format!("[{}]", call.name));
            let words = Some(said.text()).filter(|text| !text.trim().is_empty());
            ("Assistant", words.into_iter().chain(calls).collect::<Vec<_>>().join(" "))
        }
        Message::ToolResult(result) => {
            ("Tool", format!("{}: {}", result.tool_name, blocks_text(&result.content)))
        }
    };
    let text = text.trim();
    (!text.is_empty()).then(|| format!("{who}: {}", excerpt(text, ENTRY)))
}

fn user_text(content: &UserContent) -> String {
    match content {
        UserContent::Text(text) => text.clone(),
        UserContent::Blocks(blocks) => blocks_text(blocks),
    }
}

fn blocks_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Thinking(_) | Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Name of a child for people, in one line.
pub(crate) fn label(run: &ChildRun) -> String {
    excerpt(&run.name().split_whitespace().collect::<Vec<_>>().join(" "), LABEL).into_owned()
}

/// Short form of a run id: its first characters.
pub(crate) fn short(run_id: &str) -> String {
    run_id.chars().take(ID).collect()
}

fn time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| "n/a".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(id: &str, more: &serde_json::Value) -> ChildRun {
        let mut run = json!({"runId": id, "childSessionKey": format!("agent:main:subagent:{id}"),
            "requesterSessionKey": "agent:main:main", "task": "dig  a\nhole", "createdAt": 1_000, "startedAt": 1_000});
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn the_list_is_as_people_know_it() {
        assert_eq!(list(&[], 0), "🧭 Subagents: none for this session.");
        let one = run("1234abcd-1", &json!({"label": "label"}));
        let two = run("5678abcd-2", &json!({"endedAt": 2_000, "outcome": {"status": "ok"}}));
        let rows = [(&one, one.state(true)), (&two, two.state(false))];
        assert_eq!(
            list(&rows, 121_000),
            "🧭 Subagents (current session)\nActive: 1 · Done: 1\n\
             1) running · label · 2m ago · run 1234abcd · agent:main:subagent:1234abcd-1\n\
             2) done · dig a hole · 2m ago · run 5678abcd · agent:main:subagent:5678abcd-2"
        );
    }

    #[test]
    fn children_have_several_names() {
        let runs = [run("ab-1", &json!({})), run("ab-2", &json!({})), run("c-3", &json!({}))];
        let rows = [
            ("1", Ok("ab-1")),
            ("#3", Ok("c-3")),
            ("last", Ok("ab-1")),
            ("ab-2", Ok("ab-2")),
            ("c", Ok("c-3")),
            ("agent:main:subagent:ab-2", Ok("ab-2")),
            ("0", Err("⚠️ Invalid subagent index: 0")),
            ("4", Err("⚠️ Invalid subagent index: 4")),
            ("ab", Err("⚠️ Ambiguous run id prefix: ab")),
            ("x", Err("⚠️ Unknown subagent id: x")),
            ("agent:main:subagent:x", Err("⚠️ Unknown subagent session: agent:main:subagent:x")),
        ];
        for (id, expect) in rows {
            let found = find(&runs, id);
            assert_eq!(found.as_ref().map(|run| run.run_id.as_str()).map_err(String::as_str), expect, "{id}");
        }
    }
}
