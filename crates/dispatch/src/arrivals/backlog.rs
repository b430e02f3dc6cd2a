//! Queue of what a desk has to hand over, in order. The first part is in memory; of the rest only
//! the numbers are. The rest stays in the durable inbox and is read from there when its turn has
//! come, so that people who write faster than they are answered fill the disk's bounded inbox and
//! not the memory.

use std::collections::VecDeque;

/// Number of messages that a desk keeps in memory. Parts of messages that are being gathered may be
/// as many more: an album is not taken apart.
pub(super) const MOST: usize = 100;

/// Queue of a desk: groups of messages in memory, and numbers of those behind them with their
/// sessions.
#[derive(Debug)]
pub(super) struct DeskQueue<T, K> {
    ready: VecDeque<Vec<T>>,
    behind: VecDeque<Behind<K>>,
}

/// A message that stays in the inbox for now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Behind<K> {
    pub(super) number: i64,
    pub(super) session: BacklogSession<K>,
    /// Sender, if their next message may belong to this one.
    pub(super) goes_on: Option<String>,
}

/// Session of a message that stays in the inbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BacklogSession<K> {
    Known(K),
    /// The message speaks to nobody yet, so no stop concerns it.
    Nobody,
    /// The message could not be read yet. These sessions were stopped since.
    Unread {
        stopped: Vec<K>,
    },
}

impl<K: PartialEq> Behind<K> {
    /// True if the message was stopped before it could be read, now that its session is known.
    pub(super) fn was_stopped(&self, session: &K) -> bool {
        matches!(&self.session, BacklogSession::Unread { stopped } if stopped.contains(session))
    }
}

/// Messages that a desk is gathering meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    /// Messages.
    pub(super) held: usize,
    /// True if more parts are awaited.
    pub(super) holds_a_part: bool,
}

impl<T, K> Default for DeskQueue<T, K> {
    fn default() -> Self {
        Self { ready: VecDeque::new(), behind: VecDeque::new() }
    }
}

impl<T, K: PartialEq + Clone> DeskQueue<T, K> {
    /// True if messages wait in the inbox alone.
    pub(super) fn has_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// True if no message is in memory.
    pub(super) fn has_nothing_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// True if one more message may be kept in memory.
    pub(super) fn has_room(&self, gathering: Gathering) -> bool {
        let kept = self.ready.iter().map(Vec::len).sum::<usize>() + gathering.held;
        kept < if gathering.holds_a_part { 2 * MOST } else { MOST }
    }

    /// Adds complete groups.
    pub(super) fn extend(&mut self, groups: impl IntoIterator<Item = Vec<T>>) {
        self.ready.extend(groups);
    }

    /// Leaves a message in the inbox until there is room.
    pub(super) fn leave(&mut self, behind: Behind<K>) {
        self.behind.push_back(behind);
    }

    /// Leaves a message in the inbox until it can be read.
    pub(super) fn leave_unread(&mut self, number: i64) {
        let session = BacklogSession::Unread { stopped: Vec::new() };
        self.leave(Behind { number, session, goes_on: None });
    }

    /// True if the next text of this sender may belong to one that is in the inbox.
    pub(super) fn awaits(&self, sender: &str) -> bool {
        self.behind.iter().any(|behind| behind.goes_on.as_deref() == Some(sender))
    }

    /// Returns the number of the next message that may be read from the inbox into memory.
    pub(super) fn next_behind(&self) -> Option<i64> {
        self.behind.front().map(|behind| behind.number)
    }

    /// Removes the first message of the inbox part: it has been read, or is gone from the inbox.
    pub(super) fn came(&mut self) -> Option<Behind<K>> {
        self.behind.pop_front()
    }

    /// Takes out the next group to hand over.
    pub(super) fn next(&mut self) -> Option<Vec<T>> {
        self.ready.pop_front()
    }

