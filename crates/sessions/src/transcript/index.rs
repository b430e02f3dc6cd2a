//! Index of a transcript's lines: each line's place, kind and parent. Bodies stay in the file.

use std::collections::{HashMap, VecDeque};

use super::format::EntryId;
use super::migrate;

pub use super::head::{Kind, LineHead};

/// Position of an entry among those of its file. Parts of a file that are read later stand before
/// those read first, so numbers go below 0.
pub(crate) type At = i64;

/// Place of an entry in the file and in the tree.
#[derive(Debug, Clone)]
pub(crate) struct IndexedEntry {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) kind: Kind,
    pub(crate) id: EntryId,
    parent: Link,
}

/// Parent of an entry: always something before it, so that the tree has no cycles whatever the file
/// says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Link {
    Nothing,
    To(At),
    /// The entry just before, because the one it names is not there.
    Previous,
    /// An entry that is not in the part that has been read.
    Unread(EntryId),
}

/// The next step on the way to the root.
enum Up {
    Root,
    To(At),
    Unread,
}

/// A way from the root to an entry, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Branch {
    /// Root first.
    pub(crate) path: Vec<At>,
    /// True if the branch begins at the root. If not, the part before has to be read.
    pub(crate) is_whole: bool,
}

/// The entries of a file in their order, or of its last part.
#[derive(Debug, Default)]
pub(crate) struct Index {
    places: VecDeque<IndexedEntry>,
    /// Position of the first known entry.
    first: At,
    /// True if there are earlier entries that have not been read.
    partial: bool,
    by_id: HashMap<EntryId, At>,
    first_kept: HashMap<At, EntryId>,
}

impl Index {
    /// Creates the index of the last part of a file, while the part before is unread.
    pub(crate) fn of_tail() -> Self {
        Self { partial: true, ..Self::default() }
    }

    /// True if all entries are known.
    pub(crate) fn is_whole(&self) -> bool {
        !self.partial
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, at: At) -> Option<&IndexedEntry> {
        self.places.get(usize::try_from(at.checked_sub(self.first)?).ok()?)
    }

    /// The last entry of this id.
    pub(crate) fn position(&self, id: &str) -> Option<At> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn last(&self) -> Option<At> {
        Some(self.next() - 1).filter(|last| *last >= self.first)
    }

    /// All of them, in the order of the file.
    pub(crate) fn all(&self) -> std::ops::Range<At> {
        self.first..self.next()
    }

    fn next(&self) -> At {
        self.first + At::try_from(self.places.len()).unwrap_or(At::MAX - self.first.abs())
    }

    pub(crate) fn first_kept(&self, at: At) -> Option<&EntryId> {
        self.first_kept.get(&at)
    }

    pub(crate) fn set_first_kept(&mut self, at: At, id: EntryId) {
        self.first_kept.insert(at, id);
    }

    /// Adds a line of a file of this `version`. A line without an id is left where it is and not made an entry: an id made
    /// up for it would be the parent of what comes next without being on disk. Only the first version has no ids; there
    /// each entry follows the one before it.
    pub(crate) fn push_line(
        &mut self,
        offset: u64,
        len: u32,
        mut head: LineHead,
        version: u32,
    ) -> Option<At> {
        let id = match head.id.take() {
            Some(id) if version > 1 => id,
            None if version > 1 => return None,
            Some(_) | None => {
                head.parent_id = None;
                head.is_root = false;
                migrate::id_for_place(self.len())
            }
        };
        Some(self.push(offset, len, head, id))
    }

    /// Adds an entry. An entry whose parent is not there, or not there yet, goes on from the entry
    /// before it: a damaged line must not hide what was said earlier.
    fn push(&mut self, offset: u64, len: u32, head: LineHead, id: EntryId) -> At {
        let at = self.next();
        let parent = match head.parent_id {
            _ if head.is_root => Link::Nothing,
            None => Link::Previous,
            Some(parent) => match self.by_id.get(&parent) {
                Some(known) => Link::To(*known),
                None if self.partial => Link::Unread(parent),
                None => Link::Previous,
            },
        };
        if let Some(first_kept) = head.first_kept {
            self.first_kept.insert(at, first_kept);
        }
        self.by_id.insert(id.clone(), at);
        self.places.push_back(IndexedEntry { offset, len, kind: head.kind, id, parent });
        at
    }

    /// Puts the part of the file before this one in front. If that is whole, everything is known now.
    pub(crate) fn prepend(&mut self, before: Self) {
        let shift = self.first - before.next();
        self.partial = before.partial;
        for place in &mut self.places {
            if let Link::Unread(parent) = &place.parent {
                match before.by_id.get(parent) {
                    Some(at) => place.parent = Link::To(at + shift),
                    None if !before.partial => place.parent = Link::Previous,
                    None => {}
                }
            }
        }
        for mut place in before.places.into_iter().rev() {
            if let Link::To(at) = &mut place.parent {
                *at += shift;
            }
            self.first -= 1;
            self.places.push_front(place);
        }
        for (id, at) in before.by_id {
            self.by_id.entry(id).or_insert(at + shift);
        }
        self.first_kept.extend(before.first_kept.into_iter().map(|(at, id)| (at + shift, id)));
    }

