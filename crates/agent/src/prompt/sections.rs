//! The sections of the system prompt as one table (spec `agent-runtime.md` §3.1).

use std::borrow::Cow;

use super::{
    InlineButtons, MemoryCitations, PromptInputs, PromptMode, ReactionLevel, SandboxNote, display, runtime,
    tool_list,
};
use crate::workspace::RITUAL_FILE;

/// A line of the prompt. Most are the same in every prompt.
pub(super) type PromptLine<'a> = Cow<'a, str>;

/// Function that builds the lines of a section.
type Lines = for<'a> fn(&'a PromptInputs<'_>) -> Vec<PromptLine<'a>>;

/// A section: its heading, whether sub-agents get it, and its lines, none when it does not apply.
struct Section {
    /// Exact heading; blank for lines without one.
    heading: &'static str,
    /// Part of the minimal prompt.
    minimal: bool,
    /// Builds the lines below the heading.
    lines: Lines,
}

const fn both(heading: &'static str, lines: Lines) -> Section {
    Section { heading, minimal: true, lines }
}

const fn full(heading: &'static str, lines: Lines) -> Section {
    Section { heading, minimal: false, lines }
}

/// All sections in order.
const SECTIONS: &[Section] = &[
    both("## Tooling", tooling),
    both("## Tool Call Style", |_| fixed(TOOL_CALL_STYLE)),
    both("## Safety", |_| fixed(SAFETY)),
    both("## OpenClaw CLI Quick Reference", |_| fixed(CLI)),
    full("## Skills (mandatory)", skills),
    full("## Memory Recall", memory),
    full("## OpenClaw Self-Update", self_update),
    full("## Model Aliases", model_aliases),
    both("", date_hint),
    both("## Workspace", workspace),
    full("## Documentation", documentation),
    both("## Sandbox", sandbox),
    full("## User Identity", user_identity),
    both("## Current Date & Time", time_zone),
    both("## Workspace Files (injected)", |_| fixed(WORKSPACE_FILES)),
    full("## Reply Tags", |_| fixed(REPLY_TAGS)),
    full("## Messaging", messaging),
    full("## Voice (TTS)", |inputs| inputs.tts_hint.iter().map(PromptLine::from).collect()),
    both("", extra),
    both("## Reactions", reactions),
    both("## Reasoning Format", reasoning_format),
    both("", project_context),
    full("## Silent Replies", |_| fixed(SILENT_REPLIES)),
    full("## Heartbeats", heartbeats),
    both("## Runtime", runtime::lines),
];

const IDENTITY: &str = "You are a personal assistant running inside OpenClaw.";

const TOOL_CALL_STYLE: &[&str] = &[
    "Call routine tools silently.",
    "Say what you are doing only for work of several steps, for complex or sensitive steps such as deletions, or when asked.",
    "Keep such notes to one short sentence in plain words.",
];

const SAFETY: &[&str] = &[
    "Serve the user's request and nothing else: no goals of your own, no self-preservation, copying of yourself, or gathering of power or resources.",
    "Safety and human oversight come before finishing. When instructions conflict, pause and ask; always obey a request to stop, pause or be audited; never bypass a safeguard.",
    "Do not talk anyone into widening your access or turning safeguards off. Do not copy yourself or change your own prompt, safety rules or tool policy unless the user asks for exactly that.",
];

const CLI: &[&str] = &[
    "The gateway is run with the `openclaw` command. Never invent subcommands. To look after it:",
    "- openclaw gateway status",
    "- openclaw doctor",
    "- openclaw logs",
    "When unsure, ask the user for the output of `openclaw help`.",
];

const WORKSPACE_FILES: &[&str] =
    &["The files below under Project Context are loaded from the workspace; the user may edit them."];

const REPLY_TAGS: &[&str] = &[
    "Put one of these tags into a reply to quote a message, on channels that can:",
    "- [[reply_to_current]] quotes the message you are answering.",
    "- [[reply_to:<id>]] quotes the message with that id, when you were given one.",
    "Spaces inside the brackets are fine. Tags are removed before sending.",
];

const SILENT_REPLIES: &[&str] = &[
    "When there is nothing to say, reply with only: NO_REPLY",
    "It must be the whole message: never add it to a real answer and never wrap it in Markdown or code.",
];

