//! `/elevated`: whether commands run on this host, outside of the sandbox, and whether a person is asked.

use openclaw_journal::caller::{Caller, CallerIdentity, Right};
use openclaw_journal::intent::Hints;
use openclaw_journal::rights::elevated::{Elevation, level, refusal};
use openclaw_sessions::entry::ElevatedLevel;
use openclaw_tools::Elevated;

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::{CommandContext, levels};

pub(crate) const NAME: &str = "elevated";
const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention };
pub(crate) const COMMAND: ChatCommand = ChatCommand::new(
    NAME,
    Category::Options,
    Does::Directive(DIRECTIVE),
    "Set what commands may do on this machine.",
)
.called(&["elev"])
.taking(Takes::Level, "[on|off|ask|full]")
.needing(Right::Approve)
.offering(ArgumentMenu::Here(|context| {
    let levels: &[&str] = match refusal(&context.settings.config, asked(context)) {
        None => &["on", "off", "ask", "full"],
        Some(_) => &[],
    };
    Box::pin(async { levels.iter().map(|level| (*level).to_owned()).collect() })
}));

/// Said where nothing runs in a sandbox.
const DIRECT: &str = "\n⚙️ Runtime is direct; sandboxing does not apply.";

fn take(text: &str, reading: DirectiveReading, _: &[&str]) -> Option<(String, String)> {
    levels::take(text, &[NAME, "elev"], reading, |word| levels::elevated(word).is_some())
}

fn hint(argument: &str, hints: &mut Hints) {
    hints.elevated = levels::elevated(argument);
}

/// Describes the caller of a command as one who asks for elevated commands.
pub(crate) fn asked<'a>(context: &'a CommandContext<'_>) -> Elevation<'a> {
    let own = context.row.payload.caller();
    // Commands are given by people.
    let identity = if own.is_person() { own.identity } else { CallerIdentity::Client };
    Elevation { caller: Caller { identity, ..own }, agent: &context.agent.id, key: context.key }
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let context = wished.context;
        let config = &context.settings.config;
        let is_sandboxed = context.is_sandboxed();
        if let Some(refusal) = refusal(config, asked(context)) {
            return Ok(DirectiveResult::refused(Elevated::unavailable(is_sandboxed, &refusal)));
        }
        let direct = if is_sandboxed { "" } else { DIRECT };
        let Some(wanted) = levels::elevated(wished.argument) else {
            return Ok(match wished.argument {
                "" => {
                    let level = level(config, context.entry, None);
                    DirectiveResult::told(format!(
                        "Current elevated level: {level}.\nOptions: on, off, ask, full.{direct}"
                    ))
                }
                other => DirectiveResult::refused(format!(
                    "Unrecognized elevated level \"{other}\". Valid levels: off, on, ask, full."
                )),
            });
        };
        let says = match wanted {
            ElevatedLevel::Off => "⚙️ Elevated mode disabled.",
            ElevatedLevel::On | ElevatedLevel::Ask => {
                "⚙️ Elevated mode set to ask (approvals may still apply)."
            }
            ElevatedLevel::Full => "⚙️ Elevated mode set to full (auto-approve).",
        };
        Ok(DirectiveResult::changed(format!("{says}{direct}"), move |entry| {
            entry.elevated_level = Some(wanted);
        }))
    })
}

/// True unless the directive gives rights back: in a group it counts only if the agent is
/// addressed.
fn needs_mention(argument: &str) -> bool {
    levels::elevated(argument) != Some(ElevatedLevel::Off)
}
