//! The `Runtime:` line (spec `agent-runtime.md` §3.1 row 26).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::sections::PromptLine;
use super::{PromptInputs, RuntimeFacts, display};

/// Facts about the machine; read once at start, since the prompt must not change between turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Short host name.
    pub host: Option<String>,
    /// System and release, such as `Linux 6.8.0`.
    pub os: Option<String>,
    /// Architecture as Node names it, such as `x64`.
    pub arch: Option<String>,
    /// Name of the user's shell.
    pub shell: Option<String>,
    /// Our own version; shown as `runtime=`.
    pub runtime: Option<String>,
    /// Directory of this program's documentation; shown in a section of its own.
    pub docs_dir: Option<PathBuf>,
}

/// A page by which the documentation of this program is known.
const KNOWN_PAGE: &str = "configuration.md";

/// The documentation that came with a program in this directory: beside it, where packages put it, or that of its sources.
fn docs_beside(directory: &Path) -> Option<PathBuf> {
    let above = directory.parent();
    let places = [
        Some(directory.join("docs")),
        above.map(|prefix| prefix.join("share/doc/openclaw")),
        above.and_then(Path::parent).map(|sources| sources.join("docs")),
    ];
    places.into_iter().flatten().find(|place| place.join(KNOWN_PAGE).is_file())
}

impl HostFacts {
    /// Asks the system. `shell` is the path of the user's shell, `$SHELL` as a rule.
    pub fn detect(shell: Option<&str>, version: &str) -> Self {
        let (host, os) = match nix::sys::utsname::uname() {
            Ok(name) => {
                let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
                let host = text(name.nodename());
                let host = host.split('.').next().unwrap_or_default().to_owned();
                (Some(host), Some(format!("{} {}", text(name.sysname()), text(name.release()))))
            }
            Err(_) => (None, Some(std::env::consts::OS.to_owned())),
        };
        Self {
            host: host.filter(|name| !name.is_empty()),
            os,
            arch: Some(node_arch(std::env::consts::ARCH).to_owned()),
            shell: shell
                .and_then(|path| Path::new(path).file_name())
                .map(|name| name.to_string_lossy().into_owned()),
            runtime: Some(format!("openclaw-{version}")),
            docs_dir: std::env::current_exe().ok().and_then(|program| docs_beside(program.parent()?)),
        }
    }
}

/// Architecture names as the reference prints them.
fn node_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        "x86" => "ia32",
        other => other,
    }
}

/// The section's lines.
pub(super) fn lines<'a>(inputs: &'a PromptInputs<'_>) -> Vec<PromptLine<'a>> {
    let level = inputs.reasoning.as_str();
    vec![
        format!("Runtime: {}", facts(&inputs.runtime)).into(),
        format!(
            "Reasoning: {level} (hidden unless on/stream). Toggle /reasoning; /status shows it when enabled."
        )
        .into(),
    ]
}

fn facts(facts: &RuntimeFacts) -> String {
    let host = &facts.host;
    let os = match (&host.os, &host.arch) {
        (Some(os), Some(arch)) => Some(format!("{os} ({arch})").into()),
        (os, _) => own(os),
    };
    let capabilities = facts.channel.as_ref().map(|_| match facts.capabilities.as_slice() {
        [] => Cow::Borrowed("none"),
        capabilities => capabilities.join(",").into(),
    });
    let parts = [
        ("agent", own(&facts.agent)),
        ("host", own(&host.host)),
        ("repo", facts.repo.as_deref().map(|root| display(root).into())),
        ("os", os),
        ("runtime", own(&host.runtime)),
        ("model", own(&facts.model)),
        ("default_model", own(&facts.default_model)),
        ("shell", own(&host.shell)),
        ("channel", own(&facts.channel)),
        ("capabilities", capabilities),
        ("thinking", own(&facts.thinking)),
    ];
    let mut known = String::new();
    for (name, value) in parts {
        if let Some(value) = value {
            let between = if known.is_empty() { "" } else { " | " };
            known.extend([between, name, "=", &*value]);
        }
    }
    known
}

fn own(fact: &Option<String>) -> Option<Cow<'_, str>> {
    fact.as_deref().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_is_looked_for_where_it_comes_with_the_program() {
        let rows = [
            ("opt/openclaw", "opt/openclaw/docs", true),
            ("usr/bin", "usr/share/doc/openclaw", true),
            ("src/target/debug", "src/docs", true),
            ("usr/bin", "usr/docs", false),
        ];
        for (program, docs, is_found) in rows {
            let root = tempfile::tempdir().unwrap();
            let (program, docs) = (root.path().join(program), root.path().join(docs));
            std::fs::create_dir_all(&program).unwrap();
            std::fs::create_dir_all(&docs).unwrap();
            assert_eq!(docs_beside(&program), None, "another program's: {docs:?}");
            std::fs::write(docs.join(KNOWN_PAGE), "").unwrap();
            assert_eq!(docs_beside(&program), is_found.then(|| docs.clone()), "{docs:?}");
        }
    }
}
