//! Checks that no other user could have put a file here: a hook runs with the owner's rights.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{getegid, geteuid};
use openclaw_config::settings::SandboxWritable;
use openclaw_config::shared_place;

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Reason why a file is not trusted. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum NotTrusted {
    /// Another user made it, or it is no file.
    #[error("{0}")]
    Place(#[from] io::Error),
    /// Another user can change it.
    #[error("other users may write to {0}; run chmod go-w on it")]
    Writable(String),
    /// The file is far longer than any file of its kind.
    #[error("{path} is longer than {limit} bytes")]
    TooLong {
        /// Path that is not trusted.
        path: String,
        /// Limit in bytes.
        limit: u64,
    },
    /// The file is not text.
    #[error("{0} is not UTF-8")]
    NotText(String),
}

/// Requires a directory or a file that is the owner's (or root's), that nobody else may write to, and to which no link of
/// somebody else leads, nor one that a sandbox may change. The group may write to it where it is the owner's own, as systems with a
/// group for each user have it.
pub(super) fn require(path: &Path, sandboxes: &SandboxWritable) -> Result<Metadata, NotTrusted> {
    shared_place::check_way(path)?;
    sandboxes.refuse(path)?;
    let found = std::fs::metadata(path)?;
    require_of(path, &found)?;
    Ok(found)
}

fn require_of(path: &Path, found: &Metadata) -> Result<(), NotTrusted> {
    let (us, root) = (geteuid().as_raw(), 0);
    if found.uid() != us && found.uid() != root {
        let text = format!("{} belongs to user {}, not to user {us}", path.display(), found.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text).into());
    }
    let is_groups = found.mode() & GROUP_WRITES != 0 && found.gid() != getegid().as_raw();
    if is_groups || found.mode() & OTHERS_WRITE != 0 {
        return Err(NotTrusted::Writable(path.display().to_string()));
    }
    Ok(())
}

/// The text of such a file. A pipe is not waited for, and of a long file no more is read than shows that.
pub(super) fn read(path: &Path, limit: u64, sandboxes: &SandboxWritable) -> Result<String, NotTrusted> {
    sandboxes.refuse(path)?;
    let file: File = shared_place::open(path)?;
    require_of(path, &file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(NotTrusted::TooLong { path: path.display().to_string(), limit });
    }
    String::from_utf8(bytes).map_err(|_| NotTrusted::NotText(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_others_can_write_to_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("HOOK.md");
        fs::write(&path, "text").unwrap();
        for (mode, counts) in [(0o644, true), (0o664, true), (0o666, false), (0o646, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let nowhere = SandboxWritable::default();
            let found = (require(&path, &nowhere).is_ok(), read(&path, 9, &nowhere).is_ok());
            assert_eq!(found, (counts, counts), "{mode:o}");
        }
    }

    #[test]
    fn pipes_directories_and_long_files_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let long = File::create(path("long")).unwrap();
        long.set_len(50 << 20).unwrap();
        fs::write(path("bytes"), [0xff, 0xfe]).unwrap();
        let why = |name: &str| {
            let error = read(&path(name), 16, &SandboxWritable::default()).unwrap_err().to_string();
            error.replace(&dir.path().display().to_string(), "")
        };
        assert!(why("pipe").starts_with("/pipe is a pipe, not a regular file"), "{}", why("pipe"));
        assert_eq!(why("long"), "/long is longer than 16 bytes");
        assert_eq!(why("bytes"), "/bytes is not UTF-8");
        assert!(why("none").contains("No such file"));
    }
}
