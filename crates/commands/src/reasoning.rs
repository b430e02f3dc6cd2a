//! `/reasoning`: visibility of the model's thoughts for people.

use openclaw_journal::intent::{Hints, Reasoning};

use super::CommandContext;
use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::levels;

const NAME: &str = "reasoning";
const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention: |_| false };
pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new(NAME, Category::Options, Does::Directive(DIRECTIVE), "Show reasoning, or not.")
        .called(&["reason"])
        .taking(Takes::Level, "[on|off|stream]")
        .offering(ArgumentMenu::Fixed(&["on", "off", "stream"]));

fn take(text: &str, reading: DirectiveReading, _: &[&str]) -> Option<(String, String)> {
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
                    DirectiveResult::told(format!(
                        "Current reasoning level: {level}.\nOptions: on, off, stream."
                    ))
                }
                other => DirectiveResult::refused(format!(
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
        Ok(DirectiveResult::changed(says.to_owned(), move |entry| entry.reasoning_level = level.in_row()))
    })
}

/// False on a chat platform whose account has no drafts, where the thoughts would be shown
/// nowhere.
fn has_drafts(context: &CommandContext<'_>) -> bool {
    let origin = context.row.payload.source.origin();
    origin.is_none_or(|origin| context.services.host.has_drafts(origin, &context.agent.id))
}
