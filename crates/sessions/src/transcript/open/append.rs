//! Appending entries, whole or not at all.

use std::borrow::Cow;
use std::sync::Arc;

use super::OpenTranscript;
use crate::ids;
use crate::time::{iso, now_ms};
use crate::transcript::format::{Body, Entry, EntryId, StoredMessage, VERSION};
use crate::transcript::index::{At, LineHead};
use crate::transcript::{TranscriptError, guard};

impl OpenTranscript {
    /// Appends an entry under the leaf and makes it the leaf. A message is stored as `transcript/guard.rs` has it, after results
    /// for tool calls that get none any more.
    ///
    /// # Errors
    /// [`TranscriptError::DuplicateId`]; after any error nothing but such results was appended.
    pub fn append(&mut self, body: Body, id: Option<EntryId>) -> Result<EntryId, TranscriptError> {
        if self.header.version < VERSION {
            self.upgrade()?;
        }
        let id = match id {
            Some(id) if self.tail.index.position(id.as_str()).is_some() => {
                return Err(TranscriptError::DuplicateId { transcript: self.named(), id });
            }
            Some(id) => id,
            None => self.new_id(),
        };
        let Body::Message(StoredMessage::Known(message)) = body else {
            self.write_entry(body, id.clone())?;
            return Ok(id);
        };
        let message = guard::checked(message);
        let mut pending = match self.pending.take() {
            Some(pending) => pending,
            None => self.pending_calls()?,
        };
        for missing in pending.before(&message, now_ms()) {
            let id = self.new_id();
            self.write_entry(missing.into(), id)?;
        }
        pending.after(&message);
        self.write_entry(Body::Message(StoredMessage::Known(message)), id.clone())?;
        self.pending = Some(pending);
        Ok(id)
    }

    fn write_entry(&mut self, body: Body, id: EntryId) -> Result<(), TranscriptError> {
        let parent_id = self.leaf().cloned();
        let entry = Entry { id, parent_id, timestamp: iso(now_ms()), body, extra: serde_json::Map::new() };
        let line = entry.to_line().map_err(|error| self.fail("write", error.into()))?;
        let head = LineHead::of_entry(&entry);
        if let Some(at) = self.write_line(&line, head)? {
            self.remember(at, u32::try_from(line.len()).unwrap_or(u32::MAX), &Arc::new(entry));
        }
        Ok(())
    }

    /// Appends a line; returns the position of its entry, if it is one.
    fn write_line(&mut self, line: &[u8], head: Option<LineHead>) -> Result<Option<At>, TranscriptError> {
        self.cut_half_line()?;
        let bytes = if self.unended { Cow::Owned([b"\n", line].concat()) } else { Cow::Borrowed(line) };
        let offset = self.len + (bytes.len() - line.len()) as u64;
        if let Err(source) = self.log.append(&bytes) {
            // A short write must not become the beginning of the next line.
            self.is_torn = self.log.cut(self.len).is_err();
            return Err(self.fail("write", source));
        }
        self.len += bytes.len() as u64;
        self.unended = false;
        let (Some(head), Ok(len)) = (head, u32::try_from(line.len() - 1)) else { return Ok(None) };
        let at = self.tail.index.push_line(offset, len, head, VERSION);
        self.leaf = at.or(self.leaf);
        Ok(at)
    }

    /// Cuts off what a failed write has left, if that failed at once.
    pub(super) fn cut_half_line(&mut self) -> Result<(), TranscriptError> {
        if self.is_torn {
            self.log.cut(self.len).map_err(|source| self.fail("repair", source))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Eight hex digits that no entry has; a whole UUID when that fails a hundred times, or when not all ids are known.
    fn new_id(&self) -> EntryId {
        for _ in 0..100 {
            let id = ids::hex();
            if !self.contains(&id) {
                return EntryId::new(id);
            }
        }
        EntryId::new(ids::uuid().to_string())
    }

    /// Makes everything appended durable.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&mut self) -> Result<(), TranscriptError> {
        let version = self.log.sync().map_err(|source| self.fail("sync", source))?;
        self.synced = Some(version).filter(|version| version.len() == self.len);
        Ok(())
    }

    /// True if nobody has touched the transcript since it was synced.
    pub fn is_untouched(&self) -> bool {
        self.synced.is_some() && self.logs.version(&self.transcript).is_ok_and(|now| now == self.synced)
    }
}
