//! Permission checks: only the owner may read and write the state (spec `config.md` §1.5,
//! `operations.md` §8.5).

use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use nix::unistd::{AccessFlags, access};
use openclaw_config::APPROVALS_FILE;

use super::{Finding, Premises, Repair, Severity, finding, such_as};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Directories below the state directory whose files are private, with those in them down to this depth.
const PRIVATE_DIRS: &[(&str, usize)] =
    &[("devices", 1), ("nodes", 1), ("identity", 1), ("logs", 1), ("backups", 0)];
/// Deepest nesting below the credentials directory that is looked at.
const CREDENTIALS_DEPTH: usize = 4;

#[cfg(not(unix))]
pub(super) fn check(_: &Premises, _: &mut Vec<Finding>) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// File type of a checked path.
#[cfg(unix)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    File,
    Dir,
    Link,
    /// Reading it may never end.
    PipeOrDevice,
}

/// File or directory of the state, with its owner and mode.
#[cfg(unix)]
struct Thing {
    path: PathBuf,
    kind: PathKind,
    mode: u32,
    uid: u32,
}

#[cfg(unix)]
impl Thing {
    fn of(path: &Path, meta: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let kind = match meta {
            _ if meta.is_file() => PathKind::File,
            _ if meta.is_dir() => PathKind::Dir,
            _ if meta.is_symlink() => PathKind::Link,
            _ => PathKind::PipeOrDevice,
        };
        Self { path: path.to_path_buf(), kind, mode: meta.mode() & 0o7777, uid: meta.uid() }
    }

    fn wanted(&self) -> u32 {
        if self.is_dir() { DIR_MODE } else { FILE_MODE }
    }

    fn is_dir(&self) -> bool {
        self.kind == PathKind::Dir
    }

    fn has_mode(&self) -> bool {
        matches!(self.kind, PathKind::File | PathKind::Dir)
    }

    fn chmod(&self) -> Repair {
        Repair::Chmod { path: self.path.clone(), mode: self.wanted() }
    }

    fn described(&self) -> String {
        format!("{} (mode {:o})", self.path.display(), self.mode)
    }
}

