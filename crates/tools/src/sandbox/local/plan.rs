//! Turns the settings, which are written in Docker's words, into a plan. Settings that can't be
//! applied here are an error, except for `user`, `capDrop`, `readOnlyRoot` and the profiles: the
//! root is always read-only, and there are no capabilities. `memorySwap` and `cpus` need a control
//! group; where there is none, `sandbox explain` says so.

use std::path::{Path, PathBuf};

use super::cgroup::Cgroup;
use super::spec::{Level, Mount, Network, ProcessLimits, Spec};
use crate::sandbox::settings::DockerSettings;

/// Processes at once where the config does not say. Without a limit one command could take all that the host has.
const PROCESSES: u64 = 1024;

/// Parameters from which a sandbox is built.
#[derive(Debug)]
pub(in crate::sandbox) struct SandboxView<'a> {
    pub(in crate::sandbox) settings: &'a DockerSettings,
    /// Host directory that is the workspace.
    pub(in crate::sandbox) workspace: &'a Path,
    pub(in crate::sandbox) is_writable: bool,
    /// Seen at `/agent`, to be read.
    pub(in crate::sandbox) agent_workspace: Option<&'a Path>,
    /// Host paths that are never seen.
    pub(in crate::sandbox) hidden: Vec<PathBuf>,
    /// Limits all its processes together.
    pub(in crate::sandbox) group: Option<&'a Cgroup>,
}

/// Limits on all processes of a sandbox together; absent is unlimited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sandbox) struct Amounts {
    pub(in crate::sandbox) processes: u64,
    /// Bytes.
    pub(in crate::sandbox) memory: Option<u64>,
    /// Bytes, beside the memory.
    pub(in crate::sandbox) swap: Option<u64>,
    pub(in crate::sandbox) cpus: Option<f64>,
}

/// A setting that this kind of sandbox can't follow; the owner is told.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("sandbox.docker.{key} is {value:?}: {why}")]
pub(in crate::sandbox) struct BadSettings {
    key: &'static str,
    value: String,
    why: &'static str,
}

pub(super) fn spec(level: Level, view: &SandboxView<'_>) -> Result<Spec, BadSettings> {
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
        limits: limits(settings, view.group)?,
        cgroup: view.group.map(|group| group.path.clone()),
        terminal: false,
    })
}

const BAD_BIND: &str = "it must be source:target[:ro|rw], both absolute";
/// Bind options that Docker accepts in the third part and that have no effect here. Everything else
/// could be a misspelt `ro`.
const BIND_OPTIONS_WITHOUT_EFFECT: [&str; 9] =
    ["z", "Z", "nocopy", "shared", "slave", "private", "rshared", "rslave", "rprivate"];

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
    let options: Vec<&str> = options.split(',').collect();
    let says = |wanted: &str| options.contains(&wanted);
    let is_known =
        |option: &&str| matches!(*option, "ro" | "rw") || BIND_OPTIONS_WITHOUT_EFFECT.contains(option);
    let is_clear = options.iter().all(is_known) && !(says("ro") && says("rw"));
    let writable = !says("ro");
    let mount = || Mount { source: source.into(), target: target.into(), writable };
    (is_absolute && is_plain && is_clear && target != "/").then(mount)
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

const BAD_SIZE: &str = "it must be a size such as 512m";

fn memory(settings: &DockerSettings) -> Result<Option<u64>, BadSettings> {
    let text = settings.memory.as_deref();
    text.map(|text| bytes(text).ok_or_else(|| bad("memory", text, BAD_SIZE))).transpose()
}

/// Returns the limits, with Docker's meaning of `memorySwap`: memory and swap together, twice the
/// memory if unset, `-1` for no limit.
pub(in crate::sandbox) fn amounts(settings: &DockerSettings) -> Result<Amounts, BadSettings> {
    let memory = memory(settings)?;
    let swap = match (memory, settings.memory_swap.as_deref().map(str::trim)) {
        (None, _) | (Some(_), Some("-1")) => None,
        (Some(memory), None | Some("0")) => Some(memory),
        (Some(memory), Some(text)) => {
            let both = bytes(text).ok_or_else(|| bad("memorySwap", text, BAD_SIZE))?;
            let swap = both.checked_sub(memory);
            Some(swap.ok_or_else(|| bad("memorySwap", text, "it counts memory too, and must not be less"))?)
        }
    };
    let processes = settings.pids_limit.unwrap_or(PROCESSES);
    Ok(Amounts { processes, memory, swap, cpus: settings.cpus })
}

fn limits(settings: &DockerSettings, group: Option<&Cgroup>) -> Result<ProcessLimits, BadSettings> {
    // A limit of each process's addresses hurts programs that reserve more than they use. It is the second best.
    let memory = memory(settings)?.filter(|_| !group.is_some_and(|group| group.limits("memory")));
    let others = settings.ulimits.iter().map(|(name, text)| {
        let limit = range(text).ok_or_else(|| bad("ulimits", text, "it must be soft[:hard]"));
        limit.map(|(soft, hard)| (name.clone(), soft, hard))
    });
    Ok(ProcessLimits {
        processes: Some(settings.pids_limit.unwrap_or(PROCESSES)),
        memory,
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
    fn swap_is_what_docker_means_by_it() {
        let config = openclaw_config::settings::Config::default();
        let agent = openclaw_protocol::AgentId::default();
        let defaults = crate::sandbox::SandboxSettings::of(&config, &agent).docker;
        for (memory, swap, expect) in [
            (None, None, Ok(None)),
            (None, Some("1g"), Ok(None)),
            (Some("512m"), None, Ok(Some(512 << 20))),
            (Some("512m"), Some("0"), Ok(Some(512 << 20))),
            (Some("512m"), Some("512m"), Ok(Some(0))),
            (Some("512m"), Some("1g"), Ok(Some(512 << 20))),
            (Some("512m"), Some("-1"), Ok(None)),
            (Some("512m"), Some("1m"), Err("it counts memory too, and must not be less")),
            (Some("512m"), Some("x"), Err(BAD_SIZE)),
            (Some("x"), None, Err(BAD_SIZE)),
        ] {
            let text = |text: Option<&str>| text.map(str::to_owned);
            let settings =
                DockerSettings { memory: text(memory), memory_swap: text(swap), ..defaults.clone() };
            let found = amounts(&settings).map(|amounts| amounts.swap).map_err(|error| error.why);
            assert_eq!(found, expect, "{memory:?} {swap:?}");
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
            // Docker refuses them too: a word that is meant to protect must not be taken for none.
            ("/a:/b:RO", None),
            ("/a:/b:readonly", None),
            ("/a:/b:rx", None),
            ("/a:/b:ro,rw", None),
            ("/a:/b:", None),
            ("/a:/b: ro", None),
            ("/a:/b:rw,rslave", mount("/a", "/b", true)),
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
