//! Step of the gate that runs all tests of the workspace, in two lanes: the end-to-end tests, which
//! wait most of the time, beside the executables of all other tests, one after the other.
//!
//! `cargo test --workspace` runs the same executables in one lane.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Name of the executable with the end-to-end tests.
const END_TO_END: &str = "e2e";

/// More of what is drawn by lot, and whole runs that kill the gateway and the store: who types
/// `cargo test` waits for a part of them. The cases are the same each time; fuzzing looks further.
const ENV: &[(&str, &str)] = &[
    ("PROPTEST_RNG_SEED", "20261125"),
    ("PROPTEST_CASES", "1024"),
    ("OPENCLAW_TEST_KILLS", "200"),
    ("OPENCLAW_TEST_TORTURE_KILLS", "100"),
    ("OPENCLAW_CRASH_RUNS", "2000"),
    ("OPENCLAW_STORE_KILLS", "400"),
    ("OPENCLAW_TEST_DISK_SECONDS", "110"),
];

/// Executable with tests.
#[derive(Debug, PartialEq, Eq)]
struct Tests {
    name: String,
    executable: PathBuf,
    /// Folder of the package, in which its tests run.
    folder: PathBuf,
}

/// Builds and runs all tests.
///
/// # Errors
/// If something can't be built, or a test fails; every executable runs also behind one that failed.
pub(super) fn run() -> Result<()> {
    let start = Instant::now();
    println!("ci: build of the tests");
    let (end_to_end, others): (Vec<_>, Vec<_>) =
        build()?.into_iter().partition(|tests| tests.name == END_TO_END);
    if end_to_end.is_empty() || others.is_empty() {
        bail!("cargo named no executable of the end-to-end tests, or no other");
    }
    println!("ci: build of the tests took {:.0?}", start.elapsed());
    let start = Instant::now();
    println!("ci: tests");
    let beside = thread::spawn(move || others.iter().map(quiet).collect::<Vec<_>>());
    let mut ends: Vec<Result<()>> = end_to_end.iter().map(loud).collect();
    ends.extend(
        beside.join().unwrap_or_else(|_| vec![Err(anyhow::anyhow!("the lane of the other tests died"))]),
    );
    ends.push(documentation());
    let failed: Vec<String> =
        ends.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if !failed.is_empty() {
        bail!("tests failed: {}", failed.join("; "));
    }
    println!("ci: tests took {:.0?}", start.elapsed());
    Ok(())
}

/// Builds the tests and returns their executables.
fn build() -> Result<Vec<Tests>> {
    let args = ["test", "--workspace", "--locked", "--no-run", "--message-format", "json-render-diagnostics"];
    let built =
        Command::new("cargo").args(args).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !built.status.success() {
        bail!("the tests can't be built: cargo {}", args.join(" "));
    }
    Ok(String::from_utf8_lossy(&built.stdout).lines().filter_map(executable).collect())
}

/// Reads a line of cargo about an executable with tests.
fn executable(line: &str) -> Option<Tests> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_tests = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let text = |value: &Value| value.as_str().map(str::to_owned).filter(|_| is_tests);
    let mut folder = PathBuf::from(text(&message["manifest_path"])?);
    folder.pop();
    Some(Tests {
        name: text(&message["target"]["name"])?,
        executable: text(&message["executable"])?.into(),
        folder,
    })
}

fn command(tests: &Tests) -> Command {
    let mut command = Command::new(&tests.executable);
    command.current_dir(&tests.folder).env("CARGO_MANIFEST_DIR", &tests.folder).envs(ENV.iter().copied());
    command
}

/// Runs tests, and shows each as it ends.
fn loud(tests: &Tests) -> Result<()> {
    ended(tests, command(tests).status().with_context(|| tests.name.clone())?)
}

/// Runs tests, and shows at the end what they printed, if they passed only the last line.
fn quiet(tests: &Tests) -> Result<()> {
    let output = command(tests).output().with_context(|| tests.name.clone())?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let [told, errors] = &text;
    let last = told.lines().rev().find(|line| !line.is_empty()).unwrap_or_default();
    let shown = if output.status.success() { last.to_owned() } else { format!("{told}\n{errors}") };
    // The gate goes on where nobody reads.
    let _ = writeln!(std::io::stdout().lock(), "ci: {}: {shown}", tests.name);
    ended(tests, output.status)
}

fn ended(tests: &Tests, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} ({status})", tests.name);
    }
    Ok(())
}

/// Runs the examples in the documentation, which are no executables.
fn documentation() -> Result<()> {
    let args = ["test", "--workspace", "--locked", "--quiet", "--doc"];
    let status = Command::new("cargo").args(args).status().context("cannot start cargo")?;
    if !status.success() {
        bail!("cargo {}", args.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_with_tests_are_read_from_lines_of_cargo() {
        let line = |is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/cli/Cargo.toml","target":{{"name":"e2e"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let found =
            Tests { name: "e2e".to_owned(), executable: "/t/e2e-1".into(), folder: "/w/crates/cli".into() };
        assert_eq!(executable(&line(true, r#""/t/e2e-1""#)), Some(found));
        for other in
            [line(false, r#""/t/openclaw""#), line(true, "null"), "no JSON".to_owned(), String::new()]
        {
            assert_eq!(executable(&other), None, "{other}");
        }
    }
}
