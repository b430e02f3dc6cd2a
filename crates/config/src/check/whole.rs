//! Rules that need the whole document or the file system (spec `config.md` §4.3).

use std::cell::LazyCell;
use std::path::PathBuf;

use openclaw_protocol::AgentId;
use serde_json::{Map, Value};

use super::Findings;
use super::structure::check_plugin_config;
use crate::environment::without_dots;
use crate::value_path::{items, texts};
use crate::{Environment, Issue, Paths, installed_extensions, registry};

/// Bundled plugins that are no channels (spec `config.md` §11).
const PLUGINS: &[&str] = &[
    "copilot-proxy",
    "device-pair",
    "diagnostics-otel",
    "google-antigravity-auth",
    "google-gemini-cli-auth",
    "llm-task",
    "lobster",
    "memory-core",
    "memory-lancedb",
    "minimax-portal-auth",
    "open-prose",
    "phone-control",
    "qwen-portal-auth",
    "talk-voice",
    "voice-call",
];

/// Runs the steps in order and stops after the first that finds errors.
pub(super) fn check(document: &Value, paths: &Paths, env: &Environment) -> Findings {
    let issues = agent_dirs(document, paths, env);
    if !issues.is_empty() {
        return Findings { issues, warnings: Vec::new() };
    }
    let issues = avatars(document, env);
    if !issues.is_empty() {
        return Findings { issues, warnings: Vec::new() };
    }
    let mut findings = Findings::default();
    default_agents(document, &mut findings.warnings);
    plugins(document, paths, env, &mut findings);
    channels(document, &mut findings.issues);
    heartbeat_targets(document, &mut findings.issues);
    findings
}

fn agents(document: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    items(document.pointer("/agents/list")).filter_map(Value::as_object)
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Two agents in one directory would take each other's credentials. The same id twice is one agent.
fn agent_dirs(document: &Value, paths: &Paths, env: &Environment) -> Vec<Issue> {
    let mut owners: Vec<(PathBuf, Vec<AgentId>)> = Vec::new();
    for agent in agents(document) {
        let id = AgentId::normalize(text(agent, "id").unwrap_or_default());
        let dir = text(agent, "agentDir").map_or_else(|| paths.agent_dir(&id), |dir| env.expand_path(dir));
        match owners.iter_mut().find(|(known, _)| *known == dir) {
            Some((_, ids)) if !ids.contains(&id) => ids.push(id),
            Some(_) => {}
            None => owners.push((dir, vec![id])),
        }
    }
    let conflicts: Vec<String> = owners
        .iter()
        .filter(|(_, ids)| ids.len() > 1)
        .map(|(dir, ids)| {
            let names = ids.iter().map(|id| format!("\"{id}\"")).collect::<Vec<_>>().join(", ");
            format!("- {}: {names}", dir.display())
        })
        .collect();
    if conflicts.is_empty() {
        return Vec::new();
    }
    vec![Issue::new("agents.list", DUPLICATE_AGENT_DIR.replace("{conflicts}", &conflicts.join("\n")))]
}

/// Clients show this text as it is.
const DUPLICATE_AGENT_DIR: &str = "Duplicate agentDir detected (multi-agent config).\nEach agent must have a unique agentDir; sharing it causes auth/session state collisions and token invalidation.\n\nConflicts:\n{conflicts}\n\nFix: remove the shared agents.list[].agentDir override (or give each agent its own directory).\nIf you want to share credentials, copy auth-profiles.json instead of sharing the entire agentDir.";

/// Said once, where the config is read (spec `sessions.md` §2.1).
fn default_agents(document: &Value, warnings: &mut Vec<Issue>) {
    let marked =
        agents(document).filter(|agent| agent.get("default").is_some_and(|mark| mark == true)).count();
    if marked > 1 {
        let text = "Multiple agents marked default=true; using the first entry as default.";
        warnings.push(Issue::new("agents.list", text));
    }
}

fn avatars(document: &Value, env: &Environment) -> Vec<Issue> {
    agents(document)
        .enumerate()
        .filter_map(|(index, agent)| {
            let identity = agent.get("identity")?.as_object()?;
            let problem = avatar_problem(text(identity, "avatar")?, text(agent, "workspace"), env)?;
            Some(Issue::new(format!("agents.list.{index}.identity.avatar"), problem))
        })
        .collect()
}

fn avatar_problem(avatar: &str, workspace: Option<&str>, env: &Environment) -> Option<&'static str> {
    let lower = avatar.to_ascii_lowercase();
    if lower.starts_with("data:") || lower.starts_with("http://") || lower.starts_with("https://") {
        return None;
    }
    let has_scheme = lower.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'.' || b == b'-')
    });
    if avatar.starts_with('~') || has_scheme {
        return Some("identity.avatar must be a workspace-relative path, http(s) URL, or data URI.");
    }
    let root = workspace.map_or_else(|| PathBuf::from("/workspace"), |dir| env.expand_path(dir));
    let target = without_dots(&root.join(avatar));
    (!target.starts_with(&root)).then_some("identity.avatar must stay within the agent workspace.")
}

