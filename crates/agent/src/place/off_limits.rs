//! Files that no tool reaches and no message carries away: the gateway's state, and what its configuration is read from. Hooks, which the
//! gateway runs as programs, are written only by runs that may run programs anyway.
//!
//! Files and directories are told apart by what they are, not by their names: a link, `..`, another spelling, a hard link to the
//! configuration or `/proc/self/root` leads to the same place. The agent's own workspace is reached also where it lies inside the state.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{AtFlags, openat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use openclaw_config::Config;

use super::{DIRECTORY, Place, PlaceError};

/// Parts of the state that an agent is shown, to be read: files that came with messages, and the skills of all agents.
const READABLE: [&str; 2] = ["media", "skills"];

/// The purpose for which a file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Looking into the file.
    Read,
    /// Making, changing or removing the file.
    Write,
}

/// The gateway's own files, by the configuration in force.
#[derive(Debug, Clone, Default)]
pub struct OffLimits {
    config: Arc<Config>,
    /// True if hooks may be written.
    with_hooks: bool,
}

/// A file as the system tells it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// Returns the identity of what a path leads to; `None` if there is nothing.
    fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self { device: found.dev(), number: found.ino() })
    }
}

#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "the raw types differ between systems")]
impl From<FileStat> for FileIdentity {
    fn from(stat: FileStat) -> Self {
        Self { device: stat.st_dev as u64, number: stat.st_ino as u64 }
    }
}

/// The way from a place up to the root, as far as it matters.
struct Bounds {
    workspace: Option<FileIdentity>,
    readable: Vec<FileIdentity>,
    private: Vec<FileIdentity>,
}

impl OffLimits {
    /// Returns the places that a configuration puts off limits, hooks among them.
    pub fn of(config: &Arc<Config>) -> Self {
        Self { config: Arc::clone(config), with_hooks: false }
    }

    /// Allows hooks to be written, for a run that may run any command unasked.
    #[must_use]
    pub fn with_hooks(self) -> Self {
        Self { with_hooks: true, ..self }
    }

    /// Refuses a place that is the gateway's own. `workspace` is the directory that the caller works in.
    ///
    /// # Errors
    /// [`PlaceError::OffLimits`], or what the system says of the way there.
    pub fn check(&self, place: &Place, workspace: &Path, purpose: Purpose) -> Result<(), PlaceError> {
        let refused = || PlaceError::OffLimits(place.shown.clone());
        let bounds = self.bounds(workspace, purpose);
        let found = fstatat(&place.directory, place.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        let entry = RequestedFile {
            directory: FileIdentity::from(fstat(&place.directory)?),
            name: &place.name,
            found: found.ok().map(FileIdentity::from),
        };
        if entry.found.is_some_and(|found| bounds.private.contains(&found))
            || entry.is_one_of(&self.config.source_files())
            || bounds.hold(&place.directory)?
        {
            return Err(refused());
        }
        if purpose == Purpose::Write
            && (self.is_in_hook(&place.directory)? || entry.is_one_of(&self.programs()))
        {
            return Err(PlaceError::Hook(place.shown.clone()));
        }
        Ok(())
    }

    /// Refuses a file that is to be made with the directories above it, before any of them is.
    ///
    /// # Errors
    /// Same errors as the check of an existing file.
    pub fn check_new(&self, path: &Path, workspace: &Path) -> Result<(), PlaceError> {
        let Some(existing) = path.ancestors().skip(1).find(|dir| dir.is_dir()) else { return Ok(()) };
        let directory = nix::fcntl::open(existing, DIRECTORY, Mode::empty())?;
        if self.bounds(workspace, Purpose::Write).hold(&directory)? {
            return Err(PlaceError::OffLimits(path.display().to_string()));
        }
        let is_program = self.programs().iter().any(|program| program == path);
        match is_program || self.is_in_hook(&directory)? || self.is_in_new_hook(existing, path) {
            true => Err(PlaceError::Hook(path.display().to_string())),
            false => Ok(()),
        }
    }

    /// Returns the directories of hooks that may not be written.
    fn hooks(&self) -> Vec<PathBuf> {
        if self.with_hooks { Vec::new() } else { self.config.hook_directories() }
    }

    /// Returns the files that the gateway runs by themselves and that may not be written: those that the configuration names, those of
    /// every hook, wherever links lead, and the places of links that lead to nothing yet.
    fn programs(&self) -> Vec<PathBuf> {
        if self.with_hooks {
            return Vec::new();
        }
        let entries = |dir: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(dir)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .collect()
        };
        let hooks = self.hooks().into_iter().flat_map(|dir| entries(&dir)).filter(|hook| hook.is_dir());
        let mut files = self.config.hook_files();
        files.extend(hooks.flat_map(|hook| entries(&hook)));
        let dangling = |file: &PathBuf| {
            let target = std::fs::read_link(file).ok().filter(|_| !file.exists())?;
            Some(file.parent()?.join(target))
        };
        let targets: Vec<PathBuf> = files.iter().filter_map(dangling).collect();
        files.extend(targets);
        files
    }

