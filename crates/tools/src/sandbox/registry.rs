//! The sandboxes there are, in `<state>/sandbox/` (spec `tools.md` §10): `containers.json` is OpenClaw's, `local.json` has the same
//! shape for those of the kernel. Blocking.

use std::io;
use std::path::{Path, PathBuf};

use openclaw_agent::place::Place;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::settings::PruneSettings;

/// Sandbox in the registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Name of the sandbox.
    pub container_name: String,
    /// Scope key of those who share it.
    pub session_key: String,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds.
    pub last_used_at_ms: i64,
    /// Image from which it was created.
    pub image: String,
    /// Hash of the settings with which it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<String>,
    /// Unknown fields, kept as they are.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
    /// Kind, which determines the registry file. Sandboxes of different kinds may have the same
    /// name.
    #[serde(skip)]
    pub kind: SandboxEngine,
}

/// Engine that runs the commands of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxEngine {
    /// A container.
    #[default]
    Container,
    /// The kernel alone.
    Kernel,
}

/// The file.
#[derive(Debug, Clone)]
pub struct Registry {
    path: PathBuf,
    kind: SandboxEngine,
}

const LIMITS: &str = "limits";
const HAS_GROUP: &str = "hasControlGroup";

/// Lock that is held while a file is read and written again.
static CHANGING: Mutex<()> = Mutex::new(());

#[derive(Default, Serialize, Deserialize)]
struct RegistryFile {
    #[serde(default)]
    entries: Vec<Entry>,
}

impl Entry {
    /// Describes how the limits of a kernel sandbox are enforced.
    pub fn limits(&self) -> Option<&str> {
        self.rest.get(LIMITS)?.as_str()
    }

    /// True if no control group limits a kernel sandbox as a whole; false where that is not known.
    pub fn has_no_group(&self) -> bool {
        self.rest.get(HAS_GROUP).and_then(Value::as_bool) == Some(false)
    }

    pub(super) fn set_limits(&mut self, told: String, has_group: bool) {
        self.rest.insert(LIMITS.to_owned(), told.into());
        self.rest.insert(HAS_GROUP.to_owned(), has_group.into());
    }
}

impl Registry {
    /// Opens the registry of containers.
    pub fn containers(state_dir: &Path) -> Self {
        Self { path: state_dir.join("sandbox/containers.json"), kind: SandboxEngine::Container }
    }

    /// Opens the registry of kernel sandboxes.
    pub fn local(state_dir: &Path) -> Self {
        Self { path: state_dir.join("sandbox/local.json"), kind: SandboxEngine::Kernel }
    }

    /// All. A file that can't be read holds none.
    pub fn entries(&self) -> Vec<Entry> {
        let text = openclaw_config::shared_place::read(&self.path).unwrap_or_default();
        let mut entries = serde_json::from_slice::<RegistryFile>(&text).unwrap_or_default().entries;
        entries.iter_mut().for_each(|entry| entry.kind = self.kind);
        entries
    }

    pub(super) fn find(&self, name: &str) -> Option<Entry> {
        self.entries().into_iter().find(|entry| entry.container_name == name)
    }

    /// Notes one. When it was made stays.
    pub(super) fn note(&self, entry: Entry) -> io::Result<()> {
        let _nobody_else = CHANGING.lock();
        let mut entries = self.entries();
        match entries.iter_mut().find(|known| known.container_name == entry.container_name) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
        self.write(entries)
    }

    /// Forgets one.
    pub fn forget(&self, name: &str) -> io::Result<()> {
        let _nobody_else = CHANGING.lock();
        let entries = self.entries();
        self.write(entries.into_iter().filter(|entry| entry.container_name != name).collect())
    }

    fn write(&self, entries: Vec<Entry>) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&RegistryFile { entries })?;
        text.push(b'\n');
        Ok(Place::create_anywhere(&self.path)?.replace(&text)?)
    }
}

/// Returns true if the sandbox is to be removed.
pub(super) fn is_due(entry: &Entry, prune: PruneSettings, now_ms: i64) -> bool {
    const HOUR: i64 = 3_600_000;
    let passed = |since: i64, limit: u64, unit: i64| {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX).saturating_mul(unit);
        limit > 0 && now_ms.saturating_sub(since) > limit
    };
    passed(entry.last_used_at_ms, prune.idle_hours, HOUR)
        || passed(entry.created_at_ms, prune.max_age_days, 24 * HOUR)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn entry(name: &str, created: i64, used: i64) -> Entry {
        Entry {
            container_name: name.into(),
            session_key: "main".into(),
            created_at_ms: created,
            last_used_at_ms: used,
            image: "i".into(),
            config_hash: Some("h".into()),
            rest: Map::new(),
            kind: SandboxEngine::Container,
        }
    }

    #[test]
    fn entries_are_kept_with_what_others_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::containers(dir.path());
        assert_eq!(registry.entries(), []);
        registry.note(entry("a", 1, 1)).unwrap();
        registry.note(entry("b", 2, 2)).unwrap();
        let file = dir.path().join("sandbox/containers.json");
        let text = std::fs::read_to_string(&file).unwrap().replacen("\"image\"", "\"own\": 7, \"image\"", 1);
        std::fs::write(&file, text).unwrap();
        let mut a = registry.find("a").unwrap();
        a.last_used_at_ms = 9;
        registry.note(a).unwrap();
        let a = registry.find("a").unwrap();
        assert_eq!((a.created_at_ms, a.last_used_at_ms, &a.rest["own"]), (1, 9, &Value::from(7)));
        registry.forget("a").unwrap();
        assert_eq!(registry.entries(), [entry("b", 2, 2)]);
        std::fs::write(&file, "{broken").unwrap();
        assert_eq!(registry.entries(), []);
    }

    #[test]
    fn what_is_idle_or_old_is_due() {
        const HOUR: i64 = 3_600_000;
        for (created, used, idle_hours, max_age_days, due) in [
            (0, 100 * HOUR, 24, 7, false),
            (0, 75 * HOUR, 24, 7, true),
            (0, 76 * HOUR, 24, 7, false),
            (0, 0, 0, 7, false),
            (0, 0, 0, 0, false),
            (-100 * HOUR, 100 * HOUR, 24, 7, true),
            (-100 * HOUR, 100 * HOUR, 24, 0, false),
        ] {
            let prune = PruneSettings { idle_hours, max_age_days };
            assert_eq!(
                is_due(&entry("a", created, used), prune, 100 * HOUR),
                due,
                "{created} {used} {prune:?}"
            );
        }
    }
}
