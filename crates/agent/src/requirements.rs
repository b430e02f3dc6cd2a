//! What a skill or a hook needs of its surroundings, and what of it is missing (spec `agent-runtime.md` §6.3, §8.1).

use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use serde_json::Value;

/// What is needed; what is missing has the same shape. All in the order of the file.
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

/// What there is.
pub trait Surroundings {
    /// Whether a program can be started, here or where this may run.
    fn has_bin(&self, name: &str) -> bool;
    /// Whether a variable will have a value.
    fn has_env(&self, name: &str) -> bool;
    /// Whether a path of the configuration is truthy.
    fn has_config(&self, path: &str) -> bool;
    /// Whether this host, or a node it may use, is of a platform.
    fn is_platform(&self, name: &str) -> bool {
        name == platform()
    }
}

/// Whether requirements are to be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// As they say.
    AsListed,
    /// `always: true`: nothing but the platform counts.
    PlatformOnly,
}

impl Strictness {
    /// What `always` says.
    pub fn of_always(always: Option<bool>) -> Self {
        if always == Some(true) { Self::PlatformOnly } else { Self::AsListed }
    }
}

impl Requirements {
    /// What is missing. Nothing is: it may be used.
    pub fn missing(&self, strictness: Strictness, here: &impl Surroundings) -> Self {
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

    /// Whether it lists nothing.
    pub fn is_empty(&self) -> bool {
        let Self { bins, any_bins, env, config, os } = self;
        [bins, any_bins, env, config, os].into_iter().all(Vec::is_empty)
    }
}

/// This host's platform in Node's words.
pub fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// The directories of a `PATH`.
#[derive(Debug, Clone, Default)]
pub struct BinPath(Vec<PathBuf>);

impl BinPath {
    /// Those of a variable's value. Relative ones are left out: they mean another place for each who asks.
    pub fn new(variable: &str) -> Self {
        Self(std::env::split_paths(variable).filter(|dir| dir.is_absolute()).collect())
    }

    /// Where a program is; `None` when it can't be started. A name with a slash is none. Blocking: a look a directory.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let is_name = !name.is_empty() && !name.contains(['/', '\0']) && !matches!(name, "." | "..");
        let can_run = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
        is_name.then(|| self.0.iter().map(|dir| dir.join(name)).find(can_run)).flatten()
    }
}

/// Whether a dotted path of a configuration is truthy. What is not set is when it is one of `when_unset`.
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

    /// What is there is named so.
    struct Here;

    impl Surroundings for Here {
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