    /// The way from the root to `leaf`.
    pub(crate) fn path(&self, leaf: Option<At>) -> Branch {
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(at) = next {
            path.push(at);
            next = match self.up(at) {
                Up::Root => None,
                Up::To(parent) => Some(parent),
                Up::Unread => return Self::part(path),
            };
        }
        path.reverse();
        Branch { path, is_whole: true }
    }

    /// Parent of an entry, as far as it is known.
    pub(crate) fn parent(&self, at: At) -> Option<At> {
        match self.up(at) {
            Up::To(parent) => Some(parent),
            Up::Root | Up::Unread => None,
        }
    }

    fn up(&self, at: At) -> Up {
        let Some(place) = self.get(at) else { return Up::Root };
        match &place.parent {
            Link::Nothing => Up::Root,
            Link::To(parent) => Up::To(*parent),
            Link::Previous if at > self.first => Up::To(at - 1),
            Link::Previous if self.partial => Up::Unread,
            Link::Previous => Up::Root,
            Link::Unread(_) => Up::Unread,
        }
    }

    fn part(mut path: Vec<At>) -> Branch {
        path.reverse();
        Branch { path, is_whole: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_links_go_on_from_the_entry_before_and_cycles_end() {
        let mut index = Index::default();
        let lines = [
            // A cycle of two, as far as the file says.
            (r#"{"type":"x","id":"a","parentId":"b"}"#, vec![0]),
            (r#"{"type":"x","id":"b","parentId":"a"}"#, vec![0, 1]),
            (r#"{"type":"x","id":"c","parentId":"c"}"#, vec![0, 1, 2]),
            (r#"{"type":"x","id":"d","parentId":"nowhere"}"#, vec![0, 1, 2, 3]),
            (r#"{"type":"x","id":"e"}"#, vec![0, 1, 2, 3, 4]),
            (r#"{"type":"x","id":"f","parentId":"a"}"#, vec![0, 5]),
            (r#"{"type":"x","id":"g","parentId":null}"#, vec![6]),
            (r#"{"type":"x","id":"g","parentId":"g"}"#, vec![6, 7]),
        ];
        for (line, path) in lines {
            let at = index.push_line(0, 1, LineHead::parse(line.as_bytes()).unwrap(), 3);
            assert_eq!(index.path(at), Branch { path, is_whole: true }, "{line}");
        }
        let nameless = LineHead::parse(br#"{"type":"x","parentId":"a"}"#).unwrap();
        assert_eq!(index.push_line(0, 1, nameless.clone(), 3), None);
        assert_eq!((index.len(), index.path(None).path), (8, vec![]));
        let mut first = Index::default();
        assert_eq!(first.push_line(0, 1, nameless.clone(), 1), Some(0));
        assert_eq!(first.push_line(0, 1, nameless, 1), Some(1));
        assert_eq!(first.path(Some(1)).path, [0, 1]);
    }

    /// An entry `id parent`; `-` is no parent named, `0` a root.
    fn head((id, parent): &(u8, u8)) -> LineHead {
        let name = |n: u8| EntryId::new(format!("{n}"));
        LineHead {
            kind: Kind::User,
            id: Some(name(*id)),
            is_root: *parent == 0,
            parent_id: (1..10).contains(parent).then(|| name(*parent)),
            first_kept: (*parent == 3).then(|| name(*id)),
        }
    }

    fn index_of(entries: &[(u8, u8)], from: usize, mut index: Index) -> Index {
        for (n, entry) in entries.iter().enumerate() {
            index.push_line((from + n) as u64, 1, head(entry), 3);
        }
        index
    }

    proptest::proptest! {
        /// Read from the end in pieces or from the start at once, a file has the same branches.
        #[test]
        fn a_file_read_in_parts_is_the_same_as_read_at_once(
            entries in proptest::collection::vec((0..10_u8, 0..12_u8), 1..40),
            cuts in proptest::collection::vec(0..40_usize, 0..4),
        ) {
            let whole = index_of(&entries, 0, Index::default());
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < entries.len()).collect();
            cuts.push(0);
            cuts.sort_unstable();
            let mut end = entries.len();
            let mut parts: Option<Index> = None;
            for cut in cuts.into_iter().rev() {
                let empty = if cut == 0 { Index::default() } else { Index::of_tail() };
                let part = index_of(&entries[cut..end], cut, empty);
                match &mut parts {
                    None => parts = Some(part),
                    Some(later) => later.prepend(part),
                }
                end = cut;
            }
            let parts = parts.unwrap();
            proptest::prop_assert!(parts.is_whole());
            let offsets = |index: &Index, leaf| -> Vec<u64> {
                index.path(leaf).path.iter().map(|at| index.get(*at).unwrap().offset).collect()
            };
            for (a, b) in whole.all().zip(parts.all()) {
                proptest::prop_assert_eq!(offsets(&whole, Some(a)), offsets(&parts, Some(b)));
                proptest::prop_assert_eq!(whole.first_kept(a), parts.first_kept(b));
            }
            for id in 0..10_u8 {
                let id = id.to_string();
                let at = |index: &Index| index.position(&id).map(|at| index.get(at).unwrap().offset);
                proptest::prop_assert_eq!(at(&whole), at(&parts));
            }
        }
    }
}
