//! What belongs together is one message (spec `queue.md` §8, `channels.md` §7.3): texts typed in quick succession, the files of an album,
//! the parts of a text that its platform cut. A machine: it is told the time, and says when it wants to hear it again.

use std::time::{Duration, Instant};

/// How long the files of an album are waited for.
const ALBUM: Duration = Duration::from_millis(500);
/// How long the next part of a cut text is waited for.
const PART: Duration = Duration::from_millis(1500);
/// Parts of a cut text, and characters of all of them.
const MAX_PARTS: usize = 12;
const MAX_PART_CHARS: usize = 50_000;

/// With what a message is gathered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gather {
    /// With nothing.
    Alone,
    /// With texts of the same person that come within this time, each after the one before.
    Text(Duration),
    /// With the files of this album.
    Album(String),
    /// With what the same person says next: the platform cut it here. So many characters.
    GoesOn(usize),
}

/// Gathers what people say in one conversation.
#[derive(Debug)]
pub(crate) struct Machine<T> {
    held: Vec<Held<T>>,
}

#[derive(Debug)]
struct Held<T> {
    key: String,
    with: Gather,
    items: Vec<T>,
    chars: usize,
    due: Instant,
}

impl<T> Default for Machine<T> {
    fn default() -> Self {
        Self { held: Vec::new() }
    }
}

impl<T> Machine<T> {
    /// Something was said by somebody; gives what is complete now, in order.
    pub(crate) fn push(&mut self, now: Instant, key: &str, with: Gather, item: T) -> Vec<Vec<T>> {
        let at = self.held.iter().position(|held| held.key == key);
        let Some(at) = at else { return self.begin(now, key, with, item) };
        let Some(held) = self.held.get_mut(at) else { return Vec::new() };
        let joins = held.due > now
            && match (&held.with, &with) {
                (Gather::Text(_), Gather::Text(window)) => !window.is_zero(),
                (Gather::Album(held), Gather::Album(new)) => held == new,
                (Gather::GoesOn(_), Gather::GoesOn(chars)) => held.takes(*chars),
                // The last part is shorter.
                (Gather::GoesOn(_), Gather::Text(_)) => held.takes(0),
                _ => false,
            };
        if !joins {
            let mut ready = vec![self.held.remove(at).items];
            ready.extend(self.begin(now, key, with, item));
            return ready;
        }
        held.items.push(item);
        match (&held.with, with) {
            (Gather::Text(_), Gather::Text(window)) => held.due = now + window,
            (Gather::GoesOn(_), Gather::GoesOn(chars)) => {
                held.chars += chars;
                held.due = now + PART;
            }
            (Gather::GoesOn(_), _) => return vec![self.held.remove(at).items],
            _ => held.due = now + ALBUM,
        }
        Vec::new()
    }

    fn begin(&mut self, now: Instant, key: &str, with: Gather, item: T) -> Vec<Vec<T>> {
        let (wait, chars) = match &with {
            Gather::Alone => return vec![vec![item]],
            Gather::Text(window) if window.is_zero() => return vec![vec![item]],
            Gather::Text(window) => (*window, 0),
            Gather::Album(_) => (ALBUM, 0),
            Gather::GoesOn(chars) => (PART, *chars),
        };
        self.held.push(Held { key: key.to_owned(), with, items: vec![item], chars, due: now + wait });
        Vec::new()
    }

    /// When [`Machine::tick`] has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.due).min()
    }

    /// The time has come; gives what is complete.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<Vec<T>> {
        self.take(|held| held.due <= now)
    }

    /// Everything that is held.
    pub(crate) fn flush(&mut self) -> Vec<Vec<T>> {
        self.take(|_| true)
    }

    fn take(&mut self, is_ready: impl Fn(&Held<T>) -> bool) -> Vec<Vec<T>> {
        let (ready, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held).into_iter().partition(is_ready);
        self.held = held;
        ready.into_iter().map(|held| held.items).collect()
    }
}

