//! Access rules (spec `channels.md` §2), the same for every platform: private chats and groups by
//! their policies and allowlists, commands by sender, groups by mention gating. All of it fails
//! closed: a list that is empty or can't be read lets nobody in.
//!
//! [`settings`] is what the configuration says, [`pairing`] who was let in by a code, [`rules`] decides who is heard and with which rights, [`mention`] finds the agent's name in
//! a text.

mod elsewhere;
pub mod group_tools;
pub mod listed;
pub mod mention;
pub mod pairing;
pub mod rules;
mod sender_rules;
pub mod settings;

pub use elsewhere::{named_elsewhere, written_owners};
pub use listed::ListedPerson;
pub use mention::Mentioned;
pub use pairing::{Guests, PairingLook, PairingRequest, PairingStore, Requested};
pub use rules::{Denial, EffectiveGroup as GroupView, HeardSender, SenderVerdict, Silence, Speaker};
pub use sender_rules::CallerRights;
pub use settings::{
    AccessSettings, DmPolicy, Entry, ErrorPolicy, GroupPolicy, GroupRules, GroupSettings,
    ReactionNotifications,
};
