//! Limits that hold for all processes of a sandbox together: control groups, version 2. They can be set in a part of the tree that was
//! left to us (systemd: `Delegate=yes`). Blocking.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::Amounts;

/// Controllers for which limits are set.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// The group of the gateway itself: a group that has others below may hold no process.
const OWN: &str = "openclaw-gateway";
/// Tells that systemd leaves a group to those in it.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// Of `cpu.max`, in microseconds.
const PERIOD: u64 = 100_000;
/// Processes may begin while others are moved.
const TRIES: usize = 20;

/// The part of the tree that is ours.
#[derive(Debug, Clone)]
pub(in crate::sandbox) struct Cgroups {
    base: PathBuf,
    controllers: Vec<&'static str>,
}

/// The group of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) struct Cgroup {
    pub(in crate::sandbox) path: PathBuf,
    /// Controllers that limit this group.
    controllers: Vec<&'static str>,
}

impl Cgroup {
    pub(super) fn limits(&self, what: &str) -> bool {
        self.controllers.contains(&what)
    }
}

/// Describes how the limits are enforced.
pub(in crate::sandbox) fn told(group: Result<&Cgroup, &str>) -> String {
    match group {
        Ok(group) if group.controllers.len() == CONTROLLERS.len() => {
            "cgroup: memory, pids and cpus of all its processes together".to_owned()
        }
        Ok(group) => {
            format!(
                "cgroup: of memory, pids and cpus the kernel limits {} only",
                group.controllers.join(", ")
            )
        }
        Err(why) => format!(
            "NOT by cgroups ({why}): memory is limited for each process alone, processes by number; cpus and memorySwap have no \
             effect"
        ),
    }
}

impl Cgroups {
    /// Takes what was left to this process, and moves it into a group of its own there. Else why nothing was.
    pub(in crate::sandbox) fn take() -> Result<Self, String> {
        let read = |file: &str| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
        let own = own_directory(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)?;
        let parent = own.directory.parent().filter(|_| own.directory != own.root);
        let base = [Some(own.directory.as_path()), parent].into_iter().flatten();
        let base = base.map(|path| (path, delegation(path, &own.root)));
        let found = base.into_iter().find_map(|(path, how)| how.map(|how| (path.to_owned(), how)));
        let (base, how) = found.ok_or(
            "the gateway's cgroup is not delegated to it; where systemd runs it: Delegate=yes in the unit",
        )?;
        let taken = Self::at(&base)?;
        if base == own.directory {
            if how == Delegation::Root {
                refuse_strangers(&base)?;
            }
            move_all(&base).map_err(|error| format!("{}: {error}", base.display()))?;
        }
        taken.switch_on().map_err(|error| format!("{}: {error}", base.display()))?;
        Ok(taken)
    }

    /// A directory of the tree that is taken as ours.
    pub(in crate::sandbox) fn at(base: &Path) -> Result<Self, String> {
        let file = base.join("cgroup.controllers");
        let known = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let has = |name: &&str| known.split_whitespace().any(|known| known == *name);
        let controllers: Vec<_> = CONTROLLERS.into_iter().filter(has).collect();
        match controllers.is_empty() {
            true => Err(format!(
                "{} has none of the controllers memory, pids and cpu (cgroup v1?)",
                base.display()
            )),
            false => Ok(Self { base: base.to_owned(), controllers }),
        }
    }

    fn switch_on(&self) -> io::Result<()> {
        let all: Vec<String> = self.controllers.iter().map(|name| format!("+{name}")).collect();
        retried(|| fs::write(self.base.join("cgroup.subtree_control"), all.join(" ")))
    }

