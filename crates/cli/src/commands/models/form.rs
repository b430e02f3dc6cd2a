//! How a list is printed.

use crate::args::FormArgs;
use crate::failure::Failure;

/// How a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// One document.
    Json,
    /// Names alone, one a line.
    Plain,
}

impl Form {
    /// The form that the flags ask for.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn of(flags: FormArgs) -> Result<Self, Failure> {
        match (flags.json, flags.plain) {
            (true, true) => Err(Failure::usage("Choose either --json or --plain, not both.")),
            (true, false) => Ok(Self::Json),
            (false, true) => Ok(Self::Plain),
            (false, false) => Ok(Self::Text),
        }
    }
}
