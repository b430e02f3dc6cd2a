//! Locks of transcripts, and programs that hold them.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, SystemTime};

use serde_json::json;

pub(crate) const WAITS: &str = "another process holds the transcript";

/// A program that has nothing to do with any of this.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn start() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A lock in the form OpenClaw 2026.2.9 writes, so long ago.
pub(crate) fn plant(lock: &Path, pid: u32, age: Duration) {
    let made = jiff::Timestamp::try_from(SystemTime::now() - age).unwrap();
    std::fs::write(lock, json!({"pid": pid, "createdAt": made.to_string()}).to_string()).unwrap();
    set_age(lock, age);
}

pub(crate) fn set_age(lock: &Path, age: Duration) {
    let file = std::fs::File::options().write(true).open(lock).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}
