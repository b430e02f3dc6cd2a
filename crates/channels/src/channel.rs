//! The one interface of all chat platforms. A [`Channel`] knows how its platform is configured and how its ids are written; an
//! [`Account`] is one of its accounts at work.
//!
//! A channel holds no policy. Who may write, what has to mention the account, how long a part may wait, how often it is tried: all of that
//! is decided elsewhere, for every platform alike. And nobody else knows a platform's syntax: its ids, its markup, its limits.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Config;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::access::Admission;
use crate::registry::ChannelInfo;
use crate::status::StatusReport;
use crate::{
    Address, Attempt, ConversationKind, Found, GuessThrottle, Inbound, MediaKind, MediaRef, Outgoing, Part,
    Receipt, Repeats, RetryPolicy, SendError, Sender, Words,
};

/// A future of a channel.
pub type ChannelFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A chat platform.
pub trait Channel: Send + Sync + 'static {
    /// Its row in the table of channels.
    fn info(&self) -> &'static ChannelInfo;

    /// What it can do.
    fn capabilities(&self) -> &'static Capabilities;

    /// Its accounts in a configuration, sorted; `default` where none has a name.
    fn account_ids(&self, config: &Config) -> Vec<String>;

    /// One of them, ready to be started.
    ///
    /// # Errors
    /// Why it can't be: switched off, without credentials.
    fn account(&self, config: &Config, id: &str) -> Result<Arc<dyn Account>, Unusable>;

    /// Where the credentials of an account come from: `config`, `tokenFile`, `env`, `none`.
    fn credential_source(&self, config: &Config, id: &str) -> &'static str;

    /// The keys of an account's section that hold them.
    fn credential_keys(&self) -> &'static [&'static str];

    /// What tells an account's credentials from those of another without being them; `None` where it has none.
    fn credential_mark(&self, config: &Config, id: &str) -> Option<[u8; 32]>;

    /// Reads a target that a person, a model or a file wrote, such as `telegram:-100123:topic:42`.
    ///
    /// # Errors
    /// What is wrong with it, and how it is written.
    fn target(&self, written: &str) -> Result<Target, TargetError>;

    /// Whether a text can be the id of a thread.
    ///
    /// # Errors
    /// What is wrong with it, and what one looks like.
    fn check_thread_id(&self, written: &str) -> Result<(), TargetError>;

    /// Whether a text can be the id of a message.
    ///
    /// # Errors
    /// What is wrong with it, and what one looks like.
    fn check_message_id(&self, written: &str) -> Result<(), TargetError>;

    /// How a target is written, such as `<chatId>`.
    fn target_hint(&self) -> &'static str;

    /// An entry of an allowlist as it is compared, such as `123` for `tg:123`; `None` for one that can match nobody.
    fn allow_entry(&self, written: &str) -> Option<String>;

    /// The line of a pairing message that tells people how they are known, such as `Your Telegram user id: 123`.
    fn id_line(&self, sender: &Sender) -> String;
}

