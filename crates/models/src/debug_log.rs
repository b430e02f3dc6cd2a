//! Debug logs of the traffic with models (spec `models.md` §11). All of it is off unless a variable
//! or `diagnostics.cacheTrace` asks for it.
//!
//! [`mod@file`] appends lines to private files of bounded size; [`calls`] makes the lines of one call. Keys never get here, and
//! what a key is found in is masked.

mod calls;
mod file;

use openclaw_config::settings::CacheTrace;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use calls::CallLog;
use parking_lot::Mutex;

use self::calls::LogParts;
use self::file::LogFile;
use crate::model_spec::ModelSpec;
use crate::variables::Variables;

/// The logs of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct DebugLogs {
    payloads: Option<LogPath>,
    stream: Option<LogPath>,
    trace: TraceVariables,
    open: Arc<Mutex<HashMap<PathBuf, LogFile>>>,
}

/// Path of a log: below the state directory unless configured.
#[derive(Debug, Clone)]
enum LogPath {
    Named(PathBuf),
    Default(&'static str),
}

/// Environment variables of the cache trace, which override the configuration.
#[derive(Debug, Clone, Default)]
struct TraceVariables {
    enabled: Option<bool>,
    file: Option<String>,
    messages: Option<bool>,
    system: Option<bool>,
}

impl From<&Variables> for DebugLogs {
    fn from(variables: &Variables) -> Self {
        let place = |switch: &str, file: &str, default: &'static str| {
            is_on(variables.get(switch)?).then(|| match variables.get(file) {
                Some(path) => LogPath::Named(PathBuf::from(path)),
                None => LogPath::Default(default),
            })
        };
        let switch = |name: &str| variables.get(name).map(is_on);
        Self {
            payloads: place(
                "OPENCLAW_ANTHROPIC_PAYLOAD_LOG",
                "OPENCLAW_ANTHROPIC_PAYLOAD_LOG_FILE",
                "anthropic-payload.jsonl",
            ),
            stream: place("OPENCLAW_RAW_STREAM", "OPENCLAW_RAW_STREAM_PATH", "raw-stream.jsonl"),
            trace: TraceVariables {
                enabled: switch("OPENCLAW_CACHE_TRACE"),
                file: variables.get("OPENCLAW_CACHE_TRACE_FILE").map(str::to_owned),
                messages: switch("OPENCLAW_CACHE_TRACE_MESSAGES"),
                system: switch("OPENCLAW_CACHE_TRACE_SYSTEM"),
            },
            open: Arc::default(),
        }
    }
}

fn is_on(value: &str) -> bool {
    matches!(value.to_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

impl DebugLogs {
    /// Returns the logs for an agent of this directory; `None` if no log is requested.
    pub(crate) fn of(
        &self,
        spec: &ModelSpec,
        settings: &CacheTrace,
        agent_dir: &Path,
    ) -> Option<Arc<CallLog>> {
        let trace = CacheTrace {
            enabled: self.trace.enabled.unwrap_or(settings.enabled),
            file_path: self.trace.file.clone().or_else(|| settings.file_path.clone()),
            include_messages: self.trace.messages.unwrap_or(settings.include_messages),
            include_system: self.trace.system.unwrap_or(settings.include_system),
        };
        let is_anthropic = spec.api == crate::api::Api::AnthropicMessages;
        let payloads = self.payloads.as_ref().filter(|_| is_anthropic);
        if payloads.is_none() && self.stream.is_none() && !trace.enabled {
            return None;
        }
        let traced =
            trace.file_path.map_or(LogPath::Default("cache-trace.jsonl"), |path| LogPath::Named(path.into()));
        let parts = LogParts {
            payloads: payloads.map(|place| self.file(place, agent_dir)),
            stream: self.stream.as_ref().map(|place| self.file(place, agent_dir)),
            trace: trace.enabled.then(|| self.file(&traced, agent_dir)),
            with_messages: trace.include_messages,
            with_system: trace.include_system,
        };
        Some(Arc::new(CallLog::new(spec, parts)))
    }

    /// Returns the writer of a file; all users of a file share one writer.
    fn file(&self, place: &LogPath, agent_dir: &Path) -> LogFile {
        let path = match place {
            LogPath::Named(path) => path.clone(),
            // `<state>/agents/<id>/agent`
            LogPath::Default(name) => {
                let state = agent_dir.ancestors().nth(3).unwrap_or(agent_dir);
                state.join("logs").join(name)
            }
        };
        self.open.lock().entry(path.clone()).or_insert_with(|| LogFile::begin(path)).clone()
    }
}

#[cfg(test)]
mod tests;
