//! Commands of the offline guide: a handful of plain ones.

use serde_json::{Value, json};

/// Request of a person to the guide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GuideCommand {
    /// Explain yourself.
    Help,
    /// A heartbeat: there is never anything to report.
    Heartbeat,
    /// Calls a tool.
    Tool(GuideCall),
    /// A command that lacks a part; the text says how it goes.
    Incomplete(&'static str),
}

/// A tool call in the guide's own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GuideCall {
    Read { path: String },
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String },
    Run { command: String },
    List { path: String },
    Sessions,
    Memory { query: String },
}

/// Syntax of each command; shown by `help` and when a part is missing.
pub(super) const USAGES: &[(&str, &str)] = &[
    ("read", "read <file>"),
    ("write", "write <file>: <text>"),
    ("edit", "edit <file>: <old text> => <new text>"),
    ("run", "run <shell command>"),
    ("list", "list [folder]"),
    ("sessions", "sessions"),
    ("search memory", "search memory <words>"),
];

impl GuideCommand {
    /// Understands a message; everything unknown asks for help.
    pub(super) fn parse(message: &str) -> Self {
        if message.contains("HEARTBEAT_OK") {
            return Self::Heartbeat;
        }
        let text = without_envelope(message).trim();
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match (verb.to_lowercase().as_str(), rest) {
            ("read" | "cat" | "show", "") => incomplete("read"),
            ("read" | "cat" | "show", path) if is_one_path(path) => {
                tool(GuideCall::Read { path: unquote(path) })
            }
            ("write", rest) => write(rest),
            ("edit", rest) => edit(rest),
            ("run" | "exec", "") => incomplete("run"),
            ("run" | "exec", command) => tool(GuideCall::Run { command: unquote(command) }),
            ("list" | "ls", "") => tool(GuideCall::List { path: ".".to_owned() }),
            ("list" | "ls", path) if is_one_path(path) => tool(GuideCall::List { path: unquote(path) }),
            ("sessions", "") => tool(GuideCall::Sessions),
            ("search", rest) => search(rest),
            _ => Self::Help,
        }
    }
}

impl GuideCall {
    /// The tool and its arguments, given the names of the tools on offer; nothing when there is none for it.
    pub(super) fn to_call(&self, offered: &[&str]) -> Option<(&'static str, Value)> {
        let has = |name: &'static str| offered.contains(&name).then_some(name);
        match self {
            Self::Read { path } => Some((has("read")?, json!({"path": path}))),
            Self::Write { path, content } => Some((has("write")?, json!({"path": path, "content": content}))),
            Self::Edit { path, old, new } => {
                Some((has("edit")?, json!({"path": path, "oldText": old, "newText": new})))
            }
            Self::Run { command } => Some((has("exec")?, json!({"command": command}))),
            Self::List { path } => match has("ls") {
                Some(name) => Some((name, json!({"path": path}))),
                None => Some((has("exec")?, json!({"command": format!("ls -la -- {}", shell_quote(path))}))),
            },
            Self::Sessions => Some((has("sessions_list")?, json!({}))),
            Self::Memory { query } => Some((has("memory_search")?, json!({"query": query}))),
        }
    }

    /// Returns the tool that a command needs, for an error text.
    pub(super) fn tool_name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Edit { .. } => "edit",
            Self::Run { .. } | Self::List { .. } => "exec",
            Self::Sessions => "sessions_list",
            Self::Memory { .. } => "memory_search",
        }
    }
}

fn tool(request: GuideCall) -> GuideCommand {
    GuideCommand::Tool(request)
}

fn incomplete(command: &str) -> GuideCommand {
    let usage = USAGES.iter().find(|(name, _)| *name == command).map_or("help", |(_, usage)| usage);
    GuideCommand::Incomplete(usage)
}

/// Returns true if an argument is one path rather than a sentence: blanks need quotes.
fn is_one_path(text: &str) -> bool {
    !text.contains(char::is_whitespace) || unquote(text) != text
}

fn search(rest: &str) -> GuideCommand {
    let (first, query) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match (first.to_lowercase().as_str(), query.trim()) {
        ("" | "memory", "") => incomplete("search memory"),
        ("memory", query) => tool(GuideCall::Memory { query: unquote(query) }),
        _ => GuideCommand::Help,
    }
}

