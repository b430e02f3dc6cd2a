//! `hooks.internal` as the configuration file has it, for those commands that change it.

use std::path::Path;

use openclaw_agent::hooks::install::Pack;
use openclaw_config::write::{self, Actor};
use serde_json::{Map, Value, json};

use super::super::config::write_failure;
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Section of the config, as it is to be written.
#[derive(Debug)]
pub(super) struct Settings(Map<String, Value>);

/// New state of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookSwitch {
    On,
    Off,
}

/// Source of installed hooks; the field's words are OpenClaw's.
#[derive(Debug, Clone, Copy)]
pub(super) enum HookSource<'a> {
    Npm { spec: &'a str },
    Archive(&'a Path),
    Directory(&'a Path),
}

impl Settings {
    pub(super) fn of(context: &CliContext) -> Self {
        let section = context.loaded.snapshot.parsed.get("hooks").and_then(|hooks| hooks.get("internal"));
        Self(section.and_then(Value::as_object).cloned().unwrap_or_default())
    }

    pub(super) fn switch_hooks_on(&mut self) {
        self.0.insert("enabled".to_owned(), Value::Bool(true));
    }

    /// The key may have dots in it.
    pub(super) fn switch(&mut self, key: &str, to: HookSwitch) {
        let enabled = Value::Bool(to == HookSwitch::On);
        edit(&mut self.0, "entries", |entries| {
            edit(entries, key, |entry| {
                entry.insert("enabled".to_owned(), enabled);
            });
        });
    }

    /// Looks for hooks in one more directory.
    pub(super) fn add_directory(&mut self, dir: &Path) {
        let dir = Value::from(dir.display().to_string());
        edit(&mut self.0, "load", |load| {
            if let Value::Array(dirs) = load.entry("extraDirs").or_insert_with(|| json!([]))
                && !dirs.contains(&dir)
            {
                dirs.push(dir);
            }
        });
    }

    /// Notes what was installed, and switches it on.
    pub(super) fn installed(&mut self, pack: &Pack, directory: &Path, from: HookSource<'_>) {
        self.switch_hooks_on();
        for hook in &pack.hooks {
            self.switch(&hook.key, HookSwitch::On);
        }
        self.note(pack, directory, from);
    }

    /// Notes what was installed.
    pub(super) fn note(&mut self, pack: &Pack, directory: &Path, from: HookSource<'_>) {
        let (source, spec, path) = match from {
            HookSource::Npm { spec } => ("npm", Some(spec), None),
            HookSource::Archive(path) => ("archive", None, Some(path)),
            HookSource::Directory(path) => ("path", None, Some(path)),
        };
        let fields = [
            ("source", Some(source.to_owned())),
            ("spec", spec.map(str::to_owned)),
            ("sourcePath", path.map(|path| path.display().to_string())),
            ("installPath", Some(directory.display().to_string())),
            ("version", pack.version.clone()),
            ("installedAt", Some(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())),
        ];
        let change = |record: &mut Map<String, Value>| {
            for (name, value) in fields {
                match value {
                    Some(value) => record.insert(name.to_owned(), Value::String(value)),
                    None => record.shift_remove(name),
                };
            }
            record.insert("hooks".to_owned(), json!(pack.names()));
        };
        edit(&mut self.0, "installs", |installs| edit(installs, &pack.id, change));
    }

    /// Records of installed hooks, by id.
    pub(super) fn installs(&self) -> Vec<(String, HookInstall)> {
        let records = self.0.get("installs").and_then(Value::as_object);
        let record = |(id, record): (&String, &Value)| {
            let text = |key: &str| Some(record.get(key)?.as_str()?.to_owned());
            (id.clone(), HookInstall { source: text("source").unwrap_or_default(), spec: text("spec") })
        };
        records.into_iter().flatten().map(record).collect()
    }

    pub(super) fn write(self, context: &CliContext) -> Result<(), CommandFailure> {
        let path = ["hooks".to_owned(), "internal".to_owned()];
        write::set_value(&context.loaded, &path, Value::Object(self.0), Actor::Cli).map_err(write_failure)?;
        Ok(())
    }
}

/// Record of an installation, as far as an update needs it.
#[derive(Debug)]
pub(super) struct HookInstall {
    /// `npm`, `archive` or `path`.
    pub(super) source: String,
    /// Package spec, for npm.
    pub(super) spec: Option<String>,
}

/// Changes an object in an object; what else stands there is replaced.
fn edit(map: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut inner = match map.get_mut(key).map(Value::take) {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    };
    change(&mut inner);
    map.insert(key.to_owned(), Value::Object(inner));
}
