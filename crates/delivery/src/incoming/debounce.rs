//! Debouncing: messages that belong together become one (spec `queue.md` §8, `channels.md` §7.3):
//! texts typed in quick succession, the files of an album, the parts of a text that its platform
//! cut. A pure machine: it is told the time, and says when it wants to hear it again.

use std::time::{Duration, Instant};

/// Time for which the files of an album are awaited.
const ALBUM: Duration = Duration::from_millis(500);
/// Time for which the next part of a cut text is awaited.
const PART: Duration = Duration::from_millis(1500);
/// Number of windows that the sending times of gathered messages may span: messages may be held up
/// on their way to us.
const WINDOWS: u32 = 3;
/// Precision of the sending times that platforms report.
const TICK: Duration = Duration::from_secs(1);
/// Parts of a cut text, and characters of all of them.
const MAX_PARTS: usize = 12;
const MAX_PART_CHARS: usize = 50_000;

/// Kind of messages that a message is gathered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gather {
    /// Gathered with no others.
    Alone,
    /// Gathered with texts of the same sender that come within this time, each after the one
    /// before.
    Text(Duration),
    /// Gathered with the files of this album.
    Album(String),
    /// Gathered with the next message of the same sender: the platform cut the text here.
    GoesOn,
}

/// Facts about a message that may be a part of a longer text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFragment {
    /// Number of the message on its platform, if the platform numbers messages one after the other.
    pub number: Option<i64>,
    /// Characters.
    pub chars: usize,
    /// Unix milliseconds, by the clock of its platform.
    pub said_at: i64,
    /// True if it was sent while the gateway was offline.
    pub is_late: bool,
}

impl TextFragment {
    /// True if the next message was sent so soon after it that it may belong to it: messages that
    /// waited for us come all at once, however far apart they were sent.
    fn is_near(self, next: Self, window: Duration) -> bool {
        let apart = Duration::from_millis(next.said_at.abs_diff(self.said_at));
        self.is_late == next.is_late && apart <= window * WINDOWS + TICK
    }
}

/// Gathers messages of one conversation.
#[derive(Debug)]
pub struct Machine<T> {
    held: Vec<HeldMessages<T>>,
}

#[derive(Debug)]
struct HeldMessages<T> {
    key: String,
    with: Gather,
    items: Vec<T>,
    /// The last of them, with the characters of all.
    piece: TextFragment,
    due: Instant,
}

impl<T> Default for Machine<T> {
    fn default() -> Self {
        Self { held: Vec::new() }
    }
}

impl<T> Machine<T> {
    /// Takes a new message; returns the groups that are complete now, in order.
    pub fn push(
        &mut self,
        now: Instant,
        key: &str,
        with: Gather,
        piece: TextFragment,
        item: T,
    ) -> Vec<Vec<T>> {
        let at = self.held.iter().position(|held| held.key == key);
        let Some(at) = at else { return self.begin(now, key, with, piece, item) };
        let Some(held) = self.held.get_mut(at) else { return Vec::new() };
        let joins = held.due > now
            && match (&held.with, &with) {
                (Gather::Text(_), Gather::Text(window)) => {
                    !window.is_zero() && held.piece.is_near(piece, *window)
                }
                (Gather::Album(held), Gather::Album(new)) => held == new,
                // The last part is shorter.
                (Gather::GoesOn, Gather::GoesOn | Gather::Text(_)) => held.takes(piece),
                _ => false,
            };
        if !joins {
            let mut ready = vec![self.held.remove(at).items];
            ready.extend(self.begin(now, key, with, piece, item));
            return ready;
        }
        held.items.push(item);
        held.piece = TextFragment { chars: held.piece.chars + piece.chars, ..piece };
        match (&held.with, with) {
            (Gather::Text(_), Gather::Text(window)) => held.due = now + window,
            (Gather::GoesOn, Gather::GoesOn) => held.due = now + PART,
            (Gather::GoesOn, _) => return vec![self.held.remove(at).items],
            _ => held.due = now + ALBUM,
        }
        Vec::new()
    }

    fn begin(&mut self, now: Instant, key: &str, with: Gather, piece: TextFragment, item: T) -> Vec<Vec<T>> {
        let wait = match &with {
            Gather::Alone => return vec![vec![item]],
            Gather::Text(window) if window.is_zero() => return vec![vec![item]],
            Gather::Text(window) => *window,
            Gather::Album(_) => ALBUM,
            Gather::GoesOn => PART,
        };
        self.held.push(HeldMessages { key: key.to_owned(), with, items: vec![item], piece, due: now + wait });
        Vec::new()
    }

    /// Number of messages that are held.
    pub fn message_count(&self) -> usize {
        self.held.iter().map(|held| held.items.len()).sum()
    }

