//! `/context`: the parts of a session's context (spec `agent-runtime.md` §13).

use std::cmp::Reverse;

use openclaw_agent::prompt::{FileReport, SystemPromptReport};
use openclaw_journal::request::WEBCHAT;
use openclaw_protocol::printable::grouped;
use serde::Serialize;

use super::command::{Category, ChatCommand, Does, Takes};
use super::{Answering, CommandContext, CommandError};

pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new("context", Category::Status, Does::Answers(run), "Show what the model is sent.")
        .taking(Takes::Words, "[list|detail|json|help]");

/// Skills named in a row.
const SKILL_NAMES: usize = 20;
/// Tools named in a row, and rows of each list of the detailed answer.
const MOST: usize = 30;

const HELP: &str = "🧠 /context\n\nTells what is sent to the model besides the conversation, and how large it is.\n\nTry:\n\
                    - /context list (a short breakdown)\n\
                    - /context detail (each file, tool and skill, with the system prompt's size)\n\
                    - /context json (the same for programs)\n\n\
                    Inline shortcut: a command inside of a message, such as \"hey /status\", is done at once, and the rest goes to \
                    the agent.";
const SHORTCUT: &str = "Inline shortcut: a command inside of a message, such as \"hey /status\", is done at once for senders who \
                        may give commands; the model sees the rest.";
const UNKNOWN: &str =
    "Unknown /context mode.\nUse: /context, /context list, /context detail, or /context json";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let mode = arguments.split_whitespace().next().unwrap_or_default().to_lowercase();
        Ok(match mode.as_str() {
            "" | "help" => HELP.to_owned(),
            "list" | "show" => text(&report(context).await?, &tokens(context), Breakdown::Short),
            "detail" | "deep" => text(&report(context).await?, &tokens(context), Breakdown::Detailed),
            "json" => {
                let answer = ContextReport { report: report(context).await?, session: tokens(context) };
                let json = serde_json::to_string_pretty(&answer)
                    .map_err(|error| CommandError::Prompt(error.to_string()))?;
                // Programs read what a client is told; in a chat the JSON would be taken for Markdown.
                if context.channel() == WEBCHAT { json } else { format!("```json\n{json}\n```") }
            }
            _ => UNKNOWN.to_owned(),
        })
    })
}

/// Returns what the last run was told; if there was no run, what the next one would be told.
async fn report(context: &CommandContext<'_>) -> Result<SystemPromptReport, CommandError> {
    let CommandContext { services, entry, .. } = context;
    let stored = entry.system_prompt_report.as_ref().and_then(|report| report.read().ok());
    match stored {
        Some(stored) => Ok(stored),
        None => {
            let estimate = services.host.estimate(context).await;
            estimate.map_err(CommandError::Prompt)
        }
    }
}

fn tokens(context: &CommandContext<'_>) -> LastTokens {
    let entry = context.entry;
    LastTokens {
        total_tokens: entry.total_tokens,
        input_tokens: entry.input_tokens,
        output_tokens: entry.output_tokens,
        context_tokens: entry.context_tokens,
    }
}

/// The answer for programs.
#[derive(Debug, Serialize)]
struct ContextReport {
    report: SystemPromptReport,
    session: LastTokens,
}

/// Tokens that the session used last; `null` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct LastTokens {
    total_tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    context_tokens: Option<u64>,
}

/// Level of detail of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breakdown {
    Short,
    Detailed,
}

/// Writes the answer for people, in the layout of OpenClaw's.
fn text(report: &SystemPromptReport, tokens: &LastTokens, breakdown: Breakdown) -> String {
    let is_detailed = breakdown == Breakdown::Detailed;
    let title = if is_detailed { "🧠 Context breakdown (detailed)" } else { "🧠 Context breakdown" };
    let mut lines = vec![title.to_owned()];
    lines.extend(frame_lines(report));
    lines.extend([String::new(), "Injected workspace files:".to_owned()]);
    lines.extend(report.injected_workspace_files.iter().map(file_line));
    lines.push(String::new());
    lines.extend(skill_lines(report));
    if is_detailed {
        lines.extend(largest_skills(report));
    }
    lines.extend(tool_lines(report));
    if is_detailed {
        lines.extend(largest_tools(report));
    }
    lines.extend([String::new(), totals(tokens), String::new(), SHORTCUT.to_owned()]);
    if is_detailed {
        lines.retain(|line| !line.is_empty());
    }
    lines.join("\n")
}

