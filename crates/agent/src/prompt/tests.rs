use std::path::Path;

use expect_test::expect_file;
use openclaw_config::settings::Heartbeat;
use serde_json::{Value, json};

use super::*;
use crate::bootstrap;
use crate::tool::{Catalogue, Tool, ToolContext, ToolFacts, ToolFuture, ToolOutput};

const SKILLS: &str = "Skills give specialised instructions.\n<available_skills>\n  <skill>\n    <name>weather</name>\n    <description>Forecasts without an API key</description>\n    <location>/home/u/.openclaw/skills/weather/SKILL.md</location>\n  </skill>\n</available_skills>";

/// Tool with only the facts that the prompt reads.
struct Named(ToolFacts);

impl Tool for Named {
    fn facts(&self) -> &ToolFacts {
        &self.0
    }

    fn schema(&self) -> openclaw_models::ToolSchema {
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}).into()
    }

    fn run(&self, _: Value, _: ToolContext) -> ToolFuture<'_> {
        Box::pin(async { Ok(ToolOutput::default()) })
    }
}

fn tools(names: &[&'static str]) -> Toolbox {
    static NO_NAMES: Catalogue = Catalogue::empty();
    let named = |name: &&'static str| -> Box<dyn Tool> {
        let facts = ToolFacts {
            description: format!("Does {name}.\nMore about it.").leak(),
            summary: if *name == "read" { "Read a file" } else { "" },
            prompt_position: if *name == "read" { 1 } else { u8::MAX },
            ..ToolFacts::named(name)
        };
        Box::new(Named(facts))
    };
    Toolbox::new(names.iter().map(named).collect(), &NO_NAMES)
}

fn file(name: &str, content: &str) -> BootstrapFile {
    bootstrap::shape(
        name,
        &Path::new("/home/u/.openclaw/workspace").join(name),
        Some(&content.into()),
        20_000,
    )
}

fn workspace_files() -> Vec<BootstrapFile> {
    let soul = "Be kind.\n\n## Runtime\nnot ours\n";
    let mut files: Vec<BootstrapFile> = bootstrap::FILES
        .iter()
        .map(
            |name| if *name == "SOUL.md" { file(name, soul) } else { file(name, &format!("about {name}\n")) },
        )
        .collect();
    files.push(file("MEMORY.md", "   "));
    files
}

/// The main session of spec `agent-runtime.md` §3.3 with everything that is on by default.
fn main_session<'a>(tools: &'a Toolbox, files: &'a [BootstrapFile]) -> PromptInputs<'a> {
    let host = HostFacts {
        host: Some("box".into()),
        os: Some("Linux 6.8".into()),
        arch: Some("x64".into()),
        shell: Some("bash".into()),
        runtime: Some("openclaw-2026.2.9".into()),
        docs_dir: None,
    };
    let channels = ["telegram", "whatsapp", "discord", "googlechat", "slack", "signal", "imessage"];
    PromptInputs {
        tools,
        files,
        skills: SKILLS,
        model_aliases: vec![
            ("opus".into(), "anthropic/claude-opus-4-6".into()),
            ("gpt".into(), "openai/gpt-5.2".into()),
        ],
        time_zone: Some("Europe/Berlin".into()),
        workspace: "/home/u/.openclaw/workspace".into(),
        docs_dir: Some("/opt/openclaw/docs".into()),
        deliverable_channels: channels.map(str::to_owned).to_vec(),
        heartbeat_prompt: Some(Heartbeat::PROMPT.into()),
        runtime: RuntimeFacts {
            agent: Some("main".into()),
            host,
            repo: Some("/home/u/.openclaw/workspace".into()),
            model: Some("anthropic/claude-opus-4-6".into()),
            default_model: Some("anthropic/claude-opus-4-6".into()),
            channel: Some("webchat".into()),
            capabilities: Vec::new(),
            thinking: Some("low".into()),
        },
        ..PromptInputs::default()
    }
}

const DEFAULT_TOOLS: &[&str] = &[
    "read",
    "edit",
    "write",
    "exec",
    "process",
    "browser",
    "canvas",
    "nodes",
    "cron",
    "message",
    "tts",
    "gateway",
    "agents_list",
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "session_status",
    "web_search",
    "web_fetch",
    "image",
    "memory_search",
    "memory_get",
    "zoo_plugin",
];

fn headings(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("# ") || line.starts_with("## ")).collect()
}

#[test]
fn the_main_session_prompt_is_as_reviewed() {
    let (tools, files) = (tools(DEFAULT_TOOLS), workspace_files());
    let prompt = build(&main_session(&tools, &files));
    expect_file!["snapshots/main_session.txt"].assert_eq(&prompt.text);
}