    /// The group of a sandbox, with its limits.
    pub(in crate::sandbox) fn group(&self, name: &str, amounts: &Amounts) -> io::Result<Cgroup> {
        let path = self.path(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        for (controller, file, value) in values(amounts) {
            if !self.controllers.contains(&controller) {
                continue;
            }
            match fs::write(path.join(file), value) {
                // A kernel that counts no swap has no such file.
                Err(error) if error.kind() == ErrorKind::PermissionDenied && file == SWAP => {}
                written => written?,
            }
        }
        Ok(Cgroup { path, controllers: self.controllers.clone() })
    }

    /// Ends what is in the group of a sandbox, and removes it.
    pub(in crate::sandbox) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(());
        }
        fs::write(path.join("cgroup.kill"), "1")?;
        retried(|| fs::remove_dir(&path))
    }

    /// Returns the directory of the groups.
    pub(in crate::sandbox) fn base(&self) -> &Path {
        &self.base
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.join(format!("sandbox-{name}"))
    }
}

const SWAP: &str = "memory.swap.max";

/// Returns the values to write: controller, file, value.
fn values(amounts: &Amounts) -> Vec<(&'static str, &'static str, String)> {
    let limit = |value: Option<u64>| value.map_or_else(|| "max".to_owned(), |value| value.to_string());
    let quota = amounts.cpus.map(|cpus| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few processors")]
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let quota = (cpus * PERIOD as f64).round() as u64;
        // The kernel takes no less.
        quota.max(1_000)
    });
    vec![
        ("pids", "pids.max", amounts.processes.to_string()),
        ("memory", "memory.max", limit(amounts.memory)),
        ("memory", SWAP, limit(amounts.swap)),
        ("cpu", "cpu.max", format!("{} {PERIOD}", limit(quota))),
    ]
}

/// Position of a process in the tree, and the top of the visible tree.
#[derive(Debug, PartialEq, Eq)]
struct Own {
    directory: PathBuf,
    root: PathBuf,
}

fn own_directory(mounts: &str, groups: &str) -> Result<Own, String> {
    let inside =
        groups.lines().find_map(|line| line.strip_prefix("0::")).ok_or("the kernel has no cgroup v2")?;
    // id, parent, device, root, mount point, options … - type …
    let tree = mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ').skip(3);
        let (root, at) = (head.next()?, head.next()?);
        tail.starts_with("cgroup2 ").then(|| (root.to_owned(), PathBuf::from(at)))
    });
    let (root, at) = tree.ok_or("no cgroup v2 is mounted")?;
    let below =
        Path::new(inside).strip_prefix(&root).map_err(|_| "the gateway's cgroup can't be seen from here")?;
    if below.components().any(|part| part == std::path::Component::ParentDir) {
        return Err("the gateway's cgroup can't be seen from here".to_owned());
    }
    let directory = if below.as_os_str().is_empty() { at.clone() } else { at.join(below) };
    Ok(Own { directory, root: at })
}

/// Reason why a group is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delegation {
    /// The group is marked as delegated.
    Marked,
    /// The group is the root of a container.
    Root,
}

fn delegation(path: &Path, root: &Path) -> Option<Delegation> {
    let is_marked = |name: &&str| {
        let mut value = [0; 1];
        matches!(rustix::fs::getxattr(path, *name, &mut value), Ok(1)) && value == *b"1"
    };
    if MARKS.iter().any(is_marked) {
        return Some(Delegation::Marked);
    }
    // The top of the host's own tree has no such file.
    (path == root && path.join("cgroup.type").exists()).then_some(Delegation::Root)
}

/// Processes that we did not start are not ours to move.
fn refuse_strangers(base: &Path) -> Result<(), String> {
    let all = processes(base).map_err(|error| format!("{}: {error}", base.display()))?;
    match all.into_iter().find(|pid| !is_ours(*pid)) {
        Some(pid) => Err(format!("process {pid}, which is not of the gateway, is in its cgroup")),
        None => Ok(()),
    }
}

