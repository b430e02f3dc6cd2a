//! Carrying out one command.

use openclaw_journal::caller::Right;
use openclaw_journal::intent::StoredDirective;

use super::command::Does;
use super::directives::settle;
use super::response::CommandResponse;
use super::table::{self, not_there, refusal};
use super::{CommandContext, CommandError};

/// Runs a command and returns its answer. For a command that a later version has accepted, or that
/// is not implemented, the answer says so.
pub(crate) async fn run(
    context: &CommandContext<'_>,
    name: &str,
    arguments: &str,
) -> Result<CommandResponse, CommandError> {
    let Some(command) = table::named(name) else {
        return Ok(not_there(name).into());
    };
    if command.needs == Right::Own && !context.is_owner() {
        return Ok(for_owners(name).into());
    }
    if let Some(refusal) = refusal(context, command, arguments) {
        return Ok(refusal.into());
    }
    if let Some(own) = command.own_answer(context, arguments) {
        return own.await;
    }
    let buttons = command.choices_shown(context, arguments).await;
    match command.does {
        Does::Answers(_) if !buttons.is_empty() => Ok(command.question(buttons)),
        Does::Answers(run) => run(context, arguments).await.map(CommandResponse::from),
        Does::Shows(run) => run(context, arguments).await,
        Does::Directive(_) => {
            let wish = StoredDirective { name: name.to_owned(), arguments: arguments.to_owned() };
            let text = settle(context, &[wish]).await?;
            Ok(CommandResponse { text, buttons, then: None })
        }
        Does::Resets | Does::Stops | Does::Compacts | Does::Missing => Ok(not_there(name).into()),
    }
}

fn for_owners(name: &str) -> String {
    format!(
        "⚠️ /{name} is for the owner: name them in commands.ownerAllowFrom or in the channel's allowFrom."
    )
}
