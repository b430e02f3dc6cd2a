//! `/etc`: what programs need of the host's, and accounts of its own. Secret files are left out: a
//! gateway that runs as root could read them.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::super::rules::ETC;
use super::super::super::spec::{INNER_ID, Network, Spec};
use super::super::{Doing as _, EnterError};
use super::mounts::{Bind, MountAccess};

/// Content of `/etc`.
pub(super) struct Etc {
    binds: Vec<Bind>,
    files: Vec<(&'static str, String)>,
}

pub(super) fn gather(spec: &Spec) -> Etc {
    let of = |name: &&str| {
        let target = Path::new("/etc").join(name);
        Some(Bind { source: target.canonicalize().ok()?, target, access: MountAccess::Read })
    };
    let workspace = spec.workspace().unwrap_or(Path::new("/")).display();
    let mut hosts = "127.0.0.1 localhost sandbox\n::1 localhost\n".to_owned();
    for (address, name) in &spec.hosts {
        hosts.push_str(&format!("{address} {name}\n"));
    }
    let mut files = vec![
        (
            "passwd",
            format!(
                "root:x:0:0:root:/nonexistent:/bin/sh\nsandbox:x:{INNER_ID}:{INNER_ID}::{workspace}:/bin/sh\n\
                 nobody:x:65534:65534::/nonexistent:/bin/false\n"
            ),
        ),
        ("group", format!("root:x:0:\nsandbox:x:{INNER_ID}:\nnogroup:x:65534:\n")),
        ("hosts", hosts),
        ("hostname", "sandbox\n".to_owned()),
    ];
    if spec.network == Network::Host {
        files.push(("resolv.conf", resolvers(&spec.dns)));
    }
    Etc { binds: ETC.iter().filter_map(of).collect(), files }
}

fn resolvers(dns: &[String]) -> String {
    match dns.is_empty() {
        true => fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
        false => dns.iter().map(|server| format!("nameserver {server}\n")).collect(),
    }
}

pub(super) fn build(etc: &Etc) -> Result<(), EnterError> {
    etc.binds.iter().try_for_each(Bind::mount)?;
    fs::create_dir_all("/etc").doing("make /etc")?;
    for (name, text) in &etc.files {
        let path: PathBuf = Path::new("/etc").join(name);
        fs::write(&path, text).doing(format!("make {}", path.display()))?;
    }
    Ok(())
}
