//! Installers in a skill's `metadata`, and the choice of those that are offered (spec
//! `agent-runtime.md` §6.2, `gateway-protocol.md` §6.6).

use openclaw_config::settings::NodeManager;

use crate::frontmatter::Manifest;
use crate::requirements::platform;

/// Installer of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallSpec {
    /// Id in `skills.install`.
    pub id: String,
    /// Installer and its parameters.
    pub installer: Installer,
    /// Display name.
    pub label: Option<String>,
    /// Programs it brings.
    pub bins: Vec<String>,
    /// Platforms it is for; empty is all.
    pub os: Vec<String>,
}

/// Kind of installer with its parameters. A field that the skill does not give is found missing
/// when it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installer {
    /// Homebrew.
    Brew {
        /// A formula or, with `is_cask`, a cask.
        formula: Option<String>,
        /// True if the package is an application (cask) rather than a command-line program.
        is_cask: bool,
    },
    /// The configured manager of Node packages.
    Node {
        /// Package name at npm.
        package: Option<String>,
    },
    /// `go install`.
    Go {
        /// Go module with its version, as in `example.com/cmd/tool@latest`.
        module: Option<String>,
    },
    /// `uv tool install`.
    Uv {
        /// Package name at PyPI.
        package: Option<String>,
    },
    /// A file from the web.
    Download(Download),
}

/// A file from the web.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Download {
    /// `https` alone is taken.
    pub url: Option<String>,
    /// `tar.gz`, `tar.bz2` or `zip`; absent is told by the name.
    pub archive: Option<String>,
    /// True if an archive is unpacked; absent counts as true.
    pub extract: Option<bool>,
    /// Directories that are cut off the front of the paths in it.
    pub strip_components: usize,
    /// Below the skill's own directory for tools.
    pub target_dir: Option<String>,
}

impl Installer {
    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Brew { .. } => "brew",
            Self::Node { .. } => "node",
            Self::Go { .. } => "go",
            Self::Uv { .. } => "uv",
            Self::Download(_) => "download",
        }
    }
}

impl InstallSpec {
    /// The entry at a place of the list; `None` for a kind that is not known.
    pub(super) fn of(entry: &Manifest, at: usize) -> Option<Self> {
        let text = |key: &str| entry.text(key).map(str::to_owned);
        let kind = entry.text("kind").or_else(|| entry.text("type"))?.to_lowercase();
        let installer = match kind.as_str() {
            "brew" => match text("formula") {
                Some(formula) => Installer::Brew { formula: Some(formula), is_cask: false },
                None => Installer::Brew { formula: text("cask"), is_cask: text("cask").is_some() },
            },
            "node" => Installer::Node { package: text("package") },
            "go" => Installer::Go { module: text("module") },
            "uv" => Installer::Uv { package: text("package") },
            "download" => Installer::Download(Download {
                url: text("url"),
                archive: text("archive").map(|archive| archive.trim_start_matches('.').to_lowercase()),
                extract: entry.switch("extract"),
                strip_components: whole(entry.number("stripComponents")),
                target_dir: text("targetDir"),
            }),
            _ => return None,
        };
        let id = text("id").unwrap_or_else(|| format!("{kind}-{at}"));
        Some(Self { id, installer, label: text("label"), bins: entry.list("bins"), os: entry.list("os") })
    }

    fn is_for_here(&self) -> bool {
        self.os.is_empty() || self.os.iter().any(|os| os == platform())
    }

    /// Display name, or a default one.
    pub(super) fn shown(&self, manager: NodeManager) -> String {
        let named =
            |what: &Option<String>, by: &str| what.as_ref().map(|what| format!("Install {what} ({by})"));
        let made = match &self.installer {
            Installer::Node { package: Some(package) } => return format!("Install {package} ({manager})"),
            Installer::Brew { formula, .. } => named(formula, "brew"),
            Installer::Node { package: None } => None,
            Installer::Go { module } => named(module, "go"),
            Installer::Uv { package } => named(package, "uv"),
            Installer::Download(Download { url, .. }) => url.as_ref().map(|url| {
                let last = url.rsplit('/').next().filter(|last| !last.is_empty());
                format!("Download {}", last.unwrap_or(url))
            }),
        };
        self.label.clone().or(made).unwrap_or_else(|| "Run installer".to_owned())
    }
}

