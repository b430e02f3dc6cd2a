//! Rate limits of a bot: thirty messages a second in all, about one a second to one chat, twenty a
//! minute to a group (spec `channels.md` §5.5). A chat of which Telegram says "too many requests"
//! waits; the others go on.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Chats that are remembered before those that are idle are forgotten.
const REMEMBERED: usize = 1000;
const MINUTE: Duration = Duration::from_secs(60);

/// Limit of `most` messages in any `span`.
#[derive(Debug)]
struct RateWindow {
    most: usize,
    span: Duration,
    times: VecDeque<Instant>,
}

impl RateWindow {
    fn new(most: usize, span: Duration) -> Self {
        Self { most, span, times: VecDeque::new() }
    }

    /// Returns the earliest time for the next message, not before `now`.
    fn earliest(&self, now: Instant) -> Instant {
        match self.times.len().checked_sub(self.most).and_then(|at| self.times.get(at)) {
            Some(time) => now.max(*time + self.span),
            None => now,
        }
    }

    fn add(&mut self, time: Instant) {
        self.times.push_back(time);
        if self.times.len() > self.most {
            self.times.pop_front();
        }
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.times.back().is_none_or(|time| *time + self.span <= now)
    }
}

#[derive(Debug)]
struct ChatPace {
    windows: Vec<RateWindow>,
    parked_until: Option<Instant>,
}

/// The speed of one bot. Pure: the clock is the caller's.
#[derive(Debug)]
pub(super) struct BotPace {
    all: RateWindow,
    chats: HashMap<String, ChatPace>,
}

impl Default for BotPace {
    fn default() -> Self {
        Self { all: RateWindow::new(30, Duration::from_secs(1)), chats: HashMap::new() }
    }
}

impl BotPace {
    /// Takes the next place of a chat and says when that is.
    pub(super) fn reserve(&mut self, chat: &str, now: Instant) -> Instant {
        if self.chats.len() >= REMEMBERED {
            self.forget_idle(now);
        }
        let all = &mut self.all;
        let place = self.chats.entry(chat.to_owned()).or_insert_with(|| ChatPace::new(chat));
        let not_before = place.parked_until.map_or(now, |until| until.max(now));
        let windows = place.windows.iter().chain([&*all]);
        let at = windows.fold(not_before, |at, window| at.max(window.earliest(now)));
        place.windows.iter_mut().chain([all]).for_each(|window| window.add(at));
        at
    }

    /// The place of a message that goes to a chat now; or how long it would have to wait, and then none is taken.
    pub(super) fn try_reserve(&mut self, chat: &str, now: Instant) -> Result<(), Duration> {
        let at = self.earliest(chat, now);
        if at > now {
            return Err(at.duration_since(now));
        }
        self.reserve(chat, now);
        Ok(())
    }

    fn earliest(&self, chat: &str, now: Instant) -> Instant {
        let place = self.chats.get(chat);
        let not_before = place.and_then(|place| place.parked_until).map_or(now, |until| until.max(now));
        let windows = place.into_iter().flat_map(|place| &place.windows).chain([&self.all]);
        windows.fold(not_before, |at, window| at.max(window.earliest(now)))
    }

    /// Blocks a chat for this time.
    pub(super) fn park(&mut self, chat: &str, wait: Duration, now: Instant) {
        let place = self.chats.entry(chat.to_owned()).or_insert_with(|| ChatPace::new(chat));
        place.parked_until = place.parked_until.max(Some(now + wait));
    }

    /// Returns the remaining time for which Telegram told us not to send to a chat.
    pub(super) fn parked(&self, chat: &str, now: Instant) -> Option<Duration> {
        let until = self.chats.get(chat)?.parked_until?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    fn forget_idle(&mut self, now: Instant) {
        self.chats.retain(|_, chat| {
            chat.parked_until.is_some_and(|until| until > now)
                || !chat.windows.iter().all(|window| window.is_idle(now))
        });
    }
}

impl ChatPace {
    fn new(chat: &str) -> Self {
        // Three may come at once, so that an answer in three parts does not take three seconds.
        let mut windows = vec![RateWindow::new(3, Duration::from_secs(3))];
        // Groups and channels have negative ids, or names.
        if chat.starts_with(['-', '@']) {
            windows.push(RateWindow::new(20, MINUTE));
        }
        Self { windows, parked_until: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pace: &mut BotPace, chat: &str, now: Instant, count: usize) -> Vec<u128> {
        (0..count).map(|_| pace.reserve(chat, now).duration_since(now).as_millis()).collect()
    }

    #[test]
    fn a_chat_has_one_message_a_second_and_three_at_once() {
        let now = Instant::now();
        let mut pace = BotPace::default();
        assert_eq!(waits(&mut pace, "1", now, 7), [0, 0, 0, 3000, 3000, 3000, 6000]);
        assert_eq!(waits(&mut pace, "2", now, 1), [0], "another chat does not wait");
    }

    #[test]
    fn a_group_has_twenty_a_minute() {
        let now = Instant::now();
        let mut pace = BotPace::default();
        let waits = waits(&mut pace, "-1001", now, 21);
        assert_eq!(waits[19], 18_000);
        assert_eq!(waits[20], 60_000);
    }

    #[test]
    fn all_chats_together_have_thirty_a_second() {
        let now = Instant::now();
        let mut pace = BotPace::default();
        let all: Vec<u128> = (0..61)
            .map(|chat| pace.reserve(&chat.to_string(), now).duration_since(now).as_millis())
            .collect();
        assert_eq!((all[29], all[30], all[59], all[60]), (0, 1000, 1000, 2000));
    }

    #[test]
    fn what_has_to_wait_takes_no_place() {
        let now = Instant::now();
        let mut pace = BotPace::default();
        for _ in 0..3 {
            assert_eq!(pace.try_reserve("1", now), Ok(()));
        }
        for _ in 0..9 {
            assert_eq!(pace.try_reserve("1", now), Err(Duration::from_secs(3)));
        }
        assert_eq!(pace.try_reserve("1", now + Duration::from_secs(3)), Ok(()));
        pace.park("2", Duration::from_secs(30), now);
        assert_eq!(pace.try_reserve("2", now), Err(Duration::from_secs(30)));
        assert_eq!(pace.try_reserve("3", now), Ok(()), "a parked chat holds up no other");
    }

    #[test]
    fn a_chat_that_is_parked_waits_and_others_do_not() {
        let now = Instant::now();
        let mut pace = BotPace::default();
        pace.park("1", Duration::from_secs(9), now);
        pace.park("1", Duration::from_secs(2), now);
        assert_eq!(pace.parked("1", now), Some(Duration::from_secs(9)));
        assert_eq!(waits(&mut pace, "1", now, 1), [9000]);
        assert_eq!(waits(&mut pace, "2", now, 1), [0]);
        assert_eq!(pace.parked("1", now + Duration::from_secs(9)), None);
    }

    #[test]
    fn idle_chats_are_forgotten() {
        let now = Instant::now();
        let mut pace = BotPace::default();
        for chat in 0..REMEMBERED {
            pace.reserve(&chat.to_string(), now);
        }
        pace.park("0", MINUTE * 60, now);
        pace.reserve("x", now + MINUTE * 10);
        assert_eq!(pace.chats.len(), 2);
    }
}
