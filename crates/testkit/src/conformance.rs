//! Conformance tests for chat platforms: laws that each of them keeps (spec `channels.md` §16,
//! §18.3), written once against the traits [`openclaw_channels::Channel`] and
//! [`openclaw_channels::Account`] and run for each platform over a small [`Fixture`], which knows
//! its fake.
//!
//! ```ignore
//! // crates/channel-telegram/tests/conformance.rs
//! mod telegram { openclaw_testkit::conformance!(super::TelegramFixture); }
//! ```

mod inbound;
mod outbound;
mod scene;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use openclaw_channels::{Address, Channel};
use openclaw_config::Config;

pub use inbound::*;
pub use outbound::*;
pub use scene::{AccountLife, ConformanceScene, Inbox};

/// A future of a fixture.
pub type FixtureFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The two accounts of the configuration, each a bot of its own on a fake of its own.
pub const ACCOUNTS: [&str; 2] = ["one", "two"];

/// A platform under test: its channel, and what its fake does when the suite says so.
pub trait Fixture: Send + Sync + Sized + 'static {
    /// Starts the fakes of both accounts.
    fn start() -> FixtureFuture<'static, Self>;

    /// The platform.
    fn channel(&self) -> Arc<dyn Channel>;

    /// A configuration with both [`ACCOUNTS`], which keeps its state in a directory.
    fn config(&self, dir: &Path) -> Arc<Config>;

    /// The same without the credentials of the accounts.
    fn config_without_credentials(&self, dir: &Path) -> Arc<Config>;

    /// Conversations of the platform, as its ids are.
    fn places(&self, account: &str) -> TestConversations;

    /// Makes a person say something, which the platform then delivers.
    fn says(&self, account: &str, at: &Address, text: &str);

    /// The platform brings once more what was said last, although it was taken.
    fn repeats_last(&self, account: &str);

    /// Waits until the platform was told that everything was taken.
    fn is_all_taken<'a>(&'a self, account: &'a str) -> FixtureFuture<'a, ()>;

    /// Number of messages that the platform still holds for the account.
    fn left(&self, account: &str) -> usize;

    /// The connection that messages come over answers nothing any more, once; nobody is told.
    fn falls_silent(&self, account: &str);

    /// The credentials are not good any more, or are again.
    fn revokes(&self, account: &str, revoked: bool);

    /// Sets the fate of the next message that is sent.
    fn next_send(&self, account: &str, meets: Meets);

    /// Messages that people see, in order.
    fn shown(&self, account: &str) -> Vec<ShownMessage>;

    /// A request of this account that shows that an answer is on its way, or a draft of it: where each was shown.
    fn activity(&self, account: &str) -> Vec<(String, Option<String>)>;
}

/// Conversations.
#[derive(Debug, Clone)]
pub struct TestConversations {
    /// Chat with one person.
    pub direct: Address,
    /// Chat with another person.
    pub other: Address,
    /// A group, whose id has whatever makes ids of this platform fragile.
    pub group: Address,
    /// A thread, where the platform has threads.
    pub thread: Option<Address>,
}

/// Fate of a message that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meets {
    /// "Not before so many seconds."
    Slower(u64),
    /// The message arrives, but the confirmation is lost.
    LostAnswer,
    /// The platform has trouble and did nothing.
    Trouble,
    /// The conversation does not exist (any more).
    NoSuchChat,
}

/// A message that people see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownMessage {
    /// The conversation, as the platform names it.
    pub target: String,
    /// The thread.
    pub thread: Option<String>,
    /// Text as people read it.
    pub text: String,
}

/// Makes a test of each law for a fixture.
#[macro_export]
macro_rules! conformance {
    (@each $fixture:ty: $($law:ident)*) => {
        $(#[tokio::test] async fn $law() { $crate::conformance::$law::<$fixture>().await; })*
    };
    ($fixture:ty) => {
        $crate::conformance!(@each $fixture:
            what_is_said_comes_whole_and_is_taken_only_then
            what_was_not_taken_is_brought_again
            a_kill_between_taking_and_telling_doubles_nothing
            what_is_brought_twice_has_one_id
            a_connection_that_fell_silent_is_replaced
            revoked_credentials_end_it_and_say_so
            accounts_do_not_hear_each_other
            it_stops_when_it_is_told
            credentials_that_are_missing_are_named
            every_part_keeps_its_thread
            a_long_answer_arrives_whole_in_parts_that_fit
            a_chat_that_waits_holds_up_no_other
            what_may_have_arrived_is_not_called_unsent
            what_was_refused_for_ever_is_not_tried_again
            receipts_name_what_was_made
            accounts_do_not_speak_for_each_other
            targets_are_read_as_they_are_written
            actions_are_listed_and_others_refused
            a_probe_tells_good_credentials_from_bad
        );
    };
}
