//! Chooses the file in a hook's directory that handles its events, and the way to run it (decision
//! 18).

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::bundled::Bundled;
use super::node::{Node, TypeScript};
use super::trust::{self, NotTrusted};
use crate::requirements::BinPath;

/// Programs, the first that is there. They are started as they are: with a `#!` line or as machine code.
const PROGRAMS: &[&str] =
    &["handler", "handler.sh", "handler.bash", "handler.py", "handler.rb", "handler.pl", "handler.lua"];
/// OpenClaw's own kinds, the first that is there.
const SCRIPTS: &[&str] = &["handler.ts", "handler.js", "index.ts", "index.js"];

const ANY_EXECUTE: u32 = 0o111;

/// Handler of a hook's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// Part of the gateway.
    BuiltIn(Bundled),
    /// A command line.
    Command {
        /// The handler's own file.
        file: PathBuf,
        /// The file and its arguments.
        command: Vec<OsString>,
    },
}

/// Reason why a hook is never run. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum HandlerProblem {
    /// The hook subscribes only to events that do not exist.
    #[error("names no event that there is: {0}")]
    NoKnownEvent(String),
    /// The hook has no handler file with a known name.
    #[error("has no handler; add an executable file named handler (or handler.sh, handler.py, handler.js …)")]
    Missing,
    /// The file that is named does not exist.
    #[error("there is no file {0}; put it there, or correct its path")]
    NotThere(String),
    /// The file is named like a program but is not executable.
    #[error("{0} is not executable; run chmod +x on it")]
    NotExecutable(String),
    /// Node.js is missing.
    #[error("{0} needs Node.js, and there is no node on PATH; install it, or write the handler as a program")]
    NeedsNode(String),
    /// Node.js is too old to read TypeScript.
    #[error(
        "{file} needs Node.js 22.6 or newer, and node is {found}; update it, or write the handler as JavaScript"
    )]
    NeedsNewerNode {
        /// The handler.
        file: String,
        /// Version that node reports.
        found: String,
    },
    /// Other users could have put the file there.
    #[error(transparent)]
    NotTrusted(#[from] NotTrusted),
}

/// Runtimes for scripts; looked up when the first script needs one.
#[derive(Debug)]
pub struct Runtimes {
    bins: BinPath,
    node: OnceLock<Option<Node>>,
    version: OnceLock<Option<String>>,
}

impl Runtimes {
    /// Looks for runtimes on this path.
    pub fn new(bins: BinPath) -> Self {
        Self { bins, node: OnceLock::new(), version: OnceLock::new() }
    }

    fn node(&self) -> Option<&Node> {
        self.node.get_or_init(|| Node::find(&self.bins)).as_ref()
    }

    /// Returns the command that runs a script; programs are run directly. Blocking.
    ///
    /// # Errors
    /// [`HandlerProblem`].
    pub fn command(&self, file: &Path, export: &str) -> Result<Vec<OsString>, HandlerProblem> {
        let name = || file.display().to_string();
        let found = match trust::require(file, self.bins.sandboxes()) {
            Err(NotTrusted::Place(error)) if error.kind() == ErrorKind::NotFound => {
                return Err(HandlerProblem::NotThere(name()));
            }
            found => found?,
        };
        let script = match file.extension().and_then(|extension| extension.to_str()) {
            Some("js" | "mjs" | "cjs") => TypeScript::Reads,
            Some("ts" | "mts" | "cts") => {
                let node = self.node().ok_or_else(|| HandlerProblem::NeedsNode(name()))?;
                let version = self.version.get_or_init(|| node.version()).clone().unwrap_or_default();
                match TypeScript::of_version(&version) {
                    TypeScript::CannotRead => {
                        let found =
                            if version.is_empty() { "of unknown version".to_owned() } else { version };
                        return Err(HandlerProblem::NeedsNewerNode { file: name(), found });
                    }
                    script => script,
                }
            }
            _ if found.is_file() && found.mode() & ANY_EXECUTE != 0 => return Ok(vec![file.into()]),
            _ => return Err(HandlerProblem::NotExecutable(name())),
        };
        let node = self.node().ok_or_else(|| HandlerProblem::NeedsNode(name()))?;
        Ok(node.command(file, export, script))
    }

    /// The handler of a hook's directory. Blocking.
    ///
    /// # Errors
    /// [`HandlerProblem`].
    pub fn handler_of(&self, dir: &Path, export: &str) -> Result<Handler, HandlerProblem> {
        let file = file_of(dir).ok_or(HandlerProblem::Missing)?;
        trust::require(dir, self.bins.sandboxes())?;
        let command = self.command(&file, export)?;
        Ok(Handler::Command { file, command })
    }
}

/// The handler's file in a hook's directory.
pub fn file_of(dir: &Path) -> Option<PathBuf> {
    PROGRAMS.iter().chain(SCRIPTS).map(|name| dir.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn put(dir: &Path, name: &str, text: &str, mode: u32) {
        fs::write(dir.join(name), text).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Names with modes.
    type Files = &'static [(&'static str, u32)];

    fn found(files: Files, node: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let (hook, bin) = (dir.path().join("hook"), dir.path().join("bin"));
        fs::create_dir_all(&hook).unwrap();
        fs::create_dir_all(&bin).unwrap();
        if !node.is_empty() {
            put(&bin, "node", &format!("#!/bin/sh\necho {node}\n"), 0o755);
        }
        for (name, mode) in files {
            put(&hook, name, "", *mode);
        }
        let runtimes = Runtimes::new(BinPath::new(bin.to_str().unwrap()));
        let said = match runtimes.handler_of(&hook, "default") {
            Ok(Handler::Command { command, .. }) => {
                let words = command.iter().map(|word| word.to_string_lossy().into_owned());
                words.filter(|word| !word.contains('\n')).collect::<Vec<_>>().join(" ")
            }
            Ok(built_in) => format!("{built_in:?}"),
            Err(problem) => problem.to_string(),
        };
        said.replace(&format!("{}/", hook.display()), "").replace(&format!("{}/", bin.display()), "")
    }

    #[test]
    fn programs_come_before_scripts_and_must_be_executable() {
        let node = "v22.6.0";
        let rows: &[(Files, &str, &str)] = &[
            (&[("handler", 0o755), ("handler.js", 0o644)], node, "handler"),
            (&[("handler.py", 0o755), ("handler.rb", 0o755)], "", "handler.py"),
            (&[("handler.sh", 0o644)], "", "handler.sh is not executable; run chmod +x on it"),
            (
                &[("index.js", 0o644), ("handler.js", 0o644)],
                node,
                "node --input-type=module -e -- handler.js default",
            ),
            (
                &[("handler.js", 0o644), ("handler.ts", 0o644)],
                node,
                "node --experimental-strip-types --no-warnings --input-type=module -e -- handler.ts default",
            ),
            (&[("index.ts", 0o644)], "v24.0.0", "node --input-type=module -e -- index.ts default"),
            (
                &[("index.ts", 0o644)],
                "v20.1.0",
                "index.ts needs Node.js 22.6 or newer, and node is v20.1.0; update it, or write the handler as JavaScript",
            ),
            (
                &[("handler.js", 0o644)],
                "",
                "handler.js needs Node.js, and there is no node on PATH; install it, or write the handler as a program",
            ),
            (&[("handler.exe", 0o755)], node, &HandlerProblem::Missing.to_string()),
        ];
        for (files, node, expect) in rows {
            assert_eq!(&found(files, node), expect, "{files:?}");
        }
    }
}
