//! A journal in memory, for tests that are not about the database file. Its contents belong to a
//! directory, as a file's would: opening the same directory finds them again, and [`copy`] makes a
//! second directory as a crash would leave it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use openclaw_channels::{Address, Receipt};
use openclaw_protocol::RunId;
use openclaw_tools::Promise;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    AccountCounts, EventCount, Journal, JournalError, JournalFuture, LATE_LISTED, LATE_MS, LateConversation,
    NewDelivery, OpenedJournal, Reservation, StoredDelivery, Update,
};
use crate::api::RunRecord;
use crate::arrival::{ArrivalInsert, ArrivalRecord, Arrivals, Fate, NewArrival, Routed, StoredArrival};
use crate::delivery::{
    Delivery, DeliveryFailure, DeliveryInsert, DeliveryState, DeliveryStatus, DeliveryVerdict, Hold, LaneKey,
    ListedDelivery, OpenDelivery, SentMessage,
};
use crate::inbox::{
    AskedRecords, Attempts, InboxRow, Insert, KnownRun, MessageRecord, MessageWait, RequestColumns,
    Unfinished,
};
use crate::notices::{KeptLine, KeptNotices, Lost, lines_of};
use crate::queue::DropRule;
use crate::request::RunRequest;

/// Contents of the journals of all tests, by directory.
static JOURNALS: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<MemoryState>>>>> = LazyLock::new(Mutex::default);

/// Contents of a journal, in the order of acceptance.
#[derive(Debug, Clone, Default)]
struct MemoryState {
    messages: Vec<MemoryMessage>,
    deliveries: Vec<StoredItem>,
    arrivals: Vec<Arrived>,
    promises: Vec<Promised>,
    lines: Vec<KeptLine>,
    delivered: watch::Sender<()>,
}

/// Promise to an agent.
#[derive(Debug, Clone)]
struct Promised {
    promise: Promise,
    is_lost: bool,
}

/// An event of a platform.
#[derive(Debug, Clone)]
struct Arrived {
    new: NewArrival,
    decided: Option<(Fate, i64)>,
    /// Run of the message that has it as context.
    told_in: Option<RunId>,
    route: Option<Routed>,
    again: u32,
}

/// A message.
#[derive(Debug, Clone)]
pub struct MemoryMessage {
    /// The stored message.
    pub row: InboxRow<RequestColumns>,
    /// Record of its run, once that has ended.
    pub finished: Option<RunRecord>,
    /// Tries of its run so far.
    pub attempts: Attempts,
    /// Time for which it waited.
    pub waited: MessageWait,
    /// Run that it was put together with, if it was.
    pub taken_by: Option<RunId>,
    /// True if it was dropped, and counts as new when it is sent again.
    pub may_repeat: bool,
}

/// A delivery.
#[derive(Debug, Clone)]
struct StoredItem {
    number: i64,
    delivery: Delivery,
    state: DeliveryState,
    attempts: u32,
    accepted_at: i64,
    receipt: Option<Receipt>,
    error: Option<String>,
    left_out: Option<String>,
    next_at: i64,
    may_repeat: bool,
    ended_at: Option<i64>,
    given_up: Option<DeliveryFailure>,
}

