//! `agents.*` (spec `gateway-protocol.md` §6.6): the list here, changes in [`roster`], workspace files in [`files`].

pub(super) mod files;
pub(super) mod roster;

use std::path::Path;
use std::sync::Arc;

use openclaw_config::Config;
use openclaw_config::settings::Identity;
use openclaw_dispatch::Dispatch;
use openclaw_protocol::AgentId;
use openclaw_protocol::params::Nothing;
use openclaw_protocol::params::agents::{AgentRow, AgentsListResult, IdentityRow};
use openclaw_sessions::SessionStore;

use super::identity::avatar::{self, Avatar};
use crate::current_settings::CurrentSettings;
use crate::reload::Reload;
use crate::request::RequestFailure;

/// Parts of the gateway that `agents.*` use.
pub(super) struct RosterMethods {
    pub(super) settings: CurrentSettings,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) dispatch: Dispatch,
    pub(super) reload: Reload,
}

pub(super) async fn list(parts: &RosterMethods, _: Nothing) -> Result<AgentsListResult, RequestFailure> {
    let defaults = parts.settings.session_defaults();
    let config = parts.settings.config();
    let store = Arc::clone(&parts.sessions);
    let rows = tokio::task::spawn_blocking(move || {
        let found = if config.agents.list.is_empty() { store.found_agents() } else { Vec::new() };
        let ids = all_agents(&config, found);
        ids.iter().map(|id| row(&config, id)).collect()
    });
    Ok(AgentsListResult {
        default_id: defaults.default_agent_id,
        main_key: defaults.main_key,
        scope: defaults.scope,
        agents: rows.await?,
    })
}

/// Configured agents, default first, then those that only have a directory.
fn all_agents(config: &Config, on_disk: Vec<AgentId>) -> Vec<AgentId> {
    let mut ids = config.agent_ids();
    for id in on_disk {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

fn row(config: &Config, id: &AgentId) -> AgentRow {
    let agent = config.agent(id);
    AgentRow {
        id: id.to_string(),
        name: agent.name.clone().filter(|name| !name.trim().is_empty()),
        identity: identity_row(&agent.identity, &agent.workspace),
    }
}

fn identity_row(identity: &Identity, workspace: &Path) -> Option<IdentityRow> {
    let text =
        |value: &Option<String>| value.as_deref().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
    let row = IdentityRow {
        name: text(&identity.name),
        theme: text(&identity.theme),
        emoji: text(&identity.emoji),
        avatar: text(&identity.avatar),
        avatar_url: text(&identity.avatar).and_then(|avatar| avatar_url(&avatar, workspace)),
    };
    (row != IdentityRow::default()).then_some(row)
}

/// Avatar as a URL that a page can show: URLs as they are, files of the workspace as data URLs.
fn avatar_url(text: &str, workspace: &Path) -> Option<String> {
    match Avatar::parse(text) {
        Avatar::Url(url) => Some(url),
        Avatar::File(path) => avatar::data_url(workspace, &path),
        Avatar::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_without_content_is_left_out() {
        let workspace = Path::new("/nowhere");
        assert_eq!(
            identity_row(&Identity { name: Some(" ".into()), ..Identity::default() }, workspace),
            None
        );
        let given = Identity {
            emoji: Some("🧪".into()),
            avatar: Some("https://x/y.png".into()),
            ..Identity::default()
        };
        let expect = IdentityRow {
            emoji: Some("🧪".into()),
            avatar: Some("https://x/y.png".into()),
            avatar_url: Some("https://x/y.png".into()),
            ..IdentityRow::default()
        };
        assert_eq!(identity_row(&given, workspace), Some(expect));
    }
}
