//! Argument menus: commands with fixed choices, called without one. If buttons can be shown, the
//! choices are buttons, two in a row (spec `channels.md` §7.5). A button says a text that could be
//! typed, such as `/think high`.

use openclaw_channels::Button;

use super::CommandContext;
use super::command::{ArgumentMenu, ChatCommand};
use super::response::{CommandResponse, Showing, button};

/// Buttons in a row.
const IN_A_ROW: usize = 2;

impl ChatCommand {
    /// Returns the choices of a command that is called without arguments, if buttons can be shown.
    pub(crate) async fn choices_shown(
        &self,
        context: &CommandContext<'_>,
        arguments: &str,
    ) -> Vec<Vec<Button>> {
        if !arguments.trim().is_empty() || !context.shows_buttons() {
            return Vec::new();
        }
        let choices = match self.argument_menu {
            ArgumentMenu::None | ArgumentMenu::Own(_) => Vec::new(),
            ArgumentMenu::Fixed(choices) => choices.iter().map(|choice| (*choice).to_owned()).collect(),
            ArgumentMenu::Here(offered) => offered(context).await,
        };
        rows(self.name, &choices)
    }

    /// Returns the command's own answer to a call without arguments, if buttons can be shown.
    pub(crate) fn own_answer<'a>(
        &self,
        context: &'a CommandContext<'a>,
        arguments: &str,
    ) -> Option<Showing<'a>> {
        let ArgumentMenu::Own(show) = self.argument_menu else { return None };
        (arguments.trim().is_empty() && context.shows_buttons()).then(|| show(context))
    }

    /// Question above the buttons of a command that does not tell the current state, in OpenClaw's
    /// words.
    pub(crate) fn question(&self, buttons: Vec<Vec<Button>>) -> CommandResponse {
        let choices: Vec<&str> = buttons.iter().flatten().map(|button| button.text.as_str()).collect();
        CommandResponse {
            text: format!("Choose {} for /{}.", spoken(&choices), self.name),
            buttons,
            then: None,
        }
    }
}

fn rows(command: &str, choices: &[String]) -> Vec<Vec<Button>> {
    let buttons: Vec<Button> =
        choices.iter().map(|choice| button(choice, format!("/{command} {choice}"))).collect();
    buttons.chunks(IN_A_ROW).map(<[Button]>::to_vec).collect()
}

/// `a`, `a or b`, `a, b, or c`.
fn spoken(choices: &[&str]) -> String {
    match choices {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [one, other] => format!("{one} or {other}"),
        [most @ .., last] => format!("{}, or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::COMMANDS;
    use super::*;

    #[test]
    fn choices_are_buttons_two_in_a_row_that_say_what_could_be_typed() {
        let choices = ["off", "tokens", "full"].map(str::to_owned);
        let data = |row: &Vec<Button>| row.iter().map(|button| button.data.clone()).collect::<Vec<_>>();
        let found: Vec<_> = rows("usage", &choices).iter().map(data).collect();
        assert_eq!(found, [vec!["/usage off", "/usage tokens"], vec!["/usage full"]]);
        assert!(rows("usage", &[]).is_empty());
    }

    #[test]
    fn a_question_names_the_choices_as_people_do() {
        let usage = COMMANDS.iter().find(|row| row.name == "usage").unwrap();
        let rows = [
            (&["mention", "always"][..], "Choose mention or always for /usage."),
            (&["on", "off", "inherit"], "Choose on, off, or inherit for /usage."),
        ];
        for (choices, expect) in rows {
            let choices: Vec<String> = choices.iter().map(|choice| (*choice).to_owned()).collect();
            assert_eq!(usage.question(super::rows("usage", &choices)).text, expect);
        }
    }

    /// Telegram takes 64 bytes; and a choice that its command does not take would be words for the agent.
    #[test]
    fn fixed_choices_fit_into_buttons_and_are_commands() {
        for row in COMMANDS {
            let ArgumentMenu::Fixed(choices) = row.argument_menu else { continue };
            for choice in choices {
                let typed = format!("/{} {choice}", row.name);
                assert!(typed.len() <= 64, "{typed}");
                let spoken = super::super::Spoken::words(&typed);
                let models = openclaw_models::reference::ModelNames::default();
                let names = super::super::KnownNames { models: &models, triggers: &[], skills: &[] };
                let read = super::super::read(spoken, names);
                assert!(read.is_for_gateway_alone(), "{typed}");
            }
        }
    }
}
