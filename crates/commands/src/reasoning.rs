//! `/reasoning`: visibility of the model's thoughts for people.

use openclaw_journal::intent::{Hints, Reasoning};

use super::Context;
use super::command::ArgumentMenu;
use super::command::{Category, Command, Does, Takes};
use super::directive::{Directive, Reading, Settled, Settling, Wished};
use super::levels;

pub(crate) const NAME: &str = "reasoning";
pub(crate) const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention: |_| false };
pub(crate) const COMMAND: Command =
    Command::new(NAME, Category::Options, Does::Directive(DIRECTIVE), "Show reasoning, or not.")
        .called(&["reason"])
        .taking(Takes::Level, "[on|off|stream]")
        .offering(ArgumentMenu::Fixed(&["on", "off", "stream"]));

fn take(text: &str, reading: Reading, _: &[&str]) -> Option<(String, String)> {
    levels::take(text, &[NAME, "reason"], reading, |word| levels::reasoning(word).is_some())
}

fn hint(argument: &str, hints: &mut Hints) {
    hints.reasoning = levels::reasoning(argument);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let Some(level) = levels::reasoning(wished.argument) else {
            return Ok(match wished.argument {
                "" => {
                    let level = Reasoning::of_row(wished.context.entry.reasoning_level).as_str();
                    Settled::told(format!("Current reasoning level: {level}.\nOptions: on, off, stream."))
                }
                other => Settled::refused(format!(
                    "Unrecognized reasoning level \"{other}\". Valid levels: on, off, stream."
                )),
            });
        };
        let says = match level {
            Reasoning::Off => "⚙️ Reasoning visibility disabled.",
            Reasoning::On => "⚙️ Reasoning visibility enabled.",
            Reasoning::Stream if !has_drafts(wished.context) => {
                "⚙️ Reasoning stream is set, but shows nothing here: drafts are shown in private Telegram chats with topics."
            }
            Reasoning::Stream => "⚙️ Reasoning stream enabled (Telegram only).",
        };
        Ok(Settled::changed(says.to_owned(), move |entry| entry.reasoning_level = level.in_row()))
    })
}

/// False on a chat platform whose account has no drafts, where the thoughts would be shown
/// nowhere.
fn has_drafts(context: &Context<'_>) -> bool {
    let origin = context.row.payload.source.origin();
    origin.is_none_or(|origin| context.host.has_drafts(origin, &context.agent.id))
}
