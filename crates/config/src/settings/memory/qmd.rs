//! `memory.qmd`: the program `qmd` as the searcher of memory (spec `memory.md` §15).

use std::path::PathBuf;
use std::time::Duration;

use openclaw_protocol::AgentId;
use serde::Deserialize;

use crate::duration::{DurationUnit, parse_duration};
use crate::settings::{Config, SendPolicyRules};

/// `memory.qmd`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryQmd {
    command: Option<String>,
    include_default_memory: Option<bool>,
    /// Further directories and files.
    pub paths: Vec<MemoryQmdPath>,
    /// Transcripts.
    pub sessions: MemoryQmdSessions,
    /// Moments at which the index is brought up to date.
    pub update: MemoryQmdUpdate,
    /// Sizes of answers.
    pub limits: MemoryQmdLimits,
    scope: Option<SendPolicyRules>,
    search_mode: Option<MemoryQmdSearch>,
}

/// `memory.qmd.paths[]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct MemoryQmdPath {
    /// Directory or file; relative ones are below the workspace.
    pub path: String,
    /// Glob of the files that count; default `**/*.md`.
    pub pattern: Option<String>,
    /// Name of the collection.
    pub name: Option<String>,
}

/// `memory.qmd.sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryQmdSessions {
    enabled: Option<bool>,
    export_dir: Option<String>,
    retention_days: Option<u64>,
}

/// `memory.qmd.update`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryQmdUpdate {
    interval: Option<String>,
    debounce_ms: Option<u64>,
    on_boot: Option<bool>,
    wait_for_boot_sync: Option<bool>,
    embed_interval: Option<String>,
    command_timeout_ms: Option<u64>,
    update_timeout_ms: Option<u64>,
    embed_timeout_ms: Option<u64>,
}

/// `memory.qmd.limits`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryQmdLimits {
    max_results: Option<u64>,
    max_snippet_chars: Option<u64>,
    max_injected_chars: Option<u64>,
    timeout_ms: Option<u64>,
}

/// `memory.qmd.searchMode`: the command that searches. Ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryQmdSearch {
    /// Words alone, which needs no model.
    Search,
    /// Vectors alone.
    Vsearch,
    /// Both, with the query expanded and the hits ranked by models on this machine.
    #[default]
    Query,
}

impl MemoryQmdSearch {
    /// The value as it is written, which is the command too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Vsearch => "vsearch",
            Self::Query => "query",
        }
    }
}

impl MemoryQmd {
    /// Name or path of the program: the first word of `command`, with quotes as a shell reads them.
    pub fn program(&self) -> String {
        self.command.as_deref().and_then(first_word).unwrap_or_else(|| "qmd".to_owned())
    }

    /// True if the workspace's own memory files are searched.
    pub fn includes_default_memory(&self) -> bool {
        self.include_default_memory.unwrap_or(true)
    }

    /// Rules of the sessions that may search; default direct chats alone.
    pub fn scope(&self) -> SendPolicyRules {
        self.scope.clone().unwrap_or_else(SendPolicyRules::direct_chats)
    }

    /// The command that searches.
    pub fn search_mode(&self) -> MemoryQmdSearch {
        self.search_mode.unwrap_or_default()
    }
}

impl MemoryQmdSessions {
    /// True if transcripts are exported and searched.
    pub fn is_on(&self) -> bool {
        self.enabled.unwrap_or(false)
    }

    /// Age at which a transcript is not searched any more; `None` is never.
    pub fn retention(&self) -> Option<Duration> {
        let days = self.retention_days.filter(|days| *days > 0)?;
        Some(Duration::from_secs(days.saturating_mul(86_400)))
    }
}

impl MemoryQmdUpdate {
    /// Time between two updates; `None` is no update.
    pub fn interval(&self) -> Option<Duration> {
        interval(self.interval.as_deref(), 5)
    }

    /// Time after an update in which no other one is made.
    pub fn debounce(&self) -> Duration {
        Duration::from_millis(self.debounce_ms.unwrap_or(15_000))
    }

    /// True if the gateway updates at its start.
    pub fn on_boot(&self) -> bool {
        self.on_boot.unwrap_or(true)
    }

    /// True if searches wait for the first update.
    pub fn waits_for_boot(&self) -> bool {
        self.wait_for_boot_sync.unwrap_or(false)
    }

    /// Time after which vectors are made again; `None` is only once.
    pub fn embed_interval(&self) -> Option<Duration> {
        interval(self.embed_interval.as_deref(), 60)
    }

    /// Time limit of commands about collections.
    pub fn command_timeout(&self) -> Duration {
        milliseconds(self.command_timeout_ms, 30_000)
    }

    /// Time limit of an update.
    pub fn update_timeout(&self) -> Duration {
        milliseconds(self.update_timeout_ms, 120_000)
    }

    /// Time limit of making vectors.
    pub fn embed_timeout(&self) -> Duration {
        milliseconds(self.embed_timeout_ms, 120_000)
    }
}

impl MemoryQmdLimits {
    /// Largest number of hits.
    pub fn max_results(&self) -> usize {
        positive(self.max_results, 6)
    }

    /// Largest size of a quoted text, in UTF-16 units.
    pub fn max_snippet_chars(&self) -> usize {
        positive(self.max_snippet_chars, 700)
    }

    /// Largest sum of what the hits of an answer quote, in UTF-16 units.
    pub fn max_injected_chars(&self) -> usize {
        positive(self.max_injected_chars, 4_000)
    }

    /// Time limit of a search.
    pub fn timeout(&self) -> Duration {
        milliseconds(self.timeout_ms, 4_000)
    }
}