    /// Iterates over the messages in memory.
    pub(super) fn ready_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.ready.iter_mut().flatten()
    }

    /// Removes the session's messages from memory, and returns their numbers.
    pub(super) fn stop_ready(&mut self, session: &K, of: impl Fn(&T) -> (&K, i64)) -> Vec<i64> {
        let is_stopped = |group: &Vec<T>| group.iter().any(|one| of(one).0 == session);
        let (stopped, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.ready).into_iter().partition(is_stopped);
        self.ready = others;
        stopped.iter().flatten().map(|one| of(one).1).collect()
    }

    /// Removes the session's messages that are in the inbox alone, and returns their numbers. A
    /// message that could not be read is asked for its session once it is read.
    pub(super) fn stop_behind(&mut self, session: &K) -> Vec<i64> {
        let mut numbers = Vec::new();
        self.behind.retain_mut(|behind| match &mut behind.session {
            BacklogSession::Known(known) if known == session => {
                numbers.push(behind.number);
                false
            }
            BacklogSession::Known(_) | BacklogSession::Nobody => true,
            BacklogSession::Unread { stopped } => {
                if !stopped.contains(session) {
                    stopped.push(session.clone());
                }
                true
            }
        });
        numbers
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
            let mut backlog: DeskQueue<Message, u8> = DeskQueue::default();
            backlog.extend((0..ready).map(|number| vec![(0, number as i64)]));
            assert_eq!(backlog.has_room(Gathering { held, holds_a_part }), expect, "{ready} {held}");
        }
    }

    #[test]
    fn what_could_not_be_read_is_stopped_when_its_session_is_known() {
        let mut backlog: DeskQueue<Message, u8> = DeskQueue::default();
        backlog.leave_unread(1);
        for (number, session) in
            [(2, BacklogSession::Known(7)), (3, BacklogSession::Known(8)), (5, BacklogSession::Nobody)]
        {
            backlog.leave(Behind { number, session, goes_on: None });
        }
        assert_eq!(backlog.stop_behind(&7), [2]);
        assert_eq!(backlog.stop_behind(&7), [0; 0]);
        backlog.leave_unread(4);
        let first = backlog.came().unwrap();
        assert_eq!((first.number, first.was_stopped(&7), first.was_stopped(&8)), (1, true, false));
        assert!(!backlog.came().unwrap().was_stopped(&8));
        assert_eq!(backlog.came().unwrap().number, 5, "it spoke to nobody");
        assert!(!backlog.came().unwrap().was_stopped(&7), "it was said after the stop");
    }

    #[derive(Debug, Clone)]
    enum Act {
        Said(u8),
        /// A message that can't be read when it comes.
        SaidUnread(u8),
        HandedOver,
        Stop(u8),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            8 => (0..3u8).prop_map(Act::Said),
            1 => (0..3u8).prop_map(Act::SaidUnread),
            3 => Just(Act::HandedOver),
            1 => (0..3u8).prop_map(Act::Stop),
        ];
        prop::collection::vec(act, 0..600)
    }

    /// Reads on from the inbox while there is room, as a desk does. Returns the messages that were
    /// stopped before.
    fn read_on(backlog: &mut DeskQueue<Message, u8>, said: &[Message]) -> Vec<i64> {
        let mut stopped = Vec::new();
        while backlog.has_room(IDLE) {
            let Some(number) = backlog.next_behind() else { break };
            let message = said[usize::try_from(number).unwrap()];
            if backlog.came().unwrap().was_stopped(&message.0) {
                stopped.push(number);
            } else {
                backlog.extend([vec![message]]);
            }
        }
        stopped
    }

    /// Handles a new message as a desk does.
    fn say(backlog: &mut DeskQueue<Message, u8>, message: Message) {
        if !backlog.has_behind() && backlog.has_room(IDLE) {
            backlog.extend([vec![message]]);
        } else {
            let session = BacklogSession::Known(message.0);
            backlog.leave(Behind { number: message.1, session, goes_on: None });
        }
    }

    proptest! {
        /// Checks that every message is handed over once and in order, or stopped by what was said
        /// after it, and that memory holds no more than its limit.
        #[test]
        fn all_is_handed_over_once_in_order_or_stopped(acts in acts()) {
            let (mut backlog, mut said): (DeskQueue<Message, u8>, Vec<Message>) = (DeskQueue::default(), Vec::new());
            let (mut expected, mut handed): (VecDeque<Message>, Vec<Message>) = (VecDeque::new(), Vec::new());
            let (mut stopped, mut to_stop): (BTreeSet<i64>, BTreeSet<i64>) = (BTreeSet::new(), BTreeSet::new());
            let mut hand_over = |backlog: &mut DeskQueue<Message, u8>, expected: &mut VecDeque<Message>, said: &[Message]| {
                let mut later = read_on(backlog, said);
                let next = backlog.next().map(|group| group[0]);
                prop_assert_eq!(next, expected.pop_front());
                handed.extend(next);
                later.extend(read_on(backlog, said));
                Ok((next.is_some(), later))
            };
            for act in acts {
                match act {
                    Act::Said(session) => {
                        let message = (session, said.len() as i64);
                        said.push(message);
                        expected.push_back(message);
                        say(&mut backlog, message);
                    }
                    Act::SaidUnread(session) => {
                        let message = (session, said.len() as i64);
                        said.push(message);
                        expected.push_back(message);
                        backlog.leave_unread(message.1);
                    }
                    Act::HandedOver => stopped.extend(hand_over(&mut backlog, &mut expected, &said)?.1),
                    Act::Stop(session) => {
                        stopped.extend(backlog.stop_ready(&session, |(session, number)| (session, *number)));
                        stopped.extend(backlog.stop_behind(&session));
                        let of = |one: &&Message| one.0 == session;
                        to_stop.extend(expected.iter().filter(of).map(|one| one.1));
                        expected.retain(|one| one.0 != session);
                        stopped.extend(read_on(&mut backlog, &said));
                    }
                }
                prop_assert!(backlog.ready.len() <= MOST);
            }
            loop {
                let (is_any, later) = hand_over(&mut backlog, &mut expected, &said)?;
                stopped.extend(later);
                if !is_any {
                    break;
                }
            }
            prop_assert!(!backlog.has_behind() && expected.is_empty());
            prop_assert_eq!(stopped, to_stop);
        }
    }
}
