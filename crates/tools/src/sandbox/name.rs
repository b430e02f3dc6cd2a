//! Names of sandboxes, and the directories of their files (spec `tools.md` §10).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use openclaw_config::settings::{SandboxScope, WorkspaceAccess};
use openclaw_protocol::AgentId;
use sha1::{Digest as _, Sha1};

use super::settings::SandboxSettings;

/// Longest name of a container.
const LONGEST_NAME: usize = 63;
const LONGEST_BASE: usize = 32;
const SHARED: &str = "shared";

/// Returns the key of a sandbox's scope: the agent or the session that uses it, or the shared one.
pub fn scope_key(scope: SandboxScope, agent: &AgentId, session: &str) -> String {
    match scope {
        SandboxScope::Shared => SHARED.to_owned(),
        SandboxScope::Agent => format!("agent:{agent}"),
        SandboxScope::Session => match session.trim() {
            "" => "main".to_owned(),
            session => session.to_owned(),
        },
    }
}

/// The host directory that is the workspace of a sandbox.
pub fn workspace_of(
    settings: &SandboxSettings,
    agent: &AgentId,
    agent_workspace: &Path,
    session: &str,
) -> PathBuf {
    match settings.access {
        WorkspaceAccess::ReadWrite => agent_workspace.to_owned(),
        WorkspaceAccess::None | WorkspaceAccess::ReadOnly => {
            directory(&settings.root, settings.scope, &scope_key(settings.scope, agent, session))
        }
    }
}

/// A key as a part of names: readable, and different for each.
pub(super) fn slug(key: &str) -> String {
    let key = match key.trim() {
        "" => "session",
        key => key,
    };
    let digest = Sha1::digest(key);
    let hash = digest.iter().take(4).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let is_kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let mut safe = String::new();
    for letter in key.to_lowercase().chars() {
        match is_kept(letter) {
            true => safe.push(letter),
            // One character for a whole run of others.
            false if safe.ends_with('\0') => {}
            false => safe.push('\0'),
        }
    }
    let safe = safe.replace('\0', "-");
    let base: String = safe.trim_matches('-').chars().take(LONGEST_BASE).collect();
    let base = if base.is_empty() { "session" } else { &base };
    format!("{base}-{hash}")
}

/// The name of its container.
pub(super) fn container(prefix: &str, scope: SandboxScope, key: &str) -> String {
    let slug = if scope == SandboxScope::Shared { SHARED.to_owned() } else { slug(key) };
    format!("{prefix}{slug}").chars().take(LONGEST_NAME).collect()
}

/// Returns the directory of the sandbox's files.
pub(super) fn directory(root: &Path, scope: SandboxScope, key: &str) -> PathBuf {
    if scope == SandboxScope::Shared { root.to_owned() } else { root.join(slug(key)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_scope_has_a_key() {
        let agent = AgentId::normalize("work");
        for (scope, session, key) in [
            (SandboxScope::Shared, "agent:work:main", "shared"),
            (SandboxScope::Agent, "agent:work:main", "agent:work"),
            (SandboxScope::Session, "agent:work:main", "agent:work:main"),
            (SandboxScope::Session, "  ", "main"),
        ] {
            assert_eq!(scope_key(scope, &agent, session), key);
        }
    }

    #[test]
    fn a_slug_can_be_read_and_is_unique() {
        for (key, expect) in [
            ("main", "main-b28b7af6"),
            ("agent:main", "agent-main-0d71ad7a"),
            ("  Agent::Main/../x ", "agent-main-..-x-03758bca"),
            ("", "session-fcbdc4c2"),
            ("::", "session-f62e0ea6"),
            ("a_b.c-d", "a_b.c-d-6adba6b3"),
        ] {
            assert_eq!(slug(key), expect, "{key}");
        }
        assert_eq!(slug(&"x".repeat(99)).len(), 32 + 9);
        assert_ne!(slug("a:b"), slug("a/b"));
    }

    #[test]
    fn names_and_directories_follow_the_scope() {
        let root = Path::new("/boxes");
        assert_eq!(directory(root, SandboxScope::Shared, "shared"), root);
        assert_eq!(directory(root, SandboxScope::Agent, "main"), root.join(slug("main")));
        assert_eq!(container("openclaw-sbx-", SandboxScope::Shared, "shared"), "openclaw-sbx-shared");
        assert_eq!(container("p-", SandboxScope::Agent, "main"), format!("p-{}", slug("main")));
        assert_eq!(container(&"p".repeat(80), SandboxScope::Agent, "main").len(), 63);
    }

    proptest! {
        #[test]
        fn a_slug_is_one_plain_path_component(key in ".*") {
            let slug = slug(&key);
            prop_assert!(slug.len() <= 41 && slug.len() > 9, "{slug}");
            prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b)));
            prop_assert!(!slug.starts_with('-'));
            prop_assert_eq!(Path::new(&slug).components().count(), 1);
            prop_assert!(matches!(Path::new(&slug).components().next(), Some(std::path::Component::Normal(_))));
        }
    }
}
