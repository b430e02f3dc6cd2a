//! The program that shuts itself in and becomes a command. `openclaw` starts it before it reads anything else.
//!
//! Three of it run one after another, since a process can neither enter the process namespace it made nor wait for a command whose
//! limits it has itself. `outer` makes the namespaces and waits; it ends as the command does. `init` is the first process inside: it
//! builds the file system, collects what ends, and its death ends all others. `inner` gives up all rights and executes the command.
//!
//! `outer` runs free: nothing that a model says may influence it. It reads its specification and no variable.

mod capabilities;
mod init;
mod inner;
mod network;
mod outer;
mod root;
mod status;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use super::spec::{ENTER, FAILED, Spec};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {error}")]
pub(super) struct EnterError {
    doing: String,
    error: io::Error,
}

trait Doing<T> {
    /// Adds the attempted action to the error.
    fn doing(self, what: impl Into<String>) -> Result<T, EnterError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Into<String>) -> Result<T, EnterError> {
        self.map_err(|error| EnterError { doing: what.into(), error: error.into() })
    }
}

/// Text before the reason of a failure.
pub(super) const FAILURE: &str = "openclaw: the sandbox could not be made: ";

/// The stages, as named in the arguments.
const OUTER: &str = "outer";
const INIT: &str = "init";
const INNER: &str = "inner";

/// Arguments after [`super::spec::ENTER`]: stage, specification, a status file or empty, the
/// command.
struct EnterArgs {
    stage: OsString,
    text: OsString,
    spec: Spec,
    status: OsString,
    command: Vec<OsString>,
}

/// Shuts this process in and becomes the command. Comes back only when it failed, or when the command has ended.
pub fn enter(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let done = EnterArgs::parse(arguments).and_then(|call| match call.stage.to_str() {
        Some(OUTER) => outer::run(&call),
        Some(INIT) => init::run(&call),
        Some(INNER) => inner::run(&call),
        Some(_) | None => Err(bad("no such stage")),
    });
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "{FAILURE}{error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Returns the arguments of the program before the command.
pub(super) fn arguments(spec: &Spec) -> Vec<OsString> {
    // A specification is made of text and numbers: it can be written.
    let text = serde_json::to_string(spec).unwrap_or_default();
    vec![ENTER.into(), OUTER.into(), text.into(), "".into()]
}

impl EnterArgs {
    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, EnterError> {
        let mut next = || arguments.next().ok_or_else(|| bad("too few"));
        let (stage, text, status) = (next()?, next()?, next()?);
        let spec = serde_json::from_str(&text.to_string_lossy()).doing("read the specification")?;
        Ok(Self { stage, text, spec, status, command: arguments.collect() })
    }
}

fn bad(why: &str) -> EnterError {
    EnterError {
        doing: "read the arguments".into(),
        error: io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()),
    }
}
