//! A disk that fails when the test says so: a library, built with the machine's C compiler, that stands between the gateway and libc and
//! makes a write, a sync, a rename or an opening of a file below the state directory fail. It also knows what a power cut would leave.
//!
//! ```no_run
//! # use openclaw_testkit::GatewaySetup;
//! # use openclaw_testkit::faulty_disk::{DiskCall, DiskFault, FaultyDisk};
//! # async fn test(setup: GatewaySetup) -> anyhow::Result<()> {
//! let Some(disk) = FaultyDisk::new()? else { return Ok(()) };
//! let gateway = disk.under(setup).start().await?;
//! disk.arm(&[DiskFault::once(DiskCall::Sync).of("jsonl")])?;
//! // … the next sync of a transcript fails with EIO …
//! assert_eq!(disk.disarm()?.len(), 1);
//! # drop(gateway);
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::errno::Errno;
use tempfile::TempDir;

use crate::GatewaySetup;

const SOURCE: &str = include_str!("faulty_disk/faults.c");
/// Faults that can be armed together.
const SLOTS: usize = 4;
/// Bytes of `suffix` and `last` in the library's `struct slot`.
const SUFFIX: usize = 64;
const LAST: usize = 512;
/// Bytes of its six numbers.
const NUMBERS: usize = 24;
const SLOT: usize = NUMBERS + SUFFIX + LAST;
/// Beginning of the log's lines about a file that took the place of another.
const RENAMED: &str = "> ";
/// Byte offset in a slot of the number of calls that failed.
const FAILED: usize = 20;

/// Kind of system call that a fault makes fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskCall {
    /// `write`, `pwrite64`, `writev`.
    Write = 1,
    /// `fsync`, `fdatasync`.
    Sync = 2,
    /// `rename`, by the new name.
    Rename = 3,
    /// `open`, for whatever it is.
    Open = 4,
    /// `ftruncate`.
    Truncate = 5,
}

/// Calls that fail, and the way in which they fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFault {
    /// The calls that are counted.
    pub call: DiskCall,
    /// Number of the first call that fails, counted from 1.
    pub first: u32,
    /// Number of calls that fail, beginning with the first.
    pub times: u32,
    /// Error of the failing calls; `None`: a write writes half, and a sync does nothing but claims to have succeeded.
    pub error: Option<Errno>,
    /// Ending of the names of the files concerned; empty: all files.
    pub suffix: String,
}

impl DiskFault {
    /// Creates a fault with which the next call fails with `EIO`, on any file.
    pub fn once(call: DiskCall) -> Self {
        Self { call, first: 1, times: 1, error: Some(Errno::EIO), suffix: String::new() }
    }

    /// Limits the fault to files whose names end in `suffix`.
    #[must_use]
    pub fn of(self, suffix: &str) -> Self {
        Self { suffix: suffix.to_owned(), ..self }
    }

    /// The same for all calls from there on.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { times: u32::MAX, ..self }
    }

    fn bytes(&self) -> Result<[u8; SLOT]> {
        ensure!(self.suffix.len() < SUFFIX, "the suffix is too long");
        let error = self.error.map_or(0, |error| error as u32);
        let mut slot = Vec::with_capacity(SLOT);
        for number in [self.call as u32, self.first, self.times, error, 0, 0] {
            slot.extend(number.to_ne_bytes());
        }
        slot.extend(self.suffix.bytes());
        slot.resize(SLOT, 0);
        slot.try_into().ok().context("a slot has its size")
    }
}

/// The library, and the files by which it is told what to do.
#[derive(Debug)]
pub struct FaultyDisk {
    dir: TempDir,
    control: File,
}