/// An account of a platform. Calls for different conversations come at the same time, those for one conversation one after the other.
pub trait Account: Send + Sync + 'static {
    /// Receives until it is told to stop, or can't any more. What it brings is given to the inbox before the platform is told that it was
    /// taken. It starts no task that outlives it.
    fn run(&self, io: AccountIo) -> ChannelFuture<'_, Exit>;

    /// What the platform makes of a second request of the same id.
    fn repeats(&self) -> Repeats;

    /// Whether the platform's limits of speed let a part go out to a conversation now. Asked before each [`Account::send`], and before
    /// the delivery counts as being sent: one that only waits for its turn was not sent. [`Turn::Now`] takes the place in the line.
    fn turn(&self, at: &Address) -> Turn {
        let _ = at;
        Turn::Now
    }

    /// How soon a part is sent again that was not taken.
    fn retry(&self) -> RetryPolicy {
        RetryPolicy::ONCE
    }

    /// How long one request for a part may take. The caller waits at least as long for [`Account::send`].
    fn request_limit(&self, part: &Part) -> Duration {
        let _ = part;
        Duration::ZERO
    }

    /// Sends one part by one request: what is tried again is decided by the caller.
    fn send<'a>(
        &'a self,
        outgoing: Outgoing<'a>,
        attempt: Attempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>>;

    /// Looks whether a part is there. Asked only where repeats are [`Repeats::Doubled`].
    fn confirm<'a>(&'a self, outgoing: Outgoing<'a>) -> ChannelFuture<'a, Result<Found, SendError>> {
        // Without a way to look.
        let _ = outgoing;
        Box::pin(async { Ok(Found::Unknown) })
    }

    /// Cuts an answer into parts and formats each: the only place where that is done.
    fn parts(&self, answer: &Answer) -> Vec<Part>;

    /// Words of the gateway's own as the platform takes them: nothing in them is formatting.
    fn literal(&self, text: &str) -> Words {
        Words::plain(text)
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

    /// Whether [`Account::act`] would ask the platform: what it refuses by itself, without asking. Asked for a dry run.
    ///
    /// # Errors
    /// What is missing or wrong.
    fn check(&self, action: &str, params: &Value) -> Result<(), ActionError> {
        let _ = (action, params);
        Ok(())
    }

    /// The actions it can do now, sorted; what is switched off in the configuration is not there.
    fn actions(&self) -> Vec<&'static str>;

    /// Whether agents may do an action here. Asked before something is stored to be sent; [`Account::act`] asks it by itself.
    ///
    /// # Errors
    /// What is switched off, and where it is switched on.
    fn permits(&self, action: &str) -> Result<(), ActionError> {
        match self.actions().contains(&action) {
            true => Ok(()),
            false => Err(ActionError::Unsupported(action.to_owned())),
        }
    }

    /// The id behind an entry of an allowlist that is a name, as it was when the account was started. `None` for an entry that is none, or
    /// whose id is not known.
    fn id_of_name(&self, entry: &str) -> Option<String> {
        let _ = entry;
        None
    }

    /// The names in lists that mean somebody, as they were looked up when the account was started.
    fn names_of(&self, id: &str) -> Vec<String> {
        let _ = id;
        Vec::new()
    }

    /// Whether buttons can be shown below messages.
    fn has_buttons(&self) -> bool {
        false
    }

    /// Whether buttons may be shown in a conversation.
    ///
    /// # Errors
    /// Why not, and where that is changed.
    fn permits_buttons(&self, at: &Address) -> Result<(), ActionError> {
        let _ = at;
        Err(ActionError::Invalid("this platform has no buttons".to_owned()))
    }

    /// Whether somebody who is heard in a conversation may press buttons there.
    ///
    /// # Errors
    /// Why not, and where that is changed.
    fn permits_press(&self, at: &Address, by: &Admission) -> Result<(), ActionError> {
        let _ = by;
        self.permits_buttons(at)
    }

    /// Asks the platform whether the credentials are good, and who we are there.
    fn probe(&self, timeout: Duration) -> ChannelFuture<'_, Probe>;

    /// Looks up who or what a target is, by the platform's directory. `None`: it knows nobody of that name.
    fn look_up<'a>(&'a self, target: &'a Target) -> ChannelFuture<'a, Result<Option<Peer>, SendError>> {
        let _ = target;
        Box::pin(async { Ok(None) })
    }

    /// Whether the platform's own menu offers the gateway's commands.
    fn has_menu(&self) -> bool {
        false
    }

    /// Tells the platform which commands it may offer in its menu.
    fn offer_commands<'a>(&'a self, commands: &'a [MenuCommand]) -> ChannelFuture<'a, Result<(), SendError>> {
        let _ = commands;
        Box::pin(async { Ok(()) })
    }
}

/// What an account at work is given.
#[derive(Clone)]
pub struct AccountIo {
    /// Where what it receives goes.
    pub inbox: Arc<dyn InboundSink>,
    /// Where it says how it stands.
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
    /// When they could not be stored. Nothing of them was kept: the platform is to bring them again.
    fn take(&self, events: Vec<Inbound>) -> ChannelFuture<'_, Result<(), NotTaken>>;
}

/// The inbox can't take more now, or the disk refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotTaken(pub String);

/// When a part may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Now.
    Now,
    /// Not before so long; then it is asked again.
    After(Duration),
}

/// Why an account has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It was told to.
    Stopped,
    /// Something that passes: it is started again soon.
    Lost(String),
    /// The platform refuses the credentials: it is started again later, and when the configuration changes.
    Refused(String),
    /// It can't work with this configuration: it is started again when that changes.
    Misconfigured(String),
}

