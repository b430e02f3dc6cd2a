//! Hooks from npm. Of npm only two commands are used, both told to run no scripts: a package that was taken over spreads by them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::Environment;
use tokio_util::sync::CancellationToken;

use super::InstallError;
use crate::requirements::BinPath;
use crate::skills::install::command;
use crate::skills::install::plan::InstallCommand;

/// npm asks its registry over networks of any speed.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// The longest name of a package with its version.
const MAX_SPEC: usize = 256;

/// A package of a registry: a name, perhaps with a version or a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpmSpec(String);

/// The name is not an npm package of a registry. Addresses, repositories and files are npm's other
/// kinds, and are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is neither a path that is there nor the name of an npm package (name, @scope/name, name@1.2.3)"
)]
pub struct NpmSpecError(String);

impl NpmSpec {
    /// Reads one.
    ///
    /// # Errors
    /// [`NpmSpecError`].
    pub fn parse(text: &str) -> Result<Self, NpmSpecError> {
        let text = text.trim();
        let unscoped = match text.strip_prefix('@') {
            Some(rest) => rest.split_once('/').filter(|(scope, _)| is_name(scope)).map(|(_, name)| name),
            None => Some(text),
        };
        let is_package = unscoped.is_some_and(|rest| match rest.split_once('@') {
            Some((name, version)) => is_name(name) && is_version(version),
            None => is_name(rest),
        });
        if is_package && text.len() <= MAX_SPEC {
            Ok(Self(text.to_owned()))
        } else {
            Err(NpmSpecError(text.to_owned()))
        }
    }

    /// Returns the specification as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.~".contains(c);
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && name.chars().all(is_plain)
}

/// A version or a tag; ranges are none.
fn is_version(version: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    version.starts_with(|c: char| c.is_ascii_alphanumeric()) && version.chars().all(is_plain)
}

/// Fetches the package's archive into a directory.
pub(super) async fn fetch(
    spec: &NpmSpec,
    into: &Path,
    environment: &Environment,
) -> Result<PathBuf, InstallError> {
    let directory = into.display().to_string();
    npm(
        &["pack", "--ignore-scripts", "--silent", "--pack-destination", &directory, spec.as_str()],
        environment,
    )
    .await?;
    let entries = fs::read_dir(into)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut archives = entries.filter(|path| path.extension().is_some_and(|ending| ending == "tgz"));
    archives.next().ok_or_else(|| InstallError::Npm("npm pack left no archive".to_owned()))
}

/// Fetches what a package depends on, into its directory.
pub(super) async fn fetch_dependencies(dir: &Path, environment: &Environment) -> Result<(), InstallError> {
    let directory = dir.display().to_string();
    let quiet = ["--silent", "--no-audit", "--no-fund", "--prefix", &directory];
    let arguments: Vec<&str> =
        ["install", "--ignore-scripts", "--omit=dev"].into_iter().chain(quiet).collect();
    npm(&arguments, environment).await
}

async fn npm(arguments: &[&str], environment: &Environment) -> Result<(), InstallError> {
    let path = BinPath::new(environment.get("PATH").unwrap_or_default());
    let program = path
        .find("npm")
        .ok_or_else(|| InstallError::Npm("npm is not installed; see https://nodejs.org".into()))?;
    let order = InstallCommand {
        program,
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        environment: Vec::new(),
    };
    let done = command::run(&order, environment, LIMIT, &CancellationToken::new()).await;
    if done.ok { Ok(()) } else { Err(InstallError::Npm(format!("npm: {}", done.message))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_a_registry_are_fetched() {
        for spec in ["hooks", "@acme/hooks", "hooks@1.2.3", "@acme/hooks@beta", "a.b-c_d", "x@1.0.0-rc.1+b"] {
            assert_eq!(NpmSpec::parse(spec).map(|spec| spec.0), Ok(spec.to_owned()));
        }
        let bad = [
            "",
            "acme/hooks",
            "@acme",
            "@/x",
            "git+https://x/y.git",
            "https://x/y.tgz",
            "file:../x",
            "../x",
            "/x",
            "-g",
            "hooks@^1",
            "hooks@",
            "hooks@npm:other",
            "Hooks",
            "a b",
            "a@1 b",
            "github:a/b",
            "a@b@c",
            "@a/b/c",
        ];
        for spec in bad {
            assert_eq!(NpmSpec::parse(spec), Err(NpmSpecError(spec.to_owned())));
        }
        assert!(NpmSpec::parse(&"a".repeat(MAX_SPEC + 1)).is_err());
    }
}
