//! Report of the prompt's parts, for `/context` and run metadata (spec `agent-runtime.md` §13).

use std::borrow::Cow;

use openclaw_models::ToolSpec;
use openclaw_protocol::SessionKey;
use openclaw_protocol::text_length::utf16_len;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SystemPrompt;
use crate::bootstrap::BootstrapFile;

/// `systemPromptReport`, stored with the session after each run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemPromptReport {
    /// Origin of the report.
    pub source: ReportSource,
    /// Unix milliseconds.
    #[serde(default)]
    pub generated_at: i64,
    /// Run in which the prompt was used.
    #[serde(flatten)]
    pub frame: ReportFrame,
    /// Sizes of the prompt.
    pub system_prompt: PromptSize,
    /// The workspace files.
    #[serde(default)]
    pub injected_workspace_files: Vec<FileReport>,
    /// The skills block.
    #[serde(default)]
    pub skills: SkillsReport,
    /// The tools.
    #[serde(default)]
    pub tools: ToolsReport,
}

impl SystemPromptReport {
    /// Returns true if two reports differ at most in their time.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let Self { source, generated_at: _, frame, system_prompt, injected_workspace_files, skills, tools } =
            self;
        *source == other.source
            && *frame == other.frame
            && *system_prompt == other.system_prompt
            && *injected_workspace_files == other.injected_workspace_files
            && *skills == other.skills
            && *tools == other.tools
    }
}

/// Origin of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportSource {
    /// Prompt of a run.
    Run,
    /// Prompt that was built for the report alone.
    Estimate,
}

impl ReportSource {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Estimate => "estimate",
        }
    }
}

/// Session, model and place of a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportFrame {
    /// The transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// Provider id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_dir: Option<String>,
    /// `agents.defaults.bootstrapMaxChars`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_max_chars: Option<usize>,
    /// The sandbox.
    #[serde(default)]
    pub sandbox: SandboxReport,
}

/// Sandbox state of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxReport {
    /// `off`, `non-main` or `all`.
    pub mode: String,
    /// True if this session is sandboxed.
    pub sandboxed: bool,
}

impl Default for SandboxReport {
    fn default() -> Self {
        Self { mode: "off".to_owned(), sandboxed: false }
    }
}

/// Sizes in UTF-16 units, as OpenClaw's clients count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptSize {
    /// The whole prompt.
    pub chars: usize,
    /// Characters from `# Project Context` up to the next top section.
    pub project_context_chars: usize,
    /// The rest.
    pub non_project_context_chars: usize,
    /// The tool list; reported under `tools`.
    #[serde(skip)]
    pub tool_list_chars: usize,
}

/// Report on a workspace file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileReport {
    /// File name, such as `AGENTS.md`.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// True if the file does not exist.
    pub missing: bool,
    /// Size of the file without trailing white space.
    pub raw_chars: usize,
    /// Size of what was injected.
    pub injected_chars: usize,
    /// True if the file was cut.
    pub truncated: bool,
}

/// The skills block.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SkillsReport {
    /// Size of the skills prompt.
    pub prompt_chars: usize,
    /// Entries, one for each skill.
    pub entries: Vec<SkillReport>,
}

/// Report on a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SkillReport {
    /// The skill's name.
    pub name: String,
    /// Size of its `<skill>…</skill>` block.
    pub block_chars: usize,
}

/// The tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolsReport {
    /// Size of the list in the prompt.
    pub list_chars: usize,
    /// Size of all schemas as compact JSON.
    pub schema_chars: usize,
    /// Entries, one for each tool.
    pub entries: Vec<ToolReport>,
}

/// Report on a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolReport {
    /// The tool's name.
    pub name: Cow<'static, str>,
    /// Size of its description.
    pub summary_chars: usize,
    /// Size of its schema as compact JSON.
    pub schema_chars: usize,
    /// Number of parameters; `null` when the schema has none.
    pub properties_count: Option<usize>,
}

impl SystemPrompt {
    /// The report of a run that used this prompt.
    pub fn report(
        &self,
        generated_at: i64,
        frame: ReportFrame,
        files: &[BootstrapFile],
        skills: SkillsReport,
        tools: &[ToolSpec],
    ) -> SystemPromptReport {
        SystemPromptReport {
            source: ReportSource::Run,
            generated_at,
            frame,
            system_prompt: self.size,
            injected_workspace_files: files.iter().map(file_report).collect(),
            skills,
            tools: tools_report(tools, self.size.tool_list_chars),
        }
    }
}

fn file_report(file: &BootstrapFile) -> FileReport {
    FileReport {
        name: file.name.clone(),
        path: file.path.display().to_string(),
        missing: file.missing,
        raw_chars: file.raw_chars,
        injected_chars: utf16_len(&file.injected),
        truncated: file.truncated,
    }
}

fn tools_report(tools: &[ToolSpec], list_chars: usize) -> ToolsReport {
    let entries: Vec<ToolReport> = tools
        .iter()
        .map(|tool| ToolReport {
            name: tool.name.clone(),
            summary_chars: utf16_len(tool.description.trim()),
            schema_chars: tool.parameters.chars(),
            properties_count: tool
                .parameters
                .get("properties")
                .and_then(Value::as_object)
                .map(serde_json::Map::len),
        })
        .collect();
    ToolsReport { list_chars, schema_chars: entries.iter().map(|tool| tool.schema_chars).sum(), entries }
}

/// Measures a finished prompt. The project context reaches to the next top section of ours; headings inside injected
/// files do not end it.
pub(super) fn measure(text: &str, tool_list_chars: usize) -> PromptSize {
    const START: &str = "\n# Project Context\n";
    const ENDS: [&str; 2] = ["\n## Silent Replies\n", "\n## Runtime\n"];
    let chars = utf16_len(text);
    let project = text.find(START).map_or("", |at| {
        let tail = text.get(at + 1..).unwrap_or_default();
        let end = ENDS.iter().find_map(|end| tail.rfind(end)).unwrap_or(tail.len());
        tail.get(..end).unwrap_or_default()
    });
    let project_context_chars = utf16_len(project);
    PromptSize {
        chars,
        project_context_chars,
        non_project_context_chars: chars - project_context_chars,
        tool_list_chars,
    }
}
