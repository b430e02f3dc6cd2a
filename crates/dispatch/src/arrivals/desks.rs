//! Where platforms hand in what they bring: on disk first, then to the desk of its conversation.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_channels::{Address, ChannelFuture, Inbound, InboundSink, NotTaken};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::desk::Desk;
use super::{ArrivalInsert, NewArrival, StoredArrival};
use crate::handle::Dispatch;
use crate::journal::JournalError;

/// Events that are read at once at start.
const PAGE: u32 = 500;

/// Boxed: the channel makes room for 32 at once.
type Letterbox = mpsc::UnboundedSender<Box<StoredArrival>>;

/// The desks that exist: started on demand, gone when idle.
pub(super) struct Desks {
    pub(super) dispatch: Dispatch,
    desks: Mutex<HashMap<Address, Letterbox>>,
}

impl Desks {
    pub(super) fn new(dispatch: Dispatch) -> Arc<Self> {
        Arc::new(Self { dispatch, desks: Mutex::default() })
    }

    /// Takes up what the last process stored and did not decide about, in the order of arrival.
    pub(super) async fn take_up(self: &Arc<Self>) -> Result<(), JournalError> {
        let journal = Arc::clone(&self.dispatch.shared().journal);
        let mut after = 0;
        loop {
            let page = journal.waiting_arrivals(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            tracing::info!(events = page.len(), "taking up what platforms brought before the last stop");
            for arrival in page {
                match &arrival.event {
                    Ok(event) => self.hand(event.address.clone(), arrival),
                    Err(error) => {
                        tracing::error!(number = arrival.number, %error, "an event of a platform can't be read any more");
                        super::decide(
                            self.dispatch.shared(),
                            &[arrival.number],
                            super::Fate::dropped("unreadable"),
                        )
                        .await;
                    }
                }
            }
        }
    }

    /// Gives an event to the desk of its conversation.
    fn hand(self: &Arc<Self>, at: Address, arrival: StoredArrival) {
        if self.dispatch.shared().stopping.is_cancelled() {
            // The next start takes it up.
            return;
        }
        let arrival = Box::new(arrival);
        let mut desks = self.desks.lock();
        let unsent = match desks.get(&at) {
            Some(desk) => desk.send(arrival).err().map(|unsent| unsent.0),
            None => Some(arrival),
        };
        let Some(arrival) = unsent else { return };
        let (sender, mailbox) = mpsc::unbounded_channel();
        // Nobody else has the other end.
        let _ = sender.send(arrival);
        desks.insert(at.clone(), sender);
        let desk = Desk::new(at, Arc::clone(self), mailbox);
        self.dispatch.shared().accepting.spawn(desk.run());
    }

    /// A desk with nothing left to do asks whether it may end.
    pub(super) fn retire(&self, at: &Address, mailbox: &mpsc::UnboundedReceiver<Box<StoredArrival>>) -> bool {
        let mut desks = self.desks.lock();
        let is_idle = mailbox.is_empty();
        if is_idle {
            desks.remove(at);
        }
        is_idle
    }
}

/// What accounts are given.
pub(super) struct Sink(pub(super) Arc<Desks>);

impl InboundSink for Sink {
    fn take(&self, events: Vec<Inbound>) -> ChannelFuture<'_, Result<(), NotTaken>> {
        Box::pin(async move {
            let shared = self.0.dispatch.shared();
            let received_at = shared.clock.now_ms();
            let new = events.iter().cloned().map(|event| NewArrival { event, received_at }).collect();
            let stored = shared.journal.arrive(new).await.map_err(|error| NotTaken(error.to_string()))?;
            let Some(inserts) = stored else {
                return Err(NotTaken("too many messages wait; they are fetched again later".to_owned()));
            };
            for (event, insert) in events.into_iter().zip(inserts) {
                match insert {
                    ArrivalInsert::New(number) => {
                        let at = event.address.clone();
                        self.0.hand(at, StoredArrival { number, event: Ok(event), received_at });
                    }
                    ArrivalInsert::Known => {
                        tracing::debug!(channel = %event.address.channel, event = %event.native_id, "brought twice, taken once");
                    }
                }
            }
            Ok(())
        })
    }
}