    /// Returns true if a file below `directory` would be part of a hook, also of one that a link in the directory of hooks leads to.
    fn is_in_hook(&self, directory: &OwnedFd) -> io::Result<bool> {
        let found = self.hooks().into_iter().flat_map(|dir| {
            let linked = std::fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok);
            let linked = linked.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
            let linked: Vec<PathBuf> =
                linked.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
            std::iter::once(dir).chain(linked)
        });
        let private: Vec<FileIdentity> = found.filter_map(|dir| FileIdentity::of(&dir)).collect();
        if private.is_empty() {
            return Ok(false);
        }
        Bounds { workspace: None, readable: Vec::new(), private }.hold(directory)
    }

    /// Returns true if a file that is to be made with the directories above it, of which `existing` is there, would be part of a hook whose
    /// directory is not there either.
    fn is_in_new_hook(&self, existing: &Path, path: &Path) -> bool {
        let whole = |existing: &Path, path: &Path| {
            let rest = path.strip_prefix(existing).ok()?;
            Some(existing.canonicalize().ok()?.join(rest))
        };
        let Some(path) = whole(existing, path) else { return false };
        self.hooks().iter().any(|dir| {
            let there = dir.ancestors().find(|above| above.is_dir());
            there.and_then(|there| whole(there, dir)).is_some_and(|dir| path.starts_with(dir))
        })
    }

    fn bounds(&self, workspace: &Path, purpose: Purpose) -> Bounds {
        let identities =
            |paths: Vec<PathBuf>| paths.iter().filter_map(|path| FileIdentity::of(path)).collect();
        let state = self.config.paths().state_dir();
        let readable = match purpose {
            Purpose::Read => READABLE.map(|name| state.join(name)).to_vec(),
            Purpose::Write => Vec::new(),
        };
        Bounds {
            workspace: FileIdentity::of(workspace),
            readable: identities(readable),
            private: identities(self.config.private_directories()),
        }
    }
}

/// A file that is asked for, which need not be there.
struct RequestedFile<'a> {
    directory: FileIdentity,
    name: &'a OsStr,
    found: Option<FileIdentity>,
}

impl RequestedFile<'_> {
    /// Returns true for one of the files, under whatever name, and for the name of one that is not there yet.
    fn is_one_of(&self, files: &[PathBuf]) -> bool {
        files.iter().any(|file| {
            let is_it = self.found.is_some() && FileIdentity::of(file) == self.found;
            let is_its_name = || {
                let parent = file.parent().and_then(FileIdentity::of);
                file.file_name() == Some(self.name) && parent == Some(self.directory)
            };
            is_it || is_its_name()
        })
    }
}