/// The number of an event by its place, from 1 on.
fn number_of(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// The state of the journal of a directory.
fn state(dir: &Path) -> Arc<Mutex<MemoryState>> {
    Arc::clone(JOURNALS.lock().entry(dir.to_path_buf()).or_default())
}

/// Copies the journal of one directory to another.
pub fn copy(from: &Path, to: &Path) {
    let copied = state(from).lock().clone();
    *state(to).lock() = copied;
}

/// Edits the contents of a directory's journal, while nobody has it open.
pub fn edit(dir: &Path, change: impl FnMut(&mut MemoryMessage)) {
    state(dir).lock().messages.iter_mut().for_each(change);
}

/// A journal in memory.
#[derive(Clone)]
pub struct MemoryJournal {
    state: Arc<Mutex<MemoryState>>,
    is_closed: Arc<AtomicBool>,
}

impl MemoryJournal {
    /// Opens the journal of a directory.
    pub fn open(dir: &Path) -> Result<OpenedJournal, JournalError> {
        let state = state(dir);
        let (unfinished, notices) = {
            let mut state = state.lock();
            (state.recover(), state.recover_notices())
        };
        let journal = Self { state, is_closed: Arc::default() };
        Ok(OpenedJournal { journal: Arc::new(journal), unfinished, notices })
    }

    /// Does something in one piece.
    fn work<T>(
        &self,
        work: impl FnOnce(&mut MemoryState) -> Result<T, JournalError>,
    ) -> JournalFuture<'static, T>
    where
        T: Send + 'static,
    {
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        let done = if is_closed { Err(JournalError::Closed) } else { work(&mut self.state.lock()) };
        Box::pin(std::future::ready(done))
    }
}

impl MemoryState {
    fn recover(&mut self) -> Vec<Unfinished> {
        for item in &mut self.deliveries {
            if item.state == DeliveryState::Sending {
                item.state = DeliveryState::Uncertain;
            }
        }
        let open = self.messages.iter().filter(|message| message.finished.is_none());
        // Answers of these runs come whole.
        let blocks: Vec<String> = open.clone().map(|message| format!("{}:b", message.row.run_id)).collect();
        self.deliveries.retain(|item| {
            let is_block = blocks.iter().any(|start| item.delivery.id.starts_with(start));
            item.state != DeliveryState::Pending || !is_block
        });
        let read = |message: &MemoryMessage| {
            let RequestColumns { json, facts, .. } = &message.row.payload;
            let row = InboxRow { recovered: true, ..message.row.without_payload() };
            let waited = MessageWait { is_taken: message.taken_by.is_some(), ..message.waited.clone() };
            Unfinished::read(row, Some(json.get()), facts.as_deref(), message.attempts, waited)
        };
        open.filter_map(read).collect()
    }

    fn recover_notices(&mut self) -> KeptNotices {
        let is_open = |run_id: &RunId| {
            self.messages.iter().any(|message| message.finished.is_none() && message.row.run_id == *run_id)
        };
        for line in &mut self.lines {
            line.told_by = line.told_by.take().filter(is_open);
        }
        let owed = self.promises.iter().filter(|promised| !promised.is_lost);
        let owed = owed.filter_map(|promised| promised.promise.notice.clone()).collect();
        let last = self.lines.iter().map(|line| line.number).max().unwrap_or(0);
        self.lines.extend(lines_of(owed, last + 1, 0));
        self.promises.iter_mut().for_each(|promised| promised.is_lost = true);
        let lost = self.promises.iter().map(|Promised { promise, .. }| Lost {
            kind: promise.kind,
            scope: promise.scope.clone(),
            name: promise.name.clone(),
        });
        KeptNotices { lines: self.lines.clone(), lost: lost.collect() }
    }

    fn message(&mut self, run_id: &RunId) -> Option<&mut MemoryMessage> {
        self.messages.iter_mut().find(|message| message.row.run_id == *run_id)
    }

    fn item(&mut self, id: &str) -> Option<&mut StoredItem> {
        self.deliveries.iter_mut().find(|item| item.delivery.id == id)
    }

    fn accept(&mut self, row: InboxRow<RequestColumns>) -> Insert {
        let Arrivals { said, context, route } = &row.payload.arrivals;
        self.decide(said, &Fate::Run(row.run_id.clone()), row.accepted_at);
        for (at, arrived) in self.arrivals.iter_mut().enumerate() {
            if said.contains(&number_of(at + 1)) && route.is_some() {
                arrived.route.clone_from(route);
            }
        }
        for number in context {
            if let Some(noted) = usize::try_from(number - 1).ok().and_then(|at| self.arrivals.get_mut(at)) {
                noted.told_in.get_or_insert(row.run_id.clone());
            }
        }
        self.messages.retain(|message| !message.may_repeat || message.row.run_id != row.run_id);
        let Some(known) = self.message(&row.run_id) else {
            self.messages.push(MemoryMessage {
                row,
                finished: None,
                attempts: Attempts::default(),
                waited: MessageWait::default(),
                taken_by: None,
                may_repeat: false,
            });
            return Insert::New;
        };
        if known.row.payload.digest != row.payload.digest {
            return Insert::Conflict;
        }
        Insert::Known(known.known())
    }

    /// Marks events that became part of a message as dropped together with it.
    fn drop_run(&mut self, numbers: &[i64], rule: DropRule, now: i64) {
        for (at, arrived) in self.arrivals.iter_mut().enumerate() {
            if numbers.contains(&number_of(at + 1)) && matches!(arrived.decided, Some((Fate::Run(_), _))) {
                arrived.decided = Some((Fate::dropped(rule.as_str()), now));
            }
        }
    }

    fn finish(&mut self, record: RunRecord) -> bool {
        self.lines.retain(|line| line.told_by.as_ref() != Some(&record.run_id));
        let open = self.message(&record.run_id).filter(|message| message.finished.is_none());
        let is_open = open.map(|message| {
            let is_cut = message.waited.cut.is_some();
            let (outcome, started_at) = match is_cut {
                true => (DropRule::Summarized.outcome(), None),
                false => (record.outcome, record.started_at),
            };
            message.finished = Some(RunRecord { report: None, outcome, started_at, ..record });
            message.attempts.unprepared = 0;
        });
        is_open.is_some()
    }

    fn arrive(&mut self, events: Vec<NewArrival>) -> Vec<ArrivalInsert> {
        let mut inserts = Vec::new();
        for new in events {
            let known = self.arrivals.iter_mut().find(|known| known.new.is_same(&new));
            inserts.push(match known {
                Some(known) => {
                    known.again += 1;
                    ArrivalInsert::Known
                }
                None => {
                    let decided = new.fate.clone().map(|fate| (fate, new.received_at));
                    self.arrivals.push(Arrived { new, decided, told_in: None, route: None, again: 0 });
                    ArrivalInsert::New(number_of(self.arrivals.len()))
                }
            });
        }
        inserts
    }

    fn decide(&mut self, numbers: &[i64], fate: &Fate, now: i64) -> bool {
        let mut any = false;
        for (at, arrived) in self.arrivals.iter_mut().enumerate() {
            if numbers.contains(&number_of(at + 1)) && arrived.decided.is_none() {
                arrived.decided = Some((fate.clone(), now));
                any = true;
            }
        }
        any
    }

    /// Iterates over the events with their numbers, in the order of arrival.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (i64, &Arrived)> {
        self.arrivals.iter().enumerate().map(|(at, arrived)| (number_of(at + 1), arrived))
    }

    fn deliver(&mut self, new: NewDelivery) -> DeliveryInsert {
        if let Some(known) = self.item(&new.delivery.id) {
            return DeliveryInsert::Known(Box::new(known.status()));
        }
        let NewDelivery { delivery, accepted_at, not_before } = new;
        let number = self.deliveries.last().map_or(1, |last| last.number + 1);
        self.deliveries.push(StoredItem {
            number,
            delivery,
            state: DeliveryState::Pending,
            attempts: 0,
            accepted_at,
            receipt: None,
            error: None,
            next_at: not_before,
            may_repeat: false,
            ended_at: None,
            given_up: None,
            left_out: None,
        });
        self.delivered.send_replace(());
        DeliveryInsert::New
    }

    /// Says that the change they belong to is made.
    fn deliver_all(&mut self, replies: Vec<NewDelivery>) -> bool {
        for reply in replies {
            self.deliver(reply);
        }
        true
    }

    fn update(&mut self, update: Update) -> bool {
        match update {
            Update::Settle => true,
            Update::Attempt(run_id) => {
                let open = self.message(&run_id).filter(|message| message.finished.is_none());
                open.map(|MemoryMessage { attempts, .. }| {
                    attempts.all += 1;
                    attempts.unprepared += 1;
                })
                .is_some()
            }
            Update::Prepared(run_id) => {
                self.message(&run_id).map(|message| message.attempts.unprepared = 0).is_some()
            }
            Update::Excuse(runs) => self.each(&runs, |MemoryMessage { attempts, .. }| {
                *attempts = Attempts { all: attempts.all.saturating_sub(1), unprepared: 0 };
                true
            }),
            Update::Begin(run_id, session_id) => {
                self.each(&[run_id], |MemoryMessage { row, attempts, .. }| {
                    row.session_id = Some(session_id.clone());
                    attempts.all = attempts.all.max(1);
                    attempts.unprepared = attempts.unprepared.max(1);
                    true
                })
            }
            Update::Taken { runs, by } => {
                self.each(&runs, |MemoryMessage { row, finished, taken_by, .. }| {
                    let is_open = finished.is_none();
                    if is_open {
                        *taken_by = Some(by.clone()).filter(|by| *by != row.run_id);
                    }
                    is_open
                })
            }
            Update::Abort(runs, reason) => self.each(&runs, |MemoryMessage { row, finished, .. }| {
                let is_first = finished.is_none() && row.abort.is_none();
                row.abort = if is_first { Some(reason) } else { row.abort };
                is_first
            }),
            Update::Answered(record, replies) => {
                let is_open = self.each(
                    std::slice::from_ref(&record.run_id),
                    |MemoryMessage { row, finished, .. }| {
                        let is_open = finished.is_none();
                        row.answered = is_open.then(|| record.clone());
                        is_open
                    },
                );
                is_open && self.deliver_all(replies)
            }
            Update::Finish(record, replies) => self.finish(record) && self.deliver_all(replies),
            Update::FinishAll(record, others, replies) => {
                for run_id in others {
                    self.finish(RunRecord { run_id, ..record.clone() });
                }
                self.finish(record) && self.deliver_all(replies)
            }
            Update::Gather { leader, others, answer_to } => {
                self.each(&others, |MemoryMessage { waited, .. }| {
                    waited.collected_by = Some(leader.clone());
                    true
                });
                self.each(std::slice::from_ref(&leader), |MemoryMessage { waited, .. }| {
                    waited.collected_by = Some(leader.clone());
                    waited.answer_to.clone_from(&answer_to);
                    true
                })
            }
            Update::Cut { run_id, arrivals, dropped, now } => {
                self.drop_run(&arrivals, DropRule::Summarized, now);
                self.each(&[run_id], |MemoryMessage { waited, .. }| {
                    waited.cut = Some(dropped);
                    true
                })
            }
            Update::Drop { record, rule, arrivals } => {
                self.drop_run(&arrivals, rule, record.ended_at);
                let run_id = record.run_id.clone();
                let is_over = self.finish(record);
                if let Some(message) = self.message(&run_id).filter(|_| is_over) {
                    message.may_repeat = rule.may_be_sent_again();
                }
                is_over
            }
            Update::Buttons { note, receipt } => {
                let (id, now) = (note.delivery.id.clone(), note.accepted_at);
                self.deliver(*note);
                self.update(Update::Sending { id: id.clone(), attempts: 1 })
                    && self.update(Update::Tried { id, verdict: DeliveryVerdict::Sent(receipt), now })
            }
            Update::Sending { id, attempts } => {
                let is_uncertain = self.item(&id).is_some_and(|item| item.state == DeliveryState::Uncertain);
                self.advance(&id, DeliveryState::Sending)
                    .map(|item| {
                        item.attempts = attempts;
                        item.may_repeat |= is_uncertain;
                    })
                    .is_some()
            }
            Update::Tried { id, verdict, now } => {
                let to = match &verdict {
                    DeliveryVerdict::Sent(_) => DeliveryState::Sent,
                    DeliveryVerdict::Retry(retry) => retry.state,
                    DeliveryVerdict::WithoutFile { .. } => DeliveryState::Pending,
                    DeliveryVerdict::Failed { .. } => DeliveryState::Failed,
                };
                let is_over = self.item(&id).is_none_or(|item| !item.state.is_open());
                if is_over && to.is_open() {
                    return false;
                }
                let Some(item) = self.advance(&id, to) else { return false };
                item.ended_at = (!to.is_open()).then_some(now);
                match verdict {
                    DeliveryVerdict::Sent(receipt) => (item.receipt, item.error) = (Some(receipt), None),
                    DeliveryVerdict::Failed { reason, why, hold } => {
                        (item.error, item.given_up) = (Some(reason), Some(why));
                        item.next_at =
                            now + hold.map_or(0, |hold| i64::try_from(hold.as_millis()).unwrap_or(i64::MAX));
                    }
                    DeliveryVerdict::WithoutFile { part, left_out } => {
                        (item.delivery.part, item.left_out) = (*part, Some(left_out));
                        (item.attempts, item.next_at, item.error) = (0, now, None);
                    }
                    DeliveryVerdict::Retry(retry) => {
                        item.attempts = retry.attempts;
                        (item.next_at, item.error) = (retry.at(now), Some(retry.reason));
                    }
                }
                true
            }
            Update::Revive { id, now } => {
                let Some(item) = self.item(&id).filter(|item| item.state == DeliveryState::Failed) else {
                    return false;
                };
                let Some(revived) = item.given_up.and_then(DeliveryFailure::revived) else { return false };
                (item.state, item.given_up, item.error) = (revived, None, None);
                item.attempts = 0;
                item.delivery.expires_at = None;
                item.ended_at = None;
                item.next_at = now;
                true
            }
            Update::Discard { id, now } => {
                let Some(item) = self.item(&id) else { return false };
                let status = item.status();
                if !status.may_be_discarded() {
                    return false;
                }
                item.given_up = Some(DeliveryFailure::Discarded);
                if item.state.is_open() {
                    (item.state, item.error) = (DeliveryState::Failed, status.discarded_as());
                    (item.ended_at, item.next_at) = (Some(now), now);
                }
                true
            }
            Update::Hasten { id, now } => {
                let waits = |item: &&mut StoredItem| {
                    matches!(item.state, DeliveryState::Pending | DeliveryState::Uncertain)
                };
                let waiting = self.item(&id).filter(waits);
                waiting.map(|item| item.next_at = item.next_at.min(now)).is_some()
            }
            Update::Reworded { conversation, message_id, text } => {
                let waits = |arrived: &&mut Arrived| {
                    matches!(arrived.decided, None | Some((Fate::Noted, _)))
                        && arrived.told_in.is_none()
                        && arrived.new.event.address.target == conversation.target
                        && arrived.new.event.address.account == conversation.account
                        && arrived.new.event.address.channel == conversation.channel
                        && arrived.new.message_id() == Some(&message_id)
                };
                let waiting = self.arrivals.iter_mut().filter(waits);
                waiting.map(|arrived| arrived.new.event.reword(&text)).filter(|done| *done).count() > 0
            }
            Update::Promise(promise, _) => {
                self.promises.push(Promised { promise: *promise, is_lost: false });
                true
            }
            Update::Amend(promises) => {
                for promise in promises {
                    let known = self.promises.iter_mut().find(|known| known.promise.id == promise.id);
                    if let Some(known) = known {
                        known.promise = promise;
                    }
                }
                true
            }
            Update::Notice { line, fulfils } => {
                self.promises.retain(|promised| Some(&promised.promise.id) != fulfils.as_ref());
                self.lines.extend(line);
                true
            }
            Update::Told { run_id, numbers } => {
                let told = self.lines.iter_mut().filter(|line| numbers.contains(&line.number));
                told.map(|line| line.told_by = Some(run_id.clone())).count() > 0
            }
            Update::DropLines(numbers) => {
                let before = self.lines.len();
                self.lines.retain(|line| !numbers.contains(&line.number));
                self.lines.len() < before
            }
            Update::Decided { numbers, fate, now } => self.decide(&numbers, &fate, now),
        }
    }

    /// Changes these messages; true if any of them was changed.
    fn each(&mut self, runs: &[RunId], change: impl FnMut(&mut MemoryMessage) -> bool) -> bool {
        let named = self.messages.iter_mut().filter(|message| runs.contains(&message.row.run_id));
        named.map(change).filter(|changed| *changed).count() > 0
    }

    /// Brings a delivery into a state, if that may follow.
    fn advance(&mut self, id: &str, to: DeliveryState) -> Option<&mut StoredItem> {
        let item = self.item(id).filter(|item| item.state.next_states().contains(&to))?;
        item.state = to;
        Some(item)
    }
}

