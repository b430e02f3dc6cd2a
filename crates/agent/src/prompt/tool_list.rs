//! The tool list of the prompt: order and one-line summaries (spec `agent-runtime.md` §3.2).

use openclaw_models::ToolSpec;

use openclaw_protocol::text_length::utf16_len;

/// Tools with a fixed place, in order, with our one-line summary. The others follow alphabetically.
const CORE: &[(&str, &str)] = &[
    ("read", "Read a file"),
    ("write", "Create or replace a file"),
    ("edit", "Replace an exact piece of text in a file"),
    ("apply_patch", "Change several files with one patch"),
    ("grep", "Search file contents"),
    ("find", "Find files by name pattern"),
    ("ls", "List a directory"),
    ("exec", "Run a shell command (pty for programs that need a terminal)"),
    ("process", "Watch, feed and stop commands running in the background"),
    ("web_search", "Search the web"),
    ("web_fetch", "Fetch a page and extract its readable text"),
    ("browser", "Drive a web browser"),
    ("canvas", "Show, evaluate and capture canvases on nodes"),
    ("nodes", "List, describe and use paired nodes: notifications, camera, screen"),
    (
        "cron",
        "Schedule jobs and reminders (write reminder text so that it reads as a reminder when it fires, with the context it needs)",
    ),
    ("message", "Send messages and channel actions"),
    ("gateway", "Read and change the gateway's configuration, restart or update it"),
    ("agents_list", "List the agents that may be given work"),
    ("sessions_list", "List sessions, filtered, with their last messages"),
    ("sessions_history", "Read another session's history"),
    ("sessions_send", "Send a message to another session"),
    ("session_status", "Status card: usage, time, model"),
    ("image", "Look at an image with the image model"),
];

/// Summaries of tools without a fixed place.
const EXTRA: &[(&str, &str)] = &[
    ("memory_get", "Read lines of MEMORY.md or a memory/*.md file"),
    ("memory_search", "Search MEMORY.md and memory/*.md"),
    ("sessions_spawn", "Start a sub-agent"),
    ("tts", "Turn text into speech"),
];

/// The lines `- name: summary`, in prompt order.
pub(super) fn lines(tools: &[ToolSpec]) -> Vec<String> {
    let mut sorted: Vec<(usize, &ToolSpec)> = tools.iter().map(|tool| (place(&tool.name), tool)).collect();
    sorted.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.name.cmp(&y.name)));
    sorted.into_iter().map(|(_, tool)| line(tool)).collect()
}

/// Size of the list in UTF-16 units, line breaks included.
pub(super) fn chars(tools: &[ToolSpec]) -> usize {
    let lines = lines(tools);
    lines.iter().map(|line| utf16_len(line)).sum::<usize>() + lines.len().saturating_sub(1)
}

fn place(name: &str) -> usize {
    CORE.iter().position(|(core, _)| *core == name).unwrap_or(CORE.len())
}

fn line(tool: &ToolSpec) -> String {
    let known = CORE.iter().chain(EXTRA).find(|(name, _)| *name == tool.name).map(|(_, summary)| *summary);
    let summary = known.or_else(|| tool.description.lines().map(str::trim).find(|line| !line.is_empty()));
    match summary {
        Some(summary) => format!("- {}: {summary}", tool.name),
        None => format!("- {}", tool.name),
    }
}
