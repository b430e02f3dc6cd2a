//! The gate. Steps run in order of how soon they fail; the first failure ends it.

mod test_lanes;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

/// Step of the gate.
enum Step {
    /// A command.
    Run {
        name: &'static str,
        program: &'static str,
        args: &'static [&'static str],
        env: &'static [(&'static str, &'static str)],
    },
    /// All tests of the workspace.
    Tests,
}

/// The one tool of the gate that a Rust toolchain does not bring. It is installed when it is missing or of another version,
/// so that the step which needs it always runs.
const CARGO_DENY: &str = "0.20.2";

const STEPS: &[Step] = &[
    Step::Run { name: "formatting", program: "cargo", args: &["fmt", "--all", "--check"], env: &[] },
    Step::Run {
        // The fuzz targets too: no other step builds them.
        name: "clippy",
        program: "cargo",
        args: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        env: &[],
    },
    Step::Run {
        name: "licences and bans",
        program: "cargo",
        args: &["deny", "--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"],
        env: &[],
    },
    Step::Run {
        name: "generated files",
        program: "cargo",
        args: &["xtask", "generate", "--check"],
        env: &[],
    },
    Step::Run { name: "config keys", program: "cargo", args: &["xtask", "config-reads"], env: &[] },
    Step::Tests,
    // Of the binary that the tests were run with: counts hardly depend on how it was optimised.
    Step::Run {
        name: "counts of a turn",
        program: "cargo",
        args: &["xtask", "budget", "--check", "--program", "target/debug/openclaw"],
        env: &[],
    },
    // With examples: the tasks of xtask are some, and the crates below have the features that they have
    // with tests, and are not checked again.
    Step::Run {
        name: "docs",
        program: "cargo",
        args: &[
            "doc",
            "--workspace",
            "--lib",
            "--bins",
            "--examples",
            "--no-deps",
            "--locked",
            "--document-private-items",
        ],
        env: &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")],
    },
];

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    install_cargo_deny()?;
    for step in STEPS {
        match step {
            Step::Run { name, program, args, env } => timed(name, program, args, env)?,
            Step::Tests => test_lanes::run()?,
        }
    }
    advisories()
}

/// Advisories and yanked releases. Their database is a repository that not every machine reaches: where it cannot be
/// fetched, the gate says that nothing was checked and goes on.
fn advisories() -> anyhow::Result<()> {
    const ARGS: [&str; 4] = ["deny", "--locked", "check", "advisories"];
    const UNREACHABLE: &str = "failed to fetch advisory database";
    println!("ci: advisories");
    let checked = Command::new("cargo").args(ARGS).output().context("cannot start cargo")?;
    let told = String::from_utf8_lossy(&checked.stderr);
    if !checked.status.success() && !told.contains(UNREACHABLE) {
        bail!("advisories failed: cargo {}\n{told}", ARGS.join(" "));
    }
    if !checked.status.success() {
        println!("ci: advisories were NOT checked: the advisory database cannot be fetched from here");
    }
    Ok(())
}

fn install_cargo_deny() -> anyhow::Result<()> {
    let installed =
        Command::new("cargo").args(["deny", "--version"]).output().context("cannot start cargo")?;
    if String::from_utf8_lossy(&installed.stdout).trim() == format!("cargo-deny {CARGO_DENY}") {
        return Ok(());
    }
    // Not optimised: it looks at one lock file, and is built in half the time.
    let args =
        ["install", "--locked", "--force", "--quiet", "--debug", "cargo-deny", "--version", CARGO_DENY];
    timed("installing cargo-deny", "cargo", &args, &[("CARGO_PROFILE_DEV_DEBUG", "0")])
}

fn timed(name: &str, program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let start = Instant::now();
    println!("ci: {name}");
    let status = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{name} failed: {program} {}", args.join(" "));
    }
    println!("ci: {name} took {:.0?}", start.elapsed());
    Ok(())
}
