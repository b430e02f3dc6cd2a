//! Programs that run what they are given: other programs, or code.

use std::fs;
use std::path::Path;

/// Programs by name, without version numbers.
const NAMES: &[&str] = &[
    // Programs that run another program, always or with an option.
    "c++",
    "cc",
    "choom",
    "debconf",
    "dpkg",
    "g++",
    "gcc",
    "i386",
    "ld.so",
    "linux32",
    "linux64",
    "ssh-agent",
    "tar",
    "uclampset",
    "x86_64",
    "zip",
    "at",
    "batch",
    "bwrap",
    "busybox",
    "caffeinate",
    "capsh",
    "chroot",
    "chrt",
    "cpulimit",
    "dbus-run-session",
    "doas",
    "docker",
    "entr",
    "env",
    "fakeroot",
    "find",
    "firejail",
    "flatpak",
    "flock",
    "gdb",
    "gmake",
    "gtimeout",
    "ionice",
    "logsave",
    "ltrace",
    "make",
    "man",
    "nerdctl",
    "newgrp",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "podman",
    "prlimit",
    "proot",
    "rlwrap",
    "run-parts",
    "runuser",
    "sandbox-exec",
    "scp",
    "screen",
    "sensible-browser",
    "sensible-editor",
    "sensible-pager",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sftp",
    "sg",
    "ssh",
    "sshpass",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "sudoedit",
    "systemd-run",
    "taskset",
    "tee",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "watchexec",
    "xargs",
    // Programs that run code.
    "ash",
    "awk",
    "bash",
    "bun",
    "bunx",
    "csh",
    "dash",
    "dc",
    "deno",
    "ed",
    "elvish",
    "emacs",
    "erl",
    "ex",
    "expect",
    "fish",
    "gawk",
    "ghci",
    "go",
    "groovy",
    "guile",
    "irb",
    "java",
    "jshell",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "m",
    "mawk",
    "mksh",
    "nawk",
    "node",
    "nodejs",
    "npm",
    "npx",
    "nu",
    "nvim",
    "ocaml",
    "octave",
    "osascript",
    "perl",
    "php",
    "pip",
    "pipx",
    "pnpm",
    "pwsh",
    "pypy",
    "python",
    "r",
    "rbash",
    "rscript",
    "ruby",
    "rvim",
    "scala",
    "sed",
    "sh",
    "swift",
    "tclsh",
    "tcsh",
    "tsx",
    "ts-node",
    "uv",
    "uvx",
    "vi",
    "vim",
    "wish",
    "yarn",
    "yash",
    "zsh",
];

/// Returns true if the name of this program alone says nothing about what runs.
///
/// Such a program is neither a safe bin nor allowed for belonging to a skill, and *allow-always* does not add it to the
/// allowlist: one yes to `env ls` would allow everything. Its owner may still list it by hand.
///
/// A link counts by the name of its target too: `deploy` that leads to `bash` is one.
pub fn is_command_runner(program: &Path) -> bool {
    has_runners_name(program) || program.canonicalize().is_ok_and(|target| has_runners_name(&target))
}

/// Returns true if the file has the content of a command runner of this system: a copy of `bash` under another name is one.
pub(super) fn is_copy_of_runner(file: &Path) -> bool {
    let Ok(facts) = file.metadata() else { return false };
    let directories = SYSTEM_PROGRAMS.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let mut runners = directories.flatten().flatten().map(|entry| entry.path());
    runners.any(|runner| {
        has_runners_name(&runner)
            && runner.metadata().is_ok_and(|of_runner| of_runner.len() == facts.len())
            && fs::read(&runner).is_ok_and(|content| fs::read(file).is_ok_and(|copy| copy == content))
    })
}

/// Directories of the system's programs.
const SYSTEM_PROGRAMS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];

fn has_runners_name(program: &Path) -> bool {
    // A name that can't be read is not one to vouch for.
    let Some(name) = program.file_name().and_then(|name| name.to_str()) else { return true };
    let name = name.to_ascii_lowercase();
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    NAMES.contains(&name.as_str()) || NAMES.contains(&unversioned) || name.starts_with("ld-linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_in_any_version() {
        for name in [
            "env",
            "/usr/bin/env",
            "Python3.11",
            "bash-5.2",
            "lua5.4",
            "xargs",
            "/lib64/ld-linux-x86-64.so.2",
            "/",
        ] {
            assert!(is_command_runner(Path::new(name)), "{name}");
        }
        let dir = tempfile::tempdir().unwrap();
        let (link, copy, own) =
            (dir.path().join("deploy"), dir.path().join("lint"), dir.path().join("build"));
        let shell = Path::new("/bin/sh").canonicalize().unwrap();
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        fs::copy(&shell, &copy).unwrap();
        fs::write(&own, "own").unwrap();
        assert!(is_command_runner(&link), "a link counts by its target");
        assert!(is_copy_of_runner(&copy) && !is_copy_of_runner(&own));
        for name in ["rg", "wc", "envsubst", "/usr/env/ls", "sha256sum", "ls", "head"] {
            assert!(!is_command_runner(Path::new(name)), "{name}");
        }
    }
}
