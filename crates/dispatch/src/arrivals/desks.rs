//! Entry for events of platforms: past the door and on disk first, then to the desk of their
//! conversation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use openclaw_channels::{Address, ChannelFuture, Inbound, InboundSink, NotTaken};
use openclaw_journal::journal::JournalError;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::desk::Desk;
use super::door::{Door, DoorDecision};
use super::{ArrivalInsert, Fate, NewArrival, StoredArrival, decide, handover};
use crate::handle::Dispatch;

/// Number of events that are read at once at start.
const PAGE: u32 = 500;
/// Number of events that are kept in memory on their way to desks and until they are handed over, 9
/// KB each; of later events only the number is kept, and the journal is asked for them when their
/// turn has come. A desk that has nothing else may have one above this.
const IN_MEMORY: usize = 1_000;

type Letterbox = mpsc::UnboundedSender<Letter>;

/// An event on its way to a desk. Small: the channel makes room for 32 at once.
pub(super) struct Letter {
    /// Time at which it was handed to the desk. Which messages belong together is judged by this time, however long the desk was busy.
    pub(super) at: Instant,
    pub(super) content: LetterContent,
}

/// The event of a [`Letter`].
pub(super) enum LetterContent {
    /// The event itself.
    Whole(Box<UndecidedEvent>),
    /// Number of the event in the inbox, from which it is read when its turn has come.
    Stored(i64),
}

/// An undecided event, past the door.
pub(super) struct UndecidedEvent {
    pub(super) number: i64,
    pub(super) event: Inbound,
    /// Unix milliseconds.
    pub(super) received_at: i64,
    /// Decision made at the door.
    pub(super) seen: DoorDecision,
    /// Permit for keeping the event in memory.
    pub(super) in_memory: Option<OwnedSemaphorePermit>,
}

/// The desks that exist: started on demand, gone when idle.
pub(super) struct Desks {
    pub(super) dispatch: Dispatch,
    door: Door,
    desks: Mutex<HashMap<Address, Letterbox>>,
    in_memory: Arc<Semaphore>,
}

impl Desks {
    pub(super) fn new(dispatch: Dispatch) -> Arc<Self> {
        let in_memory = Arc::new(Semaphore::new(IN_MEMORY));
        Arc::new(Self { dispatch, door: Door::default(), desks: Mutex::default(), in_memory })
    }

    /// Takes up the undecided events that the last process stored, in the order of arrival.
    pub(super) async fn take_up(self: &Arc<Self>) -> Result<(), JournalError> {
        let journal = Arc::clone(&self.dispatch.arrivals().journal);
        let mut after = 0;
        loop {
            let page = journal.waiting_arrivals(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            tracing::info!(events = page.len(), "taking up what platforms brought before the last stop");
            for waiting in self.see_stored(page).await {
                self.hand(waiting);
            }
        }
    }

    /// Returns the stored events that are let past the door; the others are decided about.
    async fn see_stored(&self, arrivals: Vec<StoredArrival>) -> Vec<UndecidedEvent> {
        let mut readable = Vec::with_capacity(arrivals.len());
        for StoredArrival { number, event, received_at } in arrivals {
            match event {
                Ok(event) => readable.push((number, event, received_at)),
                Err(error) => {
                    tracing::error!(number, %error, "an event of a platform can't be read any more");
                    decide(self.dispatch.arrivals(), &[number], Fate::dropped("unreadable")).await;
                }
            }
        }
        let events: Vec<&Inbound> = readable.iter().map(|(_, event, _)| event).collect();
        let seen = self.door.see(&self.dispatch, &events).await;
        let mut waiting = Vec::new();
        for ((number, event, received_at), seen) in readable.into_iter().zip(seen) {
            match seen {
                DoorDecision::Refused(fate) => decide(self.dispatch.arrivals(), &[number], fate).await,
                DoorDecision::Denied { fate, text } => {
                    handover::refuse_command(&self.dispatch, &event, text).await;
                    decide(self.dispatch.arrivals(), &[number], fate).await;
                }
                DoorDecision::Heard { .. } | DoorDecision::Asks(_) | DoorDecision::Unsaid => {
                    waiting.push(UndecidedEvent { number, event, received_at, seen, in_memory: None });
                }
            }
        }
        waiting
    }

    /// Hands an event to the desk of its conversation.
    fn hand(self: &Arc<Self>, waiting: UndecidedEvent) {
        if self.dispatch.arrivals().stopping.is_cancelled() {
            // The next start takes it up.
            return;
        }
        let at = waiting.event.address.clone();
        let content = match self.room_in_memory() {
            Some(permit) => {
                LetterContent::Whole(Box::new(UndecidedEvent { in_memory: Some(permit), ..waiting }))
            }
            // The event passes the door once more then.
            None => LetterContent::Stored(waiting.number),
        };
        let letter = Letter { at: Instant::now(), content };
        let mut desks = self.desks.lock();
        let unsent = match desks.get(&at) {
            Some(desk) => desk.send(letter).err().map(|unsent| unsent.0),
            None => Some(letter),
        };
        let Some(letter) = unsent else { return };
        let (sender, mailbox) = mpsc::unbounded_channel();
        // The other end is held here, so that sending can't fail.
        let _ = sender.send(letter);
        desks.insert(at.clone(), sender);
        let desk = Desk::new(at, Arc::clone(self), mailbox);
        // Boxed, as are others on the way of a message: tokio moves what it is given several times, and a future is large.
        self.dispatch.arrivals().accepting.spawn(Box::pin(desk.run()));
    }

    /// Room for one more event, if there is some.
    fn room_in_memory(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.in_memory).try_acquire_owned().ok()
    }