fn is_ours(pid: u32) -> bool {
    let mut pid = pid;
    while pid > 1 {
        if pid == std::process::id() {
            return true;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        // A process that has ended in the meantime has no owner.
        pid = parent.unwrap_or(0);
    }
    pid == std::process::id() || pid == 0
}

fn processes(group: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Moves what is in a group into one below it.
fn move_all(base: &Path) -> io::Result<()> {
    let own = base.join(OWN);
    fs::create_dir_all(&own)?;
    for _ in 0..TRIES {
        let left = processes(base)?;
        if left.is_empty() {
            return Ok(());
        }
        for pid in left {
            match fs::write(own.join("cgroup.procs"), pid.to_string()) {
                // The process has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                moved => moved?,
            }
        }
    }
    Err(io::Error::other("processes keep coming"))
}

/// Retries an operation that the kernel refuses with `EBUSY` as long as something is still there.
fn retried(mut work: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..TRIES {
        match work() {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_kernel_takes_them() {
        let amounts = |processes, memory, swap, cpus| Amounts { processes, memory, swap, cpus };
        for (amounts, expect) in [
            (amounts(1024, None, None, None), ["1024", "max", "max", "max 100000"]),
            (amounts(64, Some(512), Some(512), Some(1.5)), ["64", "512", "512", "150000 100000"]),
            (amounts(64, Some(512), Some(0), Some(0.001)), ["64", "512", "0", "1000 100000"]),
        ] {
            let found: Vec<String> = values(&amounts).into_iter().map(|(_, _, value)| value).collect();
            assert_eq!(found, expect);
        }
    }

    #[test]
    fn a_process_finds_itself_in_the_tree() {
        const MOUNTS: &str = "21 1 0:20 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                              30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = |directory: &str| {
            Ok(Own { directory: format!("/sys/fs/cgroup{directory}").into(), root: "/sys/fs/cgroup".into() })
        };
        let unseen = || Err("the gateway's cgroup can't be seen from here".to_owned());
        for (groups, expect) in [
            ("0::/system.slice/x.service\n", own("/system.slice/x.service")),
            ("9:name=systemd:/a\n0::/\n", own("")),
            ("0::/../x\n", unseen()),
            ("1:pids:/\n", Err("the kernel has no cgroup v2".to_owned())),
        ] {
            assert_eq!(own_directory(MOUNTS, groups), expect, "{groups}");
        }
        assert_eq!(own_directory("", "0::/a\n"), Err("no cgroup v2 is mounted".to_owned()));
        let bound = MOUNTS.replace("0:26 / ", "0:26 /a ");
        assert_eq!(own_directory(&bound, "0::/a/b\n"), own("/b"));
        assert_eq!(own_directory(&bound, "0::/c\n"), unseen());
    }

    #[test]
    fn a_group_has_its_limits_as_far_as_the_kernel_has_them() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Cgroups::at(dir.path()).unwrap_err().contains("No such file"));
        fs::write(dir.path().join("cgroup.controllers"), "hugetlb\n").unwrap();
        assert!(Cgroups::at(dir.path()).unwrap_err().contains("has none of the controllers"));
        fs::write(dir.path().join("cgroup.controllers"), "cpu io memory\n").unwrap();
        let cgroups = Cgroups::at(dir.path()).unwrap();
        cgroups.switch_on().unwrap();
        let switched = fs::read_to_string(dir.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(switched, "+memory +cpu");
        let amounts = Amounts { processes: 9, memory: Some(7), swap: None, cpus: Some(2.0) };
        let group = cgroups.group("x", &amounts).unwrap();
        assert_eq!(group.path, dir.path().join("sandbox-x"));
        let read = |file: &str| fs::read_to_string(group.path.join(file)).ok();
        assert_eq!(read("memory.max").as_deref(), Some("7"));
        assert_eq!(read("cpu.max").as_deref(), Some("200000 100000"));
        assert_eq!(read("pids.max"), None);
        assert!(group.limits("memory") && !group.limits("pids"));
        assert_eq!(told(Ok(&group)), "cgroup: of memory, pids and cpus the kernel limits memory, cpu only");
        cgroups.remove("nobody").unwrap();
    }

    #[test]
    fn our_own_processes_are_told_from_others() {
        assert!(is_ours(std::process::id()));
        assert!(!is_ours(1));
    }
}
