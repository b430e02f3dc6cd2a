//! Output of `openclaw hooks`: documents in the shape of OpenClaw 2026.2.9, and text.

use openclaw_agent::hooks::discover::{Home, Hook};
use openclaw_agent::hooks::gate::Standing;
use openclaw_agent::hooks::handler::{Handler, file_of};
use openclaw_agent::requirements::{Requirements, Strictness};
use serde_json::{Map, Value, json};

use super::Survey;
use crate::output::{Column, grid};

/// Characters of a line.
const WIDTH: usize = 119;
/// The column of its list that takes what the others leave.
const DESCRIPTION: usize = 2;

/// Hooks to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookFilter {
    All,
    Ready,
}

/// Amount of detail for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Short,
    /// Also the requirements that are missing.
    Missing,
}

/// Name of the hook with its emoji.
pub(super) fn title(hook: &Hook) -> String {
    match &hook.about.emoji {
        Some(emoji) => format!("{emoji} {}", hook.about.name),
        None => hook.about.name.clone(),
    }
}

/// Missing requirements, in one line.
pub(super) fn why_not(missing: &Requirements, standing: &Standing) -> String {
    let part = |name: &str, list: &[String], joint: &str| {
        (!list.is_empty()).then(|| format!("{name}: {}", list.join(joint)))
    };
    let mut parts: Vec<String> = [
        part("bins", &missing.bins, ", "),
        part("anyBins", &missing.any_bins, " or "),
        part("env", &missing.env, ", "),
        part("config", &missing.config, ", "),
        part("os", &missing.os, " or "),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Err(problem) = &standing.handler {
        parts.push(problem.to_string());
    }
    parts.join("; ")
}

fn status(standing: &Standing) -> &'static str {
    if standing.disabled {
        "⏸ disabled"
    } else if standing.is_ready() {
        "✓ ready"
    } else if standing.missing.is_empty() {
        "✗ broken"
    } else {
        "✗ missing"
    }
}

/// Adds the reason why its handler can't be run, if it can't.
fn with_problem(mut document: Map<String, Value>, standing: &Standing) -> Value {
    if let Err(problem) = &standing.handler {
        document.insert("problem".to_owned(), Value::String(problem.to_string()));
    }
    Value::Object(document)
}

