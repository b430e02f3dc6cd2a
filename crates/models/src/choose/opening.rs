//! The model with which a text begins: `/new opus`, `/new minimax m2.1 hello` (spec `sessions.md` §5.4).

use super::{Choices, Chosen};

/// A shorter first word is taken for the beginning of a sentence unless it names a model or provider exactly.
const LEAST_FUZZY: usize = 6;

/// Text behind a reset trigger, split into a model and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The model they begin with, if they do.
    pub model: Option<Chosen>,
    /// The words behind it.
    pub rest: String,
}

impl Choices {
    /// Finds the model with which a text begins.
    pub fn opening(&self, text: &str) -> Opening {
        let (first, behind) = word(text);
        let (second, behind_both) = word(behind);
        let both = || {
            let named = self.is_provider(first) && !second.is_empty();
            named.then(|| self.fuzzy_about(first, second)).flatten()
        };
        // Text that begins like a command is one.
        let is_command = first.starts_with('/');
        let hit = if is_command { None } else { both().map(|model| (self.chosen(model, None), behind_both)) };
        let hit =
            hit.or_else(|| self.exact(first).or_else(|| self.guess(first)).map(|found| (found, behind)));
        match hit.filter(|_| !is_command) {
            Some((found, rest)) => Opening { model: Some(found), rest: rest.to_owned() },
            None => Opening { model: None, rest: text.to_owned() },
        }
    }

    fn guess(&self, text: &str) -> Option<Chosen> {
        let worth_it = self.is_provider(text) || text.chars().count() >= LEAST_FUZZY;
        let found = match text.split_once('/') {
            Some((provider, id)) if self.is_provider(provider) => self.fuzzy_about(provider, id),
            Some(_) | None => self.fuzzy(None, text),
        };
        found.filter(|_| worth_it).map(|model| self.chosen(model, None))
    }
}

/// The first word of a text and what is behind it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.split_once(char::is_whitespace) {
        Some((first, behind)) => (first, behind.trim_start()),
        None => (text, ""),
    }
}
