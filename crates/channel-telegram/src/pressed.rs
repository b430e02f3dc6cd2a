//! Estimates the time at which a button was pressed. Telegram does not say, and brings old presses
//! as it brings new ones. Known facts: the press came behind everything that happened before it, it
//! came after the message with the button, and an old one can't be answered any more.

use std::time::Duration;

use futures_util::StreamExt as _;
use openclaw_channels::InboundEvent;
use serde_json::json;

use crate::client::Client;
use crate::failure::BotApiError;
use crate::update::Update;

/// Age in milliseconds up to which an event counts as current: a poll is held for half of it.
const JUST_NOW: i64 = 60_000;
/// Total time for answering presses, and the number of presses at a time.
const PATIENCE: Duration = Duration::from_secs(10);
const AT_ONCE: usize = 16;
/// Error text of Telegram for an answer to a press that comes too late.
const TOO_OLD: &str = "query is too old";

/// Time up to which all events were received, as far as that is known; Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct ReceivedUpTo(Option<i64>);

impl ReceivedUpTo {
    /// Creates the value for events that were received up to this time.
    pub(super) fn until(at: Option<i64>) -> Self {
        Self(at)
    }

    /// Records that no more events are waiting.
    pub(super) fn all(&mut self, now: i64) {
        self.0 = Some(now);
    }

    /// Records that an event of this time was received now. Events that wait behind it happened
    /// later.
    fn brought(&mut self, at: i64, now: i64) {
        let until = if now.saturating_sub(at) > JUST_NOW { at } else { now };
        self.0 = self.0.max(Some(until));
    }

    /// The earliest time at which a button below a message of another time may have been pressed; `None` where that has just happened.
    fn doubt(self, message_at: i64, now: i64) -> Option<i64> {
        let since = self.0.map_or(message_at, |until| until.max(message_at));
        (now.saturating_sub(since) > JUST_NOW).then_some(since)
    }
}

/// A press that may be old.
struct Doubtful {
    /// Index of the update.
    index: usize,
    callback: String,
    since: i64,
    /// Upper bound of the time of the press.
    before: i64,
}

/// Gives the presses among updates, which are in order, the time at which they happened. Presses
/// that may be old are answered at once, which shows their age; their callback is taken then. Gives
/// what was heard by then.
pub(super) async fn date(
    client: &Client,
    updates: &mut [Update],
    heard: ReceivedUpTo,
    now: i64,
) -> ReceivedUpTo {
    let (doubtful, heard) = doubtful(updates, heard, now);
    if doubtful.is_empty() {
        return heard;
    }
    let ask = |one: Doubtful| async move {
        let params = json!({"callback_query_id": one.callback});
        let answered = client.call_within("answerCallbackQuery", &params, PATIENCE).await;
        (one.index, pressed_at(&answered.map(drop), one.since, one.before))
    };
    // Presses without an answer by then count as old as they can be: an old button should not take
    // effect.
    for one in &doubtful {
        set(updates, one.index, one.since);
    }
    let mut asked = futures_util::stream::iter(doubtful).map(ask).buffer_unordered(AT_ONCE);
    let all = async {
        while let Some((index, at)) = asked.next().await {
            set(updates, index, at);
        }
    };
    if tokio::time::timeout(PATIENCE, all).await.is_err() {
        tracing::debug!("Telegram did not say in time how old some pressed buttons are");
    }
    heard
}

fn set(updates: &mut [Update], index: usize, at: i64) {
    let Some(update) = updates.get_mut(index) else { return };
    update.callback = None;
    update.events.iter_mut().for_each(|event| event.at = at);
}

fn doubtful(updates: &[Update], mut heard: ReceivedUpTo, now: i64) -> (Vec<Doubtful>, ReceivedUpTo) {
    let mut doubtful: Vec<Doubtful> = Vec::new();
    for (index, update) in updates.iter().enumerate() {
        if let Some(callback) = &update.callback {
            if let Some(since) = heard.doubt(callback.message_at, now) {
                doubtful.push(Doubtful { index, callback: callback.id.clone(), since, before: now });
            }
            continue;
        }
        for event in &update.events {
            // The time of an unreadable event is that at which it was read.
            if !matches!(event.event, InboundEvent::Unreadable { .. }) {
                heard.brought(event.at, now);
                for earlier in &mut doubtful {
                    earlier.before = earlier.before.min(event.at.max(earlier.since));
                }
            }
        }
    }
    (doubtful, heard)
}

