//! Commands that run as child processes of this gateway, whoever gave them.
//!
//! `start` starts a command, with pipes or in a terminal, in the group of its own `guard`; a
//! `session` drives it to its end and holds what it prints; `sessions` knows all of them, for the
//! `process` tool. `promise` is what agents are owed about them. `program` asks a program for an answer.

mod alone;
pub(crate) mod guard;
mod leftovers;
mod output;
pub(crate) mod program;
pub(crate) mod promise;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod slug;
mod start;
mod terminal;

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use alone::run_alone;

/// A program that is to be started on the host, and becomes the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// The whole environment of the program.
    pub(crate) environment: Vec<(String, String)>,
    /// Directory on the host in which the program starts.
    pub(crate) directory: PathBuf,
    /// A program with its arguments that ends the command where killing `program` does not; else empty.
    pub(crate) ending: Vec<OsString>,
}
