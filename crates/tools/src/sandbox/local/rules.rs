//! Landlock: what of the file system may be read, executed and written, whatever is mounted. Also keeps the command from signalling
//! and tracing what is not in the sandbox.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope, path_beneath_rules,
};

use super::spec::{Level, Network, Spec};

/// Directories of programs.
pub(super) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Below `/etc`: no secrets.
pub(super) const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/ca-trust/extracted",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

pub(super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Landlock version whose rights are required (truncation among them): files would not be protected
/// without them.
const NEEDED: ABI = ABI::V3;
const WANTED: ABI = ABI::V6;

/// Restricts this process for ever. Fails where the kernel can't protect files.
pub(super) fn restrict(spec: &Spec) -> io::Result<()> {
    restricted(spec).map_err(io::Error::other)
}

fn restricted(spec: &Spec) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if spec.level == Level::Landlock {
        refuse_what_can_not_be_hidden(spec)?;
    }
    let is_needed = match spec.level {
        // The file system is made for the command; this is the second lock on it.
        Level::Namespaces => CompatLevel::BestEffort,
        Level::Landlock => CompatLevel::HardRequirement,
    };
    let ruleset = Ruleset::default()
        .set_compatibility(is_needed)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?;
    let ruleset = match (spec.level, spec.network) {
        (Level::Landlock, Network::None) => ruleset.handle_access(AccessNet::from_all(WANTED))?,
        (Level::Landlock, Network::Host) | (Level::Namespaces, _) => ruleset,
    };
    let read: BitFlags<AccessFs> = AccessFs::from_read(WANTED);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut ruleset = ruleset.create()?.add_rules(path_beneath_rules(readable(spec), read))?;
    ruleset = ruleset.add_rules(path_beneath_rules(writable(spec), AccessFs::from_all(WANTED)))?;
    ruleset = ruleset.add_rules(path_beneath_rules(DEVICES.iter().map(PathBuf::from), device))?;
    if spec.level == Level::Namespaces {
        ruleset = ruleset.add_rules(path_beneath_rules(["/dev/pts"], read | device))?;
    }
    ruleset.restrict_self()?;
    Ok(())
}

fn readable(spec: &Spec) -> Vec<PathBuf> {
    if spec.level == Level::Namespaces {
        return vec!["/".into()];
    }
    let system = SYSTEM.iter().map(PathBuf::from);
    let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
    let own = spec.mounts.iter().map(|mount| mount.source.clone());
    let files = if spec.network == Network::Host { &["/etc/resolv.conf", "/etc/hosts"][..] } else { &[] };
    system.chain(etc).chain(own).chain(files.iter().map(PathBuf::from)).chain(["/proc".into()]).collect()
}

fn writable(spec: &Spec) -> Vec<PathBuf> {
    let own = spec.mounts.iter().filter(|mount| mount.writable);
    match spec.level {
        Level::Namespaces => own
            .map(|mount| mount.target.clone())
            .chain(spec.tmpfs.iter().map(|(path, _)| path.clone()))
            .chain(["/dev/shm".into()])
            .collect(),
        Level::Landlock => own.map(|mount| mount.source.clone()).collect(),
    }
}

/// Rules only add: what lies below a directory that is seen can't be taken out of it again.
fn refuse_what_can_not_be_hidden(spec: &Spec) -> io::Result<()> {
    let seen = readable(spec);
    match spec.hidden.iter().find(|path| seen.iter().any(|seen| path.starts_with(seen))) {
        Some(path) => Err(io::Error::other(format!("{} can't be hidden without namespaces", path.display()))),
        None => Ok(()),
    }
}
