//! The `openclaw` binary.
//!
//! Arguments pass two stages: [`command_line`] takes what stands before the command and hands the rest to the grammar in
//! [`args`]; each module of [`commands`] resolves its own arguments and does its work. [`client`] talks to a gateway,
//! [`output`] prints. No business logic lives here.

mod args;
mod client;
mod command_line;
mod commands;
mod context;
mod failure;
mod listeners;
mod output;
mod runtime;
mod service;
#[cfg(test)]
mod testing;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else runs: this process becomes a command in a sandbox, and nothing but its arguments may influence it.
    if std::env::args_os().nth(1).is_some_and(|first| first == openclaw_tools::sandbox::ENTER) {
        return openclaw_tools::sandbox::enter(std::env::args_os().skip(2));
    }
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    if args.iter().any(|word| word == "gateway") {
        // From now on until it listens, or until another command of that name begins.
        openclaw_gateway::signals::hold();
    }
    // Before anything is read or started: scripts ask for the version all the time.
    if matches!(args.as_slice(), [only] if only == "--version" || only == "-V") {
        output::line(env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    ExitCode::from(command_line::run(&args))
}
