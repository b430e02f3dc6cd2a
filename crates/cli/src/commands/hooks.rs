//! `openclaw hooks`: which hooks there are, what they need, and switching them on and off (spec `cli.md`, `golden/cli-hooks.json`).

mod install;
mod report;
mod settings;
mod update;

use crate::args::{HooksArgs, HooksCommand};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;
use openclaw_agent::hooks::boot;
use openclaw_agent::hooks::discover::{Home, Hook, Places, Problem, discover};
use openclaw_agent::hooks::gate::{Gate, Standing};
use openclaw_agent::hooks::{Bundled, problems_of_settings};
use openclaw_config::Config;
use report::{Detail, HookFilter};
use settings::{HookSwitch, Settings};

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
        let mut problems = found.problems;
        problems.extend(problems_of_settings(&gate, config));
        Self { config, places, gate, hooks, problems }
    }

    fn find(&self, name: &str) -> Result<&(Hook, Standing), CommandFailure> {
        self.hooks.iter().find(|(hook, _)| hook.about.name == name).ok_or_else(|| {
            CommandFailure::new("hook-not-found", format!("Hook \"{name}\" not found."))
                .hint("Run `openclaw hooks list` for those there are.")
        })
    }
}

pub(super) fn run(args: &HooksArgs, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    context.print_warnings_about(&["hooks"]);
    let survey = Survey::of(config);
    match &args.command {
        None => list(&survey, HookFilter::All, Detail::Short),
        Some(HooksCommand::List { eligible, json, verbose }) => {
            let which = if *eligible { HookFilter::Ready } else { HookFilter::All };
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
        Some(HooksCommand::Install { from, link: true }) => install::link(&survey, from, context),
        Some(HooksCommand::Install { from, link: false }) => install::install(&survey, from, context),
        Some(HooksCommand::Update { id: None, all: false, .. }) => {
            Err(CommandFailure::new("hooks-update", "Provide a hook id or use --all."))
        }
        Some(HooksCommand::Update { id, dry_run, .. }) => {
            let how = if *dry_run { update::How::DryRun } else { update::How::Install };
            update::run(&survey, id.as_deref(), how, context)
        }
    }
}

fn list(survey: &Survey<'_>, which: HookFilter, detail: Detail) -> CommandResult {
    output::line(&survey.list_text(which, detail).join("\n"));
    Ok(0)
}

fn enable(survey: &Survey<'_>, name: &str, context: &CliContext) -> CommandResult {
    let (hook, standing) = survey.find(name)?;
    // A hook that only waits to be switched on lacks nothing.
    let own = format!("hooks.internal.entries.{}.enabled", hook.about.key);
    let mut missing = standing.missing.clone();
    missing.config.retain(|path| *path != own);
    if !missing.is_empty() || standing.handler.is_err() {
        let why = report::why_not(&missing, standing);
        return Err(CommandFailure::new(
            "hook-not-eligible",
            format!("Hook \"{name}\" cannot be used here: {why}"),
        ));
    }
    switch(hook, HookSwitch::On, context)?;
    output::line(&format!("✓ Enabled hook: {}", report::title(hook)));
    if matches!(hook.home, Home::BuiltIn(Bundled::BootMd)) && !survey.config.agents.defaults.skip_bootstrap {
        put_boot_file(survey, context);
    }
    told();
    Ok(0)
}

/// The hook works without it: what goes wrong is said, and no more.
fn put_boot_file(survey: &Survey<'_>, context: &CliContext) {
    let path = survey.places.workspace.join(boot::FILE);
    match boot::put_template(&survey.places.workspace) {
        Ok(true) => {
            output::line(&format!("Wrote {}; add what is to be done at each start.", context.short(&path)))
        }
        Ok(false) => {}
        Err(error) => output::error_line(&format!("{} could not be written: {error}", context.short(&path))),
    }
}

fn disable(survey: &Survey<'_>, name: &str, context: &CliContext) -> CommandResult {
    let (hook, _) = survey.find(name)?;
    switch(hook, HookSwitch::Off, context)?;
    output::line(&format!("⏸ Disabled hook: {}", report::title(hook)));
    told();
    Ok(0)
}

fn told() {
    output::line("A running gateway takes this up by itself; with gateway.reload.mode=off, restart it.");
}

/// Switching a hook on switches hooks on.
fn switch(hook: &Hook, to: HookSwitch, context: &CliContext) -> Result<(), CommandFailure> {
    let mut settings = Settings::of(context);
    if to == HookSwitch::On {
        settings.switch_hooks_on();
    }
    settings.switch(&hook.about.key, to);
    settings.write(context)
}