#[cfg(unix)]
pub(super) fn check(premises: &Premises, found: &mut Vec<Finding>) -> io::Result<()> {
    let state_dir = premises.state.layout.state_dir();
    let things = things(premises)?;
    let us = nix::unistd::geteuid().as_raw();
    check_owner(&things, us, found);
    check_kind(&things, found);
    let is_ours = |thing: &&Thing| (thing.uid == us || us == 0) && thing.has_mode();
    let ours: Vec<&Thing> = things.iter().filter(is_ours).collect();
    check_writable(&ours, found);
    let (mut dirs, mut files) = (Vec::new(), Vec::new());
    for thing in ours.into_iter().filter(|thing| thing.mode & OTHERS != 0) {
        let path = thing.path.display();
        if thing.path == state_dir {
            let message = format!("State directory permissions are too open ({path}). Recommend chmod 700.");
            found.push(finding("state.permissions", Severity::Warning, message, vec![thing.chmod()]));
        } else if thing.path == premises.config_path {
            let message = format!("Config file is group/world readable ({path}). Recommend chmod 600.");
            found.push(finding("config.permissions", Severity::Warning, message, vec![thing.chmod()]));
        } else if thing.is_dir() {
            dirs.push(thing);
        } else {
            files.push(thing);
        }
    }
    for (id, things, noun, mode) in [
        ("state.dir-permissions", dirs, "directory", "700"),
        ("state.file-permissions", files, "file", "600"),
    ] {
        if !things.is_empty() {
            let list = such_as(&things, noun, |thing| thing.described()).replace("directorys", "directories");
            let message = format!("Open to other users: {list}. Recommend chmod {mode}.");
            let repairs = things.iter().map(|thing| thing.chmod()).collect();
            found.push(finding(id, Severity::Warning, message, repairs));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn check_owner(things: &[Thing], us: u32, found: &mut Vec<Finding>) {
    let theirs: Vec<&Thing> = things.iter().filter(|thing| thing.uid != us).collect();
    let Some(first) = theirs.first() else { return };
    let list = such_as(&theirs, "item", |thing| format!("{} (user {})", thing.path.display(), thing.uid));
    let message = if us == 0 {
        format!("Belongs to another user: {list}. Run openclaw as user {}, not as root.", first.uid)
    } else {
        format!(
            "Belongs to another user and is not used: {list}. If you know what is in it, run: sudo chown -hR {us} {}; else remove it.",
            first.path.display(),
        )
    };
    found.push(finding("state.owner", Severity::Warning, message, Vec::new()));
}

/// Reading a pipe waits for somebody to write into it, for good: commands refuse one.
#[cfg(unix)]
fn check_kind(things: &[Thing], found: &mut Vec<Finding>) {
    let odd: Vec<&Thing> = things.iter().filter(|thing| thing.kind == PathKind::PipeOrDevice).collect();
    if !odd.is_empty() {
        let list = such_as(&odd, "item", |thing| thing.path.display().to_string());
        let message = format!("A pipe, socket or device where a file belongs: {list}. Remove it.");
        found.push(finding("state.no-file", Severity::Error, message, Vec::new()));
    }
}

/// Reports state that its own owner can't read or write: it is of no use.
#[cfg(unix)]
fn check_writable(ours: &[&Thing], found: &mut Vec<Finding>) {
    let (locked, open): (Vec<&Thing>, Vec<&Thing>) =
        ours.iter().partition(|thing| thing.mode & thing.wanted() != thing.wanted());
    if !locked.is_empty() {
        let list = such_as(&locked, "item", |thing| thing.described());
        let message = format!("Cannot be written by its owner: {list}.");
        let repairs = locked.iter().map(|thing| thing.chmod()).collect();
        found.push(finding("state.not-writable", Severity::Error, message, repairs));
    }
    // The mode does not tell all: a file system may be mounted read-only, or a rule of the system
    // forbid it.
    let refuses = |thing: &&&Thing| access(&thing.path, AccessFlags::W_OK).is_err();
    let refusing: Vec<&&Thing> = open.iter().filter(|thing| thing.is_dir()).filter(refuses).collect();
    if !refusing.is_empty() {
        let list = such_as(&refusing, "directory", |thing| thing.path.display().to_string())
            .replace("directorys", "directories");
        let message =
            format!("The file system refuses to be written in {list}: nothing new can be kept there.");
        found.push(finding("state.not-writable", Severity::Error, message, Vec::new()));
    }
}

/// Lists all files and directories that have to be private.
#[cfg(unix)]
fn things(premises: &Premises) -> io::Result<Vec<Thing>> {
    let state_dir = premises.state.layout.state_dir();
    let mut things = Vec::new();
    // The directories may be links to a place of the owner's choice.
    things.extend(std::fs::metadata(state_dir).ok().map(|meta| Thing::of(state_dir, &meta)));
    // Anything else in its place is reported with the config.
    let config = std::fs::metadata(&premises.config_path).ok().filter(std::fs::Metadata::is_file);
    things.extend(config.map(|meta| Thing::of(&premises.config_path, &meta)));
    walk(&premises.state.credentials_dir, CREDENTIALS_DEPTH, &mut things)?;
    for (name, depth) in PRIVATE_DIRS {
        walk(&state_dir.join(name), *depth, &mut things)?;
    }
    let agents = state_dir.join("agents");
    walk(&agents, 0, &mut things)?;
    for agent in premises.state.layout.agents_on_disk() {
        walk(&agents.join(agent.as_str()), 0, &mut things)?;
        walk(&agents.join(agent.as_str()).join("agent"), 1, &mut things)?;
        walk(&agents.join(agent.as_str()).join("sessions"), 1, &mut things)?;
    }
    for dir in &premises.agent_dirs {
        walk(dir, 1, &mut things)?;
    }
    for (store, _) in premises.state.stores() {
        single(&store, &mut things);
    }
    let names = [APPROVALS_FILE, ".env", "gateway.sqlite", "gateway.sqlite-wal", "gateway.sqlite-shm"];
    names.iter().for_each(|name| single(&state_dir.join(name), &mut things));
    let config = premises.config_path.as_os_str().to_string_lossy();
    for suffix in [".bak", ".bak.1", ".bak.2", ".bak.3", ".bak.4"] {
        single(Path::new(&format!("{config}{suffix}")), &mut things);
    }
    things.sort_by(|a, b| a.path.cmp(&b.path));
    things.dedup_by(|a, b| a.path == b.path);
    Ok(things)
}

#[cfg(unix)]
fn single(path: &Path, things: &mut Vec<Thing>) {
    things.extend(std::fs::symlink_metadata(path).ok().map(|meta| Thing::of(path, &meta)));
}

/// Lists a directory and its contents; links are not followed.
#[cfg(unix)]
fn walk(dir: &Path, depth: usize, things: &mut Vec<Thing>) -> io::Result<()> {
    single(dir, things);
    if !std::fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let path = entry?.path();
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => walk(&path, depth - 1, things)?,
            _ => single(&path, things),
        }
    }
    Ok(())
}
