//! From the settings, which are written in Docker's words, to what is done. What can't be had here is an
//! error, but for `memorySwap`, `cpus`, `user`, `capDrop`, `readOnlyRoot` and the profiles: the root is always read-only, and there are
//! no capabilities.

use std::path::{Path, PathBuf};

use super::spec::{Level, Limits, Mount, Network, Spec};
use crate::sandbox::settings::DockerSettings;

/// Processes at once where the config does not say. Without a limit one command could take all that the host has.
const PROCESSES: u64 = 1024;

/// What a sandbox is made of.
#[derive(Debug)]
pub(in crate::sandbox) struct View<'a> {
    pub(in crate::sandbox) settings: &'a DockerSettings,
    /// Host directory that is the workspace.
    pub(in crate::sandbox) workspace: &'a Path,
    pub(in crate::sandbox) is_writable: bool,
    /// Seen at `/agent`, to be read.
    pub(in crate::sandbox) agent_workspace: Option<&'a Path>,
    /// Host paths that are never seen.
    pub(in crate::sandbox) hidden: Vec<PathBuf>,
}

/// A setting that this kind of sandbox can't follow; the owner is told.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("sandbox.docker.{key} is {value:?}: {why}")]
pub(in crate::sandbox) struct BadSettings {
    key: &'static str,
    value: String,
    why: &'static str,
}

pub(super) fn spec(level: Level, view: &View<'_>) -> Result<Spec, BadSettings> {
    let settings = view.settings;
    let mut mounts = vec![Mount {
        source: view.workspace.to_owned(),
        target: settings.workdir.clone().into(),
        writable: view.is_writable,
    }];
    mounts.extend(view.agent_workspace.map(|source| Mount {
        source: source.to_owned(),
        target: "/agent".into(),
        writable: false,
    }));
    let binds = settings.binds.iter().map(|text| bind(text).ok_or_else(|| bad("binds", text, BAD_BIND)));
    mounts.extend(binds.collect::<Result<Vec<_>, _>>()?);
    Ok(Spec {
        level,
        workdir: mounts.first().map(|mount| mount.target.clone()).unwrap_or_default(),
        mounts,
        hidden: view.hidden.clone(),
        tmpfs: settings.tmpfs.iter().map(|text| tmpfs(text)).collect::<Result<_, _>>()?,
        network: network(&settings.network)?,
        hosts: settings.extra_hosts.iter().filter_map(|text| host(text)).collect(),
        dns: settings.dns.clone(),
        limits: limits(settings)?,
        terminal: false,
    })
}

const BAD_BIND: &str = "it must be source:target[:ro|rw], both absolute";

fn bad(key: &'static str, value: &str, why: &'static str) -> BadSettings {
    BadSettings { key, value: value.to_owned(), why }
}

fn network(text: &str) -> Result<Network, BadSettings> {
    match text {
        "none" => Ok(Network::None),
        "host" | "bridge" => Ok(Network::Host),
        _ => Err(bad("network", text, "without a container there are \"none\" and \"host\" only")),
    }
}

fn bind(text: &str) -> Option<Mount> {
    let mut parts = text.split(':');
    let (source, target, options) = (parts.next()?, parts.next()?, parts.next().unwrap_or("rw"));
    let is_absolute = source.starts_with('/') && target.starts_with('/') && parts.next().is_none();
    let is_plain = !Path::new(target).components().any(|part| part == std::path::Component::ParentDir);
    let writable = !options.split(',').any(|option| option == "ro");
    let mount = || Mount { source: source.into(), target: target.into(), writable };
    (is_absolute && is_plain && target != "/").then(mount)
}

/// `path[:options]`, of which the size counts.
fn tmpfs(text: &str) -> Result<(PathBuf, Option<String>), BadSettings> {
    let (path, options) = text.split_once(':').unwrap_or((text, ""));
    let size = options.split(',').find_map(|option| option.strip_prefix("size="));
    let is_size = |size: &str| size.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'%');
    if !path.starts_with('/') || path.contains("..") || !size.is_none_or(is_size) {
        return Err(bad("tmpfs", text, "it must be an absolute path[:size=n]"));
    }
    Ok((path.into(), size.map(str::to_owned)))
}

