//! The one place where environment variables, the home directory and the working directory come from.
//!
//! Everything else in the product is handed an [`Environment`]; tests make their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::variable_rules;

/// Environment variables with the directories of the process.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Environment {
    vars: BTreeMap<String, String>,
    /// Names that a login shell gave; see [`crate::shell_env`].
    from_shell: BTreeSet<String>,
    /// Variables that the login shell printed, for this environment and its copies.
    shell: Arc<OnceLock<Vec<(String, String)>>>,
    account_home: Option<PathBuf>,
    executable: Option<PathBuf>,
    cwd: PathBuf,
    temp_dir: PathBuf,
    user_id: Option<u32>,
}

/// Values may be secrets, so only the names are shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("vars", &self.vars.keys().collect::<Vec<_>>())
            .field("account_home", &self.account_home)
            .field("cwd", &self.cwd)
            .field("temp_dir", &self.temp_dir)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            vars,
            account_home: std::env::home_dir(),
            executable: std::env::current_exe().ok(),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            temp_dir: std::env::temp_dir(),
            user_id: Some(nix::unistd::getuid().as_raw()),
            ..Self::default()
        }
    }

    /// An environment made of given parts.
    pub fn new(
        vars: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            vars: vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: cwd.into(),
            temp_dir: std::env::temp_dir(),
            user_id: Some(nix::unistd::getuid().as_raw()),
            ..Self::default()
        }
    }

    /// A variable as it is, blank values included.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// A variable, trimmed; blank counts as unset.
    pub fn get_nonblank(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The first of several names that is set and not blank.
    pub fn first_nonblank(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get_nonblank(name))
    }

    /// True if a switch is on: `1`, `true`, `yes` or `on`, in any case (spec `cli.md` §1).
    pub fn is_truthy(&self, name: &str) -> bool {
        self.get_nonblank(name)
            .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on"))
    }

    /// Sets a variable in this copy.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.vars.insert(name.into(), value.into());
    }

    /// Sets a variable unless it already has a non-blank value. Returns whether it was set.
    pub fn fill(&mut self, name: &str, value: &str) -> bool {
        if self.get_nonblank(name).is_some() {
            return false;
        }
        self.set(name, value);
        true
    }

    /// The variables that came from a login shell.
    pub fn from_shell(&self) -> impl Iterator<Item = &str> {
        self.from_shell.iter().map(String::as_str)
    }

    pub(crate) fn shell_answer(&self) -> &OnceLock<Vec<(String, String)>> {
        &self.shell
    }

    pub(crate) fn fill_from_shell(&mut self, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            if self.fill(name, value) {
                self.from_shell.insert(name.clone());
            }
        }
    }

    /// All variables, ordered by name.
    pub fn vars(&self) -> impl Iterator<Item = (&str, &str)> {
        self.vars.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The program that runs, links resolved where the system does that.
    pub fn executable(&self) -> Option<&Path> {
        self.executable.as_deref()
    }

    /// The directory for temporary files (`TMPDIR`).
    pub fn temp_dir(&self) -> &Path {
        &self.temp_dir
    }

    /// Same environment with another directory for temporary files.
    #[must_use]
    pub fn with_temp_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.temp_dir = dir.into();
        self
    }

    /// Numeric id of the user, where the system has one.
    pub fn user_id(&self) -> Option<u32> {
        self.user_id
    }

    /// Home directory: `OPENCLAW_HOME`, `HOME`, `USERPROFILE`, the account's, the working directory (spec `config.md`
    /// §1.1).
    pub fn home(&self) -> PathBuf {
        match self.get_nonblank("OPENCLAW_HOME") {
            Some(explicit) => self.absolute(&expand_with(explicit, &self.system_home())),
            None => self.system_home(),
        }
    }

    /// Expands a leading `~`, then makes the path absolute against the working directory.
    pub fn expand_path(&self, text: &str) -> PathBuf {
        self.absolute(&self.expand_tilde(text))
    }

    /// Expands a leading `~` or `~/`; other text is returned as a path unchanged.
    pub fn expand_tilde(&self, text: &str) -> PathBuf {
        expand_with(text, &self.home())
    }

    /// A path as people read it, with `~` for the home directory.
    pub fn with_tilde(&self, path: &Path) -> String {
        let home = self.home();
        match path.strip_prefix(&home) {
            Ok(rest) if !home.as_os_str().is_empty() => format!("~/{}", rest.display()),
            Ok(_) | Err(_) => path.display().to_string(),
        }
    }

    /// Adds the unset names of a `.env` file in the working directory, and returns those that it may not set: whoever can
    /// place a file in a cloned repository must neither run code here nor steer the gateway (spec `config.md` §2.1).
    pub(crate) fn fill_from_untrusted(&mut self, pairs: &[(String, String)]) -> BTreeSet<String> {
        let mut refused = BTreeSet::new();
        for (name, value) in pairs {
            if self.vars.contains_key(name) {
                continue;
            }
            if variable_rules::runs_code(name) || variable_rules::steers(name) {
                refused.insert(name.clone());
            } else {
                self.set(name, value);
            }
        }
        refused
    }

    /// Adds the unset names of the state directory's own `.env` file.
    pub(crate) fn fill_from_trusted(&mut self, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            if !self.vars.contains_key(name) {
                self.set(name, value);
            }
        }
    }

    fn system_home(&self) -> PathBuf {
        self.first_nonblank(&["HOME", "USERPROFILE"])
            .map(PathBuf::from)
            .or_else(|| self.account_home.clone())
            .unwrap_or_else(|| self.cwd.clone())
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        without_dots(&self.cwd.join(path))
    }
}

