//! What was checked, line by line.

use anyhow::{Result, bail};

/// Counts what fails, so that everything is checked once.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: usize,
    failures: usize,
}

impl Report {
    /// One check. `found` is printed where it failed.
    pub(super) fn check(&mut self, what: &str, good: bool, found: &str) {
        self.checks += 1;
        println!("{} {what}", if good { "ok  " } else { "FAIL" });
        if !good {
            self.failures += 1;
            println!("     found:\n{found}");
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