    /// True if there is room for one more event.
    pub(super) fn has_room_in_memory(&self) -> bool {
        self.in_memory.available_permits() > 0
    }

    /// Reads a stored undecided event and passes it through the door once more; `None` if it has
    /// been decided about by now.
    ///
    /// # Errors
    /// When the journal can't be read.
    pub(super) async fn read(&self, number: i64) -> Result<Option<UndecidedEvent>, JournalError> {
        let mut found = self.dispatch.arrivals().journal.waiting_arrivals(number - 1, 1).await?;
        found.retain(|arrival| arrival.number == number);
        let waiting = self.see_stored(found).await.pop();
        Ok(waiting.map(|waiting| UndecidedEvent { in_memory: self.room_in_memory(), ..waiting }))
    }

    /// Removes a desk with nothing left to do; false if an event has come meanwhile, so that it
    /// must go on.
    pub(super) fn retire(&self, at: &Address, mailbox: &mpsc::UnboundedReceiver<Letter>) -> bool {
        let mut desks = self.desks.lock();
        let is_idle = mailbox.is_empty();
        if is_idle {
            desks.remove(at);
        }
        is_idle
    }
}

/// The sink that accounts are given.
pub(super) struct Sink(pub(super) Arc<Desks>);

impl InboundSink for Sink {
    fn take(&self, events: Vec<Inbound>) -> ChannelFuture<'_, Result<(), NotTaken>> {
        Box::pin(async move {
            let Self(desks) = self;
            // The caller may go away meanwhile, such as a client that posts to a webhook: stored
            // events have to come to their desk all the same.
            let taking = desks.dispatch.arrivals().accepting.spawn(Box::pin(take(Arc::clone(desks), events)));
            taking.await.unwrap_or_else(|error| Err(NotTaken(error.to_string())))
        })
    }
}