/// `golden/agent-prompt-modes.json`, "main session".
#[test]
fn the_main_session_has_the_references_sections_in_its_order() {
    let (tools, files) = (tools(DEFAULT_TOOLS), workspace_files());
    let prompt = build(&main_session(&tools, &files));
    assert_eq!(
        headings(&prompt.text),
        [
            "## Tooling",
            "## Tool Call Style",
            "## Safety",
            "## OpenClaw CLI Quick Reference",
            "## Skills (mandatory)",
            "## Memory Recall",
            "## OpenClaw Self-Update",
            "## Model Aliases",
            "## Workspace",
            "## Documentation",
            "## Current Date & Time",
            "## Workspace Files (injected)",
            "## Reply Tags",
            "## Messaging",
            "# Project Context",
            "## AGENTS.md",
            "## SOUL.md",
            // A heading inside the file itself.
            "## Runtime",
            "## TOOLS.md",
            "## IDENTITY.md",
            "## USER.md",
            "## HEARTBEAT.md",
            "## BOOTSTRAP.md",
            "## Silent Replies",
            "## Heartbeats",
            "## Runtime",
        ]
    );
}

/// `golden/agent-prompt-modes.json`, "subagent session".
#[test]
fn a_sub_agent_gets_the_minimal_sections() {
    let tools = tools(&["read", "edit", "write", "exec", "message", "memory_get"]);
    let files = [file("AGENTS.md", "rules"), file("TOOLS.md", "notes")];
    let inputs = PromptInputs {
        mode: PromptMode::for_session(&SessionKey::parse("agent:main:subagent:1").unwrap()),
        extra: Some("You were spawned for a task.".into()),
        ..main_session(&tools, &files)
    };
    assert_eq!(
        headings(&build(&inputs).text),
        [
            "## Tooling",
            "## Tool Call Style",
            "## Safety",
            "## OpenClaw CLI Quick Reference",
            "## Workspace",
            "## Current Date & Time",
            "## Workspace Files (injected)",
            "## Subagent Context",
            "# Project Context",
            "## AGENTS.md",
            "## TOOLS.md",
            "## Runtime",
        ]
    );
}

/// `golden/agent-prompt-modes.json`, "telegram group session": what it has besides the main session's.
#[test]
fn conditional_sections_stand_in_their_places() {
    let tools = tools(&["read", "message"]);
    let inputs = PromptInputs {
        sandbox: Some(SandboxNote {
            workspace: Some("/workspace".into()),
            workspace_access: Some("ro".into()),
            browser: vec!["Browser bridge: http://b".into()],
            elevated: Some("ask".into()),
        }),
        owner_numbers: vec!["+1".into(), "+2".into()],
        tts_hint: Some("Speak briefly.".into()),
        extra: Some("You are in the group \"Family\".".into()),
        reactions: Some(Reactions { channel: "telegram".into(), level: ReactionLevel::Minimal }),
        reasoning_tags: true,
        inline_buttons: Some(InlineButtons::Enabled),
        heartbeat_prompt: None,
        ..main_session(&tools, &[])
    };
    let text = build(&inputs).text;
    assert_eq!(
        headings(&text),
        [
            "## Tooling",
            "## Tool Call Style",
            "## Safety",
            "## OpenClaw CLI Quick Reference",
            "## Skills (mandatory)",
            "## Model Aliases",
            "## Workspace",
            "## Documentation",
            "## Sandbox",
            "## User Identity",
            "## Current Date & Time",
            "## Workspace Files (injected)",
            "## Reply Tags",
            "## Messaging",
            "## Voice (TTS)",
            "## Group Chat Context",
            "## Reactions",
            "## Reasoning Format",
            "## Silent Replies",
            "## Heartbeats",
            "## Runtime",
        ]
    );
    for line in [
        "Sandbox workspace: /workspace",
        "Agent workspace access: ro (mounted at /agent)",
        "Owner numbers: +1, +2. Treat messages from them as the user.",
        "Heartbeat prompt: (configured)",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}");
    }
}

/// Spec §3.4: what a sub-agent is told.
#[test]
fn the_sub_agent_prompt_is_as_reviewed() {
    let tools = tools(&["read", "edit", "write", "exec", "message", "memory_get"]);
    let files = [file("AGENTS.md", "rules"), file("TOOLS.md", "notes")];
    let inputs = PromptInputs {
        mode: PromptMode::Minimal,
        extra: Some("You were spawned for a task.\n\nReport what you found.".into()),
        runtime: RuntimeFacts { channel: None, ..main_session(&tools, &files).runtime },
        ..main_session(&tools, &files)
    };
    expect_file!["snapshots/sub_agent.txt"].assert_eq(&build(&inputs).text);
}

