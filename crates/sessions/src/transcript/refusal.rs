//! Refusals of the disk: which may pass, and their words for people in chats, to whom the places of
//! this host's files are nobody's business.

use std::io;

use nix::errno::Errno;

use super::{LockError, TranscriptError};
use crate::StoreError;

/// True if an error says nothing about the file: the disk, or the system, may take the next try.
pub fn may_pass(error: &io::Error) -> bool {
    use Errno::{EIO, EMFILE, ENFILE, ENOMEM, EROFS, ESTALE, ETIMEDOUT};
    let known = error.raw_os_error().map(Errno::from_raw);
    matches!(known, Some(EIO | EMFILE | ENFILE | ENOMEM | EROFS | ESTALE | ETIMEDOUT))
}

/// True if the disk itself has failed (`EIO`), as where it can't read a sector.
pub fn is_of_disk(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

impl TranscriptError {
    /// The error without the place of the file.
    pub fn without_place(&self) -> String {
        match self {
            Self::Io { what, source, .. } => refused(what, source),
            Self::Missing(_) => "the file of this conversation is gone".to_owned(),
            Self::NotATranscript(_) => {
                "the file of this conversation is not a transcript, its first line is no session header"
                    .to_owned()
            }
            Self::DuplicateId { id, .. } => format!("the conversation already has an entry {id}"),
            Self::UnknownId { id, .. } => format!("the conversation has no entry {id}"),
            Self::CallUnderWay(_) => {
                "a tool call is under way, nothing can be written now; try again in a moment".to_owned()
            }
            Self::Interrupted(_) => "work on the conversation was interrupted".to_owned(),
        }
    }
}

impl LockError {
    /// The error without the place of the file.
    pub fn without_place(&self) -> String {
        match self {
            Self::Held { .. } => "another process has the conversation".to_owned(),
            Self::Io { source, .. } => refused("lock", source),
        }
    }
}

impl StoreError {
    /// The error without the place of the file.
    pub fn without_place(&self) -> String {
        match self {
            Self::Io { what, source, .. } => format!("the disk refuses to {what} the sessions: {source}"),
            Self::Refused(_) | Self::LabelInUse(_) | Self::Closed => self.to_string(),
        }
    }
}

fn refused(what: &str, source: &io::Error) -> String {
    format!("the disk refuses to {what} the conversation: {source}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::TranscriptRef;

    #[test]
    fn a_refusal_may_pass_unless_it_is_about_the_file() {
        let rows = [
            (Errno::EIO, true),
            (Errno::EMFILE, true),
            (Errno::ENFILE, true),
            (Errno::EROFS, true),
            (Errno::EACCES, false),
            (Errno::ENOENT, false),
            (Errno::EISDIR, false),
        ];
        for (error, expect) in rows {
            assert_eq!(may_pass(&io::Error::from(error)), expect, "{error}");
        }
        assert!(!may_pass(&io::Error::other("another file has taken its place")));
    }

    #[test]
    fn no_words_for_a_chat_name_a_place_of_this_host() {
        let file = || TranscriptRef::new("/home/ada/s.jsonl");
        let error = || io::Error::from(Errno::EACCES);
        let told = [
            TranscriptError::Io { what: "write", transcript: file(), source: error() }.without_place(),
            TranscriptError::Missing(file()).without_place(),
            TranscriptError::NotATranscript(file()).without_place(),
            TranscriptError::CallUnderWay(file()).without_place(),
            TranscriptError::Interrupted(file()).without_place(),
            LockError::Io { transcript: file(), source: error() }.without_place(),
            StoreError::Io { what: "write", path: "/home/ada".into(), source: error().into() }
                .without_place(),
        ];
        assert_eq!(told[0], "the disk refuses to write the conversation: Permission denied (os error 13)");
        for told in told {
            assert!(!told.contains('/'), "{told}");
        }
    }
}
