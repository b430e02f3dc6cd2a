//! Interface of all chat platforms. A [`Channel`] knows how its platform is configured and how its
//! ids are written; an [`Account`] is one of its accounts at work.
//!
//! A channel holds no policy. Access, mention gating, waiting times and retries are all decided
//! elsewhere, for every platform alike. And nobody else knows a platform's syntax: its ids, its
//! markup, its limits.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Config;
use openclaw_config::registry::ChannelInfo;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::setup::AccountSetup;
use crate::status::StatusReport;
use crate::{
    Address, ConversationKind, FormattedText, GuessThrottle, Inbound, MediaKind, MediaRef, OutgoingPart,
    Part, PartFate, Receipt, Repeats, RetryPolicy, SendAttempt, SendError, Sender,
};

/// A future of a channel.
pub type ChannelFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A chat platform.
pub trait Channel: Send + Sync + 'static {
    /// Returns the platform's row in the table of channels.
    fn info(&self) -> &'static ChannelInfo;

    /// Returns the capabilities of the platform.
    fn capabilities(&self) -> &'static Capabilities;

    /// Returns the accounts in a configuration, sorted; `default` where none has a name.
    fn account_ids(&self, config: &Config) -> Vec<String>;

    /// Returns one of the accounts, ready to be started.
    ///
    /// # Errors
    /// Returns an error if the account is switched off or has no credentials.
    fn account(&self, config: &Config, id: &str) -> Result<Arc<dyn Account>, Unusable>;

    /// Returns the origin of an account's credentials: `config`, `tokenFile`, `env`, `none`.
    fn credential_source(&self, config: &Config, id: &str) -> &'static str;

    /// Returns the way in which an account is set up.
    fn setup(&self) -> &'static AccountSetup;

    /// Returns a fingerprint that distinguishes an account's credentials from those of another;
    /// `None` if it has none.
    fn credential_mark(&self, config: &Config, id: &str) -> Option<[u8; 32]>;

    /// Reads a target that a person, a model or a file wrote, such as `telegram:-100123:topic:42`.
    ///
    /// # Errors
    /// Describes the problem and the correct form.
    fn target(&self, written: &str) -> Result<Target, TargetError>;

    /// Checks that a text can be the id of a thread.
    ///
    /// # Errors
    /// Describes the problem and the form of an id.
    fn check_thread_id(&self, written: &str) -> Result<(), TargetError>;

    /// The id of a message, as the platform writes it.
    ///
    /// # Errors
    /// The text can't be one; says what one looks like.
    fn message_id(&self, written: &str) -> Result<String, TargetError>;

    /// Returns the form of a target, such as `<chatId>`.
    fn target_hint(&self) -> &'static str;

    /// Returns the forms of a target with examples, for people.
    fn target_forms(&self) -> &'static str;

    /// An entry of an allowlist as it is compared, such as `123` for `tg:123`; `None` for one that can match nobody.
    fn allow_entry(&self, written: &str) -> Option<String>;

    /// The line of a pairing message that tells people how they are known, such as `Your Telegram user id: 123`.
    fn id_line(&self, sender: &Sender) -> String;
}