async fn take(desks: Arc<Desks>, events: Vec<Inbound>) -> Result<(), NotTaken> {
    let parts = desks.dispatch.arrivals();
    let received_at = parts.clock.now_ms();
    let seen = desks.door.see(&desks.dispatch, &events.iter().collect::<Vec<_>>()).await;
    let new = events.iter().zip(&seen).map(|(event, seen)| NewArrival {
        event: event.clone(),
        received_at,
        fate: seen.fate().cloned(),
    });
    let stored = parts.journal.arrive(new.collect()).await.map_err(|error| NotTaken(error.to_string()))?;
    let Some(inserts) = stored else {
        return Err(NotTaken("too many messages wait; they are fetched again later".to_owned()));
    };
    for ((event, seen), insert) in events.into_iter().zip(seen).zip(inserts) {
        match insert {
            ArrivalInsert::New(number) => match seen {
                DoorDecision::Refused(fate) => tracing::debug!(number, ?fate, "decided at the door"),
                DoorDecision::Denied { text, .. } => {
                    handover::refuse_command(&desks.dispatch, &event, text).await
                }
                DoorDecision::Heard { .. } | DoorDecision::Asks(_) | DoorDecision::Unsaid => {
                    desks.hand(UndecidedEvent { number, event, received_at, seen, in_memory: None });
                }
            },
            ArrivalInsert::Known => {
                tracing::debug!(channel = %event.address.channel, event = %event.native_id, "brought twice, taken once");
            }
        }
    }
    // A desk that accepts a message syncs its arrival too. What the platform hears of must outlive the machine.
    parts.journal.synced().await.map_err(|error| NotTaken(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use jiff::tz::TimeZone;
    use openclaw_channels::{InboundEvent, InboundMessage};
    use openclaw_journal::clock::Clock;
    use openclaw_journal::testing::group_event;
    use serde_json::json;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::arrivals::gate;
    use crate::testing::{FakeModel, PATIENCE, Rig};

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;

    fn said(number: usize) -> Inbound {
        let message = InboundMessage {
            message_id: number.to_string(),
            text: "nobody is spoken to".to_owned(),
            mentions: openclaw_channels::Mentions { can_tell: true, ..Default::default() },
            ..InboundMessage::default()
        };
        group_event(&format!("update:{number}"), "-100", message)
    }

    #[tokio::test]
    async fn how_long_something_waits_here_does_not_make_it_late() {
        let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
        let now = Arc::new(AtomicI64::new(HOUR));
        let clock = Arc::clone(&now);
        let clock = Clock::set(move || clock.load(Ordering::SeqCst), TimeZone::UTC);
        let telegram =
            json!({"botToken": "1:t", "groupPolicy": "open", "groupAllowFrom": ["7"], "groups": {"*": {}}});
        let rig = Rig::at(dir.path(), &model, json!({"channels": {"telegram": telegram}}), clock).await;
        let desks = Desks::new(rig.dispatch.clone());
        let stop = |number, at| {
            let message = InboundMessage { text: "/stop".to_owned(), ..InboundMessage::default() };
            Inbound { event: InboundEvent::Message(Box::new(message)), at, ..said(number) }
        };
        // The first has just been said, the second waited for us.
        take(desks, vec![stop(1, HOUR), stop(2, HOUR - 6 * MINUTE)]).await.unwrap();
        // Nothing else ran meanwhile.
        now.store(3 * HOUR, Ordering::SeqCst);
        let journal = &rig.dispatch.arrivals().journal;
        let decided = async {
            loop {
                let records = journal.arrival_records(None, 2).await.unwrap();
                let fates: Vec<_> = records.into_iter().filter_map(|record| record.fate).collect();
                if fates.len() == 2 {
                    return fates;
                }
                tokio::task::yield_now().await;
            }
        };
        let fates = tokio::time::timeout(PATIENCE, decided).await.expect("both are decided about");
        assert_eq!(fates, [Fate::handled("late-command"), Fate::handled("stop")]);
        let traced = rig.dispatch.trace(Some("update:2")).await.unwrap();
        assert_eq!(traced.events[0].is_late, Some(true));
        let traced = rig.dispatch.trace(Some("update:1")).await.unwrap();
        assert_eq!(traced.events[0].is_late, None);
    }

    /// Checks that a message that is being accepted when a stop comes has its place before the
    /// stop: it is a run, which the stop ends.
    #[tokio::test]
    async fn what_is_being_accepted_while_it_is_stopped_is_stopped_as_a_run() {
        let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
        let groups = json!({"*": {"requireMention": false}});
        let telegram = json!({"botToken": "1:t", "groupPolicy": "open", "groups": groups});
        let rig = Rig::with_config(dir.path(), &model, json!({"channels": {"telegram": telegram}})).await;
        let (dispatch, event) = (&rig.dispatch, said(1));
        let parts = dispatch.arrivals();
        let new = NewArrival { event: event.clone(), received_at: 1, fate: None };
        let inserts = parts.journal.arrive(vec![new]).await.unwrap().unwrap();
        let [ArrivalInsert::New(number)] = inserts[..] else { panic!("it is new") };
        let seen = Desks::new(dispatch.clone()).door.see(dispatch, &[&event]).await.remove(0);
        let waiting = UndecidedEvent { number, event, received_at: 1, seen, in_memory: None };
        let gate::GateOutcome::Admitted(admitted) = gate::judge(dispatch, waiting).await else {
            panic!("it is heard");
        };
        // The tasks of the start have ended: from here on only the message is being accepted.
        while !parts.accepting.is_empty() {
            tokio::task::yield_now().await;
        }
        let cancel = CancellationToken::new();
        let mut work = Box::pin(handover::work(dispatch.clone(), vec![*admitted], cancel.clone()));
        while parts.accepting.is_empty() {
            assert!(futures_util::poll!(work.as_mut()).is_pending(), "it has not begun to be accepted");
            if parts.accepting.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        cancel.cancel();
        tokio::time::timeout(PATIENCE, work).await.expect("it is accepted, or stopped");
        let record = parts.journal.arrival_records(None, 1).await.unwrap().remove(0);
        assert!(matches!(record.fate, Some(Fate::Run(_))), "{:?}", record.fate);
    }

    /// Checks memory limits in an open group, where anybody may write as much as they like.
    #[tokio::test]
    async fn what_has_no_room_in_memory_is_read_from_the_disk_when_its_turn_has_come() {
        const SAID: usize = IN_MEMORY + 50;
        let (dir, model) = (tempfile::tempdir().unwrap(), FakeModel::start([]).await);
        let telegram = json!({"botToken": "1:t", "groupPolicy": "open", "groups": {"*": {}}});
        let rig = Rig::with_config(dir.path(), &model, json!({"channels": {"telegram": telegram}})).await;
        let desks = Desks::new(rig.dispatch.clone());
        take(Arc::clone(&desks), (0..SAID).map(said).collect()).await.unwrap();
        // Nothing else ran meanwhile.
        assert_eq!(desks.in_memory.available_permits(), 0);
        let journal = &rig.dispatch.arrivals().journal;
        let decided = async {
            while journal.arrival_tally().await.unwrap() != [("noted".to_owned(), SAID as u64)] {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, decided).await.expect("all of them are decided about");
        assert_eq!(desks.in_memory.available_permits(), IN_MEMORY);
        let last = journal.noted_arrivals(&said(0).address, i64::MAX, 1).await.unwrap().remove(0);
        assert_eq!(last.event.unwrap().native_id, format!("update:{}", SAID - 1));
    }
}