/// Removes `.` and resolves `..` by name alone, without looking at the disk.
pub fn without_dots(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => out.push(part),
        }
    }
    out
}

fn expand_with(text: &str, home: &Path) -> PathBuf {
    let text = text.trim();
    match text.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with(['/', '\\']) => home.join(rest.trim_start_matches(['/', '\\'])),
        Some(_) | None => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotenv_of_the_working_directory_cannot_steer_the_gateway() {
        let mut env = Environment::new([("FOO", "process")], "/w");
        let pairs = [
            ("FOO", "x"),
            ("BAR", "1"),
            ("OPENCLAW_CONFIG_PATH", "/evil"),
            ("openclaw_home", "/evil"),
            ("LD_PRELOAD", "/evil.so"),
            ("https_proxy", "http://evil"),
            ("PATH", "/evil"),
            ("BASH_ENV", "/evil.sh"),
            ("AWS_REGION", "@evil/"),
            ("RUSTUP_TOOLCHAIN", "/evil"),
            ("GITHUB_TOKEN", "for tools"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let refused = env.fill_from_untrusted(&pairs);
        assert_eq!(
            env.vars().collect::<Vec<_>>(),
            [("BAR", "1"), ("FOO", "process"), ("GITHUB_TOKEN", "for tools")]
        );
        let expect = [
            "AWS_REGION",
            "BASH_ENV",
            "LD_PRELOAD",
            "OPENCLAW_CONFIG_PATH",
            "PATH",
            "RUSTUP_TOOLCHAIN",
            "https_proxy",
            "openclaw_home",
        ];
        assert_eq!(refused.iter().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn tilde_and_relative_paths_are_resolved() {
        let env = Environment::new([("HOME", "/h")], "/w");
        let rows = [("~", "/h"), ("~/a/../b", "/h/b"), ("~x", "/w/~x"), ("a/./b", "/w/a/b"), ("/z", "/z")];
        for (input, expect) in rows {
            assert_eq!(env.expand_path(input), Path::new(expect), "{input}");
        }
    }

    #[test]
    fn debug_output_holds_no_values() {
        let env = Environment::new([("KEY", "hunter2")], "/w");
        assert!(!format!("{env:?}").contains("hunter2"));
    }
}