/// Returns the time of a press, as far as the answer to it shows.
fn pressed_at(answered: &Result<(), BotApiError>, since: i64, before: i64) -> i64 {
    match answered {
        Ok(()) => before,
        Err(BotApiError::Refused { text, .. }) if text.to_lowercase().contains(TOO_OLD) => since,
        Err(error) => {
            tracing::debug!(%error, "how old a pressed button is could not be asked");
            since
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::ApiRefusal;
    use super::super::update::{self, Callback};
    use super::*;
    use crate::entities::Me;

    const MINUTE: i64 = 60_000;
    const NOW: i64 = 1_000 * MINUTE;

    fn said(minutes_ago: i64) -> Update {
        let me = Me { id: 1, ..Me::default() };
        let seconds = (NOW - minutes_ago * MINUTE) / 1_000;
        let message = json!({"message_id": 1, "date": seconds, "text": "x", "chat": {"id": 5, "type": "private"},
            "from": {"id": 5, "is_bot": false, "first_name": "A"}});
        update::read(
            &json!({"update_id": 1, "message": message}),
            "default",
            &me,
            update::UpdateTimes { now: NOW, ahead: 0 },
        )
    }

    fn press(below_minutes_ago: i64) -> Update {
        let message_at = NOW - below_minutes_ago * MINUTE;
        Update { events: Vec::new(), callback: Some(Callback { id: "c".to_owned(), message_at }) }
    }

    #[test]
    fn a_press_among_late_messages_is_in_doubt() {
        let heard = |minutes_ago: i64| ReceivedUpTo::until(Some(NOW - minutes_ago * MINUTE));
        // Rows: the time of the last event, the updates, and for each doubtful press its bounds in
        // minutes.
        let rows = [
            (heard(0), vec![press(900)], vec![]),
            (heard(1), vec![press(900)], vec![]),
            (heard(2), vec![press(900)], vec![(2, 0)]),
            // The button is below a new message.
            (heard(2), vec![press(1)], vec![]),
            (ReceivedUpTo::default(), vec![press(900)], vec![(900, 0)]),
            (heard(300), vec![said(200), press(900), said(100)], vec![(200, 100)]),
            (heard(300), vec![said(200), press(900), said(0), press(900)], vec![(200, 0)]),
            (heard(300), vec![press(900), said(0)], vec![(300, 0)]),
            (heard(0), vec![said(200), press(900)], vec![]),
        ];
        for (heard, updates, expect) in rows {
            let (found, _) = doubtful(&updates, heard, NOW);
            let ago = |at: i64| (NOW - at) / MINUTE;
            let found: Vec<_> = found.iter().map(|one| (ago(one.since), ago(one.before))).collect();
            assert_eq!(found, expect, "{heard:?} {updates:?}");
        }
    }

    #[test]
    fn what_was_heard_reaches_to_the_last_late_message_or_to_now() {
        let old = ReceivedUpTo::until(Some(NOW - 300 * MINUTE));
        assert_eq!(doubtful(&[said(200)], old, NOW).1, ReceivedUpTo(Some(NOW - 200 * MINUTE)));
        assert_eq!(doubtful(&[said(200), said(0)], old, NOW).1, ReceivedUpTo(Some(NOW)));
        assert_eq!(doubtful(&[said(400)], old, NOW).1, old, "an old message that was edited");
    }

    #[test]
    fn an_answer_tells_how_old_a_press_is() {
        let refused = |text: &str| {
            Err(BotApiError::Refused { status: 400, refusal: ApiRefusal::Other, text: text.to_owned() })
        };
        let too_old = "Bad Request: query is too old and response timeout expired or query ID is invalid";
        let rows = [
            (Ok(()), 9),
            (refused(too_old), 2),
            (refused("Internal"), 2),
            (Err(BotApiError::Lost("reset".to_owned())), 2),
        ];
        for (answered, expect) in rows {
            assert_eq!(pressed_at(&answered, 2, 9), expect, "{answered:?}");
        }
    }
}
