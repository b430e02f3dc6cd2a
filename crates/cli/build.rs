//! Packs the relocations of the program, a twentieth of its size, where the system it is built on can load them.

use std::process::Command;

/// First glibc that loads packed relative relocations (`DT_RELR`): 2.36.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_own = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    if is_own
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && glibc().is_some_and(|version| version >= FIRST)
    {
        // A linker that does not know it warns and goes on.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Version of the system's glibc, as `getconf` prints it: `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let printed = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let printed = String::from_utf8(printed.stdout).ok()?;
    let (major, minor) = printed.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
