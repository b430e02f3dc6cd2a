//! Limits on the conversation that a run sends, and other settings of what it sends.

use std::path::Path;

use openclaw_agent::compaction::{CompactionSettings, FileSettings};
use openclaw_agent::prompt::SystemPromptReport;
use openclaw_agent::tokens::tokens_of;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::SessionEntry;
use serde::Deserialize;
use serde_json::Value;

use super::session::RunSession;

/// OpenClaw's own settings file beside an agent's credentials.
const SETTINGS_FILE: &str = "settings.json";
/// Size in bytes of the largest settings file that is read.
const MAX_SETTINGS: u64 = 1024 * 1024;

/// Returns the settings for compacting a session's conversation.
pub(super) async fn compaction(settings: &Settings, session: &RunSession) -> CompactionSettings {
    let file = file_settings(&session.agent.agent_dir).await;
    CompactionSettings::of(&settings.config.agents.defaults.compaction, file)
}

/// Reads the agent's settings file; empty if it can't be read.
async fn file_settings(agent_dir: &Path) -> FileSettings {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct CompactionFile {
        compaction: FileSettings,
    }
    let path = agent_dir.join(SETTINGS_FILE);
    // Most agents have none. One look at a directory entry: going to another thread for it would take longer.
    let meta = std::fs::metadata(&path).ok();
    if !meta.is_some_and(|meta| meta.is_file() && (1..=MAX_SETTINGS).contains(&meta.len())) {
        return FileSettings::default();
    }
    let read = move || {
        let text = std::fs::read(&path).ok()?;
        let file = serde_json::from_slice::<CompactionFile>(&text);
        let file =
            file.inspect_err(|error| tracing::warn!(path = %path.display(), %error, "settings are not used"));
        file.ok().map(|file| file.compaction)
    };
    tokio::task::spawn_blocking(read).await.ok().flatten().unwrap_or_default()
}

/// Tokens of the system prompt and the tools.
pub(super) fn fixed_tokens(report: &SystemPromptReport) -> u64 {
    tokens_of(report.system_prompt.chars + report.tools.schema_chars)
}

/// Tokens of the system prompt and the tools, as the last run of a session noted them.
pub(super) fn noted_fixed_tokens(entry: &SessionEntry) -> u64 {
    let report = entry.system_prompt_report.as_ref().and_then(|report| report.read::<Value>().ok());
    let chars = |pointer: &str| report.as_ref()?.pointer(pointer).and_then(Value::as_u64);
    let chars = chars("/systemPrompt/chars").unwrap_or(0) + chars("/tools/schemaChars").unwrap_or(0);
    tokens_of(usize::try_from(chars).unwrap_or(0))
}
