//! Questions to the person at the terminal, one line each.

use std::io::{self, BufRead, Stderr, StdinLock, Write};
use std::sync::Once;
use std::{process, thread};

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::CommandFailure;
use crate::output;

/// Asks on one stream and reads from another.
pub(crate) struct Questions<R, W> {
    /// Source of answers.
    pub(crate) answers: R,
    /// Output for questions; standard error, so that standard output holds the result alone.
    pub(crate) screen: W,
}

/// Exit code of a process that Ctrl+C ended.
const INTERRUPTED: i32 = 130;
/// Longest answer that is read, in bytes.
pub(crate) const MAX_ANSWER: u64 = 64 * 1024;

impl Questions<StdinLock<'static>, Stderr> {
    /// Questions to whoever sits at this process's terminal.
    pub(crate) fn of_process() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(end_with_a_word);
        Self { answers: io::stdin().lock(), screen: io::stderr() }
    }
}

/// Ctrl+C at a question ends the process as it does without this, and says so on a line of its own.
fn end_with_a_word() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    // Caught from here on, not only when the thread runs.
    let Ok(mut interrupts) = runtime.block_on(async { signal(SignalKind::interrupt()) }) else { return };
    thread::spawn(move || {
        if runtime.block_on(interrupts.recv()).is_some() {
            output::error_line("\nCancelled.");
            process::exit(INTERRUPTED);
        }
    });
}

impl<R: BufRead, W: Write> Questions<R, W> {
    /// Asks a question; returns the answer, or `default` if it is empty.
    ///
    /// # Errors
    /// When the input ends: the person gave up.
    pub(crate) fn ask(&mut self, question: &str, default: &str) -> Result<String, CommandFailure> {
        let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        let answer = self.line(&format!("{question}{hint}: "))?;
        Ok(if answer.is_empty() { default.to_owned() } else { answer })
    }

    /// Asks yes or no; an empty answer is no.
    ///
    /// # Errors
    /// When the input ends.
    pub(crate) fn confirm(&mut self, question: &str) -> Result<bool, CommandFailure> {
        loop {
            match self.line(&format!("{question} [y/N]: "))?.to_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                _ => self.say("Answer y or n.")?,
            }
        }
    }

    /// Tells something between two questions.
    ///
    /// # Errors
    /// When the screen is gone.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), CommandFailure> {
        writeln!(self.screen, "{text}").map_err(gone)
    }

    fn line(&mut self, prompt: &str) -> Result<String, CommandFailure> {
        self.prompt(prompt)?;
        self.answer()
    }

    /// Writes the question, and leaves the cursor behind it.
    ///
    /// # Errors
    /// When the screen is gone.
    pub(crate) fn prompt(&mut self, prompt: &str) -> Result<(), CommandFailure> {
        write!(self.screen, "{prompt}").and_then(|()| self.screen.flush()).map_err(gone)
    }

    /// The next line that is typed.
    ///
    /// # Errors
    /// When the input ends.
    pub(crate) fn answer(&mut self) -> Result<String, CommandFailure> {
        let mut line = String::new();
        let read = io::Read::take(&mut self.answers, MAX_ANSWER).read_line(&mut line).map_err(gone)?;
        if read == 0 {
            return Err(CommandFailure::new("cancelled", "Cancelled; nothing was changed."));
        }
        Ok(line.trim().to_owned())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function for map_err")]
pub(crate) fn gone(error: io::Error) -> CommandFailure {
    CommandFailure::new("terminal", format!("cannot ask: {error}"))
}
