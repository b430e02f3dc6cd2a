//! From an inbound message to the agent and session that answer it (spec `sessions.md` §2). Pure.

use openclaw_protocol::AgentId;

use crate::key::peer::{PeerKey, normalize_channel};
use crate::key::{Peer, SessionKey};
use crate::settings::{Binding, BindingMatch, SessionSettings};

/// Where a message came in.
#[derive(Debug, Clone, Default)]
pub struct Inbound {
    /// Channel id.
    pub channel: String,
    /// Our account on it; blank is `default`.
    pub account_id: Option<String>,
    /// Who or where.
    pub peer: Option<Peer>,
    /// The room of a thread, the group of a topic.
    pub parent_peer: Option<Peer>,
    /// Discord server.
    pub guild_id: Option<String>,
    /// Slack or Teams workspace.
    pub team_id: Option<String>,
}

/// The rule that decided, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchedBy {
    /// A binding of this peer.
    Peer,
    /// A binding of the peer's parent.
    ParentPeer,
    /// A binding of the server.
    Guild,
    /// A binding of the workspace.
    Team,
    /// A binding of the account.
    Account,
    /// A binding of the channel.
    Channel,
    /// None: the default agent answers.
    Default,
}

impl MatchedBy {
    /// The name OpenClaw uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "binding.peer",
            Self::ParentPeer => "binding.peer.parent",
            Self::Guild => "binding.guild",
            Self::Team => "binding.team",
            Self::Account => "binding.account",
            Self::Channel => "binding.channel",
            Self::Default => "default",
        }
    }
}

/// Who answers, and in which session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The agent.
    pub agent_id: AgentId,
    /// Channel id, canonical.
    pub channel: String,
    /// Account, trimmed.
    pub account_id: String,
    /// The session.
    pub session_key: SessionKey,
    /// The agent's main session.
    pub main_session_key: SessionKey,
    /// Why.
    pub matched_by: MatchedBy,
    /// Place in `bindings` of the binding that decided.
    pub binding: Option<usize>,
}

const DEFAULT_ACCOUNT: &str = "default";
const ANY_ACCOUNT: &str = "*";

/// Decides. The first binding of the most specific tier wins; inside a tier the order of the file decides.
pub fn resolve(settings: &SessionSettings, inbound: &Inbound) -> Route {
    let channel = normalize_channel(&inbound.channel);
    let account = account_of(inbound.account_id.as_deref()).to_owned();
    let (matched_by, binding) = find_binding(settings, inbound, &channel, &account);
    let agent_id = match binding.and_then(|at| settings.bindings.get(at)) {
        Some(binding) => bound_agent(settings, &binding.agent_id),
        None => settings.default_agent(),
    };
    let rules = settings.key_rules();
    let main_session_key = rules.main(&agent_id);
    let session_key = match &inbound.peer {
        None => main_session_key.clone(),
        Some(peer) => PeerKey {
            agent: &agent_id,
            main_key: &rules.main_key,
            channel: &channel,
            account: Some(&account),
            peer,
            dm_scope: settings.dm_scope,
            links: &settings.identity_links,
        }
        .build(),
    };
    let session_key = rules.canonical_for(session_key.as_str(), &agent_id).unwrap_or(session_key);
    Route { agent_id, channel, account_id: account, session_key, main_session_key, matched_by, binding }
}

type Tier = (MatchedBy, fn(&BindingMatch, &Inbound) -> bool);

/// Most specific first (spec `sessions.md` §2.2).
const TIERS: &[Tier] = &[
    (MatchedBy::Peer, |m, i| {
        m.peer.is_some() && same_peer(m.peer.as_ref(), i.peer.as_ref()) && fits_scope(m, i)
    }),
    (MatchedBy::ParentPeer, |m, i| {
        m.peer.is_some() && same_peer(m.peer.as_ref(), i.parent_peer.as_ref()) && fits_scope(m, i)
    }),
    (MatchedBy::Guild, |m, i| m.peer.is_none() && given(&m.guild_id).is_some() && fits_scope(m, i)),
    (MatchedBy::Team, |m, i| {
        m.peer.is_none() && given(&m.guild_id).is_none() && given(&m.team_id).is_some() && fits_scope(m, i)
    }),
    (MatchedBy::Account, |m, _| is_broad(m) && given(&m.account_id) != Some(ANY_ACCOUNT)),
    (MatchedBy::Channel, |m, _| is_broad(m) && given(&m.account_id) == Some(ANY_ACCOUNT)),
];

