//! The process's file mode mask.

/// Sets the umask: whatever this process and its commands create from here on is for its owner
/// alone (spec `operations.md` §8.5).
pub fn keep_files_private() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
}