fn is_known_plugin(id: &str) -> bool {
    has_section(id) || PLUGINS.contains(&id)
}

fn plugins(document: &Value, paths: &Paths, env: &Environment, findings: &mut Findings) {
    let Some(section) = document.get("plugins") else { return };
    let load_paths: Vec<&str> = texts(section.pointer("/load/paths")).collect();
    for path in &load_paths {
        if !env.expand_path(path).exists() {
            findings
                .issues
                .push(Issue::new("plugins.load.paths", format!("plugin: plugin path not found: {path}")));
        }
    }
    // A plugin from elsewhere may have any id.
    let has_extensions = LazyCell::new(|| !installed_extensions(paths).is_empty());
    let is_missing = |id: &str| !is_known_plugin(id) && load_paths.is_empty() && !*has_extensions;
    let not_found = |path: String, id: &str| Issue::new(path, format!("plugin not found: {id}"));
    let entries = section.get("entries").and_then(Value::as_object);
    for (id, _) in entries.into_iter().flatten().filter(|(id, _)| is_missing(id)) {
        findings.issues.push(not_found(format!("plugins.entries.{id}"), id));
    }
    // An entry of blanks names no plugin, in a list and in the slot.
    let is_named = |id: &&str| !id.trim().is_empty();
    for list in ["allow", "deny"] {
        for id in texts(section.get(list)).filter(is_named).filter(|id| is_missing(id)) {
            findings.issues.push(not_found(format!("plugins.{list}"), id));
        }
    }
    let memory = section.pointer("/slots/memory").and_then(Value::as_str).map(str::trim);
    if let Some(id) = memory.filter(is_named)
        && !id.eq_ignore_ascii_case("none")
        && is_missing(id)
    {
        findings.issues.push(not_found("plugins.slots.memory".to_owned(), id));
    }
    for (id, entry) in entries.into_iter().flatten() {
        plugin_config(id, entry, findings);
    }
}

fn plugin_config(id: &str, entry: &Value, findings: &mut Findings) {
    let Some(config) = entry.get("config") else { return };
    match entry.get("enabled").and_then(Value::as_bool) {
        Some(true) => findings.issues.extend(check_plugin_config(id, config).into_iter().map(|text| {
            Issue::new(format!("plugins.entries.{id}.config"), format!("invalid config: {text}"))
        })),
        Some(false) => findings.warnings.push(Issue::new(
            format!("plugins.entries.{id}"),
            "plugin disabled (disabled in config) but config is present",
        )),
        None => {}
    }
}

/// True for the id of a chat platform that messages can be sent to, built in or by a bundled plugin.
fn has_section(id: &str) -> bool {
    registry::by_id(id).is_some_and(|channel| channel.deliverable)
}

/// True if a chat platform has this name.
pub(super) fn is_channel(name: &str) -> bool {
    registry::by_any_name(name).is_some()
}

fn channels(document: &Value, issues: &mut Vec<Issue>) {
    let unknown = |id: &&String| id.as_str() != "defaults" && !has_section(id);
    let section = document.get("channels").and_then(Value::as_object);
    for id in section.into_iter().flat_map(|map| map.keys()).filter(unknown) {
        issues.push(Issue::new(format!("channels.{id}"), format!("unknown channel id: {id}")));
    }
}

fn heartbeat_targets(document: &Value, issues: &mut Vec<Issue>) {
    let shared = document.pointer("/agents/defaults/heartbeat/target").and_then(Value::as_str);
    let own = agents(document).enumerate().filter_map(|(index, agent)| {
        let target = agent.get("heartbeat")?.get("target")?.as_str()?;
        Some((format!("agents.list.{index}.heartbeat.target"), target))
    });
    let all =
        shared.map(|target| ("agents.defaults.heartbeat.target".to_owned(), target)).into_iter().chain(own);
    for (path, target) in all {
        let name = target.trim().to_lowercase();
        let is_known = matches!(name.as_str(), "last" | "none") || is_channel(&name);
        if name.is_empty() {
            issues.push(Issue::new(path, "heartbeat target must not be empty"));
        } else if !is_known {
            issues.push(Issue::new(path, format!("unknown heartbeat target: {}", target.trim())));
        }
    }
}