impl Bounds {
    /// Returns true if a directory is private: going up, something private comes before the workspace and what may be read.
    fn hold(&self, directory: &OwnedFd) -> io::Result<bool> {
        let mut at = FileIdentity::from(fstat(directory)?);
        let mut climbed: Option<OwnedFd> = None;
        loop {
            if self.private.contains(&at) {
                return Ok(true);
            }
            if self.workspace == Some(at) || self.readable.contains(&at) {
                return Ok(false);
            }
            let here = climbed.as_ref().map_or_else(|| directory.as_fd(), AsFd::as_fd);
            let above = openat(here, "..", DIRECTORY, Mode::empty())?;
            let next = FileIdentity::from(fstat(&above)?);
            if next == at {
                return Ok(false);
            }
            (at, climbed) = (next, Some(above));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use openclaw_config::Environment;

    use super::*;

    /// A home with a state directory, a configuration elsewhere that includes a file, and links to all of it.
    struct Tree {
        home: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let at = |path: &str| home.path().join(path);
            for file in [
                "state/openclaw.sqlite",
                "state/agents/main/agent/auth-profiles.json",
                "state/media/inbound/a.png",
                "state/skills/s/SKILL.md",
                "state/workspace/notes.md",
                "state/workspace-b/notes.md",
                "conf/openclaw.json",
                "conf/part.json5",
                "far/agent/auth-profiles.json",
                "ws/a.txt",
            ] {
                fs::create_dir_all(at(file).parent().unwrap()).unwrap();
                fs::write(at(file), "x").unwrap();
            }
            symlink(at("state"), at("ws/state")).unwrap();
            symlink(at("conf/openclaw.json"), at("ws/conf")).unwrap();
            fs::hard_link(at("conf/openclaw.json"), at("ws/hard")).unwrap();
            Self { home }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.home.path().join(path)
        }

        fn off_limits(&self) -> OffLimits {
            let home = self.home.path().display().to_string();
            fs::write(
                self.at("conf/openclaw.json"),
                format!("{{$include: './part.json5', agents: {{list: [{{id: 'main'}}, {{id: 'c', agentDir: '{home}/far/agent'}}]}}}}"),
            )
            .unwrap();
            fs::write(self.at("conf/part.json5"), "{}").unwrap();
            let variables = [
                ("HOME", home.clone()),
                ("OPENCLAW_STATE_DIR", format!("{home}/state")),
                ("OPENCLAW_CONFIG_PATH", format!("{home}/conf/openclaw.json")),
            ];
            let loaded = openclaw_config::load(&Environment::new(variables, self.at("cwd")));
            OffLimits::of(loaded.config().unwrap())
        }

        fn is_refused(&self, path: &str, workspace: &str, purpose: Purpose) -> bool {
            let found = Place::anywhere(&self.at(path)).unwrap();
            let checked = self.off_limits().check(&found, &self.at(workspace), purpose);
            assert!(matches!(checked, Ok(()) | Err(PlaceError::OffLimits(_))), "{checked:?}");
            checked.is_err()
        }
    }

    #[test]
    fn the_files_of_hooks_are_not_written_wherever_links_lead() {
        let tree = Tree::new();
        for dir in ["cwd", "state/hooks/linked", ".openclaw/workspace/hooks/own", "ws/proj/hook", "ws/tools"]
        {
            fs::create_dir_all(tree.at(dir)).unwrap();
        }
        for file in ["ws/proj/hook/handler", "ws/tools/a.sh", "ws/tools/b.sh", "ws/tools/free.sh"] {
            fs::write(tree.at(file), "x").unwrap();
        }
        symlink(tree.at("ws/proj/hook"), tree.at("state/hooks/far")).unwrap();
        symlink(tree.at("ws/tools/a.sh"), tree.at("state/hooks/linked/handler")).unwrap();
        fs::hard_link(tree.at("ws/tools/b.sh"), tree.at(".openclaw/workspace/hooks/own/handler")).unwrap();
        symlink("../../ws/later.md", tree.at(".openclaw/workspace/BOOT.md")).unwrap();
        let limits = tree.off_limits();
        for (path, is_refused) in [
            ("ws/proj/hook/handler", true),
            ("ws/proj/hook/new", true),
            ("ws/tools/a.sh", true),
            ("ws/tools/b.sh", true),
            ("ws/later.md", true),
            ("ws/tools/free.sh", false),
        ] {
            let found = Place::anywhere(&tree.at(path)).unwrap();
            let checked = limits.check(&found, &tree.at("ws"), Purpose::Write);
            assert_eq!(matches!(checked, Err(PlaceError::Hook(_))), is_refused, "{path}: {checked:?}");
        }
    }

    #[test]
    fn the_state_and_the_configuration_are_out_of_reach_by_every_name() {
        let tree = Tree::new();
        fs::create_dir(tree.at("cwd")).unwrap();
        let root = format!("/proc/self/root{}", tree.at("conf/openclaw.json").display());
        for path in [
            "state/openclaw.sqlite",
            "state/not-there",
            "state/agents/main/agent/auth-profiles.json",
            "state/workspace-b/notes.md",
            "ws/state/openclaw.sqlite",
            "ws/../state/openclaw.sqlite",
            "state",
            "conf/openclaw.json",
            "conf/part.json5",
            "ws/conf",
            "ws/hard",
            "far/agent/auth-profiles.json",
            "cwd/.env",
            root.as_str(),
        ] {
            for workspace in ["ws", "state/workspace", "", "state"] {
                for purpose in [Purpose::Read, Purpose::Write] {
                    assert!(
                        tree.is_refused(path, workspace, purpose),
                        "{path} from {workspace:?} {purpose:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_workspace_is_reached_wherever_it_lies_and_what_is_shown_is_read() {
        let tree = Tree::new();
        fs::create_dir(tree.at("cwd")).unwrap();
        for (path, workspace, reads, writes) in [
            ("ws/a.txt", "ws", true, true),
            ("ws/a.txt", "state/workspace", true, true),
            ("conf/other", "ws", true, true),
            ("cwd/x", "ws", true, true),
            ("state/workspace/notes.md", "state/workspace", true, true),
            ("state/workspace/new", "state/workspace", true, true),
            ("state/workspace/notes.md", "ws", false, false),
            ("state/workspace/notes.md", "state", false, false),
            ("state/media/inbound/a.png", "ws", true, false),
            ("state/skills/s/SKILL.md", "ws", true, false),
        ] {
            let reached =
                [Purpose::Read, Purpose::Write].map(|purpose| !tree.is_refused(path, workspace, purpose));
            assert_eq!(reached, [reads, writes], "{path} from {workspace}");
        }
    }

    #[test]
    fn hooks_are_written_by_whoever_may_run_programs() {
        let tree = Tree::new();
        let home = tree.home.path().display().to_string();
        let off_limits = || {
            let text = format!(
                "{{agents: {{defaults: {{workspace: '{home}/ws'}}}}, hooks: {{internal: {{load: {{extraDirs: ['{home}/extra']}}, commands: [{{event: 'command:new', command: ['sh', '{home}/ws/tell.sh']}}]}}}}}}"
            );
            fs::write(tree.at("conf/openclaw.json"), text).unwrap();
            let variables = [
                ("HOME", home.clone()),
                ("OPENCLAW_STATE_DIR", format!("{home}/state")),
                ("OPENCLAW_CONFIG_PATH", format!("{home}/conf/openclaw.json")),
            ];
            let loaded = openclaw_config::load(&Environment::new(variables, tree.at("cwd")));
            OffLimits::of(loaded.config().unwrap())
        };
        let refused = |path: &str, with_hooks: bool| {
            let off_limits = if with_hooks { off_limits().with_hooks() } else { off_limits() };
            let checked = off_limits.check_new(&tree.at(path), &tree.at("ws"));
            let there = tree.at(path).parent().unwrap().is_dir();
            let checked = match checked {
                Ok(()) if there => off_limits.check(
                    &Place::anywhere(&tree.at(path)).unwrap(),
                    &tree.at("ws"),
                    Purpose::Write,
                ),
                checked => checked,
            };
            assert!(matches!(checked, Ok(()) | Err(PlaceError::Hook(_))), "{path}: {checked:?}");
            checked.is_err()
        };
        let rows = [
            ("ws/hooks/h/HOOK.md", true),
            ("ws/hooks/h", true),
            ("extra/h/HOOK.md", true),
            ("ws/BOOT.md", true),
            ("ws/tell.sh", true),
            ("ws/hooks.md", false),
            ("ws/docs/hooks/HOOK.md", false),
            ("ws/docs/BOOT.md", false),
        ];
        for (path, expect) in rows {
            assert_eq!((refused(path, false), refused(path, true)), (expect, false), "{path}");
        }
        // The same once they are there, by other names too.
        for dir in ["ws/hooks/h", "extra", "ws/docs", "far/linked"] {
            fs::create_dir_all(tree.at(dir)).unwrap();
        }
        symlink(tree.at("ws/hooks"), tree.at("ws/other")).unwrap();
        symlink(tree.at("far/linked"), tree.at("ws/hooks/linked")).unwrap();
        let linked = [
            ("ws/other/h/handler.sh", true),
            ("far/linked/handler.sh", true),
            ("ws/docs/../hooks/h/handler.sh", true),
            ("ws/same.sh", true),
            ("far/handler.sh", false),
        ];
        fs::write(tree.at("ws/tell.sh"), "x").unwrap();
        fs::hard_link(tree.at("ws/tell.sh"), tree.at("ws/same.sh")).unwrap();
        for (path, expect) in rows.into_iter().chain(linked) {
            assert_eq!((refused(path, false), refused(path, true)), (expect, false), "{path}");
        }
    }

    #[test]
    fn nothing_is_made_in_the_state_on_the_way_to_a_file() {
        let tree = Tree::new();
        for (path, workspace, expect) in [
            ("state/new/deep/x", "ws", false),
            ("ws/state/new/x", "ws", false),
            ("state/workspace/new/x", "state/workspace", true),
            ("ws/new/x", "ws", true),
        ] {
            let checked = tree.off_limits().check_new(&tree.at(path), &tree.at(workspace));
            assert_eq!(checked.is_ok(), expect, "{path} from {workspace}");
        }
    }
}
