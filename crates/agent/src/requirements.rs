//! Requirements of a skill or a hook on its environment, and the check for missing ones (spec
//! `agent-runtime.md` §6.3, §8.1).

use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};
use openclaw_config::Config;
use openclaw_config::settings::SandboxWritable;
use serde::Serialize;
use serde_json::Value;

/// Requirements, or the missing ones among them, which have the same shape. All in the order of the
/// file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirements {
    /// Programs, all of them.
    pub bins: Vec<String>,
    /// Programs, one of them.
    pub any_bins: Vec<String>,
    /// Variables, all of them.
    pub env: Vec<String>,
    /// Dotted paths of the configuration that have to be truthy.
    pub config: Vec<String>,
    /// Platforms in Node's words (`darwin`, `linux`, `win32`), one of them.
    pub os: Vec<String>,
}

/// Environment against which requirements are checked.
pub trait RequirementEnv {
    /// Returns true if a program can be started, here or where the skill may run.
    fn has_bin(&self, name: &str) -> bool;
    /// Returns true if an environment variable will have a value.
    fn has_env(&self, name: &str) -> bool;
    /// Returns true if the value at a configuration path is truthy.
    fn has_config(&self, path: &str) -> bool;
    /// Returns true if this host, or a node it may use, has this platform.
    fn is_platform(&self, name: &str) -> bool {
        name == platform()
    }
}

/// Strictness with which requirements are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Requirements apply as they are listed.
    AsListed,
    /// `always: true`: nothing but the platform counts.
    PlatformOnly,
}

impl Strictness {
    /// Converts the `always` field.
    pub fn of_always(always: Option<bool>) -> Self {
        if always == Some(true) { Self::PlatformOnly } else { Self::AsListed }
    }
}

impl Requirements {
    /// Returns the requirements that are not met. The skill or hook may be used if the result is
    /// empty.
    pub fn missing(&self, strictness: Strictness, here: &impl RequirementEnv) -> Self {
        let one_of = |wanted: &[String], there: &dyn Fn(&str) -> bool| {
            if wanted.iter().any(|name| there(name)) { Vec::new() } else { wanted.to_vec() }
        };
        let all_of = |wanted: &[String], there: &dyn Fn(&str) -> bool| {
            wanted.iter().filter(|name| !there(name)).cloned().collect()
        };
        let os = one_of(&self.os, &|name| here.is_platform(name));
        if strictness == Strictness::PlatformOnly {
            return Self { os, ..Self::default() };
        }
        Self {
            bins: all_of(&self.bins, &|name| here.has_bin(name)),
            any_bins: one_of(&self.any_bins, &|name| here.has_bin(name)),
            env: all_of(&self.env, &|name| here.has_env(name)),
            config: all_of(&self.config, &|path| here.has_config(path)),
            os,
        }
    }

    /// Returns true if there are no requirements.
    pub fn is_empty(&self) -> bool {
        let Self { bins, any_bins, env, config, os } = self;
        [bins, any_bins, env, config, os].into_iter().all(Vec::is_empty)
    }
}

/// Platform of this host in Node's words.
pub fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// The directories of a `PATH`, and the places whose programs are not run.
#[derive(Debug, Clone, Default)]
pub struct BinPath {
    dirs: Vec<PathBuf>,
    sandboxes: SandboxWritable,
}

impl BinPath {
    /// Reads the directories in the value of a `PATH` variable. Relative ones are left out, because they depend on the working directory.
    pub fn new(variable: &str) -> Self {
        let dirs = std::env::split_paths(variable).filter(|dir| dir.is_absolute()).collect();
        Self { dirs, sandboxes: SandboxWritable::default() }
    }

    /// Reads the directories from `PATH` in a configuration's environment. Programs that a sandbox may have written do not count. Blocking.
    pub fn of(config: &Config) -> Self {
        let path = config.environment().get("PATH").unwrap_or_default();
        Self { sandboxes: config.sandbox_writable(), ..Self::new(path) }
    }

    /// Places whose programs are not run, because a sandbox may write there.
    pub fn sandboxes(&self) -> &SandboxWritable {
        &self.sandboxes
    }

