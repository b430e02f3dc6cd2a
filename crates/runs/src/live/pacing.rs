//! Pauses between the blocks of an answer (spec `streaming.md` §4): made by the outbox, so that
//! neither the run nor its session waits for them. The typing indicator is shown until the last
//! block is out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_channels::{Account, Activity, Address};
use openclaw_delivery::outbox::Outbox;
use openclaw_delivery::reply::typing::{self, Typing};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::part_id;
use crate::replies::AnswerSettings;

/// Times at which the blocks of one answer go out.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// Time at which the last one does.
    last_at: Option<Instant>,
    /// Id of the last delivery that waits for its pause.
    last: Option<String>,
}

impl Pacing {
    /// Returns the time from now at which a block goes out that has this pause behind the one
    /// before it.
    pub(super) fn ahead(&mut self, now: Instant, pause: Duration) -> Duration {
        let at = self.last_at.map_or(now, |last| last.max(now)) + pause;
        self.last_at = Some(at);
        at - now
    }

    /// Notes that a block is sent so far from now.
    pub(super) fn sends(&mut self, id: &str, ahead: Option<Duration>) {
        if ahead.is_some_and(|ahead| !ahead.is_zero()) {
            self.last = Some(part_id(id, 0));
        }
    }

    /// True if any block had a pause.
    pub(super) fn has_paused(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the blocks that are left when the run is over, if the typing indicator is shown
    /// until then.
    pub(super) fn unsent(&self, typing: &Typing, reply: &AnswerSettings<'_>) -> Option<Unsent> {
        Some(Unsent {
            last: self.last.clone()?,
            every: typing.shown_every()?,
            account: reply.account.clone()?,
            at: reply.to.address.clone(),
        })
    }
}

/// Blocks of an answer whose run is over.
pub(crate) struct Unsent {
    /// The last of them.
    last: String,
    every: Duration,
    account: Arc<dyn Account>,
    at: Address,
}

impl Unsent {
    /// Shows that somebody writes until they are out.
    pub(crate) fn show(self, showing: &TaskTracker, outbox: Outbox, stopping: CancellationToken) {
        showing.spawn(async move {
            tokio::select! { biased;
                () = stopping.cancelled() => {}
                () = self.until_sent(outbox) => {}
            }
        });
    }

    async fn until_sent(self, outbox: Outbox) {
        let begun = Instant::now();
        while begun.elapsed() < typing::TTL {
            match outbox.outcome(&self.last, self.every).await {
                Ok(Some(status)) if status.state.is_open() => {}
                Ok(_) => return,
                Err(error) => return tracing::debug!(%error, "that somebody writes is not shown any more"),
            }
            if let Err(error) = self.account.show_activity(&self.at, Activity::Typing).await {
                return tracing::debug!(%error, "that somebody writes is not shown any more");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_waits_behind_the_one_before_and_behind_its_own_arrival() {
        let (start, mut pacing) = (Instant::now(), Pacing::default());
        let seconds = Duration::from_secs;
        assert_eq!(pacing.ahead(start, Duration::ZERO), Duration::ZERO);
        assert_eq!(pacing.ahead(start, seconds(2)), seconds(2));
        assert_eq!(pacing.ahead(start + seconds(1), seconds(2)), seconds(3));
        assert_eq!(pacing.ahead(start + seconds(60), seconds(2)), seconds(2));
        pacing.sends("r:b1", Some(Duration::ZERO));
        pacing.sends("r:t2", None);
        assert!(!pacing.has_paused());
        pacing.sends("r:b3", Some(seconds(1)));
        assert_eq!(pacing.last.as_deref(), Some("r:b3.1"));
    }
}