/// Why an account can't be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It, or its channel, is switched off.
    #[error("disabled")]
    Disabled,
    /// There is no account of this name.
    #[error("{0}")]
    Unknown(UnknownAccount),
    /// Something is missing or wrong.
    #[error("{why}")]
    NotConfigured {
        /// What, and where it is set.
        why: String,
        /// What is to be done, as a sentence; `None`: it is to be given its credentials.
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

/// What a platform can do (spec `channels.md` §1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Kinds of conversations.
    pub chat_types: &'static [&'static str],
    /// Most answers of a poll; `None` where it has none.
    pub poll_options: Option<usize>,
    /// Whether messages can be reacted to.
    pub reactions: bool,
    /// Whether conversations have threads.
    pub threads: bool,
    /// Whether files can be sent.
    pub media: bool,
    /// Whether messages can have buttons that come back to the gateway.
    pub buttons: bool,
    /// Whether it has a menu of commands.
    pub native_commands: bool,
    /// Whether finished blocks of an answer may be sent before the rest.
    pub block_streaming: bool,
    /// Characters of one message, in the platform's unit, as OpenClaw counts on.
    pub text_limit: usize,
}

/// Where something is to be sent, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The platform's id of the conversation, byte for byte.
    pub id: String,
    /// Thread in it.
    pub thread: Option<String>,
    /// What kind of conversation it is, where the id tells.
    pub kind: Option<ConversationKind>,
}

/// Somebody, or a conversation, in a platform's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The platform's id.
    pub id: String,
    /// Name for people.
    pub name: Option<String>,
    /// What kind of conversation it is.
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
    /// What it answers, for the first part.
    pub reply_to: Option<String>,
    /// Words of that message to be quoted.
    pub quote: Option<String>,
    /// Whether the reader's device stays silent.
    pub silent: bool,
    /// Rows of buttons below the last part.
    pub buttons: Vec<Vec<crate::Button>>,
    /// Whether recordings are sent as voice messages.
    pub as_voice: bool,
}

/// A file of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerMedia {
    /// Where it is.
    pub path: std::path::PathBuf,
    /// Its type, as its content says.
    pub mime: String,
    /// Its name for the reader.
    pub name: String,
    /// Bytes.
    pub size: u64,
}

/// A file that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where it is.
    pub path: std::path::PathBuf,
    /// Its type, as its content says.
    pub mime: String,
    /// Bytes.
    pub size: u64,
}

/// Why a file was not fetched. People and models are told this in place of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It is larger than may be.
    #[error("{}", too_large(*.size, *.limit))]
    TooLarge {
        /// Bytes.
        size: u64,
        /// Bytes.
        limit: u64,
    },
    /// It is not there any more.
    #[error("gone")]
    Gone,
    /// The network or the disk; it may be tried again.
    #[error("{0}")]
    Failed(String),
}

/// That a size is above a limit; of a file that was cut off there nobody knows by how much.
fn too_large(size: u64, limit: u64) -> String {
    let (size, limit) = (size / 1_000_000, limit / 1_000_000);
    if size == limit {
        format!("more than the limit of {limit} MB")
    } else {
        format!("{size} MB > limit {limit} MB")
    }
}

/// What is shown while an answer is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Words are written.
    Typing,
    /// A file of this kind is sent.
    Uploading(MediaKind),
}

/// Why an action was not done. Models are told this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The platform has no such thing.
    #[error("Action {0} is not supported.")]
    Unsupported(String),
    /// It is asked for in a way that can't be done; says how.
    #[error("{0}")]
    Invalid(String),
    /// The platform did not do it.
    #[error(transparent)]
    Failed(#[from] SendError),
}

/// What the platform says of the credentials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probe {
    /// Whether they are good.
    pub ok: bool,
    /// Status of the answer.
    pub status: Option<u16>,
    /// Why not.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// More, by the platform's own names, as `channels.status` shows it.
    pub details: serde_json::Map<String, Value>,
    /// What was found of the conversations that the configuration names, by the platform's own names.
    pub audit: Option<Value>,
    /// What keeps it from working as it is configured.
    pub issues: Vec<Issue>,
}

/// What keeps an account from working as it is configured (spec `channels.md` §15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What kind of thing it is.
    pub kind: IssueKind,
    /// What is wrong, for people.
    pub message: String,
    /// What to do.
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
    /// It does not work now.
    Runtime,
}

impl IssueKind {
    /// As clients know it.
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
    /// Without the slash.
    pub name: String,
    /// What it does, in a few words.
    pub description: String,
    /// Whether it is a skill's.
    pub is_skill: bool,
}
