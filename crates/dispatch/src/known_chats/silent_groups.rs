//! Groups in which nobody is heard.

use std::collections::BTreeMap;

use openclaw_channels::access::Silence;
use openclaw_channels::{Address, ConversationInfo};
use parking_lot::Mutex;

/// Groups that are remembered; a bot that anybody may take into groups is in many.
const MOST: usize = 200;

/// Silent groups seen since the start.
#[derive(Debug, Default)]
pub(crate) struct SilentGroups(Mutex<BTreeMap<GroupKey, GroupSighting>>);

/// Last sighting of a group.
#[derive(Debug)]
pub(crate) struct GroupSighting {
    pub(crate) at: Address,
    pub(crate) conversation: ConversationInfo,
    why: Silence,
}

/// Channel, account and group.
type GroupKey = (String, String, String);

/// A group in which nobody is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentGroup {
    /// The platform's id of it.
    pub id: String,
    /// Title of the group, for people.
    pub title: Option<String>,
    /// Reason for the silence.
    pub why: Silence,
}

impl SilentGroups {
    /// Remembers a group, and says so in the log the first time.
    pub(crate) fn note(&self, at: &Address, conversation: &ConversationInfo, why: Silence) {
        let place = (at.channel.clone(), at.account.clone(), at.target.clone());
        let mut groups = self.0.lock();
        if groups.len() >= MOST && !groups.contains_key(&place) {
            return;
        }
        let seen = GroupSighting { at: at.clone(), conversation: conversation.clone(), why };
        if groups.insert(place, seen).is_none_or(|before| before.why != why) {
            let (group, title) = (&at.target, &conversation.title);
            tracing::info!(channel = %at.channel, account = %at.account, %group, title, "nobody is heard in a group: {why}");
        }
    }

    /// Forgets a group that is heard now.
    pub(crate) fn forget(&self, at: &Address) {
        let mut groups = self.0.lock();
        if !groups.is_empty() {
            groups.remove(&(at.channel.clone(), at.account.clone(), at.target.clone()));
        }
    }

    /// Returns the silent groups of an account, each checked again; a group in which somebody is
    /// heard now is forgotten.
    pub(crate) fn of(
        &self,
        channel: &str,
        account: &str,
        look: impl Fn(&GroupSighting) -> Option<Silence>,
    ) -> Vec<SilentGroup> {
        let mut found = Vec::new();
        self.0.lock().retain(|(of, by, id), seen| {
            if of != channel || by != account {
                return true;
            }
            let Some(why) = look(seen) else { return false };
            seen.why = why;
            found.push(SilentGroup { id: id.clone(), title: seen.conversation.title.clone(), why });
            true
        });
        found
    }
}