impl MemoryMessage {
    fn taken_by(&self) -> Option<RunId> {
        let collected = self.waited.collected_by.clone().filter(|leader| *leader != self.row.run_id);
        self.taken_by.clone().or(collected)
    }

    fn record(&self) -> MessageRecord {
        let InboxRow {
            run_id, session_key, session_id, payload, accepted_at, entry_id, fresh_id, abort, ..
        } = &self.row;
        MessageRecord {
            run_id: run_id.clone(),
            kind: payload.kind.to_owned(),
            session_key: session_key.to_string(),
            session_id: session_id.clone(),
            entry_ids: [entry_id.clone(), fresh_id.to_string()],
            accepted_at: *accepted_at,
            queue_mode: Some(payload.queue_mode.as_str().to_owned()),
            taken_by: self.taken_by(),
            attempts: self.attempts.all,
            stop: abort.map(|reason| reason.as_str().to_owned()),
            is_cut: self.waited.cut.is_some(),
        }
    }

    fn known(&self) -> KnownRun {
        match &self.finished {
            Some(record) => KnownRun::Finished(record.clone()),
            None => KnownRun::Unfinished { accepted_at: self.row.accepted_at },
        }
    }
}

impl Arrived {
    fn stored(&self, number: i64) -> StoredArrival {
        let NewArrival { event, received_at, .. } = &self.new;
        StoredArrival { number, event: Ok(event.clone()), received_at: *received_at }
    }

