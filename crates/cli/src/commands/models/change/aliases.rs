//! `openclaw models aliases list|add|remove`.

use serde_json::{Map, Value, json};

use super::{Choice, Defaults};
use crate::args::AliasesCommand;
use crate::commands::models::form::Form;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(crate) fn run(command: &AliasesCommand, context: &CliContext) -> CommandResult {
    match command {
        AliasesCommand::List { form } => list(Form::of(*form)?, context),
        AliasesCommand::Add { alias, model } => add(alias, model, context),
        AliasesCommand::Remove { alias } => remove(alias, context),
    }
}

fn list(form: Form, context: &CliContext) -> CommandResult {
    let defaults = Defaults::open(context)?;
    let aliases: Vec<(&str, String)> =
        defaults.aliases().map(|(alias, target)| (alias, target.to_string())).collect();
    let shown =
        |arrow: &str| aliases.iter().map(|(alias, target)| format!("{alias}{arrow}{target}")).collect();
    match form {
        Form::Json => {
            let aliases: Map<String, Value> =
                aliases.into_iter().map(|(alias, target)| (alias.to_owned(), json!(target))).collect();
            output::json(&json!({ "aliases": aliases }));
        }
        Form::Plain => form.print("Aliases", shown(" ")),
        Form::Text => form.print("Aliases", shown(" -> ")),
    }
    Ok(0)
}

fn add(alias: &str, model: &str, context: &CliContext) -> CommandResult {
    let alias = checked(alias)?;
    let mut defaults = Defaults::open(context)?;
    let target = defaults.target(model)?;
    if let Some(other) = defaults.alias(alias).filter(|other| **other != target) {
        return Err(CommandFailure::new("alias-taken", format!("Alias {alias} already points to {other}."))
            .hint(format!("Remove it first: `openclaw models aliases remove {alias}`")));
    }
    defaults.put_alias(&target, alias);
    defaults.remark(Choice::Text, &target);
    defaults.save()?;
    output::line(&format!("Alias {alias} -> {target}"));
    Ok(0)
}

fn remove(alias: &str, context: &CliContext) -> CommandResult {
    let alias = checked(alias)?;
    let mut defaults = Defaults::open(context)?;
    let Some(target) = defaults.alias(alias).cloned() else {
        return Err(CommandFailure::new("alias-not-found", format!("Alias not found: {alias}"))
            .hint("`openclaw models aliases list` shows them."));
    };
    let is_last = defaults.aliases().count() == 1;
    defaults.remove_alias(&target, alias);
    defaults.save()?;
    output::line(&format!("Alias {alias} removed."));
    if is_last {
        output::line("No aliases configured.");
    }
    Ok(0)
}

/// Checks an alias: a name that can be typed in a chat as `/<alias>` and can't be confused with
/// `provider/model`.
fn checked(alias: &str) -> Result<&str, CommandFailure> {
    let alias = alias.trim();
    if alias.is_empty() {
        return Err(CommandFailure::usage("Alias cannot be empty."));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    if alias.chars().all(is_allowed) {
        Ok(alias)
    } else {
        Err(CommandFailure::usage("Alias must use letters, numbers, dots, underscores, colons, or dashes."))
    }
}
