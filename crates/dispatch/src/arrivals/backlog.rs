//! What a desk has to hand over, in order: some of it in memory, what is behind that as numbers alone. It stays in the durable inbox, which
//! is asked for it when its turn has come, so that people who speak faster than they are answered fill the disk's bounded inbox and not
//! the memory.

use std::collections::VecDeque;

/// Messages that a desk keeps in memory. Parts of what is being gathered may be as many more: an album is not taken apart.
pub(super) const MOST: usize = 100;

/// What waits at a desk: groups of messages, and what is behind them with its session.
#[derive(Debug)]
pub(super) struct Backlog<T, K> {
    ready: VecDeque<Vec<T>>,
    behind: VecDeque<Behind<K>>,
}

/// A message that stays in the inbox for now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Behind<K> {
    pub(super) number: i64,
    /// The session that it speaks to, where it was read before.
    pub(super) session: Option<K>,
    /// Who said it, where what they say next may belong to it.
    pub(super) goes_on: Option<String>,
}

/// What a desk gathers meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    /// Messages.
    pub(super) held: usize,
    /// Whether more parts are waited for.
    pub(super) holds_a_part: bool,
}

impl<T, K> Default for Backlog<T, K> {
    fn default() -> Self {
        Self { ready: VecDeque::new(), behind: VecDeque::new() }
    }
}

impl<T, K: PartialEq> Backlog<T, K> {
    /// Whether something waits in the inbox alone.
    pub(super) fn has_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Whether nothing is in memory.
    pub(super) fn has_nothing_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether one more may be kept in memory.
    pub(super) fn has_room(&self, gathering: Gathering) -> bool {
        let kept = self.ready.iter().map(Vec::len).sum::<usize>() + gathering.held;
        kept < if gathering.holds_a_part { 2 * MOST } else { MOST }
    }

    /// These are complete.
    pub(super) fn extend(&mut self, groups: impl IntoIterator<Item = Vec<T>>) {
        self.ready.extend(groups);
    }

    /// This one stays in the inbox until there is room.
    pub(super) fn leave(&mut self, behind: Behind<K>) {
        self.behind.push_back(behind);
    }

    /// Whether the next text of somebody may belong to one that is in the inbox.
    pub(super) fn awaits(&self, sender: &str) -> bool {
        self.behind.iter().any(|behind| behind.goes_on.as_deref() == Some(sender))
    }

    /// The next that may come to memory from the inbox.
    pub(super) fn next_behind(&self) -> Option<i64> {
        self.behind.front().map(|behind| behind.number)
    }

    /// It has come, or is not there any more.
    pub(super) fn came(&mut self) {
        self.behind.pop_front();
    }

    /// The next group to hand over.
    pub(super) fn next(&mut self) -> Option<Vec<T>> {
        self.ready.pop_front()
    }

    /// Takes away what is of a session of what is in memory, and gives the numbers.
    pub(super) fn stop_ready(&mut self, session: &K, of: impl Fn(&T) -> (&K, i64)) -> Vec<i64> {
        let is_stopped = |group: &Vec<T>| group.iter().any(|one| of(one).0 == session);
        let (stopped, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.ready).into_iter().partition(is_stopped);
        self.ready = others;
        stopped.iter().flatten().map(|one| of(one).1).collect()
    }

    /// The same of what is in the inbox alone.
    pub(super) fn stop_behind(&mut self, session: &K) -> Vec<i64> {
        let mut numbers = Vec::new();
        self.behind.retain(|behind| {
            let is_of = behind.session.as_ref() == Some(session);
            numbers.extend(is_of.then_some(behind.number));
            !is_of
        });
        numbers
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Message = (u8, i64);
    const IDLE: Gathering = Gathering { held: 0, holds_a_part: false };

    #[test]
    fn parts_of_an_album_have_room_beyond_the_limit() {
        let rows = [
            (MOST - 1, 0, false, true),
            (MOST - 1, 1, false, false),
            (MOST, 0, false, false),
            (MOST, 1, true, true),
            (MOST, MOST, true, false),
        ];
        for (ready, held, holds_a_part, expect) in rows {
            let mut backlog: Backlog<Message, u8> = Backlog::default();
            backlog.extend((0..ready).map(|number| vec![(0, number as i64)]));
            assert_eq!(backlog.has_room(Gathering { held, holds_a_part }), expect, "{ready} {held}");
        }
    }

    #[derive(Debug, Clone)]
    enum Act {
        Said(u8),
        HandedOver,
        Stop(u8),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            8 => (0..3u8).prop_map(Act::Said),
            3 => Just(Act::HandedOver),
            1 => (0..3u8).prop_map(Act::Stop),
        ];
        prop::collection::vec(act, 0..600)
    }

    /// As a desk does at once where there is room.
    fn read_on(backlog: &mut Backlog<Message, u8>, said: &[Message]) {
        while backlog.has_room(IDLE) {
            let Some(number) = backlog.next_behind() else { return };
            backlog.came();
            backlog.extend([vec![said[usize::try_from(number).unwrap()]]]);
        }
    }

    /// As a desk does with it.
    fn say(backlog: &mut Backlog<Message, u8>, message: Message) {
        if !backlog.has_behind() && backlog.has_room(IDLE) {
            backlog.extend([vec![message]]);
        } else {
            backlog.leave(Behind { number: message.1, session: Some(message.0), goes_on: None });
        }
    }

    proptest! {
        /// Everything is handed over once and in order, or stopped by what was said after it, and no more is kept than may be.
        #[test]
        fn all_is_handed_over_once_in_order_or_stopped(acts in acts()) {
            let (mut backlog, mut said): (Backlog<Message, u8>, Vec<Message>) = (Backlog::default(), Vec::new());
            let (mut expected, mut handed): (VecDeque<Message>, Vec<Message>) = (VecDeque::new(), Vec::new());
            let mut hand_over = |backlog: &mut Backlog<Message, u8>, expected: &mut VecDeque<Message>, said: &[Message]| {
                let next = backlog.next().map(|group| group[0]);
                prop_assert_eq!(next, expected.pop_front());
                handed.extend(next);
                read_on(backlog, said);
                Ok(next.is_some())
            };
            for act in acts {
                match act {
                    Act::Said(session) => {
                        let message = (session, said.len() as i64);
                        said.push(message);
                        expected.push_back(message);
                        say(&mut backlog, message);
                    }
                    Act::HandedOver => {
                        hand_over(&mut backlog, &mut expected, &said)?;
                    }
                    Act::Stop(session) => {
                        let mut stopped = backlog.stop_ready(&session, |(session, number)| (session, *number));
                        stopped.extend(backlog.stop_behind(&session));
                        let of = |one: &&Message| one.0 == session;
                        let expect: Vec<i64> = expected.iter().filter(of).map(|one| one.1).collect();
                        prop_assert_eq!(stopped, expect);
                        expected.retain(|one| one.0 != session);
                        read_on(&mut backlog, &said);
                    }
                }
                prop_assert!(backlog.ready.len() <= MOST);
            }
            while hand_over(&mut backlog, &mut expected, &said)? {}
            prop_assert!(!backlog.has_behind() && expected.is_empty());
        }
    }
}
