//! `openclaw hooks`: which hooks there are, what they need, and switching them on and off (spec `cli.md`, `golden/cli-hooks.json`).

mod report;

use openclaw_agent::hooks::discover::{Hook, Places, Problem, discover};
use openclaw_agent::hooks::gate::{Gate, Standing};
use openclaw_config::Config;
use openclaw_config::write::{self, Actor};
use serde_json::{Map, Value};

use super::config::write_failure;
use crate::args::{HooksArgs, HooksCommand};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output;
use report::{Detail, Which};

/// The hooks of a configuration, as they stand.
struct Survey<'a> {
    config: &'a Config,
    places: Places,
    gate: Gate<'a>,
    hooks: Vec<(Hook, Standing)>,
    problems: Vec<Problem>,
}

impl<'a> Survey<'a> {
    fn of(config: &'a Config) -> Self {
        let (places, gate) = (Places::of(config), Gate::new(config));
        let found = discover(&places);
        let stand = |hook: Hook| {
            let standing = gate.standing(&hook);
            (hook, standing)
        };
        let hooks = found.hooks.into_iter().map(stand).collect();
        Self { config, places, gate, hooks, problems: found.problems }
    }

    fn find(&self, name: &str) -> Result<&(Hook, Standing), Failure> {
        self.hooks.iter().find(|(hook, _)| hook.about.name == name).ok_or_else(|| {
            Failure::new("hook-not-found", format!("Hook \"{name}\" not found."))
                .hint("Run `openclaw hooks list` for those there are.")
        })
    }
}

pub(super) fn run(args: &HooksArgs, context: &Context) -> Outcome {
    let config = context.config()?;
    context.print_warnings();
    let survey = Survey::of(config);
    match &args.command {
        None => list(&survey, Which::All, Detail::Short),
        Some(HooksCommand::List { eligible, json, verbose }) => {
            let which = if *eligible { Which::Ready } else { Which::All };
            if *json {
                output::json(&survey.list_document(which));
                return Ok(0);
            }
            list(&survey, which, if *verbose { Detail::Missing } else { Detail::Short })
        }
        Some(HooksCommand::Info { name, json }) => {
            let (hook, standing) = survey.find(name)?;
            if *json {
                output::json(&survey.info_document(hook, standing));
            } else {
                output::line(&survey.info_text(hook, standing).join("\n"));
            }
            Ok(0)
        }
        Some(HooksCommand::Check { json }) => {
            if *json {
                output::json(&survey.check_document());
            } else {
                output::line(&survey.check_text().join("\n"));
            }
            Ok(0)
        }
        Some(HooksCommand::Enable { name }) => enable(&survey, name, context),
        Some(HooksCommand::Disable { name }) => disable(&survey, name, context),
    }
}

fn list(survey: &Survey<'_>, which: Which, detail: Detail) -> Outcome {
    output::line(&survey.list_text(which, detail).join("\n"));
    Ok(0)
}

fn enable(survey: &Survey<'_>, name: &str, context: &Context) -> Outcome {
    let (hook, standing) = survey.find(name)?;
    // What only waits to be switched on is not missing.
    let own = format!("hooks.internal.entries.{}.enabled", hook.about.key);
    let mut missing = standing.missing.clone();
    missing.config.retain(|path| *path != own);
    if !missing.is_empty() || standing.handler.is_err() {
        let why = report::why_not(&missing, standing);
        return Err(Failure::new("hook-not-eligible", format!("Hook \"{name}\" cannot be used here: {why}")));
    }
    switch(hook, Switch::On, context)?;
    output::line(&format!("✓ Enabled hook: {}", report::title(hook)));
    told();
    Ok(0)
}

fn disable(survey: &Survey<'_>, name: &str, context: &Context) -> Outcome {
    let (hook, _) = survey.find(name)?;
    switch(hook, Switch::Off, context)?;
    output::line(&format!("⏸ Disabled hook: {}", report::title(hook)));
    told();
    Ok(0)
}

fn told() {
    output::line("A running gateway takes this up by itself; with gateway.reload.mode=off, restart it.");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

/// Writes the hook's entry, whose key may have dots in it. Switching one on switches hooks on.
fn switch(hook: &Hook, to: Switch, context: &Context) -> Result<(), Failure> {
    let section = context.loaded.snapshot.parsed.get("hooks").and_then(|hooks| hooks.get("internal"));
    let mut internal: Map<String, Value> = section.and_then(Value::as_object).cloned().unwrap_or_default();
    if to == Switch::On {
        internal.insert("enabled".to_owned(), Value::Bool(true));
    }
    let entries = internal.entry("entries").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(entries) = entries {
        let entry = entries.entry(hook.about.key.clone()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(entry) = entry {
            entry.insert("enabled".to_owned(), Value::Bool(to == Switch::On));
        }
    }
    let path = ["hooks".to_owned(), "internal".to_owned()];
    write::set_value(&context.loaded, &path, Value::Object(internal), Actor::Cli).map_err(write_failure)?;
    Ok(())
}
