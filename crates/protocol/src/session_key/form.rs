//! The forms a session key can have (spec `sessions.md` §1.1). Making a key from its form and reading the form of a key
//! are the two directions of one table.

use super::{KeyError, SessionKey, dm_place};
use crate::AgentId;

/// Part of a session key after `agent:<agentId>:`, taken apart. A thread suffix is not part of it;
/// see [`SessionKey::thread_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm<'a> {
    /// A direct chat that `session.dmScope` keeps apart from the main bucket.
    Direct {
        /// Absent for `per-peer`.
        channel: Option<&'a str>,
        /// Only for `per-account-channel-peer`.
        account: Option<&'a str>,
        /// The platform's id, or the name of an identity link.
        peer: &'a str,
    },
    /// A group chat. A forum topic is part of the id: `<chatId>:topic:<n>`.
    Group {
        /// Channel id.
        channel: &'a str,
        /// The platform's id.
        id: &'a str,
    },
    /// A room of a server or workspace.
    Channel {
        /// Channel id.
        channel: &'a str,
        /// The platform's id.
        id: &'a str,
    },
    /// The alias row of one run of a cron job.
    CronRun {
        /// The job.
        job: &'a str,
        /// The run's session id.
        run: &'a str,
    },
    /// A session that a part of the gateway or one of its doors opens.
    Opened(Opener, &'a str),
    /// The main bucket under its configured name, or a name that a client chose.
    Named(&'a str),
}

/// Origin of sessions that are no chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// `sessions_spawn`; the id is a UUID.
    Subagent,
    /// The ACP bridge; the id is a UUID.
    Acp,
    /// A cron job; the id is the job's.
    Cron,
    /// A webhook; the id is a UUID or what the hook says, such as `gmail:<msgId>`.
    Hook,
    /// A node; the id is the node's.
    Node,
    /// `/v1/chat/completions` without a user; the id is a UUID.
    OpenAi,
    /// `/v1/chat/completions` with `user`.
    OpenAiUser,
    /// `/v1/responses` without a user; the id is a UUID.
    OpenResponses,
    /// `/v1/responses` with `user`.
    OpenResponsesUser,
}

impl Opener {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Subagent,
        Self::Acp,
        Self::Cron,
        Self::Hook,
        Self::Node,
        Self::OpenAi,
        Self::OpenAiUser,
        Self::OpenResponses,
        Self::OpenResponsesUser,
    ];

    /// Prefix before the id.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Subagent => "subagent:",
            Self::Acp => "acp:",
            Self::Cron => "cron:",
            Self::Hook => "hook:",
            Self::Node => "node-",
            Self::OpenAi => "openai:",
            Self::OpenAiUser => "openai-user:",
            Self::OpenResponses => "openresponses:",
            Self::OpenResponsesUser => "openresponses-user:",
        }
    }
}

impl SessionKey {
    /// The key of a form. Parts are made canonical; blank ones are refused.
    ///
    /// # Errors
    /// [`KeyError::Missing`] for a blank part, [`KeyError::TooLong`], [`KeyError::Control`].
    pub fn of(agent: &AgentId, form: KeyForm<'_>) -> Result<Self, KeyError> {
        let rest = match form {
            KeyForm::Direct { channel, account, peer } => {
                let place: Vec<&str> = [channel, account].into_iter().flatten().collect();
                [place.as_slice(), &["dm", filled(peer)?]].concat().join(":")
            }
            KeyForm::Group { channel, id } => format!("{}:group:{}", filled(channel)?, filled(id)?),
            KeyForm::Channel { channel, id } => format!("{}:channel:{}", filled(channel)?, filled(id)?),
            KeyForm::CronRun { job, run } => format!("cron:{}:run:{}", filled(job)?, filled(run)?),
            KeyForm::Opened(opener, id) => format!("{}{}", opener.prefix(), filled(id)?),
            KeyForm::Named(name) => filled(name)?.to_owned(),
        };
        Self::named(agent, &rest).bounded()?.printable()
    }

    /// The form of the key without its thread suffix. `global` and `unknown` are named.
    pub fn form(&self) -> KeyForm<'_> {
        let rest = match self.thread_mark() {
            Some(at) => self.rest().get(..at).unwrap_or_default(),
            None => self.rest(),
        };
        form_of(rest)
    }

    /// The id of the thread, where the key has a thread suffix.
    pub fn thread_id(&self) -> Option<&str> {
        self.rest().get(self.thread_mark()? + THREAD_MARK.len()..)
    }

    /// Offset of the thread suffix in [`Self::rest`].
    fn thread_mark(&self) -> Option<usize> {
        let rest = self.rest();
        rest.rfind(THREAD_MARK).filter(|at| *at > 0 && at + THREAD_MARK.len() < rest.len())
    }
}

/// Mark between a conversation's key and the id of a thread in it.
pub(super) const THREAD_MARK: &str = ":thread:";

fn filled(part: &str) -> Result<&str, KeyError> {
    let part = part.trim_matches(|c: char| c == ':' || c.is_whitespace());
    if part.is_empty() { Err(KeyError::Missing) } else { Ok(part) }
}

/// The form of what follows `agent:<agentId>:`, thread suffix included.
pub(super) fn form_of(rest: &str) -> KeyForm<'_> {
    if let Some((job, run)) = cron_run(rest) {
        return KeyForm::CronRun { job, run };
    }
    let opened = Opener::ALL.iter().find_map(|opener| {
        let id = rest.strip_prefix(opener.prefix())?;
        filled(id).is_ok_and(|part| part == id).then_some(KeyForm::Opened(*opener, id))
    });
    opened.or_else(|| direct(rest)).or_else(|| room(rest)).unwrap_or(KeyForm::Named(rest))
}

/// `cron:<job>:run:<run>`.
fn cron_run(rest: &str) -> Option<(&str, &str)> {
    let (job, tail) = rest.strip_prefix("cron:")?.split_once(':')?;
    let run = tail.strip_prefix("run:").filter(|run| !run.is_empty())?;
    Some((job, run))
}

fn direct(rest: &str) -> Option<KeyForm<'_>> {
    let (before, marked) = rest.split_at_checked(dm_place(rest)?)?;
    let (_, peer) = marked.split_once(':')?;
    let mut before = before.split_terminator(':');
    Some(KeyForm::Direct { channel: before.next(), account: before.next(), peer })
}

pub(super) fn room(rest: &str) -> Option<KeyForm<'_>> {
    let (channel, tail) = rest.split_once(':')?;
    let (kind, id) = tail.split_once(':')?;
    match kind {
        "group" => Some(KeyForm::Group { channel, id }),
        "channel" => Some(KeyForm::Channel { channel, id }),
        _ => None,
    }
}