fn object(pairs: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn file_path(hook: &Hook) -> String {
    match &hook.home {
        Home::BuiltIn(built_in) => format!("built-in/{}/HOOK.md", built_in.name()),
        Home::Directory(dir) => dir.join("HOOK.md").display().to_string(),
    }
}

fn base_dir(hook: &Hook) -> String {
    match &hook.home {
        Home::BuiltIn(built_in) => format!("built-in/{}", built_in.name()),
        Home::Directory(dir) => dir.display().to_string(),
    }
}

fn handler_path(hook: &Hook, standing: &Standing) -> String {
    match (&standing.handler, &hook.home) {
        (Ok(Handler::Command { file, .. }), _) => file.display().to_string(),
        (_, Home::BuiltIn(_)) => "built-in".to_owned(),
        (_, Home::Directory(dir)) => file_of(dir).map(|file| file.display().to_string()).unwrap_or_default(),
    }
}

impl Survey<'_> {
    fn shown(&self, which: HookFilter) -> impl Iterator<Item = &(super::Hook, Standing)> {
        self.hooks.iter().filter(move |(_, standing)| which == HookFilter::All || standing.is_ready())
    }

    fn problems_document(&self) -> Option<Value> {
        let problem = |problem: &super::Problem| json!({"path": problem.path.display().to_string(), "problem": problem.text});
        (!self.problems.is_empty()).then(|| self.problems.iter().map(problem).collect())
    }

    /// `hooks list --json`
    pub(super) fn list_document(&self, which: HookFilter) -> Value {
        let hook = |(hook, standing): &(Hook, Standing)| {
            let about = &hook.about;
            let document = object([
                ("name", Some(json!(about.name))),
                ("description", Some(json!(about.description))),
                ("emoji", about.emoji.as_ref().map(|emoji| json!(emoji))),
                ("eligible", Some(json!(standing.is_ready()))),
                ("disabled", Some(json!(standing.disabled))),
                ("source", Some(json!(hook.source.as_str()))),
                ("events", Some(json!(about.events))),
                ("homepage", about.homepage.as_ref().map(|page| json!(page))),
                ("missing", Some(json!(standing.missing))),
                ("managedByPlugin", Some(json!(false))),
            ]);
            with_problem(document, standing)
        };
        let hooks: Vec<Value> = self.shown(which).map(hook).collect();
        Value::Object(object([
            ("workspaceDir", Some(json!(self.places.workspace.display().to_string()))),
            ("managedHooksDir", Some(json!(self.places.managed.display().to_string()))),
            ("hooks", Some(Value::Array(hooks))),
            ("problems", self.problems_document()),
        ]))
    }

    /// `hooks info --json`
    pub(super) fn info_document(&self, hook: &Hook, standing: &Standing) -> Value {
        let about = &hook.about;
        let check = |path: &String| json!({"path": path, "satisfied": self.gate.has_config(path)});
        let document = object([
            ("name", Some(json!(about.name))),
            ("description", Some(json!(about.description))),
            ("source", Some(json!(hook.source.as_str()))),
            ("filePath", Some(json!(file_path(hook)))),
            ("baseDir", Some(json!(base_dir(hook)))),
            ("handlerPath", Some(json!(handler_path(hook, standing)))),
            ("hookKey", Some(json!(about.key))),
            ("emoji", about.emoji.as_ref().map(|emoji| json!(emoji))),
            ("homepage", about.homepage.as_ref().map(|page| json!(page))),
            ("events", Some(json!(about.events))),
            ("always", Some(json!(about.strictness == Strictness::PlatformOnly))),
            ("disabled", Some(json!(standing.disabled))),
            ("eligible", Some(json!(standing.is_ready()))),
            ("managedByPlugin", Some(json!(false))),
            ("requirements", Some(json!(about.requirements))),
            ("missing", Some(json!(standing.missing))),
            ("configChecks", Some(about.requirements.config.iter().map(check).collect())),
            ("install", Some(json!(about.install))),
        ]);
        with_problem(document, standing)
    }

    /// `hooks check --json`
    pub(super) fn check_document(&self) -> Value {
        let (ready, rest): (Vec<_>, Vec<_>) =
            self.hooks.iter().partition(|(_, standing)| standing.is_ready());
        let not = |(hook, standing): &&(Hook, Standing)| {
            let disabled = standing.disabled.then_some(Value::Bool(true));
            let document = object([
                ("name", Some(json!(hook.about.name))),
                ("missing", Some(json!(standing.missing))),
                ("disabled", disabled),
            ]);
            with_problem(document, standing)
        };
        let names: Vec<&str> = ready.iter().map(|(hook, _)| hook.about.name.as_str()).collect();
        let hooks = json!({"eligible": names, "notEligible": rest.iter().map(not).collect::<Vec<_>>()});
        Value::Object(object([
            ("total", Some(json!(self.hooks.len()))),
            ("eligible", Some(json!(ready.len()))),
            ("notEligible", Some(json!(rest.len()))),
            ("hooks", Some(hooks)),
            ("problems", self.problems_document()),
        ]))
    }

    /// `hooks list`
    pub(super) fn list_text(&self, which: HookFilter, detail: Detail) -> Vec<String> {
        let ready = self.hooks.iter().filter(|(_, standing)| standing.is_ready()).count();
        let mut lines = vec![format!("Hooks ({ready}/{} ready)", self.hooks.len())];
        let row = |(hook, standing): &(Hook, Standing)| {
            let mut cells = vec![
                status(standing).to_owned(),
                title(hook),
                hook.about.description.clone(),
                hook.source.as_str().to_owned(),
            ];
            if detail == Detail::Missing {
                cells.push(why_not(&standing.missing, standing));
            }
            cells
        };
        let rows: Vec<Vec<String>> = self.shown(which).map(row).collect();
        let columns: &[Column] = match detail {
            Detail::Short => &[("Status", 0), ("Hook", 0), ("Description", 0), ("Source", 0)],
            Detail::Missing => {
                &[("Status", 0), ("Hook", 0), ("Description", 0), ("Source", 0), ("Missing", 0)]
            }
        };
        lines.extend(grid(columns, &rows, DESCRIPTION, WIDTH));
        lines.extend(self.notes());
        lines
    }

    fn notes(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .problems
            .iter()
            .map(|problem| format!("Not loaded: {}: {}", problem.path.display(), problem.text))
            .collect();
        if !self.config.hooks.internal.is_on() {
            lines.push(
                "Hooks are off (hooks.internal.enabled). `openclaw hooks enable <name>` switches them on."
                    .to_owned(),
            );
        }
        lines
    }

    /// `hooks info`
    pub(super) fn info_text(&self, hook: &Hook, standing: &Standing) -> Vec<String> {
        let about = &hook.about;
        let mut lines =
            vec![format!("{} {}", title(hook), status(standing)), String::new(), about.description.clone()];
        lines.extend([String::new(), "Details:".to_owned()]);
        let mut detail = |name: &str, value: &str| lines.push(format!("  {name}: {value}"));
        detail("Source", hook.source.as_str());
        detail("Path", &file_path(hook));
        detail("Handler", &handler_path(hook, standing));
        if let Some(page) = &about.homepage {
            detail("Homepage", page);
        }
        detail("Events", &about.events.join(", "));
        if let Err(problem) = &standing.handler {
            detail("Problem", &problem.to_string());
        }
        for unknown in &about.unknown_events {
            detail("Problem", &unknown.to_string());
        }
        if !about.requirements.is_empty() {
            lines.extend([String::new(), "Requirements:".to_owned()]);
            lines.extend(requirements(&about.requirements, &standing.missing));
        }
        lines
    }

    /// `hooks check`
    pub(super) fn check_text(&self) -> Vec<String> {
        let (ready, rest): (Vec<_>, Vec<_>) =
            self.hooks.iter().partition(|(_, standing)| standing.is_ready());
        let mut lines = vec![
            "Hooks Status".to_owned(),
            String::new(),
            format!("Total hooks: {}", self.hooks.len()),
            format!("Ready: {}", ready.len()),
            format!("Not ready: {}", rest.len()),
        ];
        if !rest.is_empty() {
            lines.extend([String::new(), "Hooks not ready:".to_owned()]);
        }
        for (hook, standing) in rest {
            let why = if standing.disabled {
                "switched off".to_owned()
            } else {
                why_not(&standing.missing, standing)
            };
            lines.push(format!("  {} - {why}", title(hook)));
        }
        let notes = self.notes();
        if !notes.is_empty() {
            lines.push(String::new());
            lines.extend(notes);
        }
        lines
    }
}

fn requirements(required: &Requirements, missing: &Requirements) -> Vec<String> {
    let rows = [
        ("Binaries", &required.bins, &missing.bins),
        ("Any binary", &required.any_bins, &missing.any_bins),
        ("Environment", &required.env, &missing.env),
        ("Config", &required.config, &missing.config),
        ("OS", &required.os, &missing.os),
    ];
    let line = |(name, required, missing): (&str, &Vec<String>, &Vec<String>)| {
        let mark = |each: &String| format!("{} {each}", if missing.contains(each) { '✗' } else { '✓' });
        (!required.is_empty())
            .then(|| format!("  {name}: {}", required.iter().map(mark).collect::<Vec<_>>().join(", ")))
    };
    rows.into_iter().filter_map(line).collect()
}
