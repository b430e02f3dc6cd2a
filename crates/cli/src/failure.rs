//! Failures of commands.

use openclaw_config::Environment;
use openclaw_config::profile::hints_in;
use serde_json::{Value, json};

use crate::output;

/// Exit code for every ordinary error (spec `cli.md` §1.1).
pub(crate) const ERROR: u8 = 1;
/// Exit code for contradicting profile flags.
pub(crate) const USAGE: u8 = 2;

/// Failure of a command: the text for stderr, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandFailure {
    /// Machine-readable kind for `--json`.
    pub(crate) code: &'static str,
    /// Description of what happened, and to what. May have several lines.
    pub(crate) message: String,
    /// Next step for the person.
    pub(crate) hint: Option<String>,
    /// Error details from the gateway, for `--json`.
    pub(crate) details: Option<Box<Value>>,
    /// Exit code.
    pub(crate) exit: u8,
}

/// The result of a command: its exit code.
pub(crate) type CommandResult = Result<u8, CommandFailure>;

impl CommandFailure {
    /// An ordinary error.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: None, exit: ERROR }
    }

    /// A mistake in the arguments.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", message)
    }

    /// The same with what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with the commands in its text as the user of this profile has to type them.
    pub(crate) fn for_profile(self, env: &Environment) -> Self {
        let Self { message, hint, .. } = &self;
        let (message, hint) = (hints_in(message, env), hint.as_deref().map(|hint| hints_in(hint, env)));
        Self { message, hint, ..self }
    }

    /// Prints it: text on stderr, and with `--json` one document on stdout.
    pub(crate) fn report(&self, json: bool) {
        output::error_line(&self.message);
        if let Some(hint) = &self.hint {
            output::error_line(hint);
        }
        if json {
            output::json(&self.document());
        }
    }

    fn document(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(error) = error.as_object_mut() {
            error.extend(self.hint.iter().map(|hint| ("hint".to_owned(), json!(hint))));
            error.extend(self.details.iter().map(|details| ("details".to_owned(), Value::clone(details))));
        }
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_told_when_there_is_one() {
        let failure = CommandFailure::new("x", "m");
        assert_eq!(failure.document(), json!({ "error": { "code": "x", "message": "m" } }));
        let hinted = failure.hint("do");
        assert_eq!(hinted.document(), json!({ "error": { "code": "x", "message": "m", "hint": "do" } }));
    }
}
