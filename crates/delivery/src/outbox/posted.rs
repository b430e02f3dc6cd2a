//! Outcome of the parts of one message that somebody waits for.

use std::time::Duration;

use openclaw_journal::delivery::{DeliveryState, DeliveryStatus};
use tokio::time::Instant;

use super::{Outbox, OutboxError};

/// Outcome of the parts of one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Posted {
    /// Parts that the platform has.
    pub sent: usize,
    /// Ids of the messages that the platform made of them, in order.
    pub message_ids: Vec<String>,
    /// Reasons for which parts were given up, in order.
    pub failures: Vec<String>,
    /// Parts that wait, and why if that is known.
    pub waiting: Vec<Option<String>>,
    /// Content left out of parts that were sent, or wait: files that the platform does not take,
    /// and why.
    pub left_out: Vec<String>,
}

impl Outbox {
    /// Returns the outcome of a message's parts once all of them are over, or when `patience` is.
    ///
    /// # Errors
    /// When the database can't be read.
    pub async fn posted(&self, ids: &[String], patience: Duration) -> Result<Posted, OutboxError> {
        let deadline = Instant::now() + patience;
        let mut posted = Posted::default();
        for id in ids {
            let left = deadline.saturating_duration_since(Instant::now());
            posted.note(self.outcome(id, left).await?);
        }
        Ok(posted)
    }
}

impl Posted {
    fn note(&mut self, status: Option<DeliveryStatus>) {
        let Some(status) = status else {
            return self.failures.push("it is not in the outbox any more".to_owned());
        };
        if status.state != DeliveryState::Failed {
            self.left_out.extend(status.left_out);
        }
        match status.state {
            DeliveryState::Sent => {
                self.sent += 1;
                self.message_ids
                    .extend(status.receipt.map(|receipt| receipt.message_ids).unwrap_or_default());
            }
            DeliveryState::Failed => {
                self.failures.push(status.error.unwrap_or_else(|| "the platform refused it".to_owned()));
            }
            DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Uncertain => {
                self.waiting.push(status.error);
            }
        }
    }

    /// Returns the reason for which it is not all there and never will be by itself, and what has
    /// arrived; `None` if nothing was given up. For people.
    pub fn failure(&self) -> Option<String> {
        if self.failures.is_empty() && self.left_out.is_empty() {
            return None;
        }
        let mut reasons = self.failures.clone();
        reasons.extend(self.left_out.iter().cloned());
        reasons.dedup();
        let why = reasons.join("; ");
        let (failed, waiting) = (self.failures.len(), self.waiting.len());
        let all = self.sent + failed + waiting;
        if all == failed {
            return Some(why);
        }
        let mut text = match failed {
            // Only files are missing.
            0 => format!("{why}."),
            1 => format!("1 of {all} parts was not sent: {why}."),
            _ => format!("{failed} of {all} parts were not sent: {why}."),
        };
        match (self.sent, self.message_ids.as_slice()) {
            (0, _) => {}
            (sent, []) => text.push_str(&format!(" {sent} arrived")),
            (sent, ids) => text.push_str(&format!(" {sent} arrived (message {})", ids.join(", "))),
        }
        if waiting > 0 {
            let and = if self.sent > 0 { " and" } else { "" };
            let wait = match waiting {
                1 => "waits and is sent by itself",
                _ => "wait and are sent by themselves",
            };
            text.push_str(&format!("{and} {waiting} {wait}"));
        }
        text.push_str(": do not send those again");
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_told_apart_from_what_did_not() {
        let posted = |ids: &[&str], failures: &[&str], waiting: usize| Posted {
            sent: ids.len(),
            message_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            failures: failures.iter().map(|why| (*why).to_owned()).collect(),
            waiting: vec![None; waiting],
            left_out: Vec::new(),
        };
        let without =
            |posted: Posted| Posted { left_out: vec!["file a was not sent: empty".to_owned()], ..posted };
        let rows = [
            (posted(&["7"], &[], 1), None),
            (posted(&[], &["blocked"], 0), Some("blocked")),
            (posted(&[], &["blocked", "blocked"], 0), Some("blocked")),
            (
                without(posted(&["7"], &[], 0)),
                Some("file a was not sent: empty. 1 arrived (message 7): do not send those again"),
            ),
            (
                without(posted(&["7"], &["blocked"], 0)),
                Some(
                    "1 of 2 parts was not sent: blocked; file a was not sent: empty. 1 arrived (message 7): do not send those again",
                ),
            ),
            (
                without(posted(&[], &[], 1)),
                Some("file a was not sent: empty. 1 waits and is sent by itself: do not send those again"),
            ),
            (
                posted(&["7", "9"], &["too large"], 0),
                Some(
                    "1 of 3 parts was not sent: too large. 2 arrived (message 7, 9): do not send those again",
                ),
            ),
            (
                posted(&["7"], &["a", "b"], 1),
                Some(
                    "2 of 4 parts were not sent: a; b. 1 arrived (message 7) and 1 waits and is sent by itself: do not send those again",
                ),
            ),
            (
                posted(&[], &["a"], 2),
                Some(
                    "1 of 3 parts was not sent: a. 2 wait and are sent by themselves: do not send those again",
                ),
            ),
        ];
        for (posted, expect) in rows {
            assert_eq!(posted.failure().as_deref(), expect, "{posted:?}");
        }
    }
}
