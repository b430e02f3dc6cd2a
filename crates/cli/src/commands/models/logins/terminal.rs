//! Terminal input: lines, and secrets without showing them.

use std::io::{IsTerminal as _, Read as _, stdin};

use crate::commands::questions::{MAX_ANSWER, Questions, gone};
use crate::failure::CommandFailure;
use crate::output;

/// Standard input, and whether somebody sits at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    pub(super) is_interactive: bool,
}

impl Terminal {
    pub(super) fn of_process() -> Self {
        Self { is_interactive: stdin().is_terminal() }
    }

    /// Asks for a secret without showing it; without a terminal the whole of standard input is the secret.
    pub(super) fn secret(self, question: &str) -> Result<String, CommandFailure> {
        let text = if self.is_interactive {
            let mut questions = Questions::of_process();
            questions.prompt(&format!("{question}: "))?;
            let quiet = Quiet::begin();
            let line = questions.answer();
            drop(quiet);
            output::error_line("");
            line?
        } else {
            let mut text = String::new();
            stdin().lock().take(MAX_ANSWER).read_to_string(&mut text).map_err(gone)?;
            text
        };
        if text.trim().is_empty() {
            return Err(CommandFailure::usage("No token was given.")
                .hint("Paste it when asked, or pass it on standard input; never as an argument."));
        }
        Ok(text)
    }

    /// Asks for a line; fails when there is nobody to ask.
    pub(super) fn line(self, question: &str) -> Result<String, CommandFailure> {
        Questions::of_process().ask(question, "")
    }
}

/// Guard that keeps the terminal from showing typed text.
#[cfg(unix)]
struct Quiet(nix::sys::termios::Termios);

#[cfg(unix)]
impl Quiet {
    fn begin() -> Option<Self> {
        use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
        let before = tcgetattr(stdin()).ok()?;
        let mut quiet = before.clone();
        quiet.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(stdin(), SetArg::TCSAFLUSH, &quiet).ok()?;
        Some(Self(before))
    }
}

#[cfg(unix)]
impl Drop for Quiet {
    fn drop(&mut self) {
        use nix::sys::termios::{SetArg, tcsetattr};
        // Nothing else can be done about a terminal that is gone.
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &self.0);
    }
}

#[cfg(not(unix))]
struct Quiet;

#[cfg(not(unix))]
impl Quiet {
    fn begin() -> Option<Self> {
        None
    }
}
