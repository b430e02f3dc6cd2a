//! Words that a shell does not look up on `PATH`.

use std::path::Path;

/// Words that begin or end compound commands in one of the shells.
const RESERVED: &[&str] = &[
    "!",
    "[[",
    "]]",
    "{",
    "}",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "namespace",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// Commands inside one of the shells that can do more, or other things, than a program of this
/// name: run code, change variables or the directory. `printf`, `test` and `[` are among them: they
/// store into variables or evaluate arithmetic, and both can run code. Builtins that only print
/// (`echo`, `pwd`, `true`, `false`) are not.
const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "alias",
    "autoload",
    "bg",
    "bind",
    "bindkey",
    "break",
    "builtin",
    "bye",
    "caller",
    "cd",
    "chdir",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disable",
    "disown",
    "emulate",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "float",
    "functions",
    "getln",
    "getopts",
    "hash",
    "hist",
    "history",
    "integer",
    "jobs",
    "let",
    "limit",
    "local",
    "logout",
    "mapfile",
    "popd",
    "print",
    "printf",
    "private",
    "pushd",
    "pushln",
    "r",
    "read",
    "readarray",
    "readonly",
    "rehash",
    "return",
    "sched",
    "set",
    "setopt",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "ttyctl",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unfunction",
    "unhash",
    "unlimit",
    "unset",
    "unsetopt",
    "vared",
    "wait",
    "whence",
    "where",
    "zcompile",
    "zformat",
    "zle",
    "zmodload",
    "zparseopts",
    "zregexparse",
    "zstyle",
];

/// Builtins that change the working directory and run nothing.
const DIRECTORY_BUILTINS: &[&str] = &["cd", "chdir", "dirs", "popd", "pushd"];

/// Builtins that neither change the working directory nor run what they are given.
const PLAIN_BUILTINS: &[&str] = &[
    ":", "[", "break", "continue", "exit", "export", "jobs", "print", "printf", "read", "readonly", "return",
    "set", "shift", "test", "times", "type", "ulimit", "umask", "unset", "wait",
];

/// Shells whose reading of a command line [`super::analyse`] knows.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "ksh93", "mksh", "sh", "zsh"];

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Returns true if a shell runs a builtin for this name, whatever `PATH` holds.
pub fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

/// Returns true if the shell may be in another directory after this command.
pub fn leaves_directory(name: &str) -> bool {
    is_builtin(name) && !PLAIN_BUILTINS.contains(&name)
}

/// Returns true if this is a builtin that may run what it is given: `.`, `exec`, `eval`.
pub fn runs_code(name: &str) -> bool {
    leaves_directory(name) && !DIRECTORY_BUILTINS.contains(&name)
}

/// Returns true if this shell reads a command in the way [`super::analyse`] does. csh and fish do
/// not count, nor do unknown shells.
pub fn reads_like_posix(shell: &Path) -> bool {
    shell.file_name().and_then(|name| name.to_str()).is_some_and(|name| SHELLS.contains(&name))
}