/// `name:address` as address and name.
fn host(text: &str) -> Option<(String, String)> {
    let (name, address) = text.split_once(':')?;
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_word(name) && is_word(address)).then(|| (address.to_owned(), name.to_owned()))
}

fn limits(settings: &DockerSettings) -> Result<Limits, BadSettings> {
    let memory = settings.memory.as_deref();
    let memory =
        memory.map(|text| bytes(text).ok_or_else(|| bad("memory", text, "it must be a size such as 512m")));
    let others = settings.ulimits.iter().map(|(name, text)| {
        let limit = range(text).ok_or_else(|| bad("ulimits", text, "it must be soft[:hard]"));
        limit.map(|(soft, hard)| (name.clone(), soft, hard))
    });
    Ok(Limits {
        processes: Some(settings.pids_limit.unwrap_or(PROCESSES)),
        memory: memory.transpose()?,
        others: others.collect::<Result<_, _>>()?,
    })
}

fn range(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| match text.trim() {
        "-1" | "unlimited" => Some(u64::MAX),
        text => text.parse().ok(),
    };
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    Some((number(soft)?, number(hard)?))
}

/// A size as Docker takes it: a number with `b`, `k`, `m`, `g` or none.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("ib").or(text.strip_suffix('b')).unwrap_or(&text);
    let (number, unit) =
        text.split_at_checked(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()))?;
    let factor: u64 = match unit {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    number.trim().parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_as_docker_reads_them() {
        for (text, expect) in [
            ("512m", Some(512 << 20)),
            ("1G", Some(1 << 30)),
            ("2gb", Some(2 << 30)),
            ("64KiB", Some(64 << 10)),
            ("100", Some(100)),
            ("7b", Some(7)),
            ("0", None),
            ("", None),
            ("m", None),
            ("1.5g", None),
            ("-1", None),
            ("18446744073709551615k", None),
        ] {
            assert_eq!(bytes(text), expect, "{text}");
        }
    }

    #[test]
    fn binds_name_absolute_paths() {
        let mount = |source: &str, target: &str, writable| {
            Some(Mount { source: source.into(), target: target.into(), writable })
        };
        for (text, expect) in [
            ("/a:/b", mount("/a", "/b", true)),
            ("/a:/b:ro", mount("/a", "/b", false)),
            ("/a:/b:z,ro", mount("/a", "/b", false)),
            ("/a:/b:rw", mount("/a", "/b", true)),
            ("/a", None),
            ("a:/b", None),
            ("/a:b", None),
            ("/a:/", None),
            ("/a:/b/../c", None),
            ("/a:/b:ro:x", None),
        ] {
            assert_eq!(bind(text), expect, "{text}");
        }
    }

    #[test]
    fn directories_in_memory_may_have_a_size() {
        for (text, expect) in [
            ("/tmp", Some(("/tmp", None))),
            ("/tmp:rw,size=64m", Some(("/tmp", Some("64m")))),
            ("tmp", None),
            ("/a/../b", None),
            ("/tmp:size=1m,mode=777", Some(("/tmp", Some("1m")))),
            ("/tmp:size=$(x)", None),
        ] {
            let found = tmpfs(text).ok();
            let expect = expect.map(|(path, size)| (PathBuf::from(path), size.map(str::to_owned)));
            assert_eq!(found, expect, "{text}");
        }
    }

    #[test]
    fn what_can_not_be_had_is_said() {
        let error = network("my-net").unwrap_err().to_string();
        assert_eq!(
            error,
            "sandbox.docker.network is \"my-net\": without a container there are \"none\" and \"host\" only"
        );
        assert_eq!(range("1024:2048"), Some((1024, 2048)));
        assert_eq!(range("5"), Some((5, 5)));
        assert_eq!(range("-1"), Some((u64::MAX, u64::MAX)));
        assert_eq!(range("x"), None);
        assert_eq!(host("db:10.0.0.1"), Some(("10.0.0.1".into(), "db".into())));
        assert_eq!(host("db:1 2\n3 evil"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_fail_or_a_bind_leave_its_target(text in ".*") {
            let _ = (bytes(&text), range(&text), host(&text), tmpfs(&text).is_ok());
            if let Some(mount) = bind(&text) {
                prop_assert!(mount.target.is_absolute());
                prop_assert_eq!(openclaw_config::without_dots(&mount.target), mount.target);
            }
        }
    }
}