/// An account of a platform. Calls for different conversations come at the same time, those for one conversation one after the other.
pub trait Account: Send + Sync + 'static {
    /// Receives until it is told to stop, or can't any more. Events are given to the inbox before
    /// the platform is told that they were taken. It starts no task that outlives it.
    fn run(&self, io: AccountIo) -> ChannelFuture<'_, Exit>;

    /// Returns the platform's treatment of a second request of the same id.
    fn repeats(&self) -> Repeats;

    /// Returns the turn of a part in the platform's rate limits: if it may be sent to a
    /// conversation now. Asked before each [`Account::send`], and before the delivery counts as
    /// being sent: one that only waits for its turn was not sent. [`RateTurn::Now`] takes the place in
    /// the line.
    fn turn(&self, at: &Address) -> RateTurn {
        let _ = at;
        RateTurn::Now
    }

    /// Returns the backoff policy for a part that was not accepted.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy::ONCE
    }

    /// Returns the time limit of one request for a part. The caller waits at least as long for
    /// [`Account::send`].
    fn request_limit(&self, part: &Part) -> Duration {
        let _ = part;
        Duration::ZERO
    }

    /// Sends one part by one request: what is tried again is decided by the caller.
    fn send<'a>(
        &'a self,
        outgoing: OutgoingPart<'a>,
        attempt: SendAttempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>>;

    /// Looks whether a part is there. Asked only where repeats are [`Repeats::Doubled`].
    fn confirm<'a>(&'a self, outgoing: OutgoingPart<'a>) -> ChannelFuture<'a, Result<PartFate, SendError>> {
        // Without a way to look.
        let _ = outgoing;
        Box::pin(async { Ok(PartFate::Unknown) })
    }

    /// Cuts an answer into parts and formats each: the only place where that is done.
    fn parts(&self, answer: &Answer) -> Vec<Part>;

    /// Words of the gateway's own as the platform takes them: nothing in them is formatting.
    fn literal(&self, text: &str) -> FormattedText {
        FormattedText::plain(text)
    }

    /// Fetches a file of a message into a directory, under a new name; no file that is there is replaced.
    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        to: &'a Path,
        limit: u64,
    ) -> ChannelFuture<'a, Result<Fetched, FetchError>>;

    /// Shows in a conversation that an answer is on its way. The platform forgets it after a few seconds.
    fn show_activity<'a>(
        &'a self,
        at: &'a Address,
        activity: Activity,
    ) -> ChannelFuture<'a, Result<(), SendError>>;

    /// Shows the text so far of an answer that is being written, where the platform has a place for that.
    fn draft<'a>(
        &'a self,
        at: &'a Address,
        id: i64,
        text: &'a str,
    ) -> ChannelFuture<'a, Result<(), SendError>> {
        let _ = (at, id, text);
        Box::pin(async { Err(SendError::Final { reason: "this platform has no drafts".to_owned() }) })
    }

    /// Does what the `message` tool and the command line ask for besides sending: react, edit, delete, pin and the like. `params` are theirs.
    /// `acknowledge` is the gateway's own reaction to a message, with the params of `react`, and `replace` its own edit of a message of its
    /// own, with those of `edit`: no gate of agents concerns them.
    fn act<'a>(
        &'a self,
        action: &'a str,
        params: &'a Value,
    ) -> ChannelFuture<'a, Result<Value, ActionError>> {
        let _ = params;
        Box::pin(async move { Err(ActionError::Unsupported(action.to_owned())) })
    }

    /// Checks everything that [`Account::act`] refuses by itself, without asking the platform.
    /// Asked for a dry run.
    ///
    /// # Errors
    /// Describes what is missing or wrong.
    fn check(&self, action: &str, params: &Value) -> Result<(), ActionError> {
        let _ = (action, params);
        Ok(())
    }

    /// The actions it can do now, sorted; what is switched off in the configuration is not there.
    fn actions(&self) -> Vec<&'static str>;

    /// Checks that agents may do an action here. Asked before something is stored to be sent;
    /// [`Account::act`] asks it by itself.
    ///
    /// # Errors
    /// Names the setting that is switched off, and where it is switched on.
    fn permits(&self, action: &str) -> Result<(), ActionError> {
        match self.actions().contains(&action) {
            true => Ok(()),
            false => Err(ActionError::Unsupported(action.to_owned())),
        }
    }

    /// Returns the id behind an entry of an allowlist that is a name, as resolved when the account was started. `None` for an entry that is
    /// not a name, or whose id is not known.
    fn id_of_name(&self, entry: &str) -> Option<String> {
        let _ = entry;
        None
    }

    /// Returns the names in lists that mean the person with this id, as resolved when the account was started.
    fn names_of(&self, id: &str) -> Vec<String> {
        let _ = id;
        Vec::new()
    }

    /// True if a target may mean the conversation with this id.
    fn may_mean(&self, target: &str, id: &str) -> bool {
        target == id
    }

    /// Returns how freely the agent is to react to messages; `None` if it may not.
    fn reacting(&self) -> Option<Reacting> {
        None
    }

    /// True if buttons can be shown below messages.
    fn has_buttons(&self) -> bool {
        false
    }

    /// Checks that buttons may be shown in a conversation.
    ///
    /// # Errors
    /// Describes why not, and where that is changed.
    fn permits_buttons(&self, at: &Address) -> Result<(), ActionError> {
        let _ = at;
        Err(ActionError::Invalid("this platform has no buttons".to_owned()))
    }

    /// Returns the people who may press buttons in a conversation.
    ///
    /// # Errors
    /// Describes why there may be no buttons, and where that is changed.
    fn pressers(&self, at: &Address) -> Result<Pressers, ActionError> {
        self.permits_buttons(at).map(|()| Pressers::Heard)
    }

    /// Asks the platform whether the credentials are good, and who we are there.
    fn probe(&self, timeout: Duration) -> ChannelFuture<'_, Probe>;

    /// Looks up who or what a target is, by the platform's directory. `None`: it knows nobody of that name.
    fn look_up<'a>(
        &'a self,
        target: &'a Target,
    ) -> ChannelFuture<'a, Result<Option<DirectoryPeer>, SendError>> {
        let _ = target;
        Box::pin(async { Ok(None) })
    }

    /// Returns true if the platform's own menu offers the gateway's commands.
    fn has_menu(&self) -> bool {
        false
    }

    /// Tells the platform which commands it may offer in its menu.
    fn offer_commands<'a>(&'a self, commands: &'a [MenuCommand]) -> ChannelFuture<'a, Result<(), SendError>> {
        let _ = commands;
        Box::pin(async { Ok(()) })
    }
}

