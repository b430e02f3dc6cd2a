//! Callers: who asks, and what they may do. Made at the door that a request comes through (a
//! client's connection, a chat platform, a program), stored with its message and carried. The rights
//! of the run that the message gets are settled from it ([`crate::rights::settle`]).

pub mod sender_rules;

use openclaw_channels::Address;
use openclaw_channels::access::ListedPerson;
use serde::{Deserialize, Serialize};

/// Caller of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// Identity of the caller.
    pub identity: CallerIdentity<'a>,
    /// Rights of the caller.
    pub rights: CallerRights,
}

/// Identity of a caller.
#[derive(Debug, Clone, Copy, Default)]
pub enum CallerIdentity<'a> {
    /// The gateway by itself, as in a heartbeat: anybody may have been the cause.
    #[default]
    Gateway,
    /// A program, such as a schedule or `openclaw agent`.
    Program,
    /// A person at a client of the gateway.
    Client,
    /// A person on a chat platform.
    Sender(ChatSender<'a>),
}

/// Sender of a message on a chat platform.
#[derive(Debug, Clone, Copy)]
pub struct ChatSender<'a> {
    /// Conversation that it was said in.
    pub address: &'a Address,
    /// True if that is a private chat.
    pub is_direct: bool,
    /// Ids and names by which lists of people know the sender.
    pub listed: ListedPerson<'a>,
}

/// Rights of a caller. Stored with a message as JSON: an absent flag grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallerRights {
    /// True if the caller may give commands. Every client of the gateway's own protocol may.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_command: bool,
    /// True for one of the owners: a sender who is listed as such, or a client that may change the
    /// gateway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_owner: bool,
    /// True if the sender was let in by hand to a direct chat while no owner is named, and so stands
    /// in for the owner there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_let_in: bool,
    /// True if a client may decide on commands that wait for approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_approve: bool,
}

/// Right that a command or an action needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Right to give commands.
    Command,
    /// Right to decide on commands that wait for approval, and to change how commands are guarded.
    Approve,
    /// Right to change the gateway.
    Administer,
    /// Right of the owners alone.
    Own,
}

impl CallerRights {
    /// Returns the rights of a client or program with these scopes.
    pub fn of_client(may_approve: bool, may_administer: bool) -> Self {
        Self { may_command: true, is_owner: may_administer, may_approve, is_let_in: false }
    }
}

impl<'a> Caller<'a> {
    /// Returns the sender, if the caller is one on a chat platform.
    pub fn sender(&self) -> Option<ChatSender<'a>> {
        match self.identity {
            CallerIdentity::Sender(sender) => Some(sender),
            CallerIdentity::Gateway | CallerIdentity::Program | CallerIdentity::Client => None,
        }
    }

    /// True if a person asks.
    pub fn is_person(&self) -> bool {
        matches!(self.identity, CallerIdentity::Client | CallerIdentity::Sender(_))
    }

    /// True if the caller has a right. On chat platforms everybody who may give commands may change
    /// how they are guarded, and the gateway. What a run may do for a caller is decided by its settled
    /// rights ([`Rights`](crate::rights::Rights)), which may be less: those of an owner who presses
    /// somebody's button, say.
    pub fn may(&self, right: Right) -> bool {
        let is_sender = self.sender().is_some();
        match right {
            Right::Command => self.rights.may_command,
            Right::Approve => is_sender || self.rights.may_approve || self.rights.is_owner,
            Right::Administer => is_sender || self.rights.is_owner,
            Right::Own => self.rights.is_owner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::direct;

    #[test]
    fn a_client_has_the_rights_of_its_scopes_and_a_sender_those_of_the_lists() {
        let client = |may_approve, may_administer| Caller {
            identity: CallerIdentity::Client,
            rights: CallerRights::of_client(may_approve, may_administer),
        };
        let ada = direct("7", None);
        let sender = |rights| Caller { identity: ada.caller().identity, rights };
        let granted = CallerRights { may_command: true, ..CallerRights::default() };
        let rows = [
            (client(false, false), [true, false, false, false]),
            (client(true, false), [true, true, false, false]),
            (client(false, true), [true, true, true, true]),
            (sender(CallerRights::default()), [false, true, true, false]),
            (sender(granted), [true, true, true, false]),
            (sender(CallerRights { is_owner: true, ..granted }), [true, true, true, true]),
            (Caller::default(), [false; 4]),
        ];
        for (caller, expect) in rows {
            let rights = [Right::Command, Right::Approve, Right::Administer, Right::Own];
            assert_eq!(rights.map(|right| caller.may(right)), expect, "{caller:?}");
        }
    }
}
