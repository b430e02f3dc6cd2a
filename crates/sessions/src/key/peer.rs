//! Building the key of an inbound message's peer (spec `sessions.md` §1.3).

use openclaw_config::normalize_account_id;
use openclaw_protocol::session_key::canonical_parts;
use openclaw_protocol::{AgentId, DmScope, Peer, PeerKind};

use super::{KeyError, KeyForm, SessionKey};

/// Parts that a peer's key is made of.
#[derive(Debug, Clone, Copy)]
pub struct PeerKey<'a> {
    /// The agent that answers.
    pub agent: &'a AgentId,
    /// Name of the main bucket.
    pub main_key: &'a str,
    /// Channel id.
    pub channel: &'a str,
    /// Account on that channel.
    pub account: Option<&'a str>,
    /// The peer.
    pub peer: &'a Peer,
    /// Separation of direct chats into sessions.
    pub dm_scope: DmScope,
    /// People known under several ids.
    pub links: &'a [(String, Vec<String>)],
}

impl PeerKey<'_> {
    /// The session key.
    ///
    /// # Errors
    /// [`KeyError::TooLong`]; nothing is cut to fit.
    pub fn build(&self) -> Result<SessionKey, KeyError> {
        let channel = normalize_channel(self.channel);
        let id = canonical_parts(&self.peer.id);
        let room = || if id.is_empty() { "unknown" } else { id.as_str() };
        match self.peer.kind {
            PeerKind::Direct => self.direct(&channel, &id),
            PeerKind::Group => SessionKey::of(self.agent, KeyForm::Group { channel: &channel, id: room() }),
            PeerKind::Channel => {
                SessionKey::of(self.agent, KeyForm::Channel { channel: &channel, id: room() })
            }
        }
    }

    /// The identity link that gives a direct chat its name, where there is one. The main bucket needs none.
    pub fn link(&self) -> Option<Link<'_>> {
        let is_named = self.peer.kind == PeerKind::Direct && self.dm_scope != DmScope::Main;
        if is_named { find_link(self.links, &normalize_channel(self.channel), &self.peer.id) } else { None }
    }

    fn direct(&self, channel: &str, id: &str) -> Result<SessionKey, KeyError> {
        let linked = self.link().map(|link| canonical_parts(link.name)).filter(|name| !name.is_empty());
        let peer = linked.as_deref().unwrap_or(id);
        let account = normalize_account_id(self.account.unwrap_or_default());
        let (channel, account) = match self.dm_scope {
            DmScope::PerPeer => (None, None),
            DmScope::PerChannelPeer => (Some(channel), None),
            DmScope::PerAccountChannelPeer => (Some(channel), Some(account.as_str())),
            DmScope::Main => return Ok(SessionKey::main(self.agent, self.main_key)),
        };
        if peer.is_empty() {
            return Ok(SessionKey::main(self.agent, self.main_key));
        }
        SessionKey::of(self.agent, KeyForm::Direct { channel, account, peer })
    }
}

/// A channel id as a key segment; blank is `unknown`.
pub fn normalize_channel(channel: &str) -> String {
    let lower = channel.trim().to_lowercase();
    if lower.is_empty() { "unknown".to_owned() } else { lower }
}

/// Single hit in `session.identityLinks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// The canonical name, as configured.
    pub name: &'a str,
    /// The id that is the peer's, as configured.
    pub id: &'a str,
}

/// The first canonical name that has the peer among its ids, bare or as `<channel>:<id>`.
fn find_link<'a>(links: &'a [(String, Vec<String>)], channel: &str, peer: &str) -> Option<Link<'a>> {
    let bare = peer.trim().to_lowercase();
    if bare.is_empty() {
        return None;
    }
    let scoped = format!("{channel}:{bare}");
    let is_peer = |id: &str| id == bare || id == scoped;
    links.iter().filter(|(name, _)| !name.trim().is_empty()).find_map(|(name, ids)| {
        let id = ids.iter().find(|id| is_peer(&id.trim().to_lowercase()))?;
        Some(Link { name: name.trim(), id: id.trim() })
    })
}
