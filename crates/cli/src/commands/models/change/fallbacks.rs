//! `openclaw models fallbacks|image-fallbacks list|add|remove|clear`.

use openclaw_models::ModelSettings;
use openclaw_models::catalog::Catalog;
use serde_json::json;

use super::{Choice, Defaults};
use crate::args::FallbacksCommand;
use crate::commands::models::form::Form;
use crate::commands::models::view::warn_of_fallbacks;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(crate) fn run(choice: Choice, command: &FallbacksCommand, context: &CliContext) -> CommandResult {
    match command {
        FallbacksCommand::List { form } => list(choice, Form::of(*form)?, context),
        FallbacksCommand::Add { model } => add(choice, model, context),
        FallbacksCommand::Remove { model } => remove(choice, model, context),
        FallbacksCommand::Clear => clear(choice, context),
    }
}

fn list(choice: Choice, form: Form, context: &CliContext) -> CommandResult {
    let fallbacks = Defaults::open(context)?.fallbacks(choice);
    if matches!(choice, Choice::Text) {
        let settings = ModelSettings::from(&*context.config_or_default());
        warn_of_fallbacks(&settings, &Catalog::new(&settings), context);
    }
    match form {
        Form::Json => output::json(&json!({ "fallbacks": fallbacks })),
        Form::Plain | Form::Text => form.print(choice.fallbacks_label(), fallbacks),
    }
    Ok(0)
}

fn add(choice: Choice, model: &str, context: &CliContext) -> CommandResult {
    let mut defaults = Defaults::open(context)?;
    let target = defaults.target(model)?;
    let mut fallbacks = defaults.fallbacks(choice);
    if !fallbacks.iter().any(|known| defaults.means(known, &target)) {
        fallbacks.push(target.to_string());
        defaults.allow(&target);
        defaults.put_fallbacks(choice, &fallbacks);
        defaults.remark(choice, &target);
    }
    defaults.save()?;
    report(choice, &fallbacks);
    Ok(0)
}

fn remove(choice: Choice, model: &str, context: &CliContext) -> CommandResult {
    let mut defaults = Defaults::open(context)?;
    // An entry of the list may be removed whether or not it means a model.
    let target = defaults.target(model).ok();
    let is_it = |known: &String| {
        known.trim() == model.trim() || target.as_ref().is_some_and(|target| defaults.means(known, target))
    };
    let (gone, kept): (Vec<String>, Vec<String>) = defaults.fallbacks(choice).into_iter().partition(is_it);
    if gone.is_empty() {
        let name = target.map_or_else(|| model.trim().to_owned(), |target| target.to_string());
        let label = choice.fallbacks_label().trim_end_matches('s');
        return Err(CommandFailure::new("fallback-not-found", format!("{label} not found: {name}"))
            .hint(format!("There are: {}.", shown(&kept))));
    }
    defaults.put_fallbacks(choice, &kept);
    defaults.save()?;
    report(choice, &kept);
    Ok(0)
}

fn clear(choice: Choice, context: &CliContext) -> CommandResult {
    let mut defaults = Defaults::open(context)?;
    defaults.put_fallbacks(choice, &[]);
    defaults.save()?;
    output::line(match choice {
        Choice::Text => "Fallback list cleared.",
        Choice::Image => "Image fallback list cleared.",
    });
    Ok(0)
}

fn report(choice: Choice, fallbacks: &[String]) {
    output::line(&format!("{}: {}", choice.fallbacks_label(), shown(fallbacks)));
}

fn shown(fallbacks: &[String]) -> String {
    if fallbacks.is_empty() { "none".to_owned() } else { fallbacks.join(", ") }
}
