//! What agents were promised to hear of: the end of a command in the background, and what becomes of one that a person is asked about.
//! A [`Notices`] keeps it across the end of this process, and tells it.

use std::future::Future;
use std::pin::Pin;

use openclaw_protocol::SessionKey;

use super::session::Session;

/// Characters of the output that an agent is told.
const TOLD: usize = 400;

/// Something that an agent will hear of, or may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// Names it among all.
    pub id: String,
    /// What it is about.
    pub kind: PromiseKind,
    /// Who may ask for it, such as `agent:main`.
    pub scope: String,
    /// What it is asked for by: the session of the command, or the id of the approval.
    pub name: String,
    /// What is told if this process ends before it is fulfilled; `None` where nobody is to be told.
    pub notice: Option<Notice>,
}

/// What a promise is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromiseKind {
    /// A person's word is waited for.
    Approval,
    /// A command runs.
    Command,
}

/// A line for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// In which session it is told.
    pub session_key: SessionKey,
    /// The line.
    pub line: String,
}

impl PromiseKind {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Approval, Self::Command];

    /// Its name where it is stored.
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

    /// Promises stand differently now. One that was fulfilled meanwhile stays so.
    fn amend(&self, promises: Vec<Promise>) -> Noting<'_>;

    /// Tells a session a line, and has its agent go on. `fulfils` is the id of the promise that it fulfils.
    fn tell<'a>(&'a self, key: &'a SessionKey, line: &'a str, fulfils: Option<&'a str>) -> Noting<'a>;

    /// Nothing is left to be told of a promise.
    fn withdraw<'a>(&'a self, id: &'a str) -> Noting<'a>;
}

/// Told a line for the agent of a session.
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
pub(super) enum Promised {
    /// It went to the background, and its end is told by whoever drives it.
    Background(Promise),
    /// A person has allowed it: whoever asked tells of its end.
    Allowed(Promise),
}

impl Promised {
    /// Of a command that goes to the background.
    pub(super) fn of(session: &Session) -> Self {
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

    /// As it stands, without what the command printed.
    pub(super) fn promise(&self) -> &Promise {
        match self {
            Self::Background(promise) | Self::Allowed(promise) => promise,
        }
    }

    /// The same with what the command has printed so far.
    pub(super) fn with_tail(self, session: &Session) -> Promise {
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
pub(super) fn tail_behind(session: &Session) -> String {
    let printed = session.printed().split_whitespace().collect::<Vec<_>>().join(" ");
    match last(&printed) {
        "" => String::new(),
        tail => format!(" :: {tail}"),
    }
}

/// The same on lines of its own.
pub(super) fn tail_below(session: &Session) -> String {
    match last(session.printed().trim()) {
        "" => String::new(),
        tail => format!("\n{tail}"),
    }
}

fn last(printed: &str) -> &str {
    let start = printed.char_indices().rev().nth(TOLD - 1).map_or(0, |(at, _)| at);
    printed.get(start..).unwrap_or_default()
}
