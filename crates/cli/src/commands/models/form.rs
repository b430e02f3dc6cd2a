//! Output form of a list.

use crate::args::FormArgs;
use crate::failure::CommandFailure;
use crate::output;

/// Output form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text for people.
    Text,
    /// JSON document.
    Json,
    /// Names alone, one a line.
    Plain,
}

impl Form {
    /// The form that the flags ask for.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn of(flags: FormArgs) -> Result<Self, CommandFailure> {
        match (flags.json, flags.plain) {
            (true, true) => Err(CommandFailure::usage("Choose either --json or --plain, not both.")),
            (true, false) => Ok(Self::Json),
            (false, true) => Ok(Self::Plain),
            (false, false) => Ok(Self::Text),
        }
    }

    /// Prints lines as they are, and for people with a heading.
    pub(crate) fn print(self, heading: &str, lines: Vec<String>) {
        if self == Self::Plain {
            lines.iter().for_each(|line| output::line(line));
            return;
        }
        output::line(&format!("{heading} ({}):", lines.len()));
        let lines = if lines.is_empty() { vec!["none".to_owned()] } else { lines };
        lines.iter().for_each(|line| output::line(&format!("- {line}")));
    }
}
