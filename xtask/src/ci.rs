//! The gate. Steps run in order of how soon they fail; the first failure ends it.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

/// One command of the gate.
struct Step {
    name: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    need: Need,
}

/// Whether a step may be passed over.
#[derive(PartialEq)]
enum Need {
    Always,
    /// Only where this cargo subcommand is installed: it takes minutes to compile.
    WherePresent(&'static str),
}

const STEPS: &[Step] = &[
    Step {
        name: "formatting",
        program: "cargo",
        args: &["fmt", "--all", "--check"],
        env: &[],
        need: Need::Always,
    },
    Step {
        name: "clippy",
        program: "cargo",
        args: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        env: &[],
        need: Need::Always,
    },
    Step {
        name: "licences and bans",
        program: "cargo",
        args: &["deny", "--offline", "check", "licenses", "bans", "sources"],
        env: &[],
        need: Need::WherePresent("cargo-deny"),
    },
    Step {
        name: "generated files",
        program: "cargo",
        args: &["run", "--quiet", "--locked", "--package", "xtask", "--", "generate", "--check"],
        env: &[],
        need: Need::Always,
    },
    // The README's test command.
    Step {
        name: "tests",
        program: "cargo",
        args: &["test", "--workspace", "--locked"],
        env: &[],
        need: Need::Always,
    },
    Step {
        name: "docs",
        program: "cargo",
        args: &["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"],
        env: &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")],
        need: Need::Always,
    },
];

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    for step in STEPS {
        if let Need::WherePresent(tool) = step.need
            && !on_path(tool)
        {
            println!("ci: {} passed over: {tool} is not installed", step.name);
            continue;
        }
        let start = Instant::now();
        println!("ci: {}", step.name);
        let status = Command::new(step.program)
            .args(step.args)
            .envs(step.env.iter().copied())
            .status()
            .with_context(|| format!("cannot start {}", step.program))?;
        if !status.success() {
            bail!("{} failed: {} {}", step.name, step.program, step.args.join(" "));
        }
        println!("ci: {} took {:.0?}", step.name, start.elapsed());
    }
    Ok(())
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|dir| dir.join(program).is_file()))
}
