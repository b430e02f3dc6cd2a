//! A command line as words, pipes and chains, as every POSIX shell reads it.
//!
//! Grammar that is accepted: only what bash, dash, ksh and zsh read alike. Outside of quotes that
//! is a short list of characters. Every expansion, redirection and compound command is refused,
//! because the words would then not be what runs. A refusal costs a question; a misreading would
//! cost the host.

mod scanner;
mod shell_words;

pub use scanner::analyse;
pub use shell_words::{is_builtin, leaves_directory, reads_like_posix, runs_code};

/// Longest command line that is read, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Operator that connects a simple command to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    /// The first command, which has none before it.
    Start,
    /// `|`
    Pipe,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`
    Then,
}

impl Joint {
    fn operator(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Pipe => " | ",
            Self::And => " && ",
            Self::Or => " || ",
            Self::Then => " ; ",
        }
    }
}

/// Simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Connection to the command before.
    pub joint: Joint,
    /// The program as it was named.
    pub program: String,
    /// Arguments of the command.
    pub arguments: Vec<String>,
}

/// Reason why a command line can't be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnalysable {
    /// The command line is too long to be analysed.
    #[error("the command is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// A character that means more than itself, or may to some shell.
    #[error("the command contains {0:?} where a shell may give it a meaning")]
    Character(char),
    /// A quote or an escape is not finished.
    #[error("the command ends inside a quote or an escape")]
    Unterminated,
    /// A part is empty: between two operators, before the first or after the last.
    #[error("the command has an empty part")]
    EmptyPart,
    /// The first word is no plain program name: an assignment, a reserved word.
    #[error("{0:?} is not a program name")]
    NotAProgram(String),
    /// The shell does not read command lines as POSIX says.
    #[error("the shell {0:?} may read the command in another way")]
    Shell(String),
    /// The call sets variables, which can change what a program does.
    #[error("the call sets environment variables")]
    Variables,
}

/// The command line that means these segments, with quotes where needed.
pub fn join(segments: &[Segment]) -> String {
    let mut line = String::new();
    for segment in segments {
        line.push_str(segment.joint.operator());
        line.push_str(&quoted(&segment.program));
        for argument in &segment.arguments {
            line.push(' ');
            line.push_str(&quoted(argument));
        }
    }
    line
}

/// Returns true if a character stands for itself in every shell, even outside of quotes.
///
/// Letters beyond ASCII do not: some versions of bash take one of their bytes for a space.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./,:@%+=".contains(c)
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
