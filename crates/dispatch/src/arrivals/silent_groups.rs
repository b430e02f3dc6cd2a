//! Groups that write and in which nobody is heard, because the configuration does not name them: told once in the log, and by
//! `channels.status` until the next start.

use std::collections::BTreeMap;

use openclaw_channels::access::Silence;
use openclaw_channels::{Address, Conversation};
use parking_lot::Mutex;

/// Groups that are remembered; a bot that anybody may take into groups is in many.
const MOST: usize = 200;

/// Those seen since the start.
#[derive(Debug, Default)]
pub(crate) struct SilentGroups(Mutex<BTreeMap<Place, SilentGroup>>);

/// Channel, account and group.
type Place = (String, String, String);

/// A group in which nobody is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentGroup {
    /// The platform's id of it.
    pub id: String,
    /// Its title for people.
    pub title: Option<String>,
    /// Why.
    pub why: Silence,
}

impl SilentGroups {
    /// Remembers a group, and says so in the log the first time.
    pub(super) fn note(&self, at: &Address, conversation: &Conversation, why: Silence) {
        let place = (at.channel.clone(), at.account.clone(), at.target.clone());
        let group = SilentGroup { id: at.target.clone(), title: conversation.title.clone(), why };
        let mut groups = self.0.lock();
        if groups.len() >= MOST && !groups.contains_key(&place) {
            return;
        }
        if groups.insert(place, group.clone()).is_none_or(|before| before.why != why) {
            let SilentGroup { id, title, why } = group;
            tracing::info!(channel = %at.channel, account = %at.account, group = %id, title, "nobody is heard in a group: {why}");
        }
    }

    /// It is heard now.
    pub(super) fn forget(&self, at: &Address) {
        let mut groups = self.0.lock();
        if !groups.is_empty() {
            groups.remove(&(at.channel.clone(), at.account.clone(), at.target.clone()));
        }
    }

    /// Those of an account.
    pub(crate) fn of(&self, channel: &str, account: &str) -> Vec<SilentGroup> {
        let groups = self.0.lock();
        let own = groups.iter().filter(|((of, by, _), _)| of == channel && by == account);
        own.map(|(_, group)| group.clone()).collect()
    }
}
