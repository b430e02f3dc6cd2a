//! Unfinished messages as a start finds them.

use std::collections::{HashMap, HashSet};

use openclaw_protocol::RunId;

use super::queued::{Attempts, QueuedFacts};
use super::{InboxRow, MessageWait};
use crate::request::RunRequest;

/// Part of a message that a start reads.
#[derive(Debug, Clone, PartialEq)]
pub enum UnfinishedPart {
    /// The whole request.
    Whole(Box<RunRequest>),
    /// Only the facts that its lane has to know; the rest stays on disk until its run begins.
    OnDisk(QueuedFacts),
}

/// An unfinished message as a start finds it.
#[derive(Debug, PartialEq)]
pub struct Unfinished {
    /// The message, with its request if that is small.
    pub row: InboxRow<UnfinishedPart>,
    /// Number of times it was tried.
    pub attempts: Attempts,
    /// State of its wait.
    pub waited: MessageWait,
    /// Messages that are run together with it if it leads them; empty while they are read.
    pub others: Vec<Self>,
}

impl Unfinished {
    /// True if others may be run together with it.
    pub fn leads(&self) -> bool {
        self.waited.collected_by.as_ref() == Some(&self.row.run_id)
    }

    /// True if its turn may have begun: it is resumed before anything that waits.
    pub fn has_begun(&self) -> bool {
        let Self { row, attempts, waited, .. } = self;
        self.leads() || waited.is_taken || row.session_id.is_some() || attempts.all > 0
    }

    /// Reads the stored message: its payload, unless there are facts beside it. `None`, and logged,
    /// if that can't be read: a newer version may have written it, and it stays where it is.
    pub fn read(
        row: InboxRow<()>,
        payload: Option<&str>,
        facts: Option<&str>,
        attempts: Attempts,
        waited: MessageWait,
    ) -> Option<Self> {
        match parse(payload, facts) {
            Ok(found) => Some(Self { row: row.with(found), attempts, waited, others: Vec::new() }),
            Err(error) => {
                tracing::error!(run_id = %row.run_id, %error, "inbox row is unreadable and stays undone");
                None
            }
        }
    }
}

/// Groups messages that are run together under their leader. A message whose leader is gone is run
/// by itself.
pub fn regrouped(found: Vec<Unfinished>) -> Vec<Unfinished> {
    let leaders: HashSet<RunId> =
        found.iter().filter(|one| one.leads()).map(|one| one.row.run_id.clone()).collect();
    let follows = |one: &Unfinished| {
        one.waited.collected_by.clone().filter(|leader| !one.leads() && leaders.contains(leader))
    };
    let mut followers: HashMap<RunId, Vec<Unfinished>> = HashMap::new();
    let mut led = Vec::new();
    for one in found {
        match follows(&one) {
            Some(leader) => followers.entry(leader).or_default().push(one),
            None => led.push(one),
        }
    }
    for leader in &mut led {
        leader.others = followers.remove(&leader.row.run_id).unwrap_or_default();
    }
    led
}

fn parse(payload: Option<&str>, facts: Option<&str>) -> Result<UnfinishedPart, serde_json::Error> {
    match facts {
        Some(facts) => Ok(UnfinishedPart::OnDisk(serde_json::from_str(facts)?)),
        None => Ok(UnfinishedPart::Whole(Box::new(serde_json::from_str(payload.unwrap_or_default())?))),
    }
}
