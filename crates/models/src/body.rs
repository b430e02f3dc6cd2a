//! The body of a request, written over the end of the last one's: a conversation grows at its end, and what is before is neither
//! written nor copied again.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use crate::json::{Json, JsonMessages, put_field, put_items, put_text};

/// The last body of a conversation.
#[derive(Debug, Default)]
pub(crate) struct RequestBody {
    bytes: Bytes,
    /// Range of the settled messages in the body.
    settled: Range<usize>,
}

impl RequestBody {
    /// About how much memory it takes, in bytes: a buffer that grows may have room for as much again.
    pub(crate) fn memory(&self) -> usize {
        2 * self.bytes.len()
    }

    /// The body of a document whose messages come after those that are settled.
    pub(crate) fn write(&mut self, document: &Json<'_>) -> Bytes {
        let Some((before, (name, messages), after)) = document.around_messages() else {
            return document.to_bytes().freeze();
        };
        let JsonMessages { head, settled, open } = messages;
        let mut start = BytesMut::from(&b"{"[..]);
        for (name, value) in before {
            put_field(&mut start, name, value);
            start.put_u8(b',');
        }
        put_text(&mut start, name);
        start.put_slice(b":[");
        let list = start.len();
        put_items(&mut start, list, head);
        let is_any_said = !self.settled.is_empty() || !settled.is_empty() || !open.is_empty();
        if is_any_said && !head.is_empty() {
            start.put_u8(b',');
        }
        let mut out = self.go_on_from(&start);
        let list = start.len();
        put_items(&mut out, list, settled);
        self.settled = list..out.len();
        put_items(&mut out, list, open);
        out.put_u8(b']');
        for (name, value) in after {
            out.put_u8(b',');
            put_field(&mut out, name, value);
        }
        out.put_u8(b'}');
        self.bytes = out.freeze();
        self.bytes.clone()
    }

    /// The last body up to its settled messages' end, with this start. It is copied only if it began otherwise, or is still being
    /// sent.
    fn go_on_from(&mut self, start: &[u8]) -> BytesMut {
        let Range { start: from, end: to } = self.settled;
        let mut last = std::mem::take(&mut self.bytes);
        if last.get(..from) == Some(start) {
            match last.try_into_mut() {
                Ok(mut own) => {
                    own.truncate(to);
                    return own;
                }
                Err(shared) => last = shared,
            }
        }
        let settled = last.get(from..to).unwrap_or_default();
        let mut out = BytesMut::with_capacity(start.len() + settled.len());
        out.put_slice(start);
        out.put_slice(settled);
        out
    }
}