    fn record(&self, number: i64) -> ArrivalRecord {
        let NewArrival { event, received_at, .. } = &self.new;
        ArrivalRecord {
            number,
            channel: event.address.channel.clone(),
            account: event.address.account.clone(),
            native_id: event.native_id.clone(),
            message_id: self.new.message_id().map(str::to_owned),
            target: event.address.target.clone(),
            received_at: *received_at,
            fate: self.decided.as_ref().map(|(fate, _)| fate.clone()),
            decided_at: self.decided.as_ref().map(|(_, at)| *at),
            told_in: self.told_in.clone(),
            route: self.route.clone(),
            again: self.again,
            said_at: Some(event.at),
            identity: event.dedupe_key(),
        }
    }
}

impl StoredItem {
    fn listed(&self) -> ListedDelivery {
        ListedDelivery { status: self.status(), part: Some(self.delivery.part.clone()) }
    }

    /// True if it was given up, and not thrown away.
    fn is_listed(&self) -> bool {
        self.state == DeliveryState::Failed && self.given_up != Some(DeliveryFailure::Discarded)
    }

    /// Returns the wait that its platform asked for when it put this one off.
    fn hold(&self) -> Option<Hold> {
        let hold = Hold { asked_at: self.ended_at?, until: self.next_at };
        (self.state == DeliveryState::Failed && hold.until > hold.asked_at).then_some(hold)
    }