fn frame_lines(report: &SystemPromptReport) -> [String; 4] {
    let (frame, size) = (&report.frame, &report.system_prompt);
    let max =
        frame.bootstrap_max_chars.map_or("(unknown)".to_owned(), |max| format!("{} chars", grouped(max)));
    [
        format!("Workspace: {}", frame.workspace_dir.as_deref().unwrap_or("unknown")),
        format!("Bootstrap max/file: {max}"),
        format!("Sandbox: mode={} sandboxed={}", frame.sandbox.mode, frame.sandbox.sandboxed),
        format!(
            "System prompt ({}): {} (Project Context {})",
            report.source.as_str(),
            chars(size.chars),
            chars(size.project_context_chars)
        ),
    ]
}

fn file_line(file: &FileReport) -> String {
    if file.missing {
        return format!("- {}: MISSING | raw 0 | injected 0", file.name);
    }
    let state = if file.truncated { "TRUNCATED" } else { "OK" };
    format!(
        "- {}: {state} | raw {} | injected {}",
        file.name,
        chars(file.raw_chars),
        chars(file.injected_chars)
    )
}

fn skill_lines(report: &SystemPromptReport) -> [String; 2] {
    let skills = &report.skills;
    let names = skills.entries.iter().map(|skill| skill.name.as_str());
    [
        format!(
            "Skills list (system prompt text): {} ({} skills)",
            chars(skills.prompt_chars),
            skills.entries.len()
        ),
        format!("Skills: {}", listed(names, SKILL_NAMES)),
    ]
}

fn tool_lines(report: &SystemPromptReport) -> [String; 3] {
    let tools = &report.tools;
    let names = tools.entries.iter().map(|tool| &*tool.name);
    [
        format!("Tool list (system prompt text): {}", chars(tools.list_chars)),
        format!(
            "Tool schemas (JSON): {} (counts toward context; not shown as text)",
            chars(tools.schema_chars)
        ),
        format!("Tools: {}", listed(names, MOST)),
    ]
}

fn largest_skills(report: &SystemPromptReport) -> Vec<String> {
    let sizes = report.skills.entries.iter().map(|skill| (skill.name.as_str(), skill.block_chars));
    largest("Top skills (prompt entry size):", sizes, "skills", chars)
}

fn largest_tools(report: &SystemPromptReport) -> Vec<String> {
    let tools = &report.tools.entries;
    let schemas = tools.iter().map(|tool| (&*tool.name, tool.schema_chars));
    let summaries = tools.iter().map(|tool| (&*tool.name, tool.summary_chars));
    let params = tools.iter().filter_map(|tool| Some((&*tool.name, tool.properties_count?)));
    [
        largest("Top tools (schema size):", schemas, "tools", chars),
        largest("Top tools (summary text size):", summaries, "tools", chars),
        largest("Tools (param count):", params, "tools", |params| format!("{params} params")),
    ]
    .concat()
}

/// Lists the largest things first; empty if there are none.
fn largest<'a>(
    heading: &str,
    sizes: impl Iterator<Item = (&'a str, usize)>,
    what: &str,
    shown: impl Fn(usize) -> String,
) -> Vec<String> {
    let mut sizes: Vec<(&str, usize)> = sizes.collect();
    if sizes.is_empty() {
        return Vec::new();
    }
    sizes.sort_by_key(|(_, size)| Reverse(*size));
    let more = sizes.len().saturating_sub(MOST);
    let rows = sizes.iter().take(MOST).map(|(name, size)| format!("- {name}: {}", shown(*size)));
    let rest = (more > 0).then(|| format!("… (+{more} more {what})"));
    std::iter::once(heading.to_owned()).chain(rows).chain(rest).collect()
}

fn totals(tokens: &LastTokens) -> String {
    let total = tokens.total_tokens.map_or("unknown".to_owned(), |total| format!("{} total", grouped(total)));
    let window = tokens.context_tokens.map_or("?".to_owned(), |window| window.to_string());
    format!("Session tokens (cached): {total} / ctx={window}")
}

/// Lists the first names, and the number of the others.
fn listed<'a>(names: impl Iterator<Item = &'a str>, most: usize) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return "(none)".to_owned();
    }
    let shown = names.iter().take(most).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}, … (+{more} more)"),
    }
}