    /// True if more files of an album, or parts of a text that its platform cut, are awaited.
    pub fn holds_a_part(&self) -> bool {
        self.held.iter().any(|held| matches!(held.with, Gather::Album(_) | Gather::GoesOn))
    }

    /// Time at which [`Machine::tick`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.due).min()
    }

    /// Returns the groups that are complete at this time.
    pub fn tick(&mut self, now: Instant) -> Vec<Vec<T>> {
        self.take(|held| held.due <= now)
    }

    /// Iterates over all messages that are held.
    pub fn held_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.held.iter_mut().flat_map(|held| &mut held.items)
    }

    /// Takes out the groups of this sender, and all others that `is_ready`.
    pub fn flush(&mut self, key: &str, is_ready: impl Fn(&[T]) -> bool) -> Vec<Vec<T>> {
        self.take(|held| held.key == key || is_ready(&held.items))
    }

    /// Takes out the groups that `is_ready`, whoever sent them.
    pub fn take_ready(&mut self, is_ready: impl Fn(&[T]) -> bool) -> Vec<Vec<T>> {
        self.take(|held| is_ready(&held.items))
    }

    /// True if the sender's next text may belong to one of theirs that their platform cut.
    pub fn awaits(&self, key: &str) -> bool {
        self.held.iter().any(|held| held.key == key && held.with == Gather::GoesOn)
    }

    fn take(&mut self, is_ready: impl Fn(&HeldMessages<T>) -> bool) -> Vec<Vec<T>> {
        let (ready, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held).into_iter().partition(is_ready);
        self.held = held;
        ready.into_iter().map(|held| held.items).collect()
    }
}

