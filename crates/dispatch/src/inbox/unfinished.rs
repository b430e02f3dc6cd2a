//! What a start finds of a message whose run has not ended.

use std::collections::{HashMap, HashSet};

use openclaw_protocol::RunId;

use super::queued::{Attempts, Facts};
use super::{Row, Waited};
use crate::request::Request;

/// What a start reads of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// All of it.
    Whole(Box<Request>),
    /// What its lane has to know; the rest stays on disk until its run begins.
    OnDisk(Facts),
}

/// An unfinished message as a start finds it.
#[derive(Debug, PartialEq)]
pub(crate) struct Unfinished {
    /// The message, with what was asked where that is small.
    pub(crate) row: Row<Found>,
    /// How often it was tried.
    pub(crate) attempts: Attempts,
    /// How it waited.
    pub(crate) waited: Waited,
    /// Those that are run together with it, where it leads them; none while they are read.
    pub(crate) others: Vec<Self>,
}

impl Unfinished {
    /// Whether others may be run together with it.
    pub(crate) fn leads(&self) -> bool {
        self.waited.collected_by.as_ref() == Some(&self.row.run_id)
    }

    /// Reads what is stored of a message: its payload, unless there are facts beside it. `None`, and logged, when that can't be
    /// read: a newer version may have written it, and it stays where it is.
    pub(crate) fn read(
        row: Row<()>,
        payload: Option<&str>,
        facts: Option<&str>,
        attempts: Attempts,
        waited: Waited,
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

/// Puts those that are run together with another to it. One whose leader is gone is run by itself.
pub(crate) fn regrouped(found: Vec<Unfinished>) -> Vec<Unfinished> {
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

fn parse(payload: Option<&str>, facts: Option<&str>) -> Result<Found, serde_json::Error> {
    match facts {
        Some(facts) => Ok(Found::OnDisk(serde_json::from_str(facts)?)),
        None => Ok(Found::Whole(Box::new(serde_json::from_str(payload.unwrap_or_default())?))),
    }
}
