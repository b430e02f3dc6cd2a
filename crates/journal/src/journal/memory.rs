//! A journal in memory, for tests that are not about the database file. Its contents belong to a
//! directory, as a file's would: opening the same directory finds them again, and [`copy`] makes a
//! second directory as a crash would leave it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use openclaw_protocol::RunId;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::rows::{
    ArrivalQuery, ArrivalRow, DeliveryQuery, DeliveryRow, JournalRows, MessageQuery, MessageRow,
    MessageState, NewRow, NoticeRows, Open, PromiseRow, Removal, Retention, RowContent, RowTotals, SetRow,
};
use super::{
    Changed, Journal, JournalChange, JournalError, JournalFuture, Look, OpenedJournal, Reservation, rules,
};
use crate::api::RunRecord;
use crate::notices::KeptLine;

/// Contents of the journals of all tests, by directory.
static JOURNALS: LazyLock<Mutex<HashMap<PathBuf, Tables>>> = LazyLock::new(Mutex::default);

type Tables = Arc<Mutex<MemoryTables>>;

fn tables(dir: &Path) -> Tables {
    Arc::clone(JOURNALS.lock().entry(dir.to_path_buf()).or_default())
}

/// Copies the journal of one directory to another.
pub fn copy(from: &Path, to: &Path) {
    let copied = tables(from).lock().clone();
    *tables(to).lock() = copied;
}

/// Edits the messages of a directory's journal between two changes.
pub fn edit(dir: &Path, change: impl FnMut(&mut MessageRow)) {
    tables(dir).lock().messages.values_mut().for_each(change);
}

/// A journal in memory.
#[derive(Clone)]
pub struct MemoryJournal {
    tables: Tables,
    delivered: watch::Sender<()>,
    is_closed: Arc<AtomicBool>,
}

impl MemoryJournal {
    /// Opens the journal of a directory.
    pub fn open(dir: &Path) -> Result<OpenedJournal, JournalError> {
        let tables = tables(dir);
        let (unfinished, notices) = rules::recover(&MemoryRows(RefCell::new(&mut tables.lock())), 0)?;
        let journal = Self { tables, delivered: watch::Sender::new(()), is_closed: Arc::default() };
        Ok(OpenedJournal { journal: Arc::new(journal), unfinished, notices })
    }

    /// Does something in one piece.
    fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryRows<'_>) -> Result<T, JournalError>,
    ) -> JournalFuture<'static, T> {
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        let work = || work(&MemoryRows(RefCell::new(&mut self.tables.lock())));
        Box::pin(std::future::ready(if is_closed { Err(JournalError::Closed) } else { work() }))
    }
}

