//! Chat platforms.
//!
//! A platform is one module behind one interface, [`Channel`]: it brings what happens as [`Inbound`] values, sends answers as [`Part`]s, and knows how its
//! platform formats, threads and limits them. It knows nothing of agents or sessions, and holds no policy.
//!
//! [`registry`] is the table of channels that exist.

pub mod access;
pub mod account_keys;
mod address;
mod backoff;
mod channel;
mod guessing;
mod inbound;
pub mod markdown;
mod outbound;
pub mod platforms;
pub mod registry;

mod status;
mod switch;
pub mod telegram;
pub mod text;

pub use address::Address;
pub use backoff::RetryPolicy;
pub use channel::{
    Account, AccountIo, ActionError, Activity, Answer, AnswerMedia, Capabilities, Channel, ChannelFuture,
    Exit, FetchError, Fetched, InboundSink, Issue, IssueKind, MenuCommand, NotTaken, Peer, Probe, Reacting,
    Target, TargetError, Turn, UnknownAccount, Unusable,
};
pub use guessing::{GuessThrottle, Knock, SecretGiven};
pub use inbound::{
    Conversation, ConversationKind, Forwarded, Inbound, InboundEvent, InboundMessage, Location, MediaKind,
    MediaRef, Mentions, Quoted, Sender,
};
pub use outbound::{Attempt, Button, Content, Found, Outgoing, Part, Receipt, Repeats, SendError, Words};
pub use platforms::Platforms;
pub use registry::{ChannelInfo, by_name, credential_variables};
pub use status::{AccountStatus, Disconnect, SET_THE_CLOCK, StatusReport, clock_is_wrong};
pub use switch::{Switch, SwitchedOff, switched_off, told_unusable};
