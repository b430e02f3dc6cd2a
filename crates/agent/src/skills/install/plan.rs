//! Turns an installer into a plan. Pure but for looking programs up.

use std::path::PathBuf;

use openclaw_config::Config;
use openclaw_config::settings::NodeManager;

use super::super::install_option::{Download, Installer};
use super::download::Fetch;
use crate::unpack::Archive;

/// Directories of Homebrew that are tried when no `PATH` names it.
const BREW_DIRS: &[&str] = &["/opt/homebrew/bin", "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin"];
/// Signs of a package's name, besides letters and digits.
const SIGNS: &str = "@/._+~-=^<>[],!";

/// Plan of an installation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InstallPlan {
    Run(InstallCommand),
    Fetch(Fetch),
}

/// A program and what it is given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstallCommand {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// Reason why nothing can be installed; the person changes what is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlanError {
    /// The skill's file does not say what to install.
    #[error("the skill's installer names no {0}")]
    Nameless(&'static str),
    /// The value is not a plain name: an option, a path or an address could do anything.
    #[error("the skill's installer names \"{0}\", which is not the plain name of a package")]
    NotAName(String),
    /// The program that installs is not there.
    #[error("{program} is not installed; {hint}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// Hint on how to install the missing program.
        hint: &'static str,
    },
    /// The archive is of a kind that is not opened.
    #[error("archives of the kind \"{0}\" are not unpacked; tar, tar.gz, tar.bz2 and zip are")]
    Archive(String),
    /// The file goes where it may not.
    #[error("the skill wants to put files into \"{0}\", which is not below its own directory of tools")]
    Outside(String),
    /// The key of the skill can't be a directory's name.
    #[error("the skill's key \"{0}\" cannot name a directory")]
    Key(String),
}

/// Plans what an installer of the skill with this key does. `find` tells where a program is.
pub(super) fn plan(
    installer: &Installer,
    key: &str,
    config: &Config,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<InstallPlan, PlanError> {
    let order = |program: PathBuf, arguments: &[&str], what: &str| InstallCommand {
        program,
        arguments: arguments.iter().copied().chain([what]).map(str::to_owned).collect(),
        environment: Vec::new(),
    };
    Ok(InstallPlan::Run(match installer {
        Installer::Brew { formula, is_cask } => {
            let name = named(formula.as_deref(), "formula")?;
            let brew = brew(config, find).ok_or(missing("brew", "see https://brew.sh"))?;
            order(brew, if *is_cask { &["install", "--cask"] } else { &["install"] }, name)
        }
        Installer::Node { package } => {
            let name = node_package(named(package.as_deref(), "package")?)?;
            let manager = config.skills.install.node_manager;
            let program = find(manager.as_str()).ok_or(missing(
                manager.as_str(),
                "install it, or choose another one with skills.install.nodeManager",
            ))?;
            order(program, node_arguments(manager), name)
        }
        Installer::Go { module } => {
            let name = named(module.as_deref(), "module")?;
            let go = find("go").ok_or(missing("go", "see https://go.dev/dl"))?;
            // Homebrew's directory of programs is in the PATH; Go's own directory seldom is.
            let bin = brew(config, find).and_then(|brew| brew.parent().map(|dir| dir.display().to_string()));
            let environment = bin.map(|bin| ("GOBIN".to_owned(), bin)).into_iter().collect();
            InstallCommand { environment, ..order(go, &["install"], name) }
        }
        Installer::Uv { package } => {
            let name = named(package.as_deref(), "package")?;
            let uv = find("uv").ok_or(missing("uv", "see https://docs.astral.sh/uv"))?;
            order(uv, &["tool", "install"], name)
        }
        Installer::Download(download) => return fetch(download, key, config).map(InstallPlan::Fetch),
    }))
}

fn missing(program: &'static str, hint: &'static str) -> PlanError {
    PlanError::NoProgram { program, hint }
}

/// Scripts of packages are not run: they are how packages that were taken over spread.
fn node_arguments(manager: NodeManager) -> &'static [&'static str] {
    match manager {
        NodeManager::Npm => &["install", "-g", "--ignore-scripts"],
        NodeManager::Pnpm => &["add", "-g", "--ignore-scripts"],
        NodeManager::Yarn => &["global", "add", "--ignore-scripts"],
        NodeManager::Bun => &["add", "-g", "--ignore-scripts"],
    }
}