impl FaultyDisk {
    /// Builds the library. `None` if there is no C compiler, which is printed.
    ///
    /// # Errors
    /// When the compiler refuses, or the disk.
    #[expect(clippy::print_stderr, reason = "a test that checks nothing has to say so")]
    pub fn new() -> Result<Option<Self>> {
        let dir = TempDir::new()?;
        let source = dir.path().join("faults.c");
        std::fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library(dir.path())).arg(source).arg("-ldl");
        let Ok(built) = compiler.output() else {
            eprintln!("passed over: there is no C compiler here");
            return Ok(None);
        };
        ensure!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let control = OpenOptions::new().read(true).write(true).create_new(true).open(control(dir.path()))?;
        control.set_len(u64::try_from(SLOT * SLOTS)?)?;
        std::fs::write(syncs(dir.path()), "")?;
        Ok(Some(Self { dir, control }))
    }

    /// A gateway whose disk it is.
    pub fn under(&self, setup: GatewaySetup) -> GatewaySetup {
        let text = |path: PathBuf| path.display().to_string();
        setup
            .env("LD_PRELOAD", text(library(self.dir.path())))
            .env("FAULTY_DISK_CONTROL", text(control(self.dir.path())))
            .env("FAULTY_DISK_SYNCS", text(syncs(self.dir.path())))
    }

    /// Makes these calls fail from now on, and none of those that were armed before.
    ///
    /// # Errors
    /// When there are too many, or the disk refuses.
    pub fn arm(&self, faults: &[DiskFault]) -> Result<()> {
        ensure!(faults.len() <= SLOTS, "at most {SLOTS} faults");
        self.disarm()?;
        for (at, fault) in faults.iter().enumerate() {
            let bytes = fault.bytes()?;
            // The kind comes last: a slot without one is passed over.
            self.control.write_all_at(bytes.get(4..).unwrap_or_default(), place(at)? + 4)?;
            self.control.write_all_at(bytes.get(..4).unwrap_or_default(), place(at)?)?;
        }
        Ok(())
    }

    /// Lets nothing fail any more. Returns the last file of each fault that was met.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn disarm(&self) -> Result<Vec<PathBuf>> {
        let mut met = Vec::new();
        for at in 0..SLOTS {
            let mut slot = [0; SLOT];
            self.control.write_all_at(&[0; 4], place(at)?)?;
            self.control.read_exact_at(&mut slot, place(at)?)?;
            let last = slot.get(NUMBERS + SUFFIX..).unwrap_or_default();
            let last = last.split(|byte| *byte == 0).next().unwrap_or_default();
            if slot.get(FAILED..NUMBERS).is_some_and(|failed| failed != [0; 4]) {
                met.push(PathBuf::from(String::from_utf8_lossy(last).into_owned()));
            }
            self.control.write_all_at(&[0; SLOT], place(at)?)?;
        }
        Ok(met)
    }

    /// Returns the number of syncs of each file so far, and its length at the last one.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn synced(&self) -> Result<BTreeMap<PathBuf, Synced>> {
        let mut files: BTreeMap<PathBuf, Synced> = BTreeMap::new();
        for line in std::fs::read_to_string(syncs(self.dir.path()))?.lines() {
            if !line.starts_with(RENAMED) {
                note_sync(&mut files, line)?;
            }
        }
        Ok(files)
    }

    /// Returns the files whose place another took so far, and whether each of those was synced whole before: otherwise a power cut
    /// may leave an empty file under that name.
    ///
    /// # Errors
    /// If the log can't be read.
    pub fn replaced(&self) -> Result<BTreeMap<PathBuf, bool>> {
        let (mut files, mut replaced) = (BTreeMap::new(), BTreeMap::new());
        for line in std::fs::read_to_string(syncs(self.dir.path()))?.lines() {
            let Some(renamed) = line.strip_prefix(RENAMED) else {
                note_sync(&mut files, line)?;
                continue;
            };
            let (length, names) = renamed.split_once(' ').context("a length and names")?;
            let (from, to) = names.split_once('\t').context("two names")?;
            let synced: Option<Synced> = files.remove(Path::new(from));
            let is_synced = synced.is_some_and(|synced| Ok(synced.length) == length.parse());
            let was_always = replaced.entry(PathBuf::from(to)).or_insert(true);
            *was_always &= is_synced;
        }
        Ok(replaced)
    }

    /// Cuts the transcripts in a directory of sessions as a power cut may: everything that was not synced is gone.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn cut_power(&self, sessions: &Path) -> Result<()> {
        let (synced, sessions) = (self.synced()?, sessions.canonicalize()?);
        for file in std::fs::read_dir(sessions)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let kept = synced.get(&path).map_or(0, |file| file.length);
                OpenOptions::new().write(true).open(&path)?.set_len(kept)?;
            }
        }
        Ok(())
    }
}

/// Adds a line of the log to the syncs of its file.
fn note_sync(files: &mut BTreeMap<PathBuf, Synced>, line: &str) -> Result<()> {
    let (length, path) = line.split_once(' ').context("a length and a path")?;
    let file = files.entry(PathBuf::from(path)).or_default();
    *file = Synced { times: file.times + 1, length: length.parse()? };
    Ok(())
}

/// The syncs of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synced {
    /// Number of syncs.
    pub times: usize,
    /// Bytes of the file at the last one.
    pub length: u64,
}

fn library(dir: &Path) -> PathBuf {
    dir.join("faults.so")
}

fn control(dir: &Path) -> PathBuf {
    dir.join("control")
}

fn syncs(dir: &Path) -> PathBuf {
    dir.join("syncs")
}

fn place(slot: usize) -> Result<u64> {
    Ok(u64::try_from(slot * SLOT)?)
}
