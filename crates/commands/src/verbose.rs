//! `/verbose`: whether people see the tools at work.

use openclaw_journal::intent::Hints;
use openclaw_sessions::entry::VerboseLevel;

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::levels;

const NAME: &str = "verbose";
const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention: |_| false };
pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new(NAME, Category::Options, Does::Directive(DIRECTIVE), "Show tools at work, or not.")
        .called(&["v"])
        .taking(Takes::Level, "[on|full|off]")
        .offering(ArgumentMenu::Fixed(&["on", "full", "off"]));

/// Answer to anybody but the owner in a group, where nothing would be shown (decision 55).
const OWNERS: &str =
    "⚙️ Tools are shown in a group where its owner has switched that on. Nothing is shown here.";

fn take(text: &str, reading: DirectiveReading, _: &[&str]) -> Option<(String, String)> {
    levels::take(text, &[NAME, "v"], reading, |word| levels::verbose(word).is_some())
}

fn hint(argument: &str, hints: &mut Hints) {
    hints.verbose = levels::verbose(argument);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let Some(level) = levels::verbose(wished.argument) else {
            return Ok(match wished.argument {
                "" => {
                    let level = current(&wished);
                    DirectiveResult::told(format!("Current verbose level: {level}.\nOptions: on, full, off."))
                }
                other => DirectiveResult::refused(format!(
                    "Unrecognized verbose level \"{other}\". Valid levels: off, on, full."
                )),
            });
        };
        let origin = wished.context.row.payload.source.origin();
        let is_others_group = origin.is_some_and(|origin| !origin.is_direct() && !origin.rights.is_owner);
        if is_others_group && level != VerboseLevel::Off {
            return Ok(DirectiveResult::refused(OWNERS.to_owned()));
        }
        let says = match level {
            VerboseLevel::Off => "⚙️ Verbose logging disabled.",
            VerboseLevel::On => "⚙️ Verbose logging enabled.",
            VerboseLevel::Full => "⚙️ Verbose logging set to full.",
        };
        Ok(DirectiveResult::changed(says.to_owned(), move |entry| entry.verbose_level = Some(level)))
    })
}

fn current(wished: &Wished<'_>) -> VerboseLevel {
    let context = wished.context;
    let configured = context.settings.config.agents.defaults.verbose_default.as_deref();
    let level = context.entry.verbose_level.or_else(|| configured.and_then(VerboseLevel::parse));
    level.unwrap_or(VerboseLevel::Off)
}