/// `7,804 chars (~1,951 tok)`
fn chars(chars: usize) -> String {
    format!("{} chars (~{} tok)", grouped(chars), grouped(chars.div_ceil(4)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn file(name: &str, raw: usize, injected: usize) -> Value {
        json!({"name": name, "path": format!("/w/{name}"), "missing": raw == 0, "rawChars": raw,
               "injectedChars": injected, "truncated": raw > 20_000})
    }

    fn told() -> SystemPromptReport {
        let tool = |name: &str, schema: usize, params: Option<usize>| json!({"name": name, "summaryChars": name.len(), "schemaChars": schema, "propertiesCount": params});
        let report = json!({
            "source": "run", "generatedAt": 1, "workspaceDir": "/w", "bootstrapMaxChars": 20000,
            "sandbox": {"mode": "off", "sandboxed": false},
            "systemPrompt": {"chars": 22853, "projectContextChars": 13365, "nonProjectContextChars": 9488},
            "injectedWorkspaceFiles": [file("AGENTS.md", 7804, 7804), file("TOOLS.md", 54210, 20962), file("HEARTBEAT.md", 0, 60)],
            "skills": {"promptChars": 2145, "entries": [{"name": "a", "blockChars": 5}, {"name": "b", "blockChars": 412}]},
            "tools": {"listChars": 2300, "schemaChars": 14674, "entries": [tool("read", 10, Some(3)), tool("edit", 9812, None), tool("write", 20, Some(84))]},
        });
        serde_json::from_value(report).unwrap()
    }

    fn tokens(total: Option<u64>, window: Option<u64>) -> LastTokens {
        LastTokens { total_tokens: total, input_tokens: None, output_tokens: None, context_tokens: window }
    }

    /// The layout of spec `agent-runtime.md` §13.
    #[test]
    fn a_breakdown_is_laid_out_as_people_know_it() {
        let expect = format!(
            "🧠 Context breakdown\nWorkspace: /w\nBootstrap max/file: 20,000 chars\nSandbox: mode=off sandboxed=false\n\
             System prompt (run): 22,853 chars (~5,714 tok) (Project Context 13,365 chars (~3,342 tok))\n\n\
             Injected workspace files:\n\
             - AGENTS.md: OK | raw 7,804 chars (~1,951 tok) | injected 7,804 chars (~1,951 tok)\n\
             - TOOLS.md: TRUNCATED | raw 54,210 chars (~13,553 tok) | injected 20,962 chars (~5,241 tok)\n\
             - HEARTBEAT.md: MISSING | raw 0 | injected 0\n\n\
             Skills list (system prompt text): 2,145 chars (~537 tok) (2 skills)\nSkills: a, b\n\
             Tool list (system prompt text): 2,300 chars (~575 tok)\n\
             Tool schemas (JSON): 14,674 chars (~3,669 tok) (counts toward context; not shown as text)\n\
             Tools: read, edit, write\n\nSession tokens (cached): 118 total / ctx=200000\n\n{SHORTCUT}"
        );
        assert_eq!(text(&told(), &tokens(Some(118), Some(200_000)), Breakdown::Short), expect);
    }

    #[test]
    fn the_detailed_breakdown_names_the_largest_first_and_has_no_blank_lines() {
        let all = text(&told(), &tokens(None, None), Breakdown::Detailed);
        assert!(
            all.starts_with("🧠 Context breakdown (detailed)\nWorkspace: /w\n") && !all.contains("\n\n"),
            "{all}"
        );
        let lists = "Skills: a, b\nTop skills (prompt entry size):\n- b: 412 chars (~103 tok)\n- a: 5 chars (~2 tok)\nTool list";
        assert!(all.contains(lists), "{all}");
        let lists = "Tools: read, edit, write\nTop tools (schema size):\n- edit: 9,812 chars (~2,453 tok)\n- write: 20 chars \
                     (~5 tok)\n- read: 10 chars (~3 tok)\nTop tools (summary text size):\n- write: 5 chars (~2 tok)\n- read: 4 chars \
                     (~1 tok)\n- edit: 4 chars (~1 tok)\nTools (param count):\n- write: 84 params\n- read: 3 params\n\
                     Session tokens (cached): unknown / ctx=?\n";
        assert!(all.contains(lists), "{all}");
    }

    #[test]
    fn long_lists_say_how_many_more_there_are() {
        let names = |many: usize| (0..many).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(listed(names(0).iter().map(String::as_str), 20), "(none)");
        assert!(listed(names(20).iter().map(String::as_str), 20).ends_with(", 19"));
        assert!(listed(names(23).iter().map(String::as_str), 20).ends_with(", 19, … (+3 more)"));
        let many = names(32);
        let rows = largest("Top:", many.iter().map(|name| (name.as_str(), 1)), "tools", grouped);
        assert_eq!((rows.len(), rows.last().map(String::as_str)), (32, Some("… (+2 more tools)")));
    }

    #[test]
    fn numbers_have_separators() {
        for (number, expect) in [(0_u64, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }
}
