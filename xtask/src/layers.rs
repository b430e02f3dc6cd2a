//! The crates form layers (`ARCHITECTURE.md`); a dependency points down, never up or sideways around the list. Within a crate modules
//! import each other downwards too: the size of the largest import cycle is written down here and may only fall.

mod cycles;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::source;

/// Layer of all crates of chat platforms.
const PLATFORMS: &str = "openclaw-channel-*";

/// Crates from top to bottom.
const LAYERS: &[&str] = &[
    "openclaw",
    "openclaw-gateway",
    "openclaw-dispatch",
    "openclaw-runs",
    "openclaw-commands",
    "openclaw-runtime",
    "openclaw-delivery",
    "openclaw-journal",
    PLATFORMS,
    "openclaw-channels",
    "openclaw-tools",
    "openclaw-agent",
    "openclaw-qmd",
    "openclaw-memory",
    "openclaw-models",
    "openclaw-sessions",
    "openclaw-config",
    "openclaw-protocol",
    "openclaw-encoder",
    "openclaw-embedding",
    "openclaw-tls",
    "openclaw-heap",
    "openclaw-vec0",
];

/// Dependencies that would be downwards and are forbidden all the same: `(from, to, why)`.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("openclaw-models", "openclaw-sessions", "a model client knows nothing of sessions"),
    ("openclaw-channels", "openclaw-agent", "a channel knows nothing of agents"),
    (PLATFORMS, "openclaw-agent", "a channel knows nothing of agents"),
    ("openclaw-journal", PLATFORMS, "platforms are reached by the Channel trait"),
    ("openclaw-delivery", PLATFORMS, "platforms are reached by the Channel trait"),
    ("openclaw-runtime", PLATFORMS, "platforms are reached by the Channel trait"),
    ("openclaw-commands", PLATFORMS, "platforms are reached by the Channel trait"),
    ("openclaw-dispatch", PLATFORMS, "platforms are reached by the Channel trait"),
    ("openclaw-memory", "openclaw-models", "embedding clients are handed in"),
    ("openclaw-qmd", "openclaw-models", "qmd brings its own models"),
    ("openclaw-qmd", "openclaw-sessions", "transcripts are handed in"),
];

/// Number of modules in the largest import cycle of a crate, by its folder; 0 for those that are not named. The numbers only fall:
/// no crate has a cycle.
const LARGEST_CYCLES: &[(&str, usize)] = &[];

const TESTKIT: &str = "openclaw-testkit";
const XTASK: &str = "xtask";

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    let imports = cycles::imports(&source::product()?);
    for (name, modules) in &imports {
        let cycle = cycles::largest_cycle(modules);
        println!(
            "{name}: {} of {} modules in the largest cycle: {}",
            cycle.len(),
            modules.len(),
            cycle.join(" ")
        );
    }
    let mut complaints = complaints(&metadata()?);
    complaints.extend(cycle_complaints(&imports));
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("\n  {}", complaints.join("\n  "))
}

fn metadata() -> anyhow::Result<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot run cargo metadata")?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn complaints(metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in list(metadata, "packages") {
        let from = text(package, "name");
        for dependency in list(package, "dependencies") {
            let to = text(dependency, "name");
            let shipped = dependency["kind"].is_null();
            complaints.extend(judge(from, to, shipped));
        }
    }
    complaints
}

/// Says what is wrong with one dependency, if anything.
fn judge(from: &str, to: &str, shipped: bool) -> Option<String> {
    if to == TESTKIT {
        return shipped.then(|| format!("{from} ships {TESTKIT}; make it a dev-dependency"));
    }
    let below = rank(to)?;
    if from == XTASK {
        return Some(format!("{from} depends on {to}; make the task an example or a test of that crate"));
    }
    let above = rank(from)?;
    if shipped && above >= below {
        return Some(format!("{from} depends on {to}, which lies above it"));
    }
    let is_forbidden = |(a, b, _): &&(&str, &str, &str)| *a == layer_of(from) && *b == layer_of(to);
    let (_, _, why) = FORBIDDEN.iter().filter(|_| shipped).find(is_forbidden)?;
    Some(format!("{from} depends on {to}: {why}"))
}

/// Says where the largest import cycle of a crate is not what is written down.
fn cycle_complaints(imports: &BTreeMap<String, cycles::Imports>) -> Vec<String> {
    let complain = |(name, modules): (&String, &cycles::Imports)| {
        let found = cycles::largest_cycle(modules);
        let allowed = LARGEST_CYCLES.iter().find(|(known, _)| known == name).map_or(0, |(_, size)| *size);
        let why = match found.len().cmp(&allowed) {
            Ordering::Equal => return None,
            Ordering::Greater => "turn an import round",
            Ordering::Less => "write the smaller number into LARGEST_CYCLES",
        };
        let found = format!("{} modules in an import cycle ({})", found.len(), found.join(", "));
        Some(format!("{name} has {found}, {allowed} are written down: {why}"))
    };
    imports.iter().filter_map(complain).collect()
}

fn rank(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == layer_of(name))
}

fn layer_of(name: &str) -> &str {
    let is_platform = PLATFORMS.strip_suffix('*').is_some_and(|start| name.starts_with(start));
    if is_platform { PLATFORMS } else { name }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_depend_only_downwards() {
        assert_eq!(complaints(&metadata().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn no_import_cycle_grows() {
        assert_eq!(cycle_complaints(&cycles::imports(&source::product().unwrap())), Vec::<String>::new());
    }

    #[test]
    fn every_crate_has_a_layer() {
        let metadata = metadata().unwrap();
        for package in list(&metadata, "packages") {
            let name = text(package, "name");
            assert!(
                rank(name).is_some() || [TESTKIT, XTASK, "openclaw-fuzz"].contains(&name),
                "{name} has no layer"
            );
        }
    }

    #[test]
    fn upward_sideways_and_testkit_dependencies_are_refused() {
        assert!(judge("openclaw-config", "openclaw-sessions", true).is_some());
        assert!(judge("openclaw-models", "openclaw-sessions", true).is_some());
        assert!(judge("openclaw-channel-a", "openclaw-channel-b", true).is_some());
        assert!(judge("openclaw-channel-a", "openclaw-agent", true).is_some());
        assert!(judge("openclaw-dispatch", "openclaw-channel-a", true).is_some());
        assert!(judge("openclaw-dispatch", "openclaw-channel-a", false).is_none());
        assert!(judge("openclaw-gateway", TESTKIT, true).is_some());
        assert!(judge("openclaw-gateway", TESTKIT, false).is_none());
        assert!(judge(XTASK, "openclaw-protocol", false).is_some());
        assert!(judge("openclaw-gateway", "openclaw-config", true).is_none());
    }
}