impl Config {
    /// Directory of all that `qmd` keeps for an agent.
    pub fn memory_qmd_home(&self, id: &AgentId) -> PathBuf {
        self.paths().state_dir().join("agents").join(id.as_str()).join("qmd")
    }

    /// Directory of the transcripts that are exported for `qmd`.
    pub fn memory_qmd_exports(&self, id: &AgentId) -> PathBuf {
        let configured = self.memory.qmd.sessions.export_dir.as_deref().map(str::trim);
        match configured.filter(|dir| !dir.is_empty()) {
            // Agents share the setting, never a directory.
            Some(dir) if self.agent_ids().len() > 1 => self.workspace_path(id, dir).join(id.as_str()),
            Some(dir) => self.workspace_path(id, dir),
            None => self.memory_qmd_home(id).join("sessions"),
        }
    }

    /// A path of `memory.qmd`: below the home, absolute, or below the workspace.
    pub fn workspace_path(&self, id: &AgentId, text: &str) -> PathBuf {
        let expanded = self.environment().expand_tilde(text);
        crate::environment::without_dots(&self.agent(id).workspace.join(expanded))
    }
}

/// Reads a duration whose unit is minutes where none stands. What can't be read is the default; 0 is none.
fn interval(configured: Option<&str>, default_minutes: u64) -> Option<Duration> {
    let read = configured.and_then(|text| parse_duration(text, DurationUnit::Minutes).ok());
    let duration = Duration::from_millis(read.unwrap_or(default_minutes * 60_000));
    (!duration.is_zero()).then_some(duration)
}

fn milliseconds(configured: Option<u64>, default: u64) -> Duration {
    Duration::from_millis(configured.filter(|number| *number > 0).unwrap_or(default))
}

fn positive(configured: Option<u64>, default: usize) -> usize {
    configured
        .filter(|number| *number > 0)
        .map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// The first word of a command line; `None` if there is none.
fn first_word(line: &str) -> Option<String> {
    let (mut word, mut quote) = (String::new(), None);
    let mut letters = line.trim().chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if letter == open => quote = None,
            (None | Some('"'), '\\') => word.extend(letters.next()),
            (None, letter) if letter.is_whitespace() => break,
            (_, letter) => word.push(letter),
        }
    }
    Some(word).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qmd(text: &str) -> MemoryQmd {
        crate::json5::parse_value(text).map(|value| serde_json::from_value(value).unwrap()).unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_documents() {
        let found = qmd("{}");
        let (update, limits) = (&found.update, &found.limits);
        assert_eq!((found.program().as_str(), found.includes_default_memory()), ("qmd", true));
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        assert_eq!((update.interval(), update.embed_interval()), (minutes(5), minutes(60)));
        assert_eq!((update.on_boot(), update.waits_for_boot()), (true, false));
        let all =
            [update.debounce(), update.command_timeout(), update.update_timeout(), update.embed_timeout()];
        assert_eq!(all.map(|time| time.as_millis()), [15_000, 30_000, 120_000, 120_000]);
        assert_eq!(
            (limits.max_results(), limits.max_snippet_chars(), limits.max_injected_chars()),
            (6, 700, 4_000)
        );
        assert_eq!(limits.timeout().as_millis(), 4_000);
        assert_eq!(found.search_mode(), MemoryQmdSearch::Query);
        assert!(!found.sessions.is_on() && found.sessions.retention().is_none());
    }

    #[test]
    fn durations_are_read_as_recorded() {
        for (text, expect) in [
            ("30s", Some(30_000)),
            ("1.5h", Some(5_400_000)),
            ("250ms", Some(250)),
            ("7", Some(420_000)),
            ("1d", Some(86_400_000)),
            ("0", None),
            ("0s", None),
            ("often", Some(300_000)),
            ("-5m", Some(300_000)),
        ] {
            let found = interval(Some(text), 5).map(|time| time.as_millis());
            assert_eq!(found, expect, "{text}");
        }
        let limits =
            qmd("{limits: {timeoutMs: 0, maxResults: 3}, update: {embedTimeoutMs: 0, debounceMs: 0}}");
        assert_eq!((limits.limits.timeout().as_millis(), limits.limits.max_results()), (4_000, 3));
        assert_eq!(
            (limits.update.embed_timeout().as_millis(), limits.update.debounce().as_millis()),
            (120_000, 0)
        );
    }

    #[test]
    fn only_the_first_word_of_a_command_counts() {
        for (line, expect) in [
            ("/opt/qmd --ignored-arg", "/opt/qmd"),
            ("'/opt/my qmd/bin/qmd' -x", "/opt/my qmd/bin/qmd"),
            (r#""/opt/my qmd""#, "/opt/my qmd"),
            (r"/opt/my\ qmd x", "/opt/my qmd"),
            ("  ", "qmd"),
            ("", "qmd"),
        ] {
            assert_eq!(qmd(&serde_json::json!({"command": line}).to_string()).program(), expect);
        }
    }

    #[test]
    fn agents_never_share_a_directory_of_transcripts() {
        let config = |text: &str| {
            Config::from_json5(text, &crate::Environment::new([("HOME", "/home/u")], "/")).unwrap()
        };
        let main = AgentId::normalize("main");
        let exports = |text: &str| config(text).memory_qmd_exports(&main).display().to_string();
        assert_eq!(exports("{}"), "/home/u/.openclaw/agents/main/qmd/sessions");
        assert_eq!(exports("{memory: {qmd: {sessions: {exportDir: '~/said'}}}}"), "/home/u/said");
        let two = "{memory: {qmd: {sessions: {exportDir: '~/said'}}}, agents: {list: [{id: 'main'}, {id: 'work'}]}}";
        assert_eq!(exports(two), "/home/u/said/main");
    }
}
