//! Pressed buttons that are for the gateway rather than for the agent: they turn the page of a list
//! in place, or choose a model.

use super::help::{self, HelpButton as ListPress};
use super::models::{self, ModelButton as ModelPress};
use super::response::CommandResponse;
use super::{CommandContext, CommandError};

/// A button of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListButton {
    /// The button that shows the current page: nothing happens.
    Here,
    /// A page of `/commands`.
    Commands(usize),
    /// The providers, or a page of the models of one.
    Models(Option<(String, usize)>),
}

/// Reads a button of the gateway's own; `None` if its data is a command.
pub fn read(data: &str) -> Option<ListButton> {
    let list = help::read_press(data).map(|press| match press {
        ListPress::Here => ListButton::Here,
        ListPress::Page(page) => ListButton::Commands(page),
    });
    list.or_else(|| match models::read_press(data)? {
        ModelPress::Providers => Some(ListButton::Models(None)),
        ModelPress::Page(provider, page) => Some(ListButton::Models(Some((provider, page)))),
        ModelPress::Choose(_) => None,
    })
}

/// The words that a button stands for: a model is chosen as if it were typed.
pub fn typed(data: &str) -> String {
    match models::read_press(data) {
        Some(ModelPress::Choose(model)) => format!("/model {model}"),
        Some(ModelPress::Providers | ModelPress::Page(..)) | None => data.to_owned(),
    }
}

/// Returns what the message shows from now on; `None` if it stays.
pub async fn answer(
    context: &CommandContext<'_>,
    press: ListButton,
) -> Result<Option<CommandResponse>, CommandError> {
    Ok(match press {
        ListButton::Here => None,
        ListButton::Commands(page) => Some(help::pressed(context, page).await),
        ListButton::Models(place) => Some(models::pressed(context, place).await),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_of_lists_are_told_from_those_that_are_commands() {
        let rows = [
            ("commands_page_3:main", Some(ListButton::Commands(3))),
            ("commands_page_noop", Some(ListButton::Here)),
            ("mdl_prov", Some(ListButton::Models(None))),
            ("mdl_back", Some(ListButton::Models(None))),
            ("mdl_list_open_ai_2", Some(ListButton::Models(Some(("open_ai".to_owned(), 2))))),
            ("mdl_sel_openai/gpt-5.2", None),
            ("yes", None),
        ];
        for (data, expect) in rows {
            assert_eq!(read(data), expect, "{data}");
        }
        for (data, expect) in [
            ("mdl_sel_openai/gpt-5.2", "/model openai/gpt-5.2"),
            ("mdl_prov", "mdl_prov"),
            ("/think high", "/think high"),
        ] {
            assert_eq!(typed(data), expect);
        }
    }
}
