//! Saving to memory before what was said is summarised (spec `agent-runtime.md` §10.7): when, and what the agent is told.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nix::unistd::AccessFlags;
use openclaw_config::settings::Compaction;

use crate::text::silent::SILENT_TOKEN;

/// `memoryFlush.softThresholdTokens`
const SOFT_THRESHOLD: u64 = 4_000;
/// `compaction.reserveTokensFloor`
const RESERVE_FLOOR: u64 = 20_000;
/// Placeholder for the date.
const DATE: &str = "YYYY-MM-DD";
const PROMPT: &str = "Before the conversation is compacted: write whatever is to be remembered for long to memory/YYYY-MM-DD.md (make \
                      memory/ if it is not there; add to the file, do not replace what it holds). If nothing is to be stored, reply NO_REPLY.";
const SYSTEM_PROMPT: &str = "This turn comes right before older messages are compacted into a summary. Store what must not be lost in \
                             the memory files. Usually nothing has to be said to the person: then the reply is NO_REPLY.";

/// Settings of the memory flush: the prompts for the agent and the threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFlush {
    prompt: String,
    /// Added to the system prompt.
    pub system_prompt: String,
    reserve: u64,
    soft_threshold: u64,
}

/// Token and compaction counts from a session's row.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFill {
    /// Tokens of the last call.
    pub total_tokens: u64,
    /// Compactions so far.
    pub compactions: u64,
    /// Number of compactions at the last memory flush; absent if there was none.
    pub flushed_at: Option<u64>,
}

impl MemoryFlush {
    /// Reads the settings from the configuration; `None` when the flush is switched off.
    pub fn of(config: &Compaction) -> Option<Self> {
        let flush = &config.memory_flush;
        if flush.enabled == Some(false) {
            return None;
        }
        let text = |configured: &Option<String>, default: &str| {
            let configured = configured.as_deref().map(str::trim).filter(|text| !text.is_empty());
            with_silence(configured.unwrap_or(default))
        };
        Some(Self {
            prompt: text(&flush.prompt, PROMPT),
            system_prompt: text(&flush.system_prompt, SYSTEM_PROMPT),
            reserve: config.reserve_tokens_floor.unwrap_or(RESERVE_FLOOR),
            soft_threshold: flush.soft_threshold_tokens.unwrap_or(SOFT_THRESHOLD),
        })
    }

    /// Returns true if a flush is due before the next turn of a session whose model has this
    /// window.
    pub fn is_due(&self, window: u64, fill: SessionFill) -> bool {
        let threshold = window.saturating_sub(self.reserve).saturating_sub(self.soft_threshold);
        threshold > 0 && fill.total_tokens >= threshold && fill.flushed_at != Some(fill.compactions)
    }

    /// Returns the prompt, with the date in the user's time zone, because a model could only guess
    /// it.
    pub fn prompt(&self, now: Timestamp, zone: &TimeZone) -> String {
        self.prompt.replace(DATE, &now.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string())
    }
}

/// Returns true if the agent could save anything, outside of a sandbox. Costs two look-ups of
/// directory entries, and is called only where a flush is due.
pub fn can_be_saved(workspace: &Path) -> bool {
    let memory = workspace.join("memory");
    let place = if memory.exists() { memory.join(".") } else { workspace.to_owned() };
    let can = nix::unistd::access(&place, AccessFlags::W_OK | AccessFlags::X_OK);
    can.inspect_err(
        |error| tracing::info!(place = %place.display(), %error, "memory is not saved before the turn"),
    )
    .is_ok()
}

/// Adds the instruction to answer with the silent token, so that nobody is notified of the turn.
fn with_silence(text: &str) -> String {
    if text.contains(SILENT_TOKEN) {
        return text.to_owned();
    }
    format!("{text}\n\nIf no user-visible reply is needed, start with {SILENT_TOKEN}.")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use openclaw_config::settings::MemoryFlush as Section;

    use super::*;

    fn flush(floor: u64, soft: u64) -> MemoryFlush {
        let memory_flush = Section { soft_threshold_tokens: Some(soft), ..Section::default() };
        MemoryFlush::of(&Compaction {
            reserve_tokens_floor: Some(floor),
            memory_flush,
            ..Compaction::default()
        })
        .unwrap()
    }

    /// The vectors of spec `agent-runtime.md` §10.7.
    #[test]
    fn it_is_due_once_before_each_compaction() {
        let rows = [
            (200_000, 20_000, 4_000, 175_999, None, 0, false),
            (200_000, 20_000, 4_000, 176_000, None, 0, true),
            (100_000, 5_000, 2_000, 96_000, Some(1), 2, true),
            (100_000, 5_000, 2_000, 96_000, Some(2), 2, false),
            (100_000, 5_000, 2_000, 96_000, Some(0), 0, false),
            (10_000, 20_000, 4_000, 9_000, None, 0, false),
            (200_000, 20_000, 4_000, 0, None, 0, false),
        ];
        for (window, floor, soft, total_tokens, flushed_at, compactions, expect) in rows {
            let fill = SessionFill { total_tokens, compactions, flushed_at };
            assert_eq!(flush(floor, soft).is_due(window, fill), expect, "{window} {fill:?}");
        }
    }

    #[test]
    fn the_agent_is_told_the_users_date_and_that_it_may_be_silent() {
        let plain = MemoryFlush::of(&Compaction::default()).unwrap();
        let zone = TimeZone::get("Asia/Tokyo").unwrap();
        let now: Timestamp = "2026-02-09T20:00:00Z".parse().unwrap();
        let prompt = plain.prompt(now, &zone);
        assert!(prompt.contains("memory/2026-02-10.md") && prompt.contains("NO_REPLY"), "{prompt}");
        assert!(plain.system_prompt.contains("NO_REPLY"));
        let memory_flush = Section {
            prompt: Some("Save to YYYY-MM-DD.".to_owned()),
            system_prompt: Some("Say NO_REPLY.".to_owned()),
            ..Section::default()
        };
        let own = MemoryFlush::of(&Compaction { memory_flush, ..Compaction::default() }).unwrap();
        assert_eq!(
            own.prompt(now, &TimeZone::UTC),
            "Save to 2026-02-09.\n\nIf no user-visible reply is needed, start with NO_REPLY."
        );
        assert_eq!(own.system_prompt, "Say NO_REPLY.");
        let memory_flush = Section { enabled: Some(false), ..Section::default() };
        assert_eq!(MemoryFlush::of(&Compaction { memory_flush, ..Compaction::default() }), None);
    }

    #[test]
    fn memory_needs_a_directory_that_can_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("workspace");
        assert!(!can_be_saved(&workspace), "it is not there");
        std::fs::create_dir(&workspace).unwrap();
        assert!(can_be_saved(&workspace));
        std::fs::write(workspace.join("memory"), "").unwrap();
        assert!(!can_be_saved(&workspace), "a file has its name");
        std::fs::remove_file(workspace.join("memory")).unwrap();
        std::fs::create_dir(workspace.join("memory")).unwrap();
        assert!(can_be_saved(&workspace));
        std::fs::set_permissions(workspace.join("memory"), std::fs::Permissions::from_mode(0o555)).unwrap();
        // Root may write everywhere.
        assert_eq!(can_be_saved(&workspace), nix::unistd::geteuid().is_root());
    }
}
