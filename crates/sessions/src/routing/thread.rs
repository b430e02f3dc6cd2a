//! Threads and topics: where they stand in a key depends on the channel (spec `sessions.md` §1.3, `channels.md` §3.3).

use openclaw_config::registry;
pub use openclaw_config::registry::ThreadStyle;

use super::Inbound;
use crate::key::{Peer, PeerKind};

/// Returns the style of threads in a channel's conversations of a kind.
fn style_of(channel: &str, kind: PeerKind) -> ThreadStyle {
    match kind {
        PeerKind::Direct => ThreadStyle::Suffix,
        PeerKind::Group | PeerKind::Channel => {
            registry::by_id(channel).map_or(ThreadStyle::Suffix, |row| row.group_threads)
        }
    }
}

const TOPIC_MARK: &str = ":topic:";

/// Peer, parent and thread of a message once its thread is taken into account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Placement {
    pub(super) peer: Option<Peer>,
    pub(super) parent: Option<Peer>,
    pub(super) thread: Option<ThreadStyle>,
    /// The id for a suffix.
    pub(super) suffix: Option<String>,
}

pub(super) fn place(channel: &str, inbound: &Inbound) -> Placement {
    let parent = inbound.parent_peer.clone();
    let Some(peer) = inbound.peer.clone() else {
        let suffix = thread_of(inbound);
        return Placement {
            parent,
            thread: suffix.as_ref().map(|_| ThreadStyle::Suffix),
            suffix,
            peer: None,
        };
    };
    let style = style_of(channel, peer.kind);
    match (style, thread_of(inbound)) {
        (ThreadStyle::Suffix, suffix) => {
            Placement { thread: suffix.as_ref().map(|_| style), peer: Some(peer), parent, suffix }
        }
        (ThreadStyle::Room, thread) => in_room(peer, parent, thread),
        (ThreadStyle::Topic, thread) => in_topic(peer, parent, thread),
    }
}

fn thread_of(inbound: &Inbound) -> Option<String> {
    let id = inbound.thread_id.as_deref().map(str::trim);
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The channel may give the thread as the peer and the room as its parent, or the room as the peer and the thread beside
/// it.
fn in_room(peer: Peer, parent: Option<Peer>, thread: Option<String>) -> Placement {
    let (peer, parent) = match thread {
        Some(id) if id != peer.id.trim() => {
            let room = peer.clone();
            (Peer::new(peer.kind, id), parent.or(Some(room)))
        }
        Some(_) | None => (peer, parent),
    };
    let thread = parent.is_some().then_some(ThreadStyle::Room);
    Placement { peer: Some(peer), parent, thread, suffix: None }
}

/// The channel may give the topic as part of the peer's id, or beside it.
fn in_topic(peer: Peer, parent: Option<Peer>, thread: Option<String>) -> Placement {
    let chat = peer.id.split_once(TOPIC_MARK).map(|(chat, _)| Peer::new(peer.kind, chat));
    match (chat, thread) {
        (Some(chat), _) => Placement {
            peer: Some(peer),
            parent: parent.or(Some(chat)),
            thread: Some(ThreadStyle::Topic),
            suffix: None,
        },
        (None, Some(id)) => Placement {
            peer: Some(Peer::new(peer.kind, format!("{}{TOPIC_MARK}{id}", peer.id.trim()))),
            parent: parent.or(Some(peer)),
            thread: Some(ThreadStyle::Topic),
            suffix: None,
        },
        (None, None) => Placement { peer: Some(peer), parent, thread: None, suffix: None },
    }
}
