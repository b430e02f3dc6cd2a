//! Development tasks. `cargo xtask` lists them.

mod budget;
mod build;
mod catalog;
mod ci;
mod compat;
mod config_reads;
mod config_reference;
mod demo;
mod generate;
mod layers;
mod soak;
mod source;
mod torture;
mod words;

use std::process::ExitCode;

type Task = fn(&[String]) -> anyhow::Result<()>;

/// Table of tasks: name, what it does, the function.
const TASKS: &[(&str, &str, Task)] = &[
    ("ci", "formatting, clippy, licences, tests, docs, generated files: what .ci/run runs", ci::run),
    ("demo", "a gateway, one message, its streamed reply; --once ends after it", demo::run),
    ("generate", "write the generated files anew; --check only compares", generate::run),
    (
        "budget",
        "measure the release binary against the performance budget; --counts, --check, --memory, --channels, --turns N, --program PATH",
        budget::run,
    ),
    ("compat", "run OpenClaw 2026.2.9's own command line against the gateway", compat::run),
    (
        "catalog",
        "refresh the built-in list of models; --from FILE or ADDRESS in the form of models.dev, --add, --check",
        catalog::run,
    ),
    ("config-reads", "compare the config keys acted on with those the compiler sees read", config_reads::run),
    ("soak", "people write to bots at a steady rate; --minutes M, --rate R, --binary PATH", soak::run),
    (
        "torture",
        "kill the gateway at every step while people and clients write; --kills N, --seed S, --modes a,b, --jobs N, --binary PATH",
        torture::run,
    ),
    (
        "layers",
        "check that crates depend only downwards and import cycles of modules do not grow",
        layers::run,
    ),
    (
        "words",
        "count empty comments, shared type names and unused terms of the glossary; --list names them",
        words::run,
    ),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let Some((_, _, task)) = TASKS.iter().find(|(task, _, _)| *task == name) else {
        print_help();
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

fn print_help() {
    println!("usage: cargo xtask <task>\n");
    for (name, about, _) in TASKS {
        println!("  {name:<12} {about}");
    }
}
