//! Fan-out of [`Broadcast`]s: the only one, and bounded.

use openclaw_journal::api::Broadcast;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Number of events that a subscriber may be behind before runs wait for it (and droppable events
/// are lost to it). Each holds all the text of its message so far, in memory.
const BEHIND: usize = 64;

#[derive(Debug)]
enum Item {
    Event(Box<Broadcast>),
    /// Asks to be told once everything before it was handled.
    Barrier(oneshot::Sender<()>),
}

/// Receiver of [`Broadcast`]s, in order per run. Bounded: a reader that does not read holds the runs up, so read it from
/// a task that does nothing else and never waits for dispatch. Asking for the next event says that the one before was
/// handled; only then is a caller told that a run has ended.
#[derive(Debug)]
pub struct Events {
    items: mpsc::Receiver<Item>,
}

impl Events {
    /// Receives the next event; `None` after shutdown.
    pub async fn recv(&mut self) -> Option<Broadcast> {
        loop {
            match self.items.recv().await? {
                Item::Event(broadcast) => return Some(*broadcast),
                // The caller may have gone away meanwhile.
                Item::Barrier(passed) => drop(passed.send(())),
            }
        }
    }
}

/// Sending side of the fan-out.
#[derive(Debug, Default)]
pub struct Hub {
    subscribers: Mutex<Vec<mpsc::Sender<Item>>>,
}

impl Hub {
    /// Every event from now on.
    pub fn subscribe(&self) -> Events {
        let (sender, items) = mpsc::channel(BEHIND);
        self.subscribers.lock().push(sender);
        Events { items }
    }

    /// Sends to every subscriber, waiting for those that are behind; a droppable event is lost to them instead.
    pub async fn publish(&self, broadcast: Broadcast) {
        let subscribers = self.subscribers.lock().clone();
        let Some((last, others)) = subscribers.split_last() else { return };
        let mut all_there = true;
        for subscriber in others {
            all_there &= offer(subscriber, broadcast.clone()).await;
        }
        all_there &= offer(last, broadcast).await;
        if !all_there {
            self.subscribers.lock().retain(|subscriber| !subscriber.is_closed());
        }
    }

    /// Waits until everything published before was handled by every subscriber that is still there.
    pub async fn flush(&self) {
        let subscribers = self.subscribers.lock().clone();
        for subscriber in subscribers {
            let (passed, wait) = oneshot::channel();
            if subscriber.send(Item::Barrier(passed)).await.is_ok() {
                // An error means that the subscriber went away: it has nothing left to handle.
                let _ = wait.await;
            }
        }
    }

    /// Ends every subscription, after everything that was published.
    pub fn close(&self) {
        self.subscribers.lock().clear();
    }
}

/// Sends the event to a subscriber; false if the subscriber is gone.
async fn offer(subscriber: &mpsc::Sender<Item>, broadcast: Broadcast) -> bool {
    let droppable = broadcast.droppable;
    let item = Item::Event(Box::new(broadcast));
    if droppable {
        !matches!(subscriber.try_send(item), Err(mpsc::error::TrySendError::Closed(_)))
    } else {
        subscriber.send(item).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use openclaw_journal::api::Audience;
    use openclaw_protocol::{Payload, RunId, SessionKey};

    use super::*;

    fn event(n: usize, droppable: bool) -> Broadcast {
        Broadcast {
            name: "agent",
            payload: Payload::of(&n).unwrap(),
            run_id: RunId::new("r"),
            session_key: SessionKey::global(),
            audience: Audience::All,
            droppable,
            ends_run: false,
            growing: None,
        }
    }

    #[tokio::test]
    async fn a_flush_returns_only_after_the_reader_came_back_for_more() {
        let hub = Hub::default();
        let mut events = hub.subscribe();
        hub.publish(event(1, false)).await;
        let flush = hub.flush();
        tokio::pin!(flush);
        assert!(futures_util::poll!(&mut flush).is_pending());
        assert_eq!(events.recv().await.unwrap().payload.as_str(), "1");
        assert!(futures_util::poll!(&mut flush).is_pending(), "the event is out, but not handled");
        let next = events.recv();
        tokio::pin!(next);
        assert!(futures_util::poll!(&mut next).is_pending());
        flush.await;
    }

    #[tokio::test]
    async fn a_reader_that_is_behind_loses_droppable_events_and_holds_up_the_others() {
        let hub = Hub::default();
        let mut events = hub.subscribe();
        for n in 0..BEHIND {
            hub.publish(event(n, false)).await;
        }
        hub.publish(event(BEHIND, true)).await;
        {
            let publish = hub.publish(event(BEHIND + 1, false));
            tokio::pin!(publish);
            assert!(futures_util::poll!(&mut publish).is_pending());
            assert_eq!(events.recv().await.unwrap().payload.as_str(), "0");
            publish.await;
        }
        hub.close();
        let mut last = None;
        while let Some(event) = events.recv().await {
            last = Some(event.payload.as_str().to_owned());
        }
        assert_eq!(last, Some((BEHIND + 1).to_string()));
    }

    #[tokio::test]
    async fn a_reader_that_left_is_forgotten() {
        let hub = Hub::default();
        drop(hub.subscribe());
        hub.publish(event(1, false)).await;
        hub.flush().await;
        assert!(hub.subscribers.lock().is_empty());
    }
}