    /// Returns the path of a program; `None` if it can't be started, or its name has a slash. Blocking: one lookup per directory.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let is_name = !name.is_empty() && !name.contains(['/', '\0']) && !matches!(name, "." | "..");
        let can_run = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
        let found = self.dirs.iter().map(|dir| dir.join(name));
        is_name.then(|| found.filter(can_run).find(|path| !self.sandboxes.holds(path))).flatten()
    }
}

/// Returns true if the value at a dotted path of a configuration is truthy. An unset path counts as
/// truthy if it is listed in `when_unset`.
pub fn is_truthy_at(config: &Value, path: &str, when_unset: &[&str]) -> bool {
    let mut at = config;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let next = match at {
            Value::Object(map) => map.get(part),
            Value::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        match next {
            Some(next) => at = next,
            None => return when_unset.contains(&path),
        }
    }
    is_truthy(at)
}

/// Truthy as JavaScript has it, but for blank texts.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_on) => *is_on,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    /// Environment in which the name tells if a thing exists.
    struct Here;

    impl RequirementEnv for Here {
        fn has_bin(&self, name: &str) -> bool {
            name.starts_with("there")
        }
        fn has_env(&self, name: &str) -> bool {
            name.starts_with("SET")
        }
        fn has_config(&self, path: &str) -> bool {
            path.starts_with("on")
        }
    }

    fn list(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn of(bins: &str, any_bins: &str, env: &str, config: &str, os: &str) -> Requirements {
        let (any_bins, env) = (list(any_bins), list(env));
        Requirements { bins: list(bins), any_bins, env, config: list(config), os: list(os) }
    }

    #[test]
    fn what_is_missing_is_named() {
        let here = platform();
        let rows = [
            (of("", "", "", "", ""), of("", "", "", "", "")),
            (of("there a there2 b", "", "", "", ""), of("a b", "", "", "", "")),
            (of("", "a there", "", "", ""), of("", "", "", "", "")),
            (of("", "a b", "", "", ""), of("", "a b", "", "", "")),
            (of("", "", "SET_A B", "", ""), of("", "", "B", "", "")),
            (of("", "", "", "on.x off", ""), of("", "", "", "off", "")),
            (of("", "", "", "", &format!("plan9 {here}")), of("", "", "", "", "")),
            (of("", "", "", "", "plan9"), of("", "", "", "", "plan9")),
        ];
        for (required, missing) in rows {
            assert_eq!(required.missing(Strictness::AsListed, &Here), missing, "{required:?}");
            let os = Requirements { os: missing.os, ..Requirements::default() };
            assert_eq!(required.missing(Strictness::of_always(Some(true)), &Here), os, "{required:?}");
        }
    }

    #[test]
    fn truth_in_the_configuration_is_javascripts() {
        let config = json!({"a": {"t": true, "f": false, "z": 0, "n": -1, "s": " ", "w": "x", "l": [], "o": {}, "nil": null},
            "browser": {"enabled": false}, "list": [{"on": 1}]});
        let rows = [
            ("a.t", true),
            ("a.f", false),
            ("a.z", false),
            ("a.n", true),
            ("a.s", false),
            ("a.w", true),
            ("a.l", true),
            ("a.o", true),
            ("a.nil", false),
            ("a..t", true),
            ("a.t.x", false),
            ("list.0.on", true),
            ("list.1.on", false),
            ("missing", false),
            ("browser.enabled", false),
            ("browser.evaluateEnabled", true),
        ];
        for (path, expect) in rows {
            let when_unset = &["browser.enabled", "browser.evaluateEnabled"];
            assert_eq!(is_truthy_at(&config, path, when_unset), expect, "{path}");
        }
    }

    #[test]
    fn a_program_is_an_executable_file_of_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        make("fakebin", 0o755);
        make("plain", 0o644);
        std::fs::create_dir(dir.path().join("directory")).unwrap();
        let path = BinPath::new(&format!("relative:/nowhere:{}", dir.path().display()));
        assert_eq!(path.find("fakebin"), Some(dir.path().join("fakebin")));
        for name in ["plain", "directory", "other", "", ".", "..", "../fakebin", "/bin/sh"] {
            assert_eq!(path.find(name), None, "{name}");
        }
    }
}