/// Interfaces that a running account is given.
#[derive(Clone)]
pub struct AccountIo {
    /// Destination of received events.
    pub inbox: Arc<dyn InboundSink>,
    /// Report of the account's status.
    pub status: StatusReport,
    /// The directory of all state. An account keeps files of its own in a folder of its channel, such as how far it has read.
    pub state_dir: Arc<Path>,
    /// Ends it.
    pub stop: CancellationToken,
    /// Slows down who guesses the secret of a listener of its own.
    pub guesses: Arc<dyn GuessThrottle>,
}

/// Takes what platforms bring.
pub trait InboundSink: Send + Sync {
    /// Puts events on disk, synced, in this order, all or none. When this returns the platform may be told.
    ///
    /// # Errors
    /// When they could not be stored. None of them was kept: the platform has to deliver them
    /// again.
    fn take(&self, events: Vec<Inbound>) -> ChannelFuture<'_, Result<(), NotTaken>>;
}

/// The inbox can't take more now, or the disk refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotTaken(pub String);

/// Turn of a part in the rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateTurn {
    /// Now.
    Now,
    /// Waits this long; then the part asks again.
    After(Duration),
}

/// Reason why an account has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// The account was told to stop.
    Stopped,
    /// The account was lost for a temporary reason: it is started again soon.
    Lost(String),
    /// The platform refuses the credentials: it is started again later, and when the configuration changes.
    Refused(String),
    /// The account can't work with this configuration: it is started again when that changes.
    Misconfigured(String),
}

/// Reason why an account can't be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The account or its channel is switched off.
    #[error("disabled")]
    Disabled,
    /// The configuration has no account of this name.
    #[error("{0}")]
    Unknown(UnknownAccount),
    /// A setting is missing or wrong.
    #[error("{why}")]
    NotConfigured {
        /// Problem, and where it is set.
        why: String,
        /// Advice as a sentence; `None` means that credentials must be set.
        fix: Option<String>,
    },
}

/// A name that no account has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown account \"{id}\" (known: {})", known.join(", "))]
pub struct UnknownAccount {
    /// The name.
    pub id: String,
    /// The accounts there are.
    pub known: Vec<String>,
}

impl UnknownAccount {
    /// Refuses the name of an account that a platform does not have.
    ///
    /// # Errors
    /// The account is not among those of the configuration.
    pub fn check(channel: &dyn Channel, config: &Config, id: &str) -> Result<(), Self> {
        let known = channel.account_ids(config);
        if known.iter().any(|one| one == id) { Ok(()) } else { Err(Self { id: id.to_owned(), known }) }
    }
}

/// People who may press buttons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressers {
    /// Allows everybody who is heard.
    Heard,
    /// Allows people whom a list or a pairing names.
    Listed,
}

/// Frequency with which an agent is to react to messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reacting {
    /// Reacts only where a reaction truly fits.
    Seldom,
    /// Whenever it is natural.
    Often,
}

/// Capabilities of a platform (spec `channels.md` §1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Kinds of conversations.
    pub chat_types: &'static [&'static str],
    /// Largest number of answers of a poll; `None` if there are no polls.
    pub poll_options: Option<usize>,
    /// True if messages can be reacted to.
    pub reactions: bool,
    /// True if conversations have threads.
    pub threads: bool,
    /// True if files can be sent.
    pub media: bool,
    /// True if messages can have buttons that come back to the gateway.
    pub buttons: bool,
    /// True if finished blocks of an answer may be sent before the rest.
    pub block_streaming: bool,
}

