//! Report of the checks, line by line.

use anyhow::{Result, bail};

/// Counts what fails, so that everything is checked once.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: usize,
    failures: usize,
}

impl Report {
    /// Records a check. `found` is printed where it failed.
    pub(super) fn check(&mut self, what: &str, good: bool, found: &str) {
        self.checks += 1;
        println!("{} {what}", if good { "ok  " } else { "FAIL" });
        if !good {
            self.failures += 1;
            println!("     found:\n{found}");
        }
    }

    /// A group of checks that has ended; an error in the middle of it is one failure, and the others go on.
    pub(super) fn group(&mut self, name: &str, ended: Result<()>) {
        if let Err(error) = ended {
            self.check(&format!("the checks of {name} come to their end"), false, &format!("{error:#}"));
        }
    }

    pub(super) fn end(self) -> Result<()> {
        if self.failures > 0 {
            bail!("{} of {} checks failed", self.failures, self.checks);
        }
        println!("{} checks", self.checks);
        Ok(())
    }
}
