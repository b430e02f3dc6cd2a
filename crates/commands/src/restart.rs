//! `/restart`: the gateway starts again in its process (spec `messages.md` §5, `operations.md` §2).

use super::CommandContext;
use super::command::{Category, ChatCommand, Does};
use super::response::{CommandResponse, Showing, Then};
use openclaw_journal::caller::Right;

pub(crate) const COMMAND: ChatCommand = ChatCommand::new(
    "restart",
    Category::Management,
    Does::Shows(run),
    "Start the gateway again; needs commands.restart=true.",
)
.needing(Right::Administer);

const DISABLED: &str = "⚠️ /restart is disabled. Set commands.restart=true to enable.";
const RESTARTS: &str = "⚙️ Restarting OpenClaw in-process (SIGUSR1); back in a few seconds.";
const NO_GATEWAY: &str = "⚠️ /restart works where a gateway runs.";

fn run<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Showing<'a> {
    Box::pin(async move {
        Ok(match &context.services.surroundings {
            _ if !context.settings.config.commands.restart => DISABLED.into(),
            None => NO_GATEWAY.into(),
            // The process that began it is gone: this is the one that was to come.
            Some(_) if context.was_begun => RESTARTS.into(),
            Some(_) => {
                let says = match context.services.registry.count_running() {
                    0 => RESTARTS.to_owned(),
                    runs => restarts_after(runs),
                };
                CommandResponse { then: Some(Then::Restart), ..says.into() }
            }
        })
    })
}

/// Answer while runs are under way: the restart waits for them (spec `operations.md` §2.2).
fn restarts_after(runs: usize) -> String {
    let runs = if runs == 1 { "1 run has".to_owned() } else { format!("{runs} runs have") };
    format!(
        "⚙️ Restarting OpenClaw in-process (SIGUSR1) once {runs} ended; messages are answered after that."
    )
}
