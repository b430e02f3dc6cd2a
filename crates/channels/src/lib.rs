//! Interface of chat platforms, and the policy that is the same for all of them.
//!
//! A platform is a crate of its own behind one interface, [`Channel`]: it brings events as
//! [`Inbound`] values, sends answers as [`Part`]s, and knows how its platform formats, threads and
//! limits them. It knows nothing of agents or sessions, and holds no policy. This crate in turn
//! knows no platform's syntax and makes no request: the gateway hands it the platforms of the
//! build ([`Platforms`]).
//!
//! Begin with `channel.rs`, which has both traits. [`access`] decides who is heard, [`markdown`]
//! and [`text`] cut and format answers. The table of platforms that OpenClaw knows is
//! [`openclaw_config::registry`].

pub mod access;
pub mod account_keys;
mod address;
mod backoff;
mod channel;
mod chunk_rule;
mod guessing;
mod inbound;
pub mod markdown;
mod outbound;
pub mod platforms;
mod setup;
mod status;
mod switch;
#[cfg(test)]
mod testing;
pub mod text;

pub use address::Address;
pub use backoff::RetryPolicy;
pub use channel::{
    Account, AccountIo, ActionError, Activity, Answer, AnswerMedia, Capabilities, Channel, ChannelFuture,
    DirectoryPeer, Exit, FetchError, Fetched, InboundSink, Issue, IssueKind, MenuCommand, NotTaken, Pressers,
    Probe, RateTurn, Reacting, Target, TargetError, UnknownAccount, Unusable,
};
pub use chunk_rule::{ChunkRule, reply_layers};
pub use guessing::{GuessThrottle, Knock, SecretGiven};
pub use inbound::{
    ConversationInfo, ConversationKind, Forwarded, Inbound, InboundEvent, InboundMessage, Location,
    MediaKind, MediaRef, Mentions, Quoted, Sender,
};
pub use outbound::{
    Button, Content, FormattedText, OutgoingPart, Part, PartFate, Receipt, Repeats, SendAttempt, SendError,
};
pub use platforms::Platforms;
pub use setup::{AccountSetup, TokenSetup, WebhookKeys};
pub use status::{AccountStatus, Disconnect, SET_THE_CLOCK, StatusReport, clock_is_wrong};
pub use switch::{SwitchOwner, SwitchedOff, switched_off, told_unusable};
