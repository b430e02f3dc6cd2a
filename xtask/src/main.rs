//! Development tasks. `cargo xtask` lists them.
//!
//! Builds the program of a task, which is an example of some crate, and runs it. Nothing here depends
//! on another crate, and examples of the whole workspace have the features of its tests: whatever a
//! task, the tests and the gate need is compiled once.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Example that does a task.
enum Example {
    /// `tasks.rs`, which is told the name of the task.
    Tasks,
    /// An example for one task alone.
    Own(&'static str),
    /// The same, which runs the gateway that is built with it.
    WithGateway(&'static str),
    /// An example of one package that computes for minutes: optimised code.
    Optimised { package: &'static str, example: &'static str },
}

use Example::{Optimised, Own, Tasks, WithGateway};

/// Table of tasks: name, what it does, the example.
const TASKS: &[(&str, &str, Example)] = &[
    ("ci", "formatting, clippy, licences, tests, docs, generated files: what .ci/run runs", Tasks),
    ("demo", "a gateway, one message, its streamed reply; --once ends after it", WithGateway("demo")),
    ("generate", "write the generated files anew; --check only compares", Tasks),
    (
        "budget",
        "measure the release binary against the performance budget; --counts, --check, --memory, --channels, --turns N, --program PATH",
        Tasks,
    ),
    ("compat", "run OpenClaw 2026.2.9's own command line against the gateway", Tasks),
    (
        "catalog",
        "refresh the built-in list of models; --from FILE or ADDRESS in the form of models.dev, --add, --check",
        Own("catalog"),
    ),
    (
        "config-reads",
        "compare the config keys acted on with those the compiler sees read",
        Own("config_reads"),
    ),
    ("soak", "people write to bots at a steady rate; --minutes M, --rate R, --binary PATH", Tasks),
    (
        "torture",
        "kill the gateway at every step while people and clients write; --kills N, --seed S, --modes a,b, --jobs N, --binary PATH",
        Tasks,
    ),
    (
        "recall",
        "measure what memory finds in manuals of Debian; --cache DIR, --english MODEL, --others MODEL, --pages N, --only NAME",
        Optimised { package: "openclaw-memory", example: "recall" },
    ),
    ("layers", "check that crates depend only downwards and import cycles of modules do not grow", Tasks),
    (
        "words",
        "count empty comments, shared type names and unused terms of the glossary; --list names them",
        Tasks,
    ),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let Some((_, _, example)) = TASKS.iter().find(|(task, _, _)| *task == name) else {
        print_help();
        return ExitCode::from(2);
    };
    match run(&name, example, &rest) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the example of a task and runs it.
///
/// # Errors
/// If cargo or the example can't be started.
fn run(name: &str, example: &Example, args: &[String]) -> std::io::Result<ExitCode> {
    let (example, name, build): (_, Option<&str>, &[&str]) = match example {
        Tasks => ("tasks", Some(name), &["--workspace"]),
        Own(example) => (*example, None, &["--workspace"]),
        WithGateway(example) => (*example, None, &["--workspace", "--bin", "openclaw"]),
        Optimised { package, example } => (*example, None, &["--release", "--package", package]),
    };
    let mut command = outside_cargo("cargo".as_ref());
    if !command.args(["build", "--example", example]).args(build).status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let is_optimised = build.contains(&"--release");
    let ended = outside_cargo(&built(example, is_optimised)?).args(name).args(args).status()?;
    Ok(ended.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(u8::try_from(code).unwrap_or(1))))
}

/// Returns a command without the variables that `cargo run` sets for this program. `ring` is built
/// anew, and with it most of the product, when one of them is not what it was.
fn outside_cargo(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(name);
        }
    }
    command
}

/// The file that cargo makes of an example, in the same target directory as this program.
fn built(example: &str, is_optimised: bool) -> std::io::Result<PathBuf> {
    let mut directory = std::env::current_exe()?;
    directory.pop();
    if is_optimised {
        directory.set_file_name("release");
    }
    Ok(directory.join("examples").join(example))
}

fn print_help() {
    println!("usage: cargo xtask <task>\n");
    for (name, about, _) in TASKS {
        println!("  {name:<12} {about}");
    }
}
