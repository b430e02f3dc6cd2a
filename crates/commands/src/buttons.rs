//! Pressed buttons that are for the gateway rather than for the agent: they turn the page of a list
//! in place, or choose a model.

use super::help::{self, Press as ListPress};
use super::models::{self, Press as ModelPress};
use super::response::Response;
use super::{CommandError, Context};

/// A button of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
    /// The button that shows the current page: nothing happens.
    Here,
    /// A page of `/commands`.
    Commands(usize),
    /// The providers, or a page of the models of one.
    Models(Option<(String, usize)>),
}

/// Reads a button of the gateway's own; `None` if its data is a command.
pub fn read(data: &str) -> Option<Press> {
    let list = help::read_press(data).map(|press| match press {
        ListPress::Here => Press::Here,
        ListPress::Page(page) => Press::Commands(page),
    });
    list.or_else(|| match models::read_press(data)? {
        ModelPress::Providers => Some(Press::Models(None)),
        ModelPress::Page(provider, page) => Some(Press::Models(Some((provider, page)))),
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
pub async fn answer(context: &Context<'_>, press: Press) -> Result<Option<Response>, CommandError> {
    Ok(match press {
        Press::Here => None,
        Press::Commands(page) => Some(help::pressed(context, page).await),
        Press::Models(place) => Some(models::pressed(context, place).await),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_of_lists_are_told_from_those_that_are_commands() {
        let rows = [
            ("commands_page_3:main", Some(Press::Commands(3))),
            ("commands_page_noop", Some(Press::Here)),
            ("mdl_prov", Some(Press::Models(None))),
            ("mdl_back", Some(Press::Models(None))),
            ("mdl_list_open_ai_2", Some(Press::Models(Some(("open_ai".to_owned(), 2))))),
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