impl<T> Held<T> {
    fn takes(&self, chars: usize) -> bool {
        self.items.len() < MAX_PARTS && self.chars + chars <= MAX_PART_CHARS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Gather = Gather::Text(Duration::from_millis(10));

    fn after(ms: u64, start: Instant) -> Instant {
        start + Duration::from_millis(ms)
    }

    /// The vectors of spec `queue.md` §8.
    #[test]
    fn texts_in_quick_succession_are_one_message() {
        let start = Instant::now();
        let mut machine = Machine::default();
        assert!(machine.push(start, "a", WINDOW, 1).is_empty());
        assert!(machine.push(after(9, start), "a", WINDOW, 2).is_empty(), "each one begins the time anew");
        assert!(machine.push(after(9, start), "b", WINDOW, 3).is_empty(), "others have their own");
        assert_eq!(machine.tick(after(18, start)), Vec::<Vec<i32>>::new());
        assert_eq!(machine.tick(after(19, start)), [vec![1, 2], vec![3]]);
        machine.push(start, "a", WINDOW, 4);
        assert_eq!(machine.push(start, "a", Gather::Alone, 5), [vec![4], vec![5]], "the order stays");
        assert_eq!(machine.push(start, "a", Gather::Text(Duration::ZERO), 6), [vec![6]]);
    }

    #[test]
    fn albums_and_cut_texts_come_whole() {
        let start = Instant::now();
        let mut machine = Machine::default();
        let album = |id: &str| Gather::Album(id.to_owned());
        machine.push(start, "a", album("x"), 1);
        machine.push(after(400, start), "a", album("x"), 2);
        assert_eq!(machine.push(after(500, start), "a", album("y"), 3), [vec![1, 2]]);
        assert_eq!(machine.tick(after(1000, start)), [vec![3]]);
        machine.push(start, "a", Gather::GoesOn(4000), 4);
        machine.push(start, "a", Gather::GoesOn(4000), 5);
        assert_eq!(
            machine.push(after(1499, start), "a", WINDOW, 6),
            [vec![4, 5, 6]],
            "a short one is the last"
        );
        machine.push(start, "a", Gather::GoesOn(4000), 7);
        assert_eq!(machine.push(after(1500, start), "a", Gather::Alone, 8), [vec![7], vec![8]]);
        machine.push(start, "a", Gather::GoesOn(49_000), 9);
        assert_eq!(machine.push(start, "a", Gather::GoesOn(4000), 10), [vec![9]], "too long together");
        assert_eq!(machine.flush(), [vec![10]]);
        for part in 0..MAX_PARTS {
            assert!(machine.push(start, "a", Gather::GoesOn(1), part).is_empty());
        }
        assert_eq!(machine.push(start, "a", Gather::GoesOn(1), 99).concat().len(), MAX_PARTS);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        /// Nothing is lost or doubled, and what one person says stays in order.
        #[test]
        fn everything_comes_out_once_and_in_order(
            said in proptest::collection::vec((0..3_u8, 0..5_u8, 0..2_000_u64), 0..40)
        ) {
            let mut now = Instant::now();
            let mut machine = Machine::default();
            let mut out = Vec::new();
            for (number, (who, what, pause)) in said.iter().enumerate() {
                now += Duration::from_millis(*pause);
                if machine.due().is_some_and(|due| due <= now) {
                    out.extend(machine.tick(now));
                }
                let with = match what {
                    0 => Gather::Alone,
                    1 => Gather::Text(Duration::from_millis(700)),
                    2 => Gather::Text(Duration::ZERO),
                    3 => Gather::Album(format!("{}", number / 4)),
                    _ => Gather::GoesOn(4000),
                };
                out.extend(machine.push(now, &who.to_string(), with, (*who, number)));
            }
            out.extend(machine.flush());
            let all: Vec<_> = out.concat();
            prop_assert_eq!(all.len(), said.len());
            for who in 0..3 {
                let numbers: Vec<_> = all.iter().filter(|(by, _)| *by == who).map(|(_, number)| *number).collect();
                prop_assert!(numbers.is_sorted());
                prop_assert!(out.iter().all(|group| group.iter().all(|(by, _)| *by == group[0].0)));
            }
        }
    }
}
