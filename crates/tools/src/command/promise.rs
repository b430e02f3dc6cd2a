//! Promises to agents: to report the end of a command in the background, and the result of a
//! command that a person is asked about. A [`Notices`] keeps a promise across the end of this
//! process, and tells the agent.

use std::future::Future;
use std::pin::Pin;

use openclaw_protocol::SessionKey;

use super::session::CommandSession;

/// Characters of the output that an agent is told.
const TOLD: usize = 400;

/// Promise to tell an agent something, or to answer when it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// Id among all promises.
    pub id: String,
    /// Subject of the promise.
    pub kind: PromiseKind,
    /// Scope that may ask for it, such as `session:agent:main:main`.
    pub scope: String,
    /// Name by which it is asked for: the session of the command, or the id of the approval.
    pub name: String,
    /// Notice to send if this process ends before the promise is fulfilled; `None` if nobody is to be told.
    pub notice: Option<Notice>,
}

/// Subject of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromiseKind {
    /// An approval that a person has yet to decide on.
    Approval,
    /// A running command.
    Command,
}

/// A line for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Session that is told.
    pub session_key: SessionKey,
    /// The line.
    pub line: String,
}

impl PromiseKind {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Approval, Self::Command];

    /// Returns the name under which it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Command => "command",
        }
    }

    /// Reads its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Ends when it is stored, or can't be.
pub type Noting<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Keeps promises, and tells agents.
pub trait Notices: Send + Sync {
    /// A promise is about to be made.
    fn promise(&self, promise: Promise) -> Noting<'_>;

    /// Promises stand differently now. A promise that was fulfilled meanwhile stays so.
    fn amend(&self, promises: Vec<Promise>) -> Noting<'_>;

    /// Tells a session a line, and has its agent go on. `fulfils` is the id of the promise that it fulfils.
    fn tell<'a>(&'a self, key: &'a SessionKey, line: &'a str, fulfils: Option<&'a str>) -> Noting<'a>;

    /// Withdraws a promise because nothing is left to report.
    fn withdraw<'a>(&'a self, id: &'a str) -> Noting<'a>;
}

/// Callback that gets a line for the agent of a session.
pub type OnExit = Box<dyn Fn(&SessionKey, &str) + Send + Sync>;

/// Tells, and keeps nothing.
pub(super) struct Unkept(pub(super) OnExit);

impl Notices for Unkept {
    fn promise(&self, _promise: Promise) -> Noting<'_> {
        Box::pin(std::future::ready(()))
    }

    fn amend(&self, _promises: Vec<Promise>) -> Noting<'_> {
        Box::pin(std::future::ready(()))
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, line: &'a str, _fulfils: Option<&'a str>) -> Noting<'a> {
        (self.0)(key, line);
        Box::pin(std::future::ready(()))
    }

    fn withdraw<'a>(&'a self, _id: &'a str) -> Noting<'a> {
        Box::pin(std::future::ready(()))
    }
}

/// The promise that a running command has to its name.
#[derive(Debug, Clone)]
pub(crate) enum Promised {
    /// The command went to the background; its driver reports its end.
    Background(Promise),
    /// A person has allowed it: whoever asked tells of its end.
    Allowed(Promise),
}

impl Promised {
    /// Creates the promise of a command that goes to the background.
    pub(crate) fn of(session: &CommandSession) -> Self {
        let id: String = session.id.chars().take(8).collect();
        let notice = |session_key: &SessionKey| Notice {
            session_key: session_key.clone(),
            line: format!("Exec failed ({id}, gateway restarted)"),
        };
        Self::Background(Promise {
            id: format!("{}@{}", session.id, session.started_at),
            kind: PromiseKind::Command,
            scope: session.scope.clone(),
            name: session.id.clone(),
            notice: session.told.as_ref().map(notice),
        })
    }

    /// Returns the promise without the output of the command.
    pub(crate) fn promise(&self) -> &Promise {
        match self {
            Self::Background(promise) | Self::Allowed(promise) => promise,
        }
    }

    /// Returns the promise with the output of the command so far.
    pub(crate) fn with_tail(self, session: &CommandSession) -> Promise {
        let (mut promise, tail) = match self {
            Self::Background(promise) => (promise, tail_behind(session)),
            Self::Allowed(promise) => (promise, tail_below(session)),
        };
        if let Some(notice) = &mut promise.notice {
            notice.line.push_str(&tail);
        }
        promise
    }
}

/// The end of what a command has printed, on the same line.
pub(super) fn tail_behind(session: &CommandSession) -> String {
    let printed = session.printed().split_whitespace().collect::<Vec<_>>().join(" ");
    match last(&printed) {
        "" => String::new(),
        tail => format!(" :: {tail}"),
    }
}

/// Returns the end of the output on lines of its own.
pub(crate) fn tail_below(session: &CommandSession) -> String {
    match last(session.printed().trim()) {
        "" => String::new(),
        tail => format!("\n{tail}"),
    }
}

fn last(printed: &str) -> &str {
    let start = printed.char_indices().rev().nth(TOLD - 1).map_or(0, |(at, _)| at);
    printed.get(start..).unwrap_or_default()
}
