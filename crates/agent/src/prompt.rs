//! The system prompt: what goes in, what comes out (spec `agent-runtime.md` §3).
//!
//! [`build`] is a pure function: no clock, no counters, no environment, so that the text is the same byte for byte from
//! turn to turn while its inputs are, and a provider's prompt cache holds. The sections and their conditions are one
//! table in `sections`; lines are joined with a newline and empty lines dropped, only inserts keep theirs.

mod repo_root;
mod report;
mod runtime;
mod sections;
mod tool_list;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use openclaw_protocol::SessionKey;

pub use repo_root::RepoRoots;
pub use report::{
    FileReport, PromptSize, ReportFrame, ReportSource, SandboxReport, SkillReport, SkillsReport,
    SystemPromptReport, ToolReport, ToolsReport,
};
pub use runtime::HostFacts;

use crate::bootstrap::BootstrapFile;
use crate::reasoning_visibility::ReasoningVisibility;
use crate::toolbox::Toolbox;

/// Amount of the system prompt that a session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromptMode {
    /// Everything: sessions of people.
    #[default]
    Full,
    /// Prompt without sections that only matter between the agent and its owner: for sub-agent
    /// sessions.
    Minimal,
    /// The identity line alone.
    None,
}

impl PromptMode {
    /// Sub-agent sessions get the minimal prompt (spec §3.1).
    pub fn for_session(key: &SessionKey) -> Self {
        if key.is_subagent() { Self::Minimal } else { Self::Full }
    }
}

/// Input of the system prompt. Defaults leave a section out.
#[derive(Debug, Clone, Default)]
pub struct PromptInputs<'a> {
    /// Amount of the prompt to build.
    pub mode: PromptMode,
    /// The tools offered, policy applied.
    pub tools: &'a Toolbox,
    /// The skills prompt with its XML block, empty without eligible skills.
    pub skills: &'a str,
    /// Style in which answers cite memory files.
    pub memory_citations: MemoryCitations,
    /// Model aliases: alias and `provider/model`.
    pub model_aliases: Vec<(String, String)>,
    /// IANA name of the user's time zone.
    pub time_zone: Option<String>,
    /// The working directory.
    pub workspace: PathBuf,
    /// Lines added to the workspace section.
    pub workspace_notes: Vec<String>,
    /// Directory of the product's documentation.
    pub docs_dir: Option<PathBuf>,
    /// Facts about the sandbox; set when tools run in one.
    pub sandbox: Option<SandboxNote>,
    /// The owner's numbers or ids.
    pub owner_numbers: Vec<String>,
    /// Channels the message tool can deliver to.
    pub deliverable_channels: Vec<String>,
    /// Support of the current channel for inline buttons; `None` when there is no current channel.
    pub inline_buttons: Option<InlineButtons>,
    /// Hints of the current channel about its message actions.
    pub channel_hints: Vec<String>,
    /// Hint for writing replies that are spoken by text-to-speech.
    pub tts_hint: Option<String>,
    /// Group, sub-agent or request context.
    pub extra: Option<String>,
    /// Guidance on emoji reactions.
    pub reactions: Option<Reactions>,
    /// True if the model writes its reasoning in tags.
    pub reasoning_tags: bool,
    /// The injected workspace files, in order.
    pub files: &'a [BootstrapFile],
    /// The heartbeat prompt: its text for the default agent, `None` hides it behind `(configured)`.
    pub heartbeat_prompt: Option<String>,
    /// Facts for the runtime line.
    pub runtime: RuntimeFacts,
    /// Reasoning visibility, for the runtime section.
    pub reasoning: ReasoningVisibility,
}

/// `memory.citations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryCitations {
    /// Sources are named when that helps.
    #[default]
    Named,
    /// Paths are not mentioned.
    Hidden,
}

/// Facts about the sandbox for a sandboxed agent (spec §3.1 row 13).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxNote {
    /// The directory inside the sandbox.
    pub workspace: Option<PathBuf>,
    /// `none`, `ro` or `rw`.
    pub workspace_access: Option<String>,
    /// Addresses at which the sandbox's browser can be watched and driven.
    pub browser: Vec<String>,
    /// The session's elevated level, where elevation is allowed.
    pub elevated: Option<String>,
}

/// Support of the current channel for inline buttons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InlineButtons {
    /// The channel shows inline buttons.
    Enabled,
    /// The channel supports inline buttons, but they are switched off; holds the config key that
    /// enables them.
    Available {
        /// The channel.
        channel: String,
    },
}

/// Emoji reactions on the current channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reactions {
    /// The channel's name.
    pub channel: String,
    /// Frequency of reactions.
    pub level: ReactionLevel,
}

/// Frequency of emoji reactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionLevel {
    /// Reactions in at most one of five to ten exchanges.
    Minimal,
    /// Whenever natural.
    Extensive,
}

/// The facts of the `Runtime:` line, in its order. Absent ones are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeFacts {
    /// Agent id.
    pub agent: Option<String>,
    /// Host, operating system, architecture and shell.
    pub host: HostFacts,
    /// Root of the repository the workspace lies in.
    pub repo: Option<PathBuf>,
    /// `provider/model` of this session.
    pub model: Option<String>,
    /// `provider/model` of the agent.
    pub default_model: Option<String>,
    /// Current channel; `webchat` for requests over the gateway.
    pub channel: Option<String>,
    /// Capabilities of the channel; shown as `none` when empty.
    pub capabilities: Vec<String>,
    /// Thinking level.
    pub thinking: Option<String>,
}

/// A finished prompt and the sizes of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// The text.
    pub text: String,
    /// Sizes of the prompt's parts, for the report.
    pub size: PromptSize,
}

/// Builds the system prompt.
pub fn build(inputs: &PromptInputs<'_>) -> SystemPrompt {
    let text = sections::text(inputs);
    let size = report::measure(&text, tool_list::chars(inputs.tools));
    SystemPrompt { text, size }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
