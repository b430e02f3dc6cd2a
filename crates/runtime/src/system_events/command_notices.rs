//! Notices of the end of commands, as the tools give them.

use std::sync::Arc;

use openclaw_journal::journal::Update;
use openclaw_protocol::SessionKey;
use openclaw_sessions::time::now_ms;
use openclaw_tools::{Notices, Noting, Promise};

use super::SystemEvents;

/// Callback that wakes the agent of a session.
pub type Wake = Box<dyn Fn(&SessionKey) + Send + Sync>;

/// Tells agents of their commands, and keeps the promises to them in the journal.
pub struct CommandNotices {
    events: Arc<SystemEvents>,
    wake: Wake,
}

impl std::fmt::Debug for CommandNotices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandNotices").finish_non_exhaustive()
    }
}

impl CommandNotices {
    /// Tells by these events.
    pub fn new(events: Arc<SystemEvents>, wake: Wake) -> Self {
        Self { events, wake }
    }
}

impl Notices for CommandNotices {
    fn promise(&self, promise: Promise) -> Noting<'_> {
        Box::pin(self.events.keep(Update::Promise(Box::new(promise), now_ms())))
    }

    fn amend(&self, promises: Vec<Promise>) -> Noting<'_> {
        Box::pin(self.events.keep(Update::Amend(promises)))
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, line: &'a str, fulfils: Option<&'a str>) -> Noting<'a> {
        Box::pin(async move {
            self.events.notice(key, line, now_ms(), fulfils).await;
            (self.wake)(key);
        })
    }

    fn withdraw<'a>(&'a self, id: &'a str) -> Noting<'a> {
        Box::pin(self.events.keep(Update::Notice { line: None, fulfils: Some(id.to_owned()) }))
    }
}
