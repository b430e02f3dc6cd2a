//! The order of one connection's requests that concern sessions: each takes its place in its
//! session before the next does (`docs/durability.md`, decision of the order in a session).
//! Requests that need no place are not held up.

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Hands out turns, in the order in which frames are read.
#[derive(Debug, Default)]
pub(crate) struct RequestOrder {
    /// Ends when the last turn that was handed out is over.
    last: Mutex<Option<oneshot::Receiver<()>>>,
}

/// A request's turn. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct RequestTurn {
    before: Option<oneshot::Receiver<()>>,
    _over: oneshot::Sender<()>,
}

impl RequestOrder {
    /// The turn behind all that were handed out before.
    pub(crate) fn turn(&self) -> RequestTurn {
        let (over, last) = oneshot::channel();
        RequestTurn { before: self.last.lock().replace(last), _over: over }
    }
}

impl RequestTurn {
    /// Waits until the one before is over.
    pub(crate) async fn comes(&mut self) {
        if let Some(before) = self.before.take() {
            // The turn before ends by being dropped.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn turns_come_one_after_the_other_also_where_one_is_given_up() {
        let order = RequestOrder::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let turns: Vec<RequestTurn> = (0..4).map(|_| order.turn()).collect();
        let mut tasks = tokio::task::JoinSet::new();
        for (n, mut turn) in turns.into_iter().enumerate().rev() {
            let seen = Arc::clone(&seen);
            tasks.spawn(async move {
                if n == 2 {
                    return drop(turn);
                }
                turn.comes().await;
                seen.lock().push(n);
            });
        }
        tasks.join_all().await;
        let seen = seen.lock().clone();
        assert_eq!(seen.iter().copied().filter(|n| *n < 2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(seen.len(), 3);
    }
}