fn brew(config: &Config, find: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let prefix =
        config.environment().get_nonblank("HOMEBREW_PREFIX").map(|dir| PathBuf::from(dir).join("bin"));
    let known = prefix.into_iter().chain(BREW_DIRS.iter().map(PathBuf::from)).map(|dir| dir.join("brew"));
    find("brew").or_else(|| known.into_iter().find(|brew| brew.is_file()))
}

fn named<'n>(name: Option<&'n str>, what: &'static str) -> Result<&'n str, PlanError> {
    let name = name.ok_or(PlanError::Nameless(what))?;
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || SIGNS.contains(c));
    let starts_plain = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@');
    if is_plain && starts_plain && !name.contains("..") {
        Ok(name)
    } else {
        Err(PlanError::NotAName(name.to_owned()))
    }
}

/// `a/b` would be a repository of GitHub.
fn node_package(name: &str) -> Result<&str, PlanError> {
    let slashes = name.matches('/').count();
    let is_package = if name.starts_with('@') { slashes == 1 } else { slashes == 0 };
    if is_package { Ok(name) } else { Err(PlanError::NotAName(name.to_owned())) }
}

fn fetch(download: &Download, key: &str, config: &Config) -> Result<Fetch, PlanError> {
    let url = download.url.clone().ok_or(PlanError::Nameless("url"))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if key.is_empty() || key.starts_with('.') || !key.chars().all(is_plain) {
        return Err(PlanError::Key(key.to_owned()));
    }
    let own = config.paths().state_dir().join("tools").join(key);
    let target = match &download.target_dir {
        None => own,
        Some(dir) => {
            let target = openclaw_config::without_dots(&own.join(config.environment().expand_tilde(dir)));
            if !target.starts_with(&own) {
                return Err(PlanError::Outside(dir.clone()));
            }
            target
        }
    };
    let archive = match &download.archive {
        Some(kind) => Some(Archive::parse(kind).ok_or_else(|| PlanError::Archive(kind.clone()))?),
        None => Archive::of_name(&url),
    };
    let archive = match (download.extract, archive) {
        (Some(true), None) => return Err(PlanError::Archive(String::new())),
        (Some(false), _) => None,
        (Some(true) | None, archive) => archive,
    };
    Ok(Fetch { url, target, archive, strip: download.strip_components })
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    fn config(text: &str) -> std::sync::Arc<Config> {
        let env = Environment::new([("HOME", "/h"), ("HOMEBREW_PREFIX", "/none")], "/");
        Config::from_json5(text, &env).unwrap()
    }

    fn planned(installer: &Installer, config_text: &str) -> Result<String, PlanError> {
        let find = |name: &str| (name != "uv").then(|| PathBuf::from("/bin").join(name));
        match plan(installer, "demo", &config(config_text), &find)? {
            InstallPlan::Run(InstallCommand { program, arguments, environment }) => {
                let words: Vec<String> =
                    environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
                let words = words.into_iter().chain([program.display().to_string()]).chain(arguments);
                Ok(words.collect::<Vec<_>>().join(" "))
            }
            InstallPlan::Fetch(Fetch { url, target, archive, strip }) => {
                Ok(format!("{url} {} {archive:?} {strip}", target.display()))
            }
        }
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn each_kind_is_one_command() {
        let brew = |formula: &str, is_cask| Installer::Brew { formula: text(formula), is_cask };
        let node = |package: &str| Installer::Node { package: text(package) };
        let rows = [
            (brew("a/tap/x", false), "{}", "/bin/brew install a/tap/x"),
            (brew("x", true), "{}", "/bin/brew install --cask x"),
            (node("@a/b@1.2"), "{}", "/bin/npm install -g --ignore-scripts @a/b@1.2"),
            (node("b"), "{skills: {install: {nodeManager: 'pnpm'}}}", "/bin/pnpm add -g --ignore-scripts b"),
            (
                node("b"),
                "{skills: {install: {nodeManager: 'yarn'}}}",
                "/bin/yarn global add --ignore-scripts b",
            ),
            (node("b"), "{skills: {install: {nodeManager: 'bun'}}}", "/bin/bun add -g --ignore-scripts b"),
            (
                Installer::Go { module: text("x.y/cmd/z@latest") },
                "{}",
                "GOBIN=/bin /bin/go install x.y/cmd/z@latest",
            ),
        ];
        for (installer, config, expect) in rows {
            assert_eq!(planned(&installer, config).as_deref(), Ok(expect));
        }
        let error = planned(&Installer::Uv { package: text("x") }, "{}").unwrap_err();
        assert_eq!(error.to_string(), "uv is not installed; see https://docs.astral.sh/uv");
    }

    #[test]
    fn what_is_no_plain_name_is_refused() {
        for name in [
            "-x",
            "--force",
            "a b",
            "https://x/y",
            "git+ssh://x",
            "../x",
            "./x",
            "a;b",
            "$(x)",
            "a\nb",
            "file:x",
            "é",
        ] {
            let error = planned(&Installer::Go { module: text(name) }, "{}").unwrap_err();
            assert_eq!(error, PlanError::NotAName(name.to_owned()));
        }
        for name in ["owner/repository", "@a/b/c", "@a"] {
            assert!(planned(&Installer::Node { package: text(name) }, "{}").is_err(), "{name}");
        }
        assert_eq!(planned(&Installer::Node { package: None }, "{}"), Err(PlanError::Nameless("package")));
    }

    #[test]
    fn a_download_stays_below_the_directory_of_its_skill() {
        let of = |target: Option<&str>, archive: Option<&str>, extract, url: &str| {
            let target_dir = target.map(str::to_owned);
            let archive = archive.map(str::to_owned);
            planned(
                &Installer::Download(Download {
                    url: text(url),
                    archive,
                    extract,
                    strip_components: 1,
                    target_dir,
                }),
                "{}",
            )
        };
        const URL: &str = "https://x/y.tgz";
        let tools = "/h/.openclaw/tools/demo";
        assert_eq!(of(None, None, None, URL), Ok(format!("{URL} {tools} Some(TarGz) 1")));
        assert_eq!(of(Some("a/b"), Some("zip"), None, URL), Ok(format!("{URL} {tools}/a/b Some(Zip) 1")));
        assert_eq!(of(Some("a/../b"), None, Some(false), URL), Ok(format!("{URL} {tools}/b None 1")));
        let within = format!("{tools}/c");
        assert_eq!(of(Some(&within), None, None, "https://x/y"), Ok(format!("https://x/y {within} None 1")));
        for outside in ["..", "../demo2", "/etc", "~/x", "a/../../x"] {
            assert_eq!(of(Some(outside), None, None, URL), Err(PlanError::Outside(outside.to_owned())));
        }
        assert_eq!(of(None, Some("rar"), None, URL), Err(PlanError::Archive("rar".to_owned())));
        assert_eq!(of(None, None, Some(true), "https://x/y"), Err(PlanError::Archive(String::new())));
        let download = Installer::Download(Download { url: text(URL), ..Download::default() });
        for key in ["", ".", "..", "a/b", "a b", "é"] {
            let made = plan(&download, key, &config("{}"), &|_| None);
            assert_eq!(made, Err(PlanError::Key(key.to_owned())));
        }
    }
}