/// A number of directories; anything else is none.
fn whole(number: Option<f64>) -> usize {
    const MOST: usize = 100;
    (0..=MOST).find(|count| number == Some(*count as f64)).unwrap_or(0)
}

/// Preferences among several installers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preference {
    /// `skills.install.preferBrew`, and Homebrew is there.
    pub(super) brew_first: bool,
}

/// Returns the installers to offer: the best one, or all downloads where there are only downloads.
pub(super) fn offered(specs: &[InstallSpec], preference: Preference) -> Vec<&InstallSpec> {
    let here: Vec<&InstallSpec> = specs.iter().filter(|spec| spec.is_for_here()).collect();
    if here.iter().all(|spec| matches!(spec.installer, Installer::Download(_))) {
        return here;
    }
    let first_of = |kind: &&str| here.iter().copied().find(|spec| spec.installer.kind() == *kind);
    let brew = ["brew"].into_iter().filter(|_| preference.brew_first);
    let order: Vec<&str> = brew.chain(["uv", "node", "brew", "go", "download"]).collect();
    order.iter().find_map(first_of).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter::MarkdownDocument;

    fn specs(install: &str) -> Vec<InstallSpec> {
        let text = format!("---\nmetadata: {{\"openclaw\": {{\"install\": {install}}}}}\n---\n");
        let manifest = MarkdownDocument::parse(&text).unwrap().frontmatter.manifest().unwrap().unwrap();
        let entries = manifest.objects("install");
        entries.iter().enumerate().filter_map(|(at, entry)| InstallSpec::of(entry, at)).collect()
    }

    /// Checks the ids and labels of the offered installers.
    fn check(install: &str, brew_first: bool, expect: &[(&str, &str)]) {
        let specs = specs(install);
        let offered = offered(&specs, Preference { brew_first });
        let found: Vec<(&str, String)> =
            offered.into_iter().map(|spec| (spec.id.as_str(), spec.shown(NodeManager::Pnpm))).collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(id, label)| (*id, label.as_str())).collect();
        assert_eq!(found, expect, "{install}");
    }

    #[test]
    fn the_best_installer_is_offered() {
        const FOUR: &str = r#"[{kind: "go", module: "x.y/z@latest"}, {kind: "brew", formula: "z"},
            {kind: "node", package: "@z/z", label: "not shown"}, {id: "uv", kind: "uv", package: "z", label: "Get z"}]"#;
        check(FOUR, true, &[("brew-1", "Install z (brew)")]);
        check(FOUR, false, &[("uv", "Get z")]);
        check(
            r#"[{kind: "go", module: "m"}, {kind: "node", package: "n"}]"#,
            true,
            &[("node-1", "Install n (pnpm)")],
        );
        check(r#"[{kind: "brew"}]"#, false, &[("brew-0", "Run installer")]);
        check(r#"[{kind: "magic"}, "text", 5]"#, false, &[]);
        check(
            r#"[{kind: "download", url: "https://a/b/c.tgz"}, {kind: "download", url: "https://a/"}]"#,
            true,
            &[("download-0", "Download c.tgz"), ("download-1", "Download https://a/")],
        );
        check(
            r#"[{kind: "brew", formula: "f", os: ["plan9"]}, {kind: "go", module: "m"}]"#,
            true,
            &[("go-1", "Install m (go)")],
        );
        check(
            r#"[{kind: "go", module: "m"}, {kind: "download", url: "https://a/b"}]"#,
            true,
            &[("go-0", "Install m (go)")],
        );
    }

    #[test]
    fn a_cask_is_one_and_a_download_is_read_whole() {
        let cask = specs(r#"[{id: "brew-cask", kind: "brew", cask: "a/tap/b", bins: ["b"]}]"#).remove(0);
        let formula = Some("a/tap/b".to_owned());
        assert_eq!(
            (cask.installer, cask.bins),
            (Installer::Brew { formula, is_cask: true }, vec!["b".to_owned()])
        );
        let install = r#"[{kind: "download", url: "https://a/b.tar.bz2", archive: ".TAR.BZ2", extract: true, stripComponents: 1, targetDir: "models"}]"#;
        let expect = Download {
            url: Some("https://a/b.tar.bz2".to_owned()),
            archive: Some("tar.bz2".to_owned()),
            extract: Some(true),
            strip_components: 1,
            target_dir: Some("models".to_owned()),
        };
        assert_eq!(specs(install).remove(0).installer, Installer::Download(expect));
    }
}