    fn is_beside(&self, other: &Self) -> bool {
        LaneKey::from(&self.delivery.address) == LaneKey::from(&other.delivery.address)
    }

    /// True if it was given up, and takes the other one, behind it in the same message, with it.
    fn cuts_off(&self, other: &Self) -> bool {
        let message_of = |item: &Self| Delivery::message_of(&item.delivery.id).to_owned();
        self.number < other.number
            && self.given_up.is_some_and(DeliveryFailure::takes_the_rest)
            && message_of(self) == message_of(other)
            && self.is_beside(other)
    }

    fn status(&self) -> DeliveryStatus {
        DeliveryStatus {
            id: self.delivery.id.clone(),
            state: self.state,
            attempts: self.attempts,
            receipt: self.receipt.clone(),
            error: self.error.clone(),
            session_key: self.delivery.session_key.clone(),
            accepted_at: self.accepted_at,
            may_repeat: self.may_repeat,
            next_at: self.state.is_open().then_some(self.next_at),
            ended_at: self.ended_at,
            asked: self.delivery.asked,
            address: self.delivery.address.clone(),
            author: self.delivery.author.clone(),
            given_up: self.given_up,
            left_out: self.left_out.clone(),
        }
    }
}

impl Journal for MemoryJournal {
    fn reserve(&self) -> JournalFuture<'_, Reservation> {
        let journal = self.clone();
        self.work(|_| {
            let reservation: Reservation =
                Box::new(move |row, _| journal.work(|state| Ok(state.accept(row))));
            Ok(reservation)
        })
    }

    fn deliver(&self, delivery: NewDelivery) -> JournalFuture<'_, DeliveryInsert> {
        self.work(|state| Ok(state.deliver(delivery)))
    }

    fn update(&self, update: Update) -> JournalFuture<'_, bool> {
        self.work(|state| Ok(state.update(update)))
    }

    fn message(&self, run_id: &RunId) -> JournalFuture<'_, Option<KnownRun>> {
        self.work(|state| Ok(state.message(run_id).map(|message| message.known())))
    }

    fn message_records(&self, asked: AskedRecords, most: u32) -> JournalFuture<'_, Vec<MessageRecord>> {
        self.work(|state| {
            let newest = state.messages.last().map(|message| message.row.run_id.clone());
            let is_asked = |message: &&MemoryMessage| match &asked {
                AskedRecords::Run(run_id) => message.row.run_id == *run_id,
                AskedRecords::Newest => Some(&message.row.run_id) == newest.as_ref(),
                AskedRecords::TakenBy(run_id) => message.taken_by().as_ref() == Some(run_id),
                AskedRecords::Entry(id) => message.record().entry_ids.contains(id),
            };
            let found = state.messages.iter().filter(is_asked).map(MemoryMessage::record);
            Ok(found.take(most as usize).collect())
        })
    }

    fn payload(&self, run_id: &RunId) -> JournalFuture<'_, RunRequest> {
        self.work(|state| {
            let message = state.message(run_id).filter(|message| message.finished.is_none());
            let json = message.map_or("", |message| message.row.payload.json.get());
            Ok(serde_json::from_str(json)?)
        })
    }

    fn arrive(&self, events: Vec<NewArrival>) -> JournalFuture<'_, Option<Vec<ArrivalInsert>>> {
        self.work(|state| Ok(Some(state.arrive(events))))
    }

    fn synced(&self) -> JournalFuture<'_, ()> {
        self.work(|_| Ok(()))
    }

    fn waiting_arrivals(&self, after: i64, most: u32) -> JournalFuture<'_, Vec<StoredArrival>> {
        self.work(|state| {
            let newer =
                state.numbered().filter(|(number, arrived)| *number > after && arrived.decided.is_none());
            Ok(newer.map(|(number, arrived)| arrived.stored(number)).take(most as usize).collect())
        })
    }

    fn noted_arrivals(
        &self,
        conversation: &Address,
        before: i64,
        most: u32,
    ) -> JournalFuture<'_, Vec<StoredArrival>> {
        let conversation = conversation.clone();
        self.work(|state| {
            let is_noted = |arrived: &Arrived| {
                let is_noted = matches!(arrived.decided, Some((Fate::Noted, _))) && arrived.told_in.is_none();
                is_noted && arrived.new.event.address == conversation
            };
            let newest_first =
                state.numbered().rev().filter(|(number, arrived)| *number < before && is_noted(arrived));
            let mut noted: Vec<_> =
                newest_first.map(|(number, arrived)| arrived.stored(number)).take(most as usize).collect();
            noted.reverse();
            Ok(noted)
        })
    }

    fn arrival_records(&self, id: Option<&str>, most: u32) -> JournalFuture<'_, Vec<ArrivalRecord>> {
        let id = id.map(str::to_owned);
        self.work(|state| {
            let records = state.numbered().rev().map(|(number, arrived)| arrived.record(number));
            let is_named = |record: &ArrivalRecord| {
                let run_id = match &record.fate {
                    Some(Fate::Run(run_id)) => Some(run_id.as_str()),
                    Some(_) | None => None,
                };
                let ids = [Some(record.native_id.as_str()), record.message_id.as_deref(), run_id];
                id.is_none() || ids.contains(&id.as_deref())
            };
            Ok(records.filter(is_named).take(most as usize).collect())
        })
    }

    fn sent_messages(&self, channel: &str, message_id: &str) -> JournalFuture<'_, Vec<SentMessage>> {
        let (channel, message_id) = (channel.to_owned(), message_id.to_owned());
        self.work(move |state| {
            let is_it = |item: &&StoredItem| {
                let mut ids = item.receipt.iter().flat_map(|receipt| &receipt.message_ids);
                item.state == DeliveryState::Sent
                    && item.delivery.address.channel == channel
                    && ids.any(|id| *id == message_id)
            };
            let sent = |item: &StoredItem| {
                let StoredItem { delivery: Delivery { address, author, .. }, receipt, .. } = item;
                let target = receipt.iter().find_map(|receipt| receipt.target.clone());
                let target = target.unwrap_or_else(|| address.target.clone());
                SentMessage { address: Address { target, ..address.clone() }, author: author.clone() }
            };
            Ok(state.deliveries.iter().filter(is_it).map(sent).collect())
        })
    }

    fn account_counts(&self, channel: &str, account: &str) -> JournalFuture<'_, AccountCounts> {
        let (channel, account) = (channel.to_owned(), account.to_owned());
        self.work(move |state| {
            let is_its = |at: &Address| at.channel == channel && at.account == account;
            let waits = |arrived: &&Arrived| arrived.decided.is_none() && is_its(&arrived.new.event.address);
            let count = |wanted: fn(&StoredItem) -> bool| {
                let items = state.deliveries.iter();
                items.filter(|item| is_its(&item.delivery.address) && wanted(item)).count() as u64
            };
            let mut events: BTreeMap<(String, Option<String>), (u64, u64)> = BTreeMap::new();
            for arrived in state.arrivals.iter().filter(|arrived| is_its(&arrived.new.event.address)) {
                let (fate, reason) = match &arrived.decided {
                    Some((fate, _)) => (fate.columns().0, fate.columns().1.map(str::to_owned)),
                    None => ("waiting", None),
                };
                let counted = events.entry((fate.to_owned(), reason)).or_default();
                *counted = (counted.0 + 1, counted.1 + u64::from(arrived.again));
            }
            let event = |((fate, reason), (count, repeats))| EventCount { fate, reason, count, repeats };
            let mut conversations: Vec<(&StoredItem, u64)> = Vec::new();
            let is_open = |item: &&StoredItem| item.state.is_open() && is_its(&item.delivery.address);
            for item in state.deliveries.iter().filter(is_open) {
                let target = &item.delivery.address.target;
                let mut known = conversations.iter_mut();
                match known.find(|(first, _)| first.delivery.address.target == *target) {
                    Some((_, waiting)) => *waiting += 1,
                    None => conversations.push((item, 1)),
                }
            }
            let late = |(first, waiting): (&StoredItem, u64)| {
                let error = first.error.clone().filter(|_| first.next_at - first.accepted_at >= LATE_MS)?;
                let Delivery { id, address, .. } = &first.delivery;
                let (target, id, since) = (address.target.clone(), id.clone(), first.accepted_at);
                Some(LateConversation { target, id, since, error, waiting })
            };
            let mut late: Vec<LateConversation> = conversations.into_iter().filter_map(late).collect();
            let late_total = late.len() as u64;
            late.truncate(LATE_LISTED);
            Ok(AccountCounts {
                late,
                late_total,
                events: events.into_iter().map(event).collect(),
                inbox: state.arrivals.iter().filter(waits).count() as u64,
                pending: count(|item| item.state.is_open()),
                failed: count(StoredItem::is_listed),
                last_sent_at: None,
            })
        })
    }

    fn arrival_tally(&self) -> JournalFuture<'_, Vec<(String, u64)>> {
        self.work(|state| {
            let mut tally = BTreeMap::new();
            for arrived in &state.arrivals {
                let name = arrived.decided.as_ref().map_or("waiting", |(fate, _)| fate.columns().0);
                *tally.entry(name.to_owned()).or_default() += 1;
            }
            Ok(tally.into_iter().collect())
        })
    }

    fn entries_since(&self, accepted_at: i64) -> JournalFuture<'_, HashMap<String, RunId>> {
        self.work(|state| {
            let since = state.messages.iter().filter(|message| message.row.accepted_at >= accepted_at);
            let ids = |MemoryMessage { row, .. }: &MemoryMessage| {
                let ids = [row.entry_id.clone(), row.fresh_id.as_str().to_owned()];
                ids.map(|id| (id, row.run_id.clone()))
            };
            Ok(since.flat_map(ids).collect())
        })
    }

    fn delivery(&self, id: &str) -> JournalFuture<'_, Option<DeliveryStatus>> {
        self.work(|state| Ok(state.item(id).map(|item| item.status())))
    }

    fn deliveries_of(&self, run_id: &RunId) -> JournalFuture<'_, Vec<DeliveryStatus>> {
        let prefix = format!("{run_id}:");
        self.work(move |state| {
            let own = state.deliveries.iter().filter(|item| item.delivery.id.starts_with(&prefix));
            Ok(own.map(StoredItem::status).collect())
        })
    }

    fn deliveries_named(&self, id: &str) -> JournalFuture<'_, Vec<DeliveryStatus>> {
        let id = id.to_owned();
        self.work(move |state| {
            let is_named = |item: &&StoredItem| {
                let ids = item.receipt.iter().flat_map(|receipt| &receipt.message_ids);
                item.delivery.id == id || ids.into_iter().any(|own| *own == id)
            };
            Ok(state.deliveries.iter().filter(is_named).map(StoredItem::status).collect())
        })
    }

    fn delivery_ahead_of(&self, id: &str) -> JournalFuture<'_, Option<String>> {
        let id = id.to_owned();
        self.work(move |state| {
            let open = || state.deliveries.iter().filter(|item| item.state.is_open());
            let Some(own) = open().find(|item| item.delivery.id == id) else { return Ok(None) };
            let first = open().find(|item| item.is_beside(own)).filter(|first| first.number < own.number);
            Ok(first.map(|first| first.delivery.id.clone()))
        })
    }

    fn failed_deliveries(&self, most: u32) -> JournalFuture<'_, Vec<ListedDelivery>> {
        self.work(|state| {
            let newest_first = state.deliveries.iter().rev();
            let failed = newest_first.filter(|item| item.is_listed());
            Ok(failed.take(most as usize).map(StoredItem::listed).collect())
        })
    }

    fn waiting_deliveries(&self) -> JournalFuture<'_, Vec<ListedDelivery>> {
        self.work(|state| {
            let open = state.deliveries.iter().filter(|item| item.state.is_open());
            Ok(open.map(StoredItem::listed).collect())
        })
    }

    fn open_deliveries(&self, after: i64) -> JournalFuture<'_, Vec<OpenDelivery>> {
        self.work(|state| {
            let newer = state.deliveries.iter().filter(|item| item.number > after);
            let open = newer.filter(|item| item.state.is_open()).map(|item| OpenDelivery {
                number: item.number,
                lane: LaneKey::from(&item.delivery.address),
                thread: item.delivery.address.thread.clone(),
                next_at: item.next_at,
                is_paced: item.status().is_paced(),
            });
            Ok(open.collect())
        })
    }

    fn deliveries_stored(&self) -> watch::Receiver<()> {
        self.state.lock().delivered.subscribe()
    }

    fn stored_delivery(&self, number: i64) -> JournalFuture<'_, Option<StoredDelivery>> {
        self.work(|state| {
            let found = state.deliveries.iter().find(|item| item.number == number);
            Ok(found.map(|item| StoredDelivery {
                delivery: Ok(item.delivery.clone()),
                state: item.state,
                attempts: item.attempts,
                accepted_at: item.accepted_at,
                is_cut_off: state.deliveries.iter().any(|other| other.cuts_off(item)),
                hold: state
                    .deliveries
                    .iter()
                    .rev()
                    .filter(|other| other.is_beside(item))
                    .find_map(StoredItem::hold),
            }))
        })
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.is_closed.store(true, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}