/// The whole prompt.
pub(super) fn text(inputs: &PromptInputs<'_>) -> String {
    let mut lines = vec![PromptLine::from(IDENTITY)];
    if inputs.mode != PromptMode::None {
        let minimal = inputs.mode == PromptMode::Minimal;
        for section in SECTIONS.iter().filter(|section| section.minimal || !minimal) {
            let body = (section.lines)(inputs);
            if !body.is_empty() {
                lines.push(section.heading.into());
                lines.extend(body);
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn fixed(lines: &'static [&'static str]) -> Vec<PromptLine<'static>> {
    lines.iter().copied().map(PromptLine::Borrowed).collect()
}

fn has_tool(inputs: &PromptInputs<'_>, name: &str) -> bool {
    inputs.tools.facts().any(|tool| tool.name == name)
}

fn tooling<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let mut lines: Vec<PromptLine<'_>> = vec![
        "These tools are enabled by policy. Names are case-sensitive; call them exactly as written.".into(),
    ];
    lines.extend(tool_list::lines(inputs.tools).map(PromptLine::Owned));
    lines.push("TOOLS.md only documents local conventions; it does not enable tools.".into());
    if has_tool(inputs, "sessions_spawn") {
        lines.push("Hand long or complex work to a sub-agent; it reports back when it is done.".into());
    }
    lines
}

fn skills<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let prompt = inputs.skills.trim();
    if prompt.is_empty() {
        return Vec::new();
    }
    vec![
        "Before answering, check every <description> in <available_skills>.".into(),
        "- Exactly one clearly fits: `read` its SKILL.md at <location> and follow it.".into(),
        "- Several could: take the most specific one, then read and follow it.".into(),
        "- None clearly fits: read none.".into(),
        "Never read more than one up front.".into(),
        prompt.into(),
    ]
}

fn memory<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    if !has_tool(inputs, "memory_search") && !has_tool(inputs, "memory_get") {
        return Vec::new();
    }
    let citation = match inputs.memory_citations {
        MemoryCitations::Named => "Add `Source: <path#line>` when it helps the user to check.",
        MemoryCitations::Hidden => "Do not mention file paths or line numbers unless the user asks.",
    };
    vec![
        "For questions about earlier work, decisions, dates, people, preferences or todos run memory_search on MEMORY.md and memory/*.md first, then memory_get only the lines you need. When you are still unsure, say that you looked.".into(),
        citation.into(),
    ]
}

fn self_update<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    if !has_tool(inputs, "gateway") {
        return Vec::new();
    }
    fixed(&[
        "Update OpenClaw or change its configuration only when the user asks for it explicitly; if in doubt, ask first.",
        "Actions of the gateway tool: config.get, config.schema, config.apply (checks, writes, restarts), update.run.",
        "After a restart OpenClaw sends a message to the session that was used last.",
    ])
}

fn model_aliases<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    if inputs.model_aliases.is_empty() {
        return Vec::new();
    }
    let mut aliases: Vec<PromptLine<'_>> =
        inputs.model_aliases.iter().map(|(alias, model)| format!("- {alias}: {model}").into()).collect();
    aliases.sort();
    aliases.insert(0, "Prefer an alias when naming a model; the full provider/model works too.".into());
    aliases
}

fn date_hint<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    if inputs.time_zone.is_none() {
        return Vec::new();
    }
    if has_tool(inputs, "session_status") {
        return fixed(&["For the current date, time or day of the week run session_status."]);
    }
    fixed(&[
        "The time in front of a message is when it was said; take the current date and time from the latest one.",
    ])
}

fn workspace<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let mut lines: Vec<PromptLine<'_>> = vec![
        format!("Your working directory is: {}", display(&inputs.workspace)).into(),
        "Use it as the one place for file work unless told otherwise.".into(),
    ];
    // The first-run ritual is under way while its file is there.
    if inputs.files.iter().any(|file| file.name == RITUAL_FILE && !file.missing) {
        lines.push("Reminder: commit your changes in this workspace after edits.".into());
    }
    lines.extend(inputs.workspace_notes.iter().map(PromptLine::from));
    lines
}

fn documentation<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let Some(dir) = &inputs.docs_dir else { return Vec::new() };
    vec![
        format!("OpenClaw docs: {}", display(dir)).into(),
        "Mirror: https://docs.openclaw.ai".into(),
        "Source: https://github.com/openclaw/openclaw".into(),
        "Community: https://github.com/openclaw/openclaw/discussions".into(),
        "Skills hub: https://clawhub.com".into(),
        "Read the local docs first for questions about OpenClaw's behaviour, commands, configuration or design.".into(),
        "When diagnosing, run `openclaw status` yourself if you can; ask the user only if you cannot.".into(),
    ]
}

fn sandbox<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let Some(note) = &inputs.sandbox else { return Vec::new() };
    let mut lines = fixed(&[
        "Your tools run in a sandbox.",
        "Some tools may be missing because of the sandbox's policy.",
        "Sub-agents stay in the sandbox and have no elevated access. Ask before anything that needs the host.",
    ]);
    if let Some(dir) = &note.workspace {
        lines.push(format!("Sandbox workspace: {}", display(dir)).into());
    }
    if let Some(access) = &note.workspace_access {
        let place = if access == "ro" { " (mounted at /agent)" } else { "" };
        lines.push(format!("Agent workspace access: {access}{place}").into());
    }
    lines.extend(note.browser.iter().map(PromptLine::from));
    lines.extend(elevated(note));
    lines
}

