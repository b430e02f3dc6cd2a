//! Moving files of old versions to where they belong. Files at the new place stay; those that could
//! not be moved because of them stay in the old directory, which gets another name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backup::Backup;
use crate::store::on_disk::StoredRow;

/// Names in a directory, sorted; none when it is not there.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_unstable();
    Ok(names)
}

/// True if this is a directory (not a link to one) and holds anything.
pub(super) fn has_files(dir: &Path) -> io::Result<bool> {
    let is_dir = std::fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
    Ok(is_dir && !names(dir)?.is_empty())
}

/// The transcripts of a directory.
pub(super) fn transcripts(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = names(dir)?;
    names.retain(|name| name.ends_with(".jsonl") && dir.join(name).is_file());
    Ok(names)
}

/// Moves transcripts that are not at the new place already. Returns how many.
pub(super) fn move_transcripts(old: &Path, new: &Path, backup: &mut Backup) -> io::Result<usize> {
    let mut moved = 0;
    for name in transcripts(old)? {
        moved += usize::from(move_unless_there(&old.join(&name), &new.join(&name), backup)?);
    }
    Ok(moved)
}

fn move_unless_there(from: &Path, to: &Path, backup: &mut Backup) -> io::Result<bool> {
    if to.symlink_metadata().is_ok() {
        return Ok(false);
    }
    backup.relocate(from, to)?;
    Ok(true)
}

/// A row whose explicit transcript was in the old directory finds it in the new one.
pub(super) fn at_its_new_place(mut row: StoredRow, old: &Path, new: &Path) -> StoredRow {
    let file = row.1.session_file.as_deref().map(|file| PathBuf::from(file.trim()));
    let Some(file) = file.filter(|file| file.parent() == Some(old)) else { return row };
    let Some(moved) = file.file_name().map(|name| new.join(name)).filter(|moved| moved.exists()) else {
        return row;
    };
    Arc::make_mut(&mut row.1).session_file = Some(moved.display().to_string().into_boxed_str());
    row
}

/// `<path>`, or `<path>-2` and so on where that is taken.
pub(super) fn free_name(path: &Path) -> PathBuf {
    let mut free = path.to_path_buf();
    let mut more = 1;
    while free.symlink_metadata().is_ok() {
        more += 1;
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{more}"));
        free = PathBuf::from(name);
    }
    free
}

/// Moves the contents of the directory of the only agent there was.
pub(super) fn agent_dir(old: &Path, new: &Path, backup: &mut Backup, now: i64) -> io::Result<Vec<String>> {
    let mut changes = Vec::new();
    for name in names(old)? {
        if move_unless_there(&old.join(&name), &new.join(&name), backup)? {
            changes.push(format!("moved {name} from {} to {}", old.display(), new.display()));
        }
    }
    if names(old)?.is_empty() {
        backup.step()?;
        std::fs::remove_dir(old)?;
    } else {
        let mut left = old.as_os_str().to_owned();
        left.push(format!(".legacy-{now}"));
        let left = free_name(Path::new(&left));
        backup.relocate(old, &left)?;
        changes.push(format!("what is left of {} is in {}", old.display(), left.display()));
    }
    Ok(changes)
}

/// Beginnings of the names of WhatsApp's login files, besides `creds.json`.
const WHATSAPP_NAMES: &[&str] =
    &["app-state-sync-", "session-", "sender-key-", "pre-key-", "device-list-", "lid-mapping-"];

/// Files of a WhatsApp login that lie directly in the credentials directory. Empty without
/// `creds.json`, or if the new place has a login.
pub(super) fn whatsapp_files(credentials: &Path) -> io::Result<Vec<String>> {
    let is_done = whatsapp_dir(credentials).join("creds.json").exists();
    let mut names = names(credentials)?;
    names.retain(|name| {
        let is_login = name == "creds.json" || name == "creds.json.bak";
        let is_part = name.ends_with(".json") && WHATSAPP_NAMES.iter().any(|start| name.starts_with(start));
        (is_login || is_part) && credentials.join(name).is_file()
    });
    let is_login = names.iter().any(|name| name == "creds.json");
    Ok(if is_login && !is_done { names } else { Vec::new() })
}

fn whatsapp_dir(credentials: &Path) -> PathBuf {
    credentials.join("whatsapp").join("default")
}

/// Moves a WhatsApp login; `creds.json` last, since the rest is useless without it.
pub(super) fn whatsapp(credentials: &Path, backup: &mut Backup) -> io::Result<Vec<String>> {
    let new = whatsapp_dir(credentials);
    let mut files = whatsapp_files(credentials)?;
    files.sort_by_key(|name| name == "creds.json");
    for name in &files {
        move_unless_there(&credentials.join(name), &new.join(name), backup)?;
    }
    Ok(vec![format!("moved the WhatsApp login from {} to {}", credentials.display(), new.display())])
}
