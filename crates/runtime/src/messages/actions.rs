//! The actions of the `message` tool by name, as OpenClaw 2026.2.9 knows them; which of them a platform has it says itself.

/// Target of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// A conversation.
    Conversation,
    /// A channel of a server, by its id.
    Channel,
    /// Nothing that has an address.
    Nothing,
}

/// Action of the `message` tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionSpec {
    /// Name of the action.
    pub name: &'static str,
    /// Kind of target.
    pub aim: Aim,
    /// True if it says something, so that a run without a conversation of its own has to name a
    /// target.
    pub says: bool,
}

const fn at(name: &'static str) -> ActionSpec {
    ActionSpec { name, aim: Aim::Conversation, says: false }
}

const fn says(name: &'static str) -> ActionSpec {
    ActionSpec { name, aim: Aim::Conversation, says: true }
}

const fn of_channel(name: &'static str) -> ActionSpec {
    ActionSpec { name, aim: Aim::Channel, says: false }
}

const fn nowhere(name: &'static str) -> ActionSpec {
    ActionSpec { name, aim: Aim::Nothing, says: false }
}

/// Action that sends to several conversations at once.
pub const BROADCAST: &str = "broadcast";

/// All actions.
pub const ACTIONS: &[ActionSpec] = &[
    says("send"),
    ActionSpec { name: BROADCAST, aim: Aim::Nothing, says: true },
    at("poll"),
    at("react"),
    at("reactions"),
    at("read"),
    at("edit"),
    at("unsend"),
    says("reply"),
    says("sendWithEffect"),
    at("renameGroup"),
    at("setGroupIcon"),
    at("addParticipant"),
    at("removeParticipant"),
    at("leaveGroup"),
    says("sendAttachment"),
    at("delete"),
    at("pin"),
    at("unpin"),
    at("list-pins"),
    at("permissions"),
    at("thread-create"),
    nowhere("thread-list"),
    says("thread-reply"),
    nowhere("search"),
    at("sticker"),
    nowhere("sticker-search"),
    nowhere("member-info"),
    nowhere("role-info"),
    nowhere("emoji-list"),
    nowhere("emoji-upload"),
    nowhere("sticker-upload"),
    nowhere("role-add"),
    nowhere("role-remove"),
    of_channel("channel-info"),
    nowhere("channel-list"),
    nowhere("channel-create"),
    of_channel("channel-edit"),
    of_channel("channel-delete"),
    of_channel("channel-move"),
    nowhere("category-create"),
    nowhere("category-edit"),
    nowhere("category-delete"),
    nowhere("voice-status"),
    nowhere("event-list"),
    nowhere("event-create"),
    nowhere("timeout"),
    nowhere("kick"),
    nowhere("ban"),
    nowhere("set-presence"),
];

/// The action of a name.
pub fn find(name: &str) -> Option<&'static ActionSpec> {
    ACTIONS.iter().find(|action| action.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `channels.md` §6.2.
    #[test]
    fn there_are_fifty_and_each_says_what_it_is_done_to() {
        assert_eq!(ACTIONS.len(), 50);
        let names: std::collections::BTreeSet<&str> = ACTIONS.iter().map(|action| action.name).collect();
        assert_eq!(names.len(), ACTIONS.len());
        let explicit: Vec<&str> =
            ACTIONS.iter().filter(|action| action.says).map(|action| action.name).collect();
        assert_eq!(
            explicit,
            ["send", "broadcast", "reply", "sendWithEffect", "sendAttachment", "thread-reply"]
        );
        let aims = [
            ("send", Aim::Conversation),
            ("pin", Aim::Conversation),
            ("leaveGroup", Aim::Conversation),
            ("channel-info", Aim::Channel),
            ("broadcast", Aim::Nothing),
            ("sticker-search", Aim::Nothing),
            ("set-presence", Aim::Nothing),
        ];
        for (name, aim) in aims {
            assert_eq!(find(name).map(|action| action.aim), Some(aim), "{name}");
        }
        assert_eq!(find("fly"), None);
    }
}
