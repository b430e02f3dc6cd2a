//! Rows of a journal: the port between what the gateway does with its journal ([`super::rules`]) and
//! the database that keeps it. A database stores, finds and changes rows; it decides nothing.

mod arrival;
mod delivery;
mod message;
mod notice;
mod retention;

use openclaw_channels::{Inbound, Part};
use openclaw_protocol::RunId;
use openclaw_tools::Promise;

pub use arrival::{ArrivalIdentity, ArrivalProgress, ArrivalQuery, ArrivalRow, WAITING};
pub use delivery::{DeliveryProgress, DeliveryQuery, DeliveryRow};
pub use message::{MessageProgress, MessageQuery, MessageRow, MessageState};
pub use notice::{NoticeRows, PromiseRow};
pub use retention::{Forgettable, Retention, retentions};

use super::{EventCount, JournalError, NewDelivery};
use crate::api::RunRecord;
use crate::arrival::NewArrival;
use crate::delivery::{DeliveryFailure, DeliveryState};
use crate::inbox::{InboxRow, RequestColumns};
use crate::notices::KeptLine;

/// The rows of a journal while a change is made or something is read: what one call has written the
/// next one finds. Rows of a kind have numbers that grow in the order of acceptance.
pub trait JournalRows {
    /// Returns the part of a message's row that changes.
    fn message(&self, run_id: &RunId) -> Result<Option<MessageState>, JournalError>;

    /// Returns the rows that [match](MessageQuery::matches), in the query's order, at most `most`.
    fn messages(
        &self,
        query: &MessageQuery<'_>,
        content: RowContent,
        most: u32,
    ) -> Result<Vec<MessageRow>, JournalError>;

    /// Returns the rows that [match](DeliveryQuery::matches), in the query's order, at most `most`.
    fn deliveries(
        &self,
        query: &DeliveryQuery<'_>,
        content: RowContent,
        most: u32,
    ) -> Result<Vec<DeliveryRow>, JournalError>;

    /// Returns the rows that [match](ArrivalQuery::matches), in the query's order, at most `most`.
    fn arrivals(
        &self,
        query: &ArrivalQuery<'_>,
        content: RowContent,
        most: u32,
    ) -> Result<Vec<ArrivalRow>, JournalError>;

    /// Returns all promises and lines, in the order in which they were stored.
    fn notices(&self) -> Result<NoticeRows, JournalError>;

    /// Counts rows that are still to be done.
    fn count(&self, open: Open) -> Result<u64, JournalError>;

    /// Counts the events and deliveries of an account, given as its channel and name; of all
    /// accounts without one.
    fn totals(&self, account: Option<(&str, &str)>) -> Result<RowTotals, JournalError>;

    /// Adds a row and returns its number. `None`: there is one with its key, and nothing was changed.
    fn insert(&self, row: NewRow<'_>) -> Result<Option<i64>, JournalError>;

    /// Replaces the part of a row that changes. `false`: there is no such row.
    fn set(&self, row: SetRow<'_>) -> Result<bool, JournalError>;

    /// Removes rows. `false`: there were none.
    fn remove(&self, rows: Removal<'_>) -> Result<bool, JournalError>;

    /// Returns the end of a run that the disk has refused to store so far.
    fn unstored_end(&self, run_id: &RunId) -> Option<RunRecord>;
}

/// Content of a row that is read with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowContent {
    /// No content.
    Omitted,
    /// The content, except of messages that have facts in its place.
    Small,
    /// The content, however big.
    Whole,
}

/// Content that a row has from now on.
#[derive(Debug)]
pub enum NewContent<'a, T> {
    /// The old one.
    Kept,
    /// None.
    Forgotten,
    /// Another one.
    Replaced(&'a T),
}

// By hand: a derived one asks the content for it.
impl<T> Clone for NewContent<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for NewContent<'_, T> {}

impl<T: Clone> NewContent<'_, T> {
    /// Returns the content that a row has in place of this one.
    pub fn instead_of(self, old: Option<Result<T, String>>) -> Option<Result<T, String>> {
        match self {
            Self::Kept => old,
            Self::Forgotten => Some(Err("it is forgotten".to_owned())),
            Self::Replaced(new) => Some(Ok(new.clone())),
        }
    }
}

/// Rows that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Deliveries that are not over.
    Deliveries,
    /// Events without a fate.
    Arrivals,
}

/// Counts of rows by their states. Several may count rows of the same states: they are added up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowTotals {
    /// Events by fate and reason; `waiting` are those without a fate.
    pub events: Vec<EventCount>,
    /// Deliveries by state and reason for giving up.
    pub deliveries: Vec<DeliveryTotal>,
}

/// Count of the deliveries in one state, given up for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryTotal {
    /// State of the deliveries.
    pub state: DeliveryState,
    /// Reason for giving them up.
    pub given_up: Option<DeliveryFailure>,
    /// Number of deliveries.
    pub count: u64,
    /// The latest of their ends, in Unix milliseconds.
    pub last_ended_at: Option<i64>,
}

/// A row to be added.
#[derive(Debug)]
pub enum NewRow<'a> {
    /// A message; its key is the run id.
    Message(&'a InboxRow<RequestColumns>),
    /// A delivery that waits; its key is the id.
    Delivery(&'a NewDelivery),
    /// An event with the fate that it comes with; its key is the dedupe key.
    Arrival(&'a NewArrival, NewContent<'a, Inbound>),
    /// A promise made at this time; its key is the id.
    Promise(&'a Promise, i64),
    /// A line; its key is the number.
    Line(&'a KeptLine),
}

/// A row to be changed.
#[derive(Debug)]
pub enum SetRow<'a> {
    /// The message of a run. With its end its content is forgotten.
    Message(&'a RunId, &'a MessageProgress),
    /// The delivery of a number.
    Delivery(i64, &'a DeliveryProgress, NewContent<'a, Part>),
    /// The event of a number.
    Arrival(i64, &'a ArrivalProgress, NewContent<'a, Inbound>),
    /// The promise of this id.
    Promise(&'a PromiseRow),
    /// The line of a number is told by a run, or by none.
    Line(i64, Option<&'a RunId>),
}

/// Rows to be removed.
#[derive(Debug, Clone, Copy)]
pub enum Removal<'a> {
    /// The message of a run.
    Message(&'a RunId),
    /// The delivery of a number.
    Delivery(i64),
    /// The promise of an id.
    Promise(&'a str),
    /// The line of a number.
    Line(i64),
    /// The lines that a run has told.
    LinesToldBy(&'a RunId),
    /// Rows that are old enough, or too many.
    Old(Retention),
}