/// Target of a message, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The platform's id of the conversation, byte for byte.
    pub id: String,
    /// Thread in it.
    pub thread: Option<String>,
    /// Kind of the conversation, if the id shows it.
    pub kind: Option<ConversationKind>,
}

/// Person or conversation in a platform's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPeer {
    /// The platform's id.
    pub id: String,
    /// Name for people.
    pub name: Option<String>,
    /// Kind of the conversation.
    pub kind: Option<ConversationKind>,
}

/// A target that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(pub String);

/// An answer before it is cut into parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Markdown.
    pub text: String,
    /// Files, in the gateway's own storage.
    pub media: Vec<AnswerMedia>,
    /// Message that the first part answers.
    pub reply_to: Option<String>,
    /// Words of that message to be quoted.
    pub quote: Option<String>,
    /// True if the reader's device stays silent.
    pub silent: bool,
    /// Rows of buttons below the last part.
    pub buttons: Vec<Vec<crate::Button>>,
    /// True if recordings are sent as voice messages.
    pub as_voice: bool,
}

/// A file of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerMedia {
    /// Path of the file.
    pub path: std::path::PathBuf,
    /// Media type, detected from the content.
    pub mime: String,
    /// File name for the reader.
    pub name: String,
    /// Bytes.
    pub size: u64,
}

/// A file that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Path of the file.
    pub path: std::path::PathBuf,
    /// Media type, detected from the content.
    pub mime: String,
    /// Bytes.
    pub size: u64,
}

/// Reason why a file was not fetched. People and models are told this in place of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The file is larger than the limit.
    #[error("{}", too_large(*.size, *.limit))]
    TooLarge {
        /// Bytes.
        size: u64,
        /// Bytes.
        limit: u64,
    },
    /// The file no longer exists.
    #[error("gone")]
    Gone,
    /// The network or the disk; it may be tried again.
    #[error("{0}")]
    Failed(String),
}

/// Returns the message that a size is above a limit; the exact size is unknown if the file was cut
/// off at the limit.
fn too_large(size: u64, limit: u64) -> String {
    let (size, limit) = (size / 1_000_000, limit / 1_000_000);
    if size == limit {
        format!("more than the limit of {limit} MB")
    } else {
        format!("{size} MB > limit {limit} MB")
    }
}

/// Activity that is shown while an answer is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Words are written.
    Typing,
    /// A file of this kind is sent.
    Uploading(MediaKind),
}

/// Reason why an action was not done. Models are told this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The platform has no such thing.
    #[error("Action {0} is not supported.")]
    Unsupported(String),
    /// The request is invalid; the text says how.
    #[error("{0}")]
    Invalid(String),
    /// The platform did not do it.
    #[error(transparent)]
    Failed(#[from] SendError),
}

/// Result of checking the credentials with the platform.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probe {
    /// True if the credentials are valid.
    pub ok: bool,
    /// Status of the answer.
    pub status: Option<u16>,
    /// Error, if the credentials could not be confirmed.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub elapsed_ms: u64,
    /// Further details, with the platform's own names, as `channels.status` shows it.
    pub details: serde_json::Map<String, Value>,
    /// Findings about the conversations that the configuration names, with the platform's own
    /// names.
    pub audit: Option<Value>,
    /// Issues that keep the account from working as configured.
    pub issues: Vec<Issue>,
}

/// Issue that keeps an account from working as configured (spec `channels.md` §15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Kind of the issue.
    pub kind: IssueKind,
    /// Description of the issue for people.
    pub message: String,
    /// Advice for the owner.
    pub fix: Option<String>,
}

/// Kinds of issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssueKind {
    /// The platform was not asked for a kind of event.
    Intent,
    /// A right is missing on the platform.
    Permissions,
    /// The configuration can't mean what it says.
    Config,
    /// The credentials.
    Auth,
    /// The account does not work at present.
    Runtime,
}

impl IssueKind {
    /// Returns the name that clients know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Permissions => "permissions",
            Self::Config => "config",
            Self::Auth => "auth",
            Self::Runtime => "runtime",
        }
    }
}

/// A command in the platform's menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuCommand {
    /// Name without the slash.
    pub name: String,
    /// Description of the command in a few words.
    pub description: String,
    /// True if the command belongs to a skill.
    pub is_skill: bool,
}
