//! `boot-md`: what the agent is told when the gateway has started (spec `agent-runtime.md` §8.3).

use std::io;
use std::path::Path;

use openclaw_config::settings::SandboxWritable;

use crate::workspace;
use crate::workspace_file;

/// The file in the workspace.
pub const FILE: &str = "BOOT.md";
/// Initial content of the file. Untouched it asks for nothing.
const TEMPLATE: &str = include_str!("../templates/BOOT.md");
/// Largest number of bytes that are read of the file.
const MAX_BYTES: u64 = 256 * 1024;

/// The prompt for a workspace; `None` where there is nothing to do. Blocking.
///
/// # Errors
/// When the file is no file of the workspace, can't be read, or may have been written by a sandbox: the run has the owner's rights.
pub fn prompt(workspace: &Path, sandboxes: &SandboxWritable) -> io::Result<Option<String>> {
    let Some(head) = workspace_file::read(workspace, FILE, MAX_BYTES)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&head.bytes).trim().to_owned();
    if text.is_empty() || text == TEMPLATE.trim() {
        return Ok(None);
    }
    sandboxes.refuse(&workspace.join(FILE))?;
    Ok(Some(wording(&text)))
}

/// Puts the file into a workspace that there is and that has none, as a template; whether it did. Blocking.
///
/// # Errors
/// Returns the underlying I/O error if the file can't be written.
pub fn put_template(workspace: &Path) -> io::Result<bool> {
    if !workspace.is_dir() {
        return Ok(false);
    }
    workspace::create(&workspace.join(FILE), TEMPLATE)
}

fn wording(text: &str) -> String {
    format!(
        "The gateway has just started, and this is its start-up check. Do exactly what {FILE} says.\n\n{FILE}:\n{text}\n\n\
         If it asks you to send a message, use the message tool with action=send and the fields channel and target. After you \
         have sent it, or if there is nothing to tell, answer with NO_REPLY and nothing else."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workspace: &Path) -> io::Result<Option<String>> {
        prompt(workspace, &SandboxWritable::default())
    }

    #[test]
    fn the_template_asks_for_nothing_until_something_is_added() {
        let dir = tempfile::tempdir().unwrap();
        assert!(put_template(dir.path()).unwrap() && !put_template(dir.path()).unwrap());
        assert_eq!(of(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(FILE), format!("{TEMPLATE}- Say hello.\n")).unwrap();
        assert!(of(dir.path()).unwrap().unwrap().contains("- Say hello.\n"));
        assert!(!put_template(&dir.path().join("gone")).unwrap());
    }

    #[test]
    fn a_blank_or_missing_file_asks_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(FILE), " \n\t").unwrap();
        assert_eq!(of(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(FILE), "\nSay hello.\n").unwrap();
        let text = of(dir.path()).unwrap().unwrap();
        assert!(text.contains("BOOT.md:\nSay hello.\n\n") && text.contains("NO_REPLY"), "{text}");
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join(FILE)).unwrap();
        assert!(of(dir.path()).is_err());
    }
}
