//! `/send on|off|inherit`: whether this session's answers go out (spec `messages.md` §5, `sessions.md` §6). For the owner alone, and
//! heard where nothing is sent.

use openclaw_journal::caller::Right;
use openclaw_sessions::entry::SendPolicy;

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    needs: Right::Own,
    ..ChatCommand::new("send", Category::Management, Does::Answers(run), "Let this session send, or not.")
        .taking(Takes::Words, "on|off|inherit")
        .offering(ArgumentMenu::Fixed(&["on", "off", "inherit"]))
};

const USAGE: &str = "⚙️ Usage: /send on|off|inherit";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let Some((policy, name)) = read(arguments) else { return Ok(USAGE.to_owned()) };
        context.edit(move |entry| entry.send_policy = policy).await?;
        Ok(format!("⚙️ Send policy set to {name}."))
    })
}

/// Reads the argument: the value for the row, and its name in the answer.
fn read(arguments: &str) -> Option<(Option<SendPolicy>, &'static str)> {
    match arguments.trim().to_lowercase().as_str() {
        "on" | "allow" => Some((Some(SendPolicy::Allow), "on")),
        "off" | "deny" => Some((Some(SendPolicy::Deny), "off")),
        "inherit" | "default" | "reset" => Some((None, "inherit")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_several_names() {
        let rows = [
            ("on", Some((Some(SendPolicy::Allow), "on"))),
            ("Allow", Some((Some(SendPolicy::Allow), "on"))),
            ("off", Some((Some(SendPolicy::Deny), "off"))),
            ("deny", Some((Some(SendPolicy::Deny), "off"))),
            ("inherit", Some((None, "inherit"))),
            ("default", Some((None, "inherit"))),
            ("reset", Some((None, "inherit"))),
            ("", None),
            ("maybe", None),
            ("on please", None),
        ];
        for (text, expect) in rows {
            assert_eq!(read(text), expect, "{text:?}");
        }
    }
}