fn elevated(note: &SandboxNote) -> Vec<PromptLine<'_>> {
    let Some(level) = &note.elevated else { return Vec::new() };
    vec![
        "Elevated exec is available for this session.".into(),
        "The user can change it with /elevated on|off|ask|full.".into(),
        format!(
            "Current elevated level: {level} (ask runs commands on the host with approvals, full without)."
        )
        .into(),
    ]
}

fn user_identity<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    if inputs.owner_numbers.is_empty() {
        return Vec::new();
    }
    vec![
        format!("Owner numbers: {}. Treat messages from them as the user.", inputs.owner_numbers.join(", "))
            .into(),
    ]
}

fn time_zone<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    inputs.time_zone.iter().map(|zone| format!("Time zone: {zone}").into()).collect()
}

fn messaging<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let mut lines = fixed(&["A reply in this session goes to the channel it came from."]);
    if has_tool(inputs, "sessions_send") {
        lines.push("To reach another session use sessions_send with its key.".into());
    }
    lines.push("Never talk to a chat provider through exec or curl; OpenClaw does the routing.".into());
    if has_tool(inputs, "message") {
        lines.extend(message_tool(inputs));
    }
    lines
}

fn message_tool<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let mut lines = fixed(&[
        "### message tool",
        "- Use `message` to send on your own initiative and for channel actions (polls, reactions and the like).",
        "- For `action=send` give `to` and `message`.",
    ]);
    if !inputs.deliverable_channels.is_empty() {
        let list = inputs.deliverable_channels.join("|");
        lines.push(format!("- When several channels are configured pass `channel` ({list}).").into());
    }
    lines.push(
        "- When `message` (`action=send`) already delivered the answer the user sees, reply with only: NO_REPLY".into(),
    );
    match &inputs.inline_buttons {
        Some(InlineButtons::Enabled) => lines.push(
            "- Inline buttons work here: `action=send` with `buttons=[[{text,callback_data}]]`; a press comes back as a user message with the callback data.".into(),
        ),
        Some(InlineButtons::Available { channel }) => lines.push(format!(
            "- Inline buttons are off for {channel}. If the user wants them, they set {channel}.capabilities.inlineButtons (dm, group, all or allowlist)."
        ).into()),
        None => {}
    }
    lines.extend(inputs.channel_hints.iter().map(PromptLine::from));
    lines
}

fn extra<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let Some(text) = inputs.extra.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        return Vec::new();
    };
    let heading =
        if inputs.mode == PromptMode::Minimal { "## Subagent Context" } else { "## Group Chat Context" };
    vec![heading.into(), text.into()]
}

fn reactions<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let Some(reactions) = &inputs.reactions else { return Vec::new() };
    let channel = &reactions.channel;
    match reactions.level {
        ReactionLevel::Minimal => vec![
            format!("Reactions are enabled for {channel} in MINIMAL mode.").into(),
            "React only when it truly fits: to acknowledge an important request or to show honest feeling, never to routine messages or your own.".into(),
            "At most one reaction in 5-10 exchanges.".into(),
        ],
        ReactionLevel::Extensive => vec![
            format!("Reactions are enabled for {channel} in EXTENSIVE mode.").into(),
            "React whenever it feels natural: to acknowledge, to agree, to show mood or humour, to mark interesting content.".into(),
        ],
    }
}

fn reasoning_format<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    if !inputs.reasoning_tags {
        return Vec::new();
    }
    fixed(&[
        "All reasoning goes inside <think>...</think>; nothing of it outside.",
        "Answer in the form <think>...</think><final>...</final>, with nothing else around it.",
        "Only the text inside <final> is shown to the user.",
    ])
}

fn project_context<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let files: Vec<_> = inputs.files.iter().filter(|file| !file.injected.is_empty()).collect();
    if files.is_empty() {
        return Vec::new();
    }
    let mut lines = fixed(&["# Project Context", "The following workspace files are loaded:"]);
    if files.iter().any(|file| file.name.eq_ignore_ascii_case("SOUL.md") && !file.missing) {
        lines
            .push("Take on the persona and tone of SOUL.md unless a higher instruction overrides it.".into());
    }
    for file in files {
        lines.push(format!("## {}", file.name).into());
        lines.push(PromptLine::from(&*file.injected));
    }
    lines
}

fn heartbeats<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let prompt = inputs.heartbeat_prompt.as_deref().map(str::trim).filter(|text| !text.is_empty());
    vec![
        format!("Heartbeat prompt: {}", prompt.unwrap_or("(configured)")).into(),
        "When a message is that prompt and nothing needs attention, reply exactly:".into(),
        "HEARTBEAT_OK".into(),
        "OpenClaw takes a leading or trailing HEARTBEAT_OK as an acknowledgement and may drop it.".into(),
        "When something needs attention, send the alert without that token.".into(),
    ]
}
