//! `agent.identity.get`: what an agent is called and how it looks (spec `gateway-protocol.md` §6.3).

pub(super) mod avatar;

use std::path::Path;
use std::sync::Arc;

use openclaw_agent::identity::Identity as IdentityFile;
use openclaw_config::settings::{Assistant, Identity};
use openclaw_protocol::params::agent::{AgentIdentity, AgentIdentityGet, AgentIdentityParams};
use openclaw_protocol::{AgentId, Call};
use openclaw_sessions::SessionStore;

use self::avatar::Avatar;
use super::keys::{given, require_same_agent};
use crate::current_settings::CurrentSettings;
use crate::request::RequestFailure;

const DEFAULT_NAME: &str = "Assistant";
const DEFAULT_AVATAR: &str = "A";
/// Longest name, in characters.
const MAX_NAME: usize = 50;
/// Longest avatar, in characters.
const MAX_AVATAR: usize = 200;

/// Parts of the gateway that `agent.identity.get` uses.
pub(super) struct IdentityMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
}

pub(super) async fn get(
    parts: &IdentityMethods,
    params: AgentIdentityParams,
) -> Result<AgentIdentity, RequestFailure> {
    let id = agent_of(parts, &params)?;
    let config = parts.settings.config();
    let base_path = config.gateway.control_ui.base_path.clone().unwrap_or_default();
    let made = tokio::task::spawn_blocking(move || {
        let agent = config.agent(&id);
        let file = IdentityFile::of_workspace(&agent.workspace);
        identity(&id, &config.ui.assistant, &agent.identity, &file, &agent.workspace, &base_path)
    });
    Ok(made.await?)
}

/// The agent named, that of the session named, or the default one.
fn agent_of(parts: &IdentityMethods, params: &AgentIdentityParams) -> Result<AgentId, RequestFailure> {
    let named = params.agent_id.as_ref().map(|id| AgentId::normalize(&id.0));
    let Some(text) = given(params.session_key.as_deref()) else {
        return Ok(named.unwrap_or_else(|| parts.settings.config().default_agent()));
    };
    let rules = parts.sessions.rules();
    let of_key = rules.agent_of(&rules.canonical(text)?);
    if let Some(named) = &named {
        require_same_agent(AgentIdentityGet::NAME, named, &of_key)?;
    }
    Ok(of_key)
}

/// The first that says something: the interface's settings, the agent's, its file, the default.
fn identity(
    id: &AgentId,
    assistant: &Assistant,
    own: &Identity,
    file: &IdentityFile,
    workspace: &Path,
    base_path: &str,
) -> AgentIdentity {
    let first = |choices: [&Option<String>; 3]| {
        choices.into_iter().find_map(|choice| given(choice.as_deref())).map(str::to_owned)
    };
    let nothing = None;
    let emoji = first([&own.emoji, &file.emoji, &nothing]);
    let name = first([&assistant.name, &own.name, &file.name]).unwrap_or_else(|| DEFAULT_NAME.to_owned());
    let chosen = [&assistant.avatar, &own.avatar, &file.avatar]
        .into_iter()
        .filter_map(|choice| given(choice.as_deref()))
        .find_map(|text| shown(text, id, workspace, base_path));
    AgentIdentity {
        agent_id: id.to_string(),
        name: name.chars().take(MAX_NAME).collect(),
        avatar: chosen.or_else(|| emoji.clone()).unwrap_or_else(|| DEFAULT_AVATAR.to_owned()),
        emoji,
    }
}

/// An avatar as a page uses it; a file that is not there, or is outside the workspace, counts as none.
fn shown(text: &str, id: &AgentId, workspace: &Path, base_path: &str) -> Option<String> {
    match Avatar::parse(text) {
        Avatar::Url(url) => Some(url),
        Avatar::Text(text) => Some(text.chars().take(MAX_AVATAR).collect()),
        Avatar::File(path) => avatar::is_file_in(workspace, &path)
            .then(|| format!("{}/avatar/{id}", base_path.trim_end_matches('/'))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    #[test]
    fn the_first_that_says_something_counts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("me.png"), b"x").unwrap();
        let id = AgentId::normalize("golden-helper");
        let make = |assistant: &Assistant, own: &Identity, file: &IdentityFile| {
            let made = identity(&id, assistant, own, file, folder.path(), "/ui/");
            (made.name, made.avatar, made.emoji)
        };
        let none = (Assistant::default(), Identity::default(), IdentityFile::default());
        assert_eq!(make(&none.0, &none.1, &none.2), ("Assistant".into(), "A".into(), None));
        let file = IdentityFile {
            name: text("Golden Helper"),
            emoji: text("🧪"),
            avatar: text("me.png"),
            ..IdentityFile::default()
        };
        let expect = ("Golden Helper".into(), "/ui/avatar/golden-helper".into(), text("🧪"));
        assert_eq!(make(&none.0, &none.1, &file), expect);
        let own = Identity { name: text("Own"), avatar: text("../escape.png"), ..Identity::default() };
        assert_eq!(
            make(&none.0, &own, &IdentityFile { emoji: text("🦀"), ..IdentityFile::default() }),
            ("Own".into(), "🦀".into(), text("🦀"))
        );
        let assistant = Assistant { name: text(&"n".repeat(60)), avatar: text("AB") };
        assert_eq!(make(&assistant, &own, &file), ("n".repeat(50), "AB".into(), text("🧪")));
    }
}