impl Journal for MemoryJournal {
    fn reserve(&self) -> JournalFuture<'_, Reservation> {
        let journal = self.clone();
        let reservation: Reservation = Box::new(move |row, durability| {
            let change = JournalChange::Accept(Box::new(row), durability);
            journal.work(|rows| rules::apply(rows, &change)?.accepted())
        });
        self.work(|_| Ok(reservation))
    }

    fn change(&self, change: JournalChange) -> JournalFuture<'_, Changed> {
        let done = self.work(|rows| rules::apply(rows, &change));
        if change.has_deliveries() {
            self.delivered.send_replace(());
        }
        done
    }

    fn read(&self, look: Look) -> JournalFuture<'_, ()> {
        self.work(|rows| {
            look(rows);
            Ok(())
        })
    }

    fn synced(&self) -> JournalFuture<'_, ()> {
        self.work(|_| Ok(()))
    }

    fn deliveries_stored(&self) -> watch::Receiver<()> {
        self.delivered.subscribe()
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.is_closed.store(true, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

/// Rows by their numbers.
struct MemoryRows<'a>(RefCell<&'a mut MemoryTables>);

#[derive(Debug, Clone, Default)]
struct MemoryTables {
    messages: MemoryTable<MessageRow>,
    deliveries: MemoryTable<DeliveryRow>,
    arrivals: MemoryTable<ArrivalRow>,
    promises: MemoryTable<PromiseRow>,
    lines: MemoryTable<KeptLine>,
}

type MemoryTable<T> = BTreeMap<i64, T>;

/// Adds a row under the next number, unless one has its key.
fn insert<T>(
    table: &mut MemoryTable<T>,
    has_key: impl Fn(&T) -> bool,
    row: impl FnOnce(i64) -> T,
) -> Option<i64> {
    let number = table.last_key_value().map_or(1, |(last, _)| last + 1);
    let is_new = !table.values().any(has_key);
    is_new.then(|| table.insert(number, row(number)));
    is_new.then_some(number)
}

fn select<T: Clone>(
    table: &MemoryTable<T>,
    is_newest_first: bool,
    most: u32,
    is_meant: impl Fn(&T) -> bool,
) -> Vec<T> {
    let mut found: Vec<&T> = table.values().filter(|row| is_meant(row)).collect();
    if is_newest_first {
        found.reverse();
    }
    found.into_iter().take(most as usize).cloned().collect()
}

/// Changes the row of a key; `false` if there is none.
fn set<T>(table: &mut MemoryTable<T>, has_key: impl Fn(&T) -> bool, change: impl FnOnce(&mut T)) -> bool {
    table.values_mut().find(|row| has_key(row)).map(change).is_some()
}

/// Removes rows; `false` if there were none.
fn remove<T>(table: &mut MemoryTable<T>, is_meant: impl Fn(&T) -> bool) -> bool {
    table.extract_if(.., |_, row| is_meant(row)).count() > 0
}

/// Removes what is to be forgotten of rows that ended, as far as they are of the kind.
fn remove_old<T>(table: &mut MemoryTable<T>, old: Retention, ended: impl Fn(&T) -> Option<i64>) -> bool {
    let last = table.last_key_value().map_or(0, |(last, _)| *last);
    let ended: Vec<_> = table.iter().filter_map(|(number, row)| Some((*number, ended(row)?))).collect();
    let old = old.select(&ended, last);
    table.extract_if(.., |number, _| old.contains(number)).count() > 0
}

type Read<T> = Result<T, JournalError>;

impl JournalRows for MemoryRows<'_> {
    fn message(&self, run_id: &RunId) -> Read<Option<MessageState>> {
        let found = self.messages(&MessageQuery::Run(run_id), RowContent::Omitted, 1)?.pop();
        Ok(found.map(MessageRow::into_state))
    }

    fn messages(&self, query: &MessageQuery<'_>, content: RowContent, most: u32) -> Read<Vec<MessageRow>> {
        let tables = self.0.borrow();
        let mut found = select(&tables.messages, query.is_newest_first(), most, |row| query.matches(row));
        for row in &mut found {
            // Kept with the end of its run: a test may take that back.
            let is_there = !row.progress.is_finished && (content != RowContent::Small || row.facts.is_none());
            row.payload = row.payload.take().filter(|_| is_there);
        }
        Ok(found)
    }

    fn deliveries(&self, query: &DeliveryQuery<'_>, _: RowContent, most: u32) -> Read<Vec<DeliveryRow>> {
        Ok(select(&self.0.borrow().deliveries, query.is_newest_first(), most, |row| query.matches(row)))
    }

    fn arrivals(&self, query: &ArrivalQuery<'_>, _: RowContent, most: u32) -> Read<Vec<ArrivalRow>> {
        Ok(select(&self.0.borrow().arrivals, query.is_newest_first(), most, |row| query.matches(row)))
    }

    fn notices(&self) -> Read<NoticeRows> {
        let tables = self.0.borrow();
        let last_line = tables.lines.values().map(|line| line.number).max().unwrap_or(0);
        let (promises, lines) = (tables.promises.values().cloned(), tables.lines.values().cloned());
        Ok(NoticeRows { promises: promises.collect(), lines: lines.collect(), last_line })
    }

    fn count(&self, open: Open) -> Read<u64> {
        let tables = self.0.borrow();
        Ok(match open {
            Open::Deliveries => tables.deliveries.values().filter(|row| row.progress.state.is_open()).count(),
            Open::Arrivals => tables.arrivals.values().filter(|row| row.progress.fate.is_none()).count(),
        } as u64)
    }

    fn totals(&self, account: Option<(&str, &str)>) -> Read<RowTotals> {
        let tables = self.0.borrow();
        let is_its = |channel: &str, name: &str| account.is_none_or(|account| account == (channel, name));
        let arrivals = tables.arrivals.values().filter(|row| is_its(&row.channel, &row.account));
        let deliveries = tables.deliveries.values();
        let deliveries = deliveries.filter(|row| is_its(&row.address.channel, &row.address.account));
        Ok(RowTotals {
            events: arrivals.map(ArrivalRow::counted).collect(),
            deliveries: deliveries.map(DeliveryRow::counted).collect(),
        })
    }

    fn insert(&self, row: NewRow<'_>) -> Read<Option<i64>> {
        let mut tables = self.0.borrow_mut();
        Ok(match row {
            NewRow::Message(new) => {
                insert(&mut tables.messages, |row| row.run_id == new.run_id, |_| MessageRow::of(new))
            }
            NewRow::Delivery(new) => {
                let has_key = |row: &DeliveryRow| row.id == new.delivery.id;
                insert(&mut tables.deliveries, has_key, |number| DeliveryRow::of(number, new))
            }
            NewRow::Arrival(new, content) => {
                let row = ArrivalRow { event: content.instead_of(None), ..ArrivalRow::of(0, new) };
                let has_key = |other: &ArrivalRow| other.identity == row.identity;
                insert(&mut tables.arrivals, has_key, |number| ArrivalRow { number, ..row.clone() })
            }
            NewRow::Promise(new, _) => {
                let row = PromiseRow { promise: new.clone(), lost_at: None };
                insert(&mut tables.promises, |row| row.promise.id == new.id, |_| row)
            }
            NewRow::Line(new) => insert(&mut tables.lines, |line| line.number == new.number, |_| new.clone()),
        })
    }

    fn set(&self, row: SetRow<'_>) -> Read<bool> {
        let mut tables = self.0.borrow_mut();
        Ok(match row {
            SetRow::Message(run_id, progress) => {
                set(&mut tables.messages, |it| it.run_id == *run_id, |it| it.progress.clone_from(progress))
            }
            SetRow::Delivery(number, progress, content) => {
                let change = |row: &mut DeliveryRow| {
                    row.progress.clone_from(progress);
                    row.part = content.instead_of(row.part.take());
                };
                set(&mut tables.deliveries, |row| row.number == number, change)
            }
            SetRow::Arrival(number, progress, content) => {
                let change = |row: &mut ArrivalRow| {
                    row.progress.clone_from(progress);
                    row.event = content.instead_of(row.event.take());
                };
                set(&mut tables.arrivals, |row| row.number == number, change)
            }
            SetRow::Promise(new) => {
                set(&mut tables.promises, |row| row.promise.id == new.promise.id, |row| row.clone_from(new))
            }
            SetRow::Line(number, by) => {
                set(&mut tables.lines, |line| line.number == number, |line| line.told_by = by.cloned())
            }
        })
    }

    fn remove(&self, rows: Removal<'_>) -> Read<bool> {
        let mut tables = self.0.borrow_mut();
        Ok(match rows {
            Removal::Message(run_id) => remove(&mut tables.messages, |row| row.run_id == *run_id),
            Removal::Delivery(number) => remove(&mut tables.deliveries, |row| row.number == number),
            Removal::Promise(id) => remove(&mut tables.promises, |row| row.promise.id == id),
            Removal::Line(number) => remove(&mut tables.lines, |line| line.number == number),
            Removal::LinesToldBy(run_id) => {
                remove(&mut tables.lines, |line| line.told_by.as_ref() == Some(run_id))
            }
            Removal::Old(old) => {
                let MemoryTables { messages, deliveries, arrivals, promises, .. } = &mut **tables;
                remove_old(messages, old, |row| old.of.end_of_message(row))
                    || remove_old(deliveries, old, |row| old.of.end_of_delivery(row))
                    || remove_old(arrivals, old, |row| old.of.end_of_arrival(row))
                    || remove_old(promises, old, |row| old.of.end_of_promise(row))
            }
        })
    }

    fn unstored_end(&self, _: &RunId) -> Option<RunRecord> {
        None
    }
}