fn write(rest: &str) -> GuideCommand {
    match rest.split_once(':') {
        Some((path, content)) if !path.trim().is_empty() => {
            let content = content.strip_prefix(' ').unwrap_or(content);
            tool(GuideCall::Write { path: unquote(path.trim()), content: content.to_owned() })
        }
        Some(_) | None => incomplete("write"),
    }
}

fn edit(rest: &str) -> GuideCommand {
    let parts = rest.split_once(':').and_then(|(path, change)| Some((path, change.split_once("=>")?)));
    match parts {
        Some((path, (old, new))) if !path.trim().is_empty() && !old.trim().is_empty() => {
            tool(GuideCall::Edit {
                path: unquote(path.trim()),
                old: old.trim().to_owned(),
                new: new.trim().to_owned(),
            })
        }
        Some(_) | None => incomplete("edit"),
    }
}

/// Drops `[…]` envelopes (time, channel) before the message and `[message_id: …]` lines after it.
fn without_envelope(message: &str) -> &str {
    let mut text = message.trim();
    while let Some((_, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        text = rest.trim_start();
    }
    while let Some((head, last)) = text.rsplit_once('\n') {
        if !last.trim_start().starts_with("[message_id:") {
            break;
        }
        text = head.trim_end();
    }
    text
}

fn unquote(text: &str) -> String {
    let inner = ['"', '\'', '`'].iter().find_map(|q| text.strip_prefix(*q)?.strip_suffix(*q));
    inner.unwrap_or(text).to_owned()
}

fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood() {
        let text = |s: &str| s.to_owned();
        let rows = [
            ("read NOTES.md", tool(GuideCall::Read { path: text("NOTES.md") })),
            ("[Sat 2026-11-21 02:45 UTC] Read `a b.txt`", tool(GuideCall::Read { path: text("a b.txt") })),
            ("[a] [b] cat x\n[message_id: 7]", tool(GuideCall::Read { path: text("x") })),
            (
                "write a.txt: one\ntwo: three\n",
                tool(GuideCall::Write { path: text("a.txt"), content: text("one\ntwo: three") }),
            ),
            (
                "edit a.txt: old => new",
                tool(GuideCall::Edit { path: text("a.txt"), old: text("old"), new: text("new") }),
            ),
            (
                "edit a.txt: old =>",
                tool(GuideCall::Edit { path: text("a.txt"), old: text("old"), new: text("") }),
            ),
            ("run ls -la | head", tool(GuideCall::Run { command: text("ls -la | head") })),
            ("list", tool(GuideCall::List { path: text(".") })),
            ("ls memory", tool(GuideCall::List { path: text("memory") })),
            ("list 'my notes'", tool(GuideCall::List { path: text("my notes") })),
            ("list your files", GuideCommand::Help),
            ("show me what you can do", GuideCommand::Help),
            ("read the notes, please", GuideCommand::Help),
            ("search the web", GuideCommand::Help),
            ("search", GuideCommand::Incomplete("search memory <words>")),
            ("sessions", tool(GuideCall::Sessions)),
            ("search memory the cat", tool(GuideCall::Memory { query: text("the cat") })),
            ("read", GuideCommand::Incomplete("read <file>")),
            ("write a.txt", GuideCommand::Incomplete("write <file>: <text>")),
            ("edit a.txt: x", GuideCommand::Incomplete("edit <file>: <old text> => <new text>")),
            ("hello", GuideCommand::Help),
            ("", GuideCommand::Help),
            ("help", GuideCommand::Help),
            (
                "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.",
                GuideCommand::Heartbeat,
            ),
        ];
        for (message, expect) in rows {
            assert_eq!(GuideCommand::parse(message), expect, "{message:?}");
        }
    }

    #[test]
    fn commands_become_calls_of_tools_on_offer() {
        let list = GuideCall::List { path: "it's".to_owned() };
        assert_eq!(list.to_call(&["ls", "exec"]), Some(("ls", json!({"path": "it's"}))));
        assert_eq!(list.to_call(&["exec"]), Some(("exec", json!({"command": r"ls -la -- 'it'\''s'"}))));
        assert_eq!(list.to_call(&["read"]), None);
        assert_eq!(GuideCall::Sessions.to_call(&[]), None);
    }
}