fn find_binding(
    settings: &SessionSettings,
    inbound: &Inbound,
    channel: &str,
    account: &str,
) -> (MatchedBy, Option<usize>) {
    let candidates: Vec<(usize, &Binding)> = settings
        .bindings
        .iter()
        .enumerate()
        .filter(|(_, binding)| normalize_channel(&binding.matches.channel) == channel)
        .filter(|(_, binding)| fits_account(&binding.matches, account))
        .collect();
    for (matched_by, fits) in TIERS {
        if let Some((at, _)) = candidates.iter().find(|(_, binding)| fits(&binding.matches, inbound)) {
            return (*matched_by, Some(*at));
        }
    }
    (MatchedBy::Default, None)
}

fn account_of(account: Option<&str>) -> &str {
    account.map(str::trim).filter(|account| !account.is_empty()).unwrap_or(DEFAULT_ACCOUNT)
}

fn fits_account(binding: &BindingMatch, account: &str) -> bool {
    match account_of(binding.account_id.as_deref()) {
        ANY_ACCOUNT => true,
        wanted => wanted == account,
    }
}

fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

fn is_broad(binding: &BindingMatch) -> bool {
    binding.peer.is_none() && given(&binding.guild_id).is_none() && given(&binding.team_id).is_none()
}

fn same_peer(wanted: Option<&Peer>, peer: Option<&Peer>) -> bool {
    match (wanted, peer) {
        (Some(wanted), Some(peer)) => {
            let id = wanted.id.trim();
            !id.is_empty() && wanted.kind == peer.kind && id == peer.id.trim()
        }
        _ => false,
    }
}

/// Server and workspace, where the binding names them, are those of the message.
fn fits_scope(binding: &BindingMatch, inbound: &Inbound) -> bool {
    let same =
        |wanted: &Option<String>, is: &Option<String>| given(wanted).is_none_or(|w| given(is) == Some(w));
    same(&binding.guild_id, &inbound.guild_id) && same(&binding.team_id, &inbound.team_id)
}

/// A binding's agent; one that is not listed falls back to the default agent, unless nothing is listed.
fn bound_agent(settings: &SessionSettings, id: &str) -> AgentId {
    let id = AgentId::normalize(id);
    if settings.agents.is_empty() || settings.agents.iter().any(|agent| agent.id == id) {
        id
    } else {
        settings.default_agent()
    }
}

/// The accounts of a channel that bindings name, sorted, for starting them and as outbound defaults.
pub fn bound_accounts(settings: &SessionSettings, channel: &str) -> Vec<String> {
    let mut accounts: Vec<String> = channel_accounts(settings, channel).map(|(_, account)| account).collect();
    accounts.sort();
    accounts.dedup();
    accounts
}

/// The account the default agent is bound to on a channel: that of its first binding with a concrete account.
pub fn default_agent_account(settings: &SessionSettings, channel: &str) -> Option<String> {
    let default = settings.default_agent();
    channel_accounts(settings, channel).find(|(agent, _)| *agent == default).map(|(_, account)| account)
}

fn channel_accounts<'a>(
    settings: &'a SessionSettings,
    channel: &str,
) -> impl Iterator<Item = (AgentId, String)> + 'a {
    let channel = normalize_channel(channel);
    settings.bindings.iter().filter_map(move |binding| {
        let account = given(&binding.matches.account_id).filter(|account| *account != ANY_ACCOUNT)?;
        let on_channel = normalize_channel(&binding.matches.channel) == channel;
        on_channel
            .then(|| (bound_agent(settings, &binding.agent_id), crate::key::normalize_account_id(account)))
    })
}

#[cfg(test)]
mod tests;