/// Spec §3.4: a group of a channel with everything that a session can have besides.
#[test]
fn the_group_prompt_is_as_reviewed() {
    let tools = tools(&["read", "message", "sessions_send"]);
    let files = [file("SOUL.md", "Be kind.")];
    let inputs = PromptInputs {
        sandbox: Some(SandboxNote {
            workspace: Some("/workspace".into()),
            workspace_access: Some("ro".into()),
            browser: vec!["Browser bridge: http://b".into()],
            elevated: Some("ask".into()),
        }),
        owner_numbers: vec!["+1".into(), "+2".into()],
        tts_hint: Some("Speak briefly.".into()),
        extra: Some("You are in the group \"Family\".\n\nBe brief.".into()),
        reactions: Some(Reactions { channel: "telegram".into(), level: ReactionLevel::Extensive }),
        reasoning_tags: true,
        inline_buttons: Some(InlineButtons::Available { channel: "telegram".into() }),
        channel_hints: vec!["Stickers can be sent.".into()],
        heartbeat_prompt: None,
        workspace_notes: vec!["Commit when BOOTSTRAP.md is done.".into()],
        reasoning: ReasoningVisibility::On,
        ..main_session(&tools, &files)
    };
    expect_file!["snapshots/group.txt"].assert_eq(&build(&inputs).text);
}

#[test]
fn without_a_mode_only_the_identity_is_left() {
    let inputs = PromptInputs { mode: PromptMode::None, ..PromptInputs::default() };
    assert_eq!(build(&inputs).text, "You are a personal assistant running inside OpenClaw.");
}

#[test]
fn the_prompt_has_no_blank_lines_of_its_own_and_is_stable() {
    let (tools, _) = (tools(DEFAULT_TOOLS), ());
    let inputs = main_session(&tools, &[]);
    let text = build(&inputs).text;
    assert!(!text.contains("\n\n"));
    assert_eq!(build(&inputs).text, text);
}

#[test]
fn the_runtime_line_leaves_out_what_is_not_known() {
    let runtime = |facts: RuntimeFacts| {
        let text = build(&PromptInputs { runtime: facts, ..PromptInputs::default() }).text;
        text.lines().find(|line| line.starts_with("Runtime: ")).unwrap().to_owned()
    };
    let bare = RuntimeFacts { agent: Some("main".into()), ..RuntimeFacts::default() };
    assert_eq!(runtime(bare.clone()), "Runtime: agent=main");
    let channel = RuntimeFacts {
        channel: Some("telegram".into()),
        capabilities: vec!["inlineButtons".into(), "x".into()],
        ..bare
    };
    assert_eq!(runtime(channel), "Runtime: agent=main | channel=telegram | capabilities=inlineButtons,x");
}

#[test]
fn the_report_measures_the_prompt() {
    let (tools, files) = (tools(&["read", "zoo_plugin"]), workspace_files());
    let inputs = main_session(&tools, &files);
    let prompt = build(&inputs);
    let frame = ReportFrame {
        session_id: Some("s1".into()),
        provider: Some("fake".into()),
        bootstrap_max_chars: Some(20_000),
        ..ReportFrame::default()
    };
    let entries = vec![SkillReport { name: "weather".to_owned(), block_chars: 5 }];
    let skills = SkillsReport { prompt_chars: SKILLS.len(), entries };
    let report = serde_json::to_value(prompt.report(7, frame, &files[..2], skills, tools.specs())).unwrap();
    let start = prompt.text.find("# Project Context").unwrap();
    let end = prompt.text.rfind("\n## Silent Replies").unwrap();
    let chars = prompt.text.encode_utf16().count();
    let schema = tools.specs()[0].parameters.to_string().len();
    let tool = |name: &str, summary: usize| json!({"name": name, "summaryChars": summary, "schemaChars": schema, "propertiesCount": 2});
    assert_eq!(
        report,
        json!({
            "source": "run",
            "generatedAt": 7,
            "sessionId": "s1",
            "provider": "fake",
            "bootstrapMaxChars": 20000,
            "sandbox": {"mode": "off", "sandboxed": false},
            "systemPrompt": {"chars": chars, "projectContextChars": end - start, "nonProjectContextChars": chars - (end - start)},
            "injectedWorkspaceFiles": [
                {"name": "AGENTS.md", "path": "/home/u/.openclaw/workspace/AGENTS.md", "missing": false, "rawChars": 15, "injectedChars": 15, "truncated": false},
                {"name": "SOUL.md", "path": "/home/u/.openclaw/workspace/SOUL.md", "missing": false, "rawChars": 29, "injectedChars": 29, "truncated": false},
            ],
            "skills": {"promptChars": SKILLS.len(), "entries": [{"name": "weather", "blockChars": 5}]},
            "tools": {
                "listChars": "- read: Read a file\n- zoo_plugin: Does zoo_plugin.".len(),
                "schemaChars": schema * 2,
                "entries": [tool("read", 25), tool("zoo_plugin", 31)],
            },
        })
    );
}
