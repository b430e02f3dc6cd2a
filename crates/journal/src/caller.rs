//! Callers: who asks, and what they may do. Made at the door that a request comes through (a
//! client's connection, a chat platform, a program), stored with its message and carried. What a
//! sender of a chat platform may do is decided by [`openclaw_channels::access::rules`]. The rights
//! of the run that the message gets are settled from it ([`crate::rights::settle`]).

use openclaw_channels::Address;
pub use openclaw_channels::access::CallerRights;
use openclaw_channels::access::ListedPerson;

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
