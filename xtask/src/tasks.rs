//! Development tasks, but for those that are an example of their own (`main.rs`).

mod budget;
mod build;
mod ci;
mod compat;
mod generate;
mod layers;
mod soak;
mod source;
mod torture;
mod words;

use std::process::ExitCode;

type Task = fn(&[String]) -> anyhow::Result<()>;

/// Table of tasks: name and function. `main.rs` says what each does.
const TASKS: &[(&str, Task)] = &[
    ("ci", ci::run),
    ("generate", generate::run),
    ("budget", budget::run),
    ("compat", compat::run),
    ("soak", soak::run),
    ("torture", torture::run),
    ("layers", layers::run),
    ("words", words::run),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let Some((_, task)) = TASKS.iter().find(|(task, _)| *task == name) else {
        eprintln!("no task has the name {name:?}; `cargo xtask` lists them");
        return ExitCode::from(2);
    };
    match task(&rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
