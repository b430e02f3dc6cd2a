//! Messages sent by hand, told to the session of their conversation, so that its agent knows what
//! was said there in its name.

use openclaw_channels::{Address, ConversationKind, Target};
use openclaw_sessions::key::{Peer, PeerKind};
use openclaw_sessions::routing::{self, Inbound};
use openclaw_sessions::{SessionKey, SessionSettings};

/// Returns the sessions that may be meant by a target, the likeliest first. Groups and channels
/// can't always be told apart by their ids.
pub fn sessions_of(settings: &SessionSettings, address: &Address, target: &Target) -> Vec<SessionKey> {
    let kinds: &[PeerKind] = match target.kind {
        Some(ConversationKind::Direct) => &[PeerKind::Direct],
        Some(ConversationKind::Group) => &[PeerKind::Group],
        Some(ConversationKind::Channel) => &[PeerKind::Channel],
        None => &[PeerKind::Group, PeerKind::Channel],
    };
    let key = |kind: &PeerKind| {
        let inbound = Inbound {
            channel: address.channel.clone(),
            account_id: Some(address.account.clone()),
            peer: Some(Peer::new(*kind, &address.target)),
            thread_id: address.thread.clone(),
            ..Inbound::default()
        };
        routing::resolve(settings, &inbound).ok().map(|route| route.session_key)
    };
    kinds.iter().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_means_the_session_that_answers_there() {
        let rows = [
            ("5", None, Some(ConversationKind::Direct), "agent:main:main"),
            ("-100", None, None, "agent:main:telegram:group:-100 agent:main:telegram:channel:-100"),
            ("-100", Some("4"), Some(ConversationKind::Group), "agent:main:telegram:group:-100:topic:4"),
        ];
        for (id, thread, kind, expect) in rows {
            let address = Address {
                channel: "telegram".to_owned(),
                account: "default".to_owned(),
                target: id.to_owned(),
                thread: thread.map(str::to_owned),
            };
            let target = Target { id: id.to_owned(), thread: address.thread.clone(), kind };
            let keys = sessions_of(&SessionSettings::default(), &address, &target);
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            assert_eq!(keys.join(" "), expect);
        }
    }
}
