//! Routing: from an inbound message to the agent and session that answer it, and why (spec
//! `sessions.md` §2). Pure.
//!
//! [`resolve`] is the whole decision: `binding` finds the agent, `thread` places the message in its conversation, the
//! key of the peer comes from [`crate::key::peer`].

mod account;
mod binding;
mod thread;

use openclaw_protocol::{AgentId, SessionScope};
use serde::Serialize;

use crate::key::peer::{Link, PeerKey, normalize_channel};
use crate::key::{DmScope, KeyError, KeyRules, Peer, PeerKind, SessionKey};
use crate::settings::SessionSettings;

pub use account::{bound_accounts, default_agent_account};
pub use binding::{BoundBy, MatchedBy};
pub use thread::ThreadStyle;

use account::account_of;
use thread::{Placement, place};

/// Origin of an inbound message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbound {
    /// Channel id.
    pub channel: String,
    /// Id of our account on it; blank is `default`.
    pub account_id: Option<String>,
    /// Person or room it came from; without one the main session answers.
    pub peer: Option<Peer>,
    /// The room of a thread, the group of a topic, where the channel knows it.
    pub parent_peer: Option<Peer>,
    /// Discord server.
    pub guild_id: Option<String>,
    /// Slack or Teams workspace.
    pub team_id: Option<String>,
    /// The thread or topic the message was said in. Its effect on the key depends on the channel
    /// ([`ThreadStyle`]).
    pub thread_id: Option<String>,
    /// True if a new thread starts with the history of its conversation
    /// (`channels.slack.thread.inheritParent`).
    pub thread_inherits: bool,
}

/// Route of a message: the agent and session that answer, and why.
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
    /// The session whose history a new thread starts with (spec `sessions.md` §1.3, §5.7).
    pub parent_session_key: Option<SessionKey>,
    /// Reasons for the choice.
    pub why: RouteReason,
}

/// The rules that made a [`Route`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteReason {
    /// The tier that decided the agent.
    pub matched_by: MatchedBy,
    /// The binding that decided; none for the default agent.
    pub binding: Option<BoundBy>,
    /// Reason for the choice of session.
    pub key: KeyReason,
    /// Effect of the thread on the session.
    pub thread: Option<ThreadStyle>,
}

/// Rule that decided the session of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum KeyReason {
    /// `session.scope` is `global`: there is one session.
    GlobalScope,
    /// A message from nowhere in particular: the main session.
    NoPeer,
    /// A direct chat whose peer has no id: the main session.
    BlankPeer,
    /// A direct chat with `dmScope = main`: the main session.
    MainSession,
    /// A direct chat of its own.
    DirectChat {
        /// `session.dmScope`
        dm_scope: DmScope,
        /// The identity link that names the person.
        #[serde(skip_serializing_if = "Option::is_none")]
        identity_link: Option<IdentityLink>,
    },
    /// A group or room.
    Room {
        /// Kind of the peer.
        kind: PeerKind,
    },
}

/// An entry of `session.identityLinks` that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdentityLink {
    /// Canonical name of the person.
    pub name: String,
    /// The id in it that is the peer's.
    pub id: String,
}

/// Decides. The first binding of the most specific tier wins; inside a tier the order of the file decides.
///
/// # Errors
/// [`KeyError::TooLong`] for a peer or thread whose key would be too long, nothing is cut to fit; [`KeyError::Control`] for
/// one with control characters.
pub fn resolve(settings: &SessionSettings, inbound: &Inbound) -> Result<Route, KeyError> {
    let channel = normalize_channel(&inbound.channel);
    let account = account_of(inbound.account_id.as_deref()).to_owned();
    let place = place(&channel, inbound);
    let (matched_by, binding) = binding::find(settings, inbound, &place, &channel, &account);
    let agent_id = binding.as_ref().map_or_else(|| settings.default_agent(), |bound| bound.agent.clone());
    let rules = settings.key_rules();
    let of_peer = |peer: &Peer| {
        let key = PeerKey {
            agent: &agent_id,
            main_key: &rules.main_key,
            channel: &channel,
            account: Some(&account),
            peer,
            dm_scope: settings.section.dm_scope,
            links: &settings.section.identity_links,
        };
        Ok::<_, KeyError>((fold(&rules, key.build()?), reason(settings, &key)))
    };
    let main_session_key = rules.main(&agent_id);
    let (base, key) = match &place.peer {
        _ if settings.section.scope == SessionScope::Global => {
            (main_session_key.clone(), KeyReason::GlobalScope)
        }
        None => (main_session_key.clone(), KeyReason::NoPeer),
        Some(peer) => of_peer(peer)?,
    };
    let session_key = match (place.thread, &place.suffix) {
        (Some(ThreadStyle::Suffix), Some(id)) => base.with_thread(id)?,
        _ => base.clone(),
    };
    let parent = match place.thread {
        Some(ThreadStyle::Suffix) => inbound.thread_inherits.then_some(base),
        Some(ThreadStyle::Room) => place.parent.as_ref().map(&of_peer).transpose()?.map(|(key, _)| key),
        Some(ThreadStyle::Topic) | None => None,
    };
    Ok(Route {
        parent_session_key: parent.filter(|parent| *parent != session_key),
        why: RouteReason { matched_by, binding, key, thread: place.thread },
        agent_id,
        channel,
        account_id: account,
        session_key,
        main_session_key,
    })
}

/// The main bucket has one name, whatever the key was made from.
fn fold(rules: &KeyRules, key: SessionKey) -> SessionKey {
    match key.agent() {
        Some(agent) if rules.is_main(&key) => rules.main(&agent),
        Some(_) | None => key,
    }
}

fn reason(settings: &SessionSettings, key: &PeerKey<'_>) -> KeyReason {
    let link = |link: Link<'_>| IdentityLink { name: link.name.to_owned(), id: link.id.to_owned() };
    match (key.peer.kind, settings.section.dm_scope) {
        _ if settings.section.scope == SessionScope::Global => KeyReason::GlobalScope,
        (PeerKind::Direct, DmScope::Main) => KeyReason::MainSession,
        (PeerKind::Direct, _) if key.peer.id.trim().is_empty() => KeyReason::BlankPeer,
        (PeerKind::Direct, dm_scope) => {
            KeyReason::DirectChat { dm_scope, identity_link: key.link().map(link) }
        }
        (kind @ (PeerKind::Group | PeerKind::Channel), _) => KeyReason::Room { kind },
    }
}

#[cfg(test)]
mod tests;
