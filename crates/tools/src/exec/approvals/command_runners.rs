//! Programs that run what they are given: other programs, or code.

use std::path::Path;

/// By name, without version numbers.
const NAMES: &[&str] = &[
    // They run another program.
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
    "gtimeout",
    "ionice",
    "ltrace",
    "make",
    "nerdctl",
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
    "watch",
    "watchexec",
    "xargs",
    // They run code.
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

/// Whether this program's name alone says nothing about what runs.
///
/// Such a program is neither a safe bin nor allowed for belonging to a skill, and *allow-always* does not add it to the
/// allowlist: one yes to `env ls` would allow everything. Its owner may still list it by hand.
pub fn is_command_runner(program: &Path) -> bool {
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
        for name in ["rg", "wc", "envsubst", "/usr/env/ls", "sha256sum", "ls", "head"] {
            assert!(!is_command_runner(Path::new(name)), "{name}");
        }
    }
}
