//! The programs that count what another one does: `strace` its system calls, DHAT of valgrind what it allocates and copies.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Counts;

/// The name of the sum of all system calls, which `strace` gives it.
pub(super) const ALL_CALLS: &str = "total";
pub(super) const ALLOCATIONS: &str = "allocations";
/// Bytes.
pub(super) const ALLOCATED: &str = "allocated";
/// Bytes that `memcpy` and the like copied; what the compiler copies by itself is not seen.
pub(super) const COPIED: &str = "copied";
/// Names that are not those of system calls.
pub(super) const SUMS: [&str; 4] = [ALL_CALLS, ALLOCATIONS, ALLOCATED, COPIED];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tracer {
    /// System calls by name.
    Calls,
    /// Allocations and their bytes.
    Heap,
    /// Bytes copied.
    Copies,
}

impl Tracer {
    pub(super) const ALL: [Self; 3] = [Self::Calls, Self::Heap, Self::Copies];

    /// Command that starts a program under it; the report goes to `$report`.
    fn command(self) -> &'static str {
        match self {
            // -D: the traced program keeps the process number that signals are sent to.
            Self::Calls => r#"strace -D -f -c -U name,calls -o "$report""#,
            Self::Heap => {
                r#"valgrind --tool=dhat --child-silent-after-fork=yes --dhat-out-file=/dev/null --log-file="$report""#
            }
            Self::Copies => {
                r#"valgrind --tool=dhat --mode=copy --child-silent-after-fork=yes --dhat-out-file=/dev/null --log-file="$report""#
            }
        }
    }

    pub(super) fn program(self) -> &'static str {
        self.command().split(' ').next().unwrap_or_default()
    }

    /// True if it is installed and may trace here.
    pub(in super::super) fn works(self) -> bool {
        let dir = tempfile::tempdir();
        dir.is_ok_and(|dir| {
            let wrapper = self.wrap(Path::new("/bin/true"), dir.path(), &dir.path().join("report"));
            let traced = wrapper.and_then(|wrapper| Ok(Command::new(wrapper).output()?));
            traced.is_ok_and(|traced| traced.status.success())
        })
    }

    /// Writes a script that starts a program under this one.
    pub(in super::super) fn wrap(self, program: &Path, dir: &Path, report: &Path) -> Result<PathBuf> {
        let (script, command) = (dir.join("traced"), self.command());
        let (report, program) = (report.display(), program.display());
        std::fs::write(
            &script,
            format!("#!/bin/sh\nreport='{report}'\nexec {command} '{program}' \"$@\"\n"),
        )?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700))?;
        Ok(script)
    }

    /// The counts of a report, which may be written only after the traced program has ended.
    pub(in super::super) fn read(self, report: &Path) -> Result<Counts> {
        const PATIENCE: Duration = Duration::from_secs(30);
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            let report = std::fs::read_to_string(report).unwrap_or_default();
            if let Some(counts) = self.parse(&report) {
                return Ok(counts);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("{} wrote no report", self.program())
    }

    /// The counts, once the report is whole.
    fn parse(self, report: &str) -> Option<Counts> {
        let counted = |name: &str, count: f64| (name.to_owned(), count);
        match self {
            Self::Calls => {
                let is_whole = report.lines().last()?.starts_with(ALL_CALLS);
                is_whole.then(|| report.lines().filter_map(call).collect())
            }
            Self::Heap => {
                let (bytes, blocks) = total(report)?;
                Some([counted(ALLOCATED, bytes), counted(ALLOCATIONS, blocks)].into())
            }
            Self::Copies => total(report).map(|(bytes, _)| [counted(COPIED, bytes)].into()),
        }
    }
}

/// `futex            1234` of the table that `strace` writes.
fn call(line: &str) -> Option<(String, f64)> {
    let (name, count) = line.split_once(' ')?;
    Some((name.to_owned(), count.trim().parse().ok()?))
}

/// Bytes and blocks of DHAT's `==1234== Total:     10,703,438 bytes in 37,928 blocks`.
fn total(report: &str) -> Option<(f64, f64)> {
    let (_, total) = report.split_once("Total:")?;
    let (bytes, rest) = total.split_once(" bytes in ")?;
    let (blocks, _) = rest.split_once(" blocks")?;
    let number = |text: &str| text.trim().replace(',', "").parse().ok();
    Some((number(bytes)?, number(blocks)?))
}