impl<T> HeldMessages<T> {
    /// True if a message is the next part of the text that is held. A platform that cuts a text
    /// numbers its parts one after the other.
    fn takes(&self, next: TextFragment) -> bool {
        let is_next = self.piece.number.is_some_and(|number| number.checked_add(1) == next.number);
        is_next
            && self.piece.is_near(next, PART)
            && self.items.len() < MAX_PARTS
            && self.piece.chars + next.chars <= MAX_PART_CHARS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Gather = Gather::Text(Duration::from_millis(10));

    fn part(number: i64, chars: usize) -> TextFragment {
        TextFragment { number: Some(number), chars, said_at: 0, is_late: false }
    }

    fn after(ms: u64, start: Instant) -> Instant {
        start + Duration::from_millis(ms)
    }

    /// The vectors of spec `queue.md` §8.
    #[test]
    fn texts_in_quick_succession_are_one_message() {
        let start = Instant::now();
        let mut machine = Machine::default();
        assert!(machine.push(start, "a", WINDOW, part(1, 0), 1).is_empty());
        assert!(
            machine.push(after(9, start), "a", WINDOW, part(2, 0), 2).is_empty(),
            "each one begins the time anew"
        );
        assert!(
            machine.push(after(9, start), "b", WINDOW, part(3, 0), 3).is_empty(),
            "others have their own"
        );
        assert_eq!(machine.tick(after(18, start)), Vec::<Vec<i32>>::new());
        assert_eq!(machine.tick(after(19, start)), [vec![1, 2], vec![3]]);
        machine.push(start, "a", WINDOW, part(4, 0), 4);
        assert_eq!(
            machine.push(start, "a", Gather::Alone, part(5, 0), 5),
            [vec![4], vec![5]],
            "the order stays"
        );
        assert_eq!(machine.push(start, "a", Gather::Text(Duration::ZERO), part(6, 0), 6), [vec![6]]);
    }

    #[test]
    fn what_was_said_far_apart_is_not_joined_by_coming_together() {
        let said = |number, said_at, is_late| TextFragment { said_at, is_late, ..part(number, 4000) };
        let text: fn() -> Gather = || WINDOW;
        let cut: fn() -> Gather = || Gather::GoesOn;
        let album: fn() -> Gather = || Gather::Album("x".to_owned());
        // Columns: kind of gathering, time of the second message after the first, whether that was
        // late, whether they are one.
        let rows = [
            (text, 0, true, true),
            (text, 1_030, true, true),
            (text, 1_031, true, false),
            (text, -1_031, true, false),
            (text, 1_000, false, false),
            (cut, 5_500, true, true),
            (cut, 5_501, true, false),
            (cut, 0, false, false),
            (album, 60_000, true, true),
        ];
        for (with, apart, is_late, is_one) in rows {
            let (start, mut machine) = (Instant::now(), Machine::default());
            let mut out = machine.push(start, "a", with(), said(1, 1_000_000, true), 1);
            out.extend(machine.push(start, "a", with(), said(2, 1_000_000 + apart, is_late), 2));
            out.extend(machine.take_ready(|_| true));
            assert_eq!(out.len() == 1, is_one, "{:?} {apart} {is_late}", with());
        }
    }

    #[test]
    fn albums_and_cut_texts_come_whole() {
        let start = Instant::now();
        let mut machine = Machine::default();
        let album = |id: &str| Gather::Album(id.to_owned());
        machine.push(start, "a", album("x"), part(1, 0), 1);
        machine.push(after(400, start), "a", album("x"), part(2, 0), 2);
        assert_eq!(machine.push(after(500, start), "a", album("y"), part(3, 0), 3), [vec![1, 2]]);
        assert_eq!(machine.tick(after(1000, start)), [vec![3]]);
    }

    /// Spec `channels.md` §7.3: the next id, at most 1.5 seconds later, at most 12 parts and 50,000 characters.
    #[test]
    fn a_cut_text_goes_on_with_the_next_message_alone() {
        let text = || WINDOW;
        // Message id, characters, milliseconds since the start, how it is gathered.
        type Said = (i64, usize, u64, fn() -> Gather);
        let cut: fn() -> Gather = || Gather::GoesOn;
        let alone: fn() -> Gather = || Gather::Alone;
        let text: fn() -> Gather = text;
        type Case<'a> = (&'a str, &'a [Said], &'a [&'a [i64]]);
        let rows: [Case<'_>; 9] = [
            ("whole", &[(4, 4000, 0, cut), (5, 4000, 0, cut), (6, 9, 1499, text)], &[&[4, 5, 6]]),
            ("something else", &[(4, 4000, 0, cut), (6, 9, 10, text)], &[&[4], &[6]]),
            ("something earlier", &[(4, 4000, 0, cut), (3, 9, 10, text)], &[&[4], &[3]]),
            (
                "another cut text",
                &[(4, 4000, 0, cut), (7, 4000, 10, cut), (8, 9, 20, text)],
                &[&[4], &[7, 8]],
            ),
            ("too late", &[(4, 4000, 0, cut), (5, 9, 1500, text)], &[&[4], &[5]]),
            ("a command", &[(4, 4000, 0, cut), (5, 9, 10, alone)], &[&[4], &[5]]),
            (
                "after the last part",
                &[(4, 4000, 0, cut), (5, 9, 10, text), (6, 9, 20, text)],
                &[&[4, 5], &[6]],
            ),
            ("too long", &[(4, 49_000, 0, cut), (5, 4000, 0, cut)], &[&[4], &[5]]),
            ("its end too long", &[(4, 49_000, 0, cut), (5, 1001, 0, text)], &[&[4], &[5]]),
        ];
        for (name, said, expect) in rows {
            let (start, mut machine, mut out) = (Instant::now(), Machine::default(), Vec::new());
            for (id, chars, ms, with) in said {
                out.extend(machine.push(after(*ms, start), "a", with(), part(*id, *chars), *id));
            }
            out.extend(machine.take_ready(|_| true));
            assert_eq!(out, expect, "{name}");
        }
        let (start, mut machine) = (Instant::now(), Machine::default());
        for number in 0..12 {
            assert!(machine.push(start, "a", Gather::GoesOn, part(number, 1), number).is_empty());
        }
        assert_eq!(machine.push(start, "a", Gather::GoesOn, part(12, 1), 99).concat().len(), MAX_PARTS);
        let unnumbered = TextFragment { number: None, ..part(0, 1) };
        machine.push(start, "b", Gather::GoesOn, unnumbered, 1);
        assert_eq!(machine.push(start, "b", WINDOW, unnumbered, 2), [vec![1]], "nobody knows what is next");
    }

    #[test]
    fn what_somebody_stops_is_theirs_and_what_is_ready() {
        let (start, mut machine) = (Instant::now(), Machine::default());
        machine.push(start, "a", WINDOW, part(1, 0), 1);
        machine.push(start, "b", Gather::GoesOn, part(2, 0), 2);
        machine.push(start, "c", WINDOW, part(3, 0), 3);
        assert!(machine.awaits("b") && !machine.awaits("a"));
        assert_eq!(machine.flush("a", |items| items.contains(&3)), [vec![1], vec![3]]);
        assert_eq!(machine.message_count(), 1);
    }

    proptest! {
        /// Checks that no message is lost or doubled, and that messages of one sender stay in
        /// order.
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
                    _ => Gather::GoesOn,
                };
                let piece = part(i64::try_from(number).unwrap(), 4000);
                out.extend(machine.push(now, &who.to_string(), with, piece, (*who, number)));
            }
            out.extend(machine.take_ready(|_| true));
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
