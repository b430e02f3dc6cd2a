//! Rules about several hunks that change the same file. Pure.

/// Effect of the previous hunks on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touched {
    /// The content came from the patch, or from a file that was moved there.
    Written,
    /// Parts of it were replaced.
    Updated,
    /// The file was deleted or moved away.
    Removed,
    /// A symbolic link to it was deleted or moved away. The new meaning of the path is not
    /// followed.
    Unlinked,
}

/// Effect of the next hunk on the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextHunk {
    /// Give it content, or move another file there.
    Write,
    /// Replace parts of it.
    Update,
    /// Replace parts of it and move it away.
    Move,
    /// Delete it.
    Delete,
}

/// Returns the reason why a hunk can't follow another; `None` if it can. Hunks are applied in
/// order, each on what the former left. Refused is what would throw away the work of an earlier
/// hunk, or look for what an earlier one removed.
pub(super) fn conflict(path: &str, touched: Touched, next: NextHunk) -> Option<String> {
    match (touched, next) {
        (Touched::Written | Touched::Updated, NextHunk::Update)
        | (Touched::Updated, NextHunk::Move)
        | (Touched::Removed, NextHunk::Write) => return None,
        (Touched::Written | Touched::Updated | Touched::Removed | Touched::Unlinked, _) => {}
    }
    let earlier = match touched {
        Touched::Written => "written",
        Touched::Updated => "updated",
        Touched::Removed | Touched::Unlinked => "removed",
    };
    let next = match next {
        NextHunk::Write => "written",
        NextHunk::Update => "updated",
        NextHunk::Move => "moved",
        NextHunk::Delete => "deleted",
    };
    Some(format!("{path} is {earlier} and then {next} by the same patch. Use one hunk for it."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_does_not_undo_another() {
        use NextHunk::{Delete, Move, Update, Write};
        use Touched::{Removed, Unlinked, Updated, Written};
        for (touched, next, words) in [
            (Written, Write, Some("written and then written")),
            (Written, Update, None),
            (Written, Move, Some("written and then moved")),
            (Written, Delete, Some("written and then deleted")),
            (Updated, Write, Some("updated and then written")),
            (Updated, Update, None),
            (Updated, Move, None),
            (Updated, Delete, Some("updated and then deleted")),
            (Removed, Write, None),
            (Removed, Update, Some("removed and then updated")),
            (Removed, Move, Some("removed and then moved")),
            (Removed, Delete, Some("removed and then deleted")),
            (Unlinked, Write, Some("removed and then written")),
            (Unlinked, Update, Some("removed and then updated")),
            (Unlinked, Move, Some("removed and then moved")),
            (Unlinked, Delete, Some("removed and then deleted")),
        ] {
            let expect = words.map(|words| format!("a is {words} by the same patch. Use one hunk for it."));
            assert_eq!(conflict("a", touched, next), expect, "{touched:?} {next:?}");
        }
    }
}
