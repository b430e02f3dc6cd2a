//! Choice of the binding that claims a message (spec `sessions.md` §2.2).

use std::fmt;

use openclaw_config::settings::{Binding, BindingMatch};
use openclaw_protocol::AgentId;

use super::account::{ANY_ACCOUNT, fits_account, given};
use super::{Inbound, Placement};
use crate::key::Peer;
use crate::key::peer::normalize_channel;
use crate::settings::SessionSettings;

/// The rule that decided, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// No binding: the default agent answers.
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

impl fmt::Display for MatchedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The binding that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundBy {
    /// Position in `bindings`, from 0.
    pub index: usize,
    /// Conditions of the binding.
    pub matches: BindingMatch,
    /// The agent it names, canonical.
    pub named: AgentId,
    /// The agent that answers: the default agent when the named one is not listed.
    pub agent: AgentId,
}

impl BoundBy {
    /// True if the binding names an agent that is not listed.
    pub fn is_fallback(&self) -> bool {
        self.named != self.agent
    }
}

type Tier = (MatchedBy, fn(&BindingMatch, &Placement) -> bool);

/// Tiers of bindings, most specific first. Server and workspace, where a binding names them, are
/// compared before.
const TIERS: &[Tier] = &[
    (MatchedBy::Peer, |m, at| same_peer(m.peer.as_ref(), at.peer.as_ref())),
    (MatchedBy::ParentPeer, |m, at| same_peer(m.peer.as_ref(), at.parent.as_ref())),
    (MatchedBy::Guild, |m, _| m.peer.is_none() && given(&m.guild_id).is_some()),
    (MatchedBy::Team, |m, _| m.peer.is_none() && given(&m.team_id).is_some()),
    (MatchedBy::Account, |m, _| is_broad(m) && given(&m.account_id) != Some(ANY_ACCOUNT)),
    (MatchedBy::Channel, |m, _| is_broad(m) && given(&m.account_id) == Some(ANY_ACCOUNT)),
];

/// The tier and the binding that claim a message.
pub(super) fn find(
    settings: &SessionSettings,
    inbound: &Inbound,
    place: &Placement,
    channel: &str,
    account: &str,
) -> (MatchedBy, Option<BoundBy>) {
    let candidates: Vec<(usize, &Binding)> = settings
        .bindings
        .iter()
        .enumerate()
        .filter(|(_, binding)| normalize_channel(&binding.matches.channel) == channel)
        .filter(|(_, binding)| {
            fits_account(&binding.matches, account) && fits_scope(&binding.matches, inbound)
        })
        .collect();
    let hit = TIERS.iter().find_map(|(tier, fits)| {
        let (index, binding) = candidates.iter().find(|(_, binding)| fits(&binding.matches, place))?;
        Some((*tier, *index, *binding))
    });
    match hit {
        Some((tier, index, binding)) => {
            let matches = binding.matches.clone();
            let named = AgentId::normalize(&binding.agent_id);
            let agent = bound_agent(settings, &named);
            (tier, Some(BoundBy { index, matches, named, agent }))
        }
        None => (MatchedBy::Default, None),
    }
}

/// A binding's agent; one that is not listed falls back to the default agent, unless nothing is listed.
pub(super) fn bound_agent(settings: &SessionSettings, named: &AgentId) -> AgentId {
    if settings.agents.is_empty() || settings.agents.iter().any(|agent| agent.id == *named) {
        named.clone()
    } else {
        settings.default_agent()
    }
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
