//! AWS's binary event stream (`application/vnd.amazon.eventstream`): bytes in any cut in, whole events out.
//!
//! A message is `total length, headers length, CRC of these two, headers, payload, CRC of all before`, numbers of four
//! bytes, the highest first. Both sums are checked: a wrong length would have us wait for bytes that never come.

use std::collections::VecDeque;

use serde_json::json;

use crate::sse::{MAX_EVENT_BYTES, SseEvent};
use crate::stream::ModelFailure;
use crate::wire::{Frames, garbage};

/// Prefix of the names of events that report an error.
pub(super) const EXCEPTION: &str = "exception ";

/// Bytes of both lengths and their sum.
const PRELUDE: usize = 12;
/// Bytes of the sum at the end.
const SUM: usize = 4;

/// The parser.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    /// Bytes of the message that is not complete yet: never more than one message.
    held: Vec<u8>,
}

impl Frames for EventStream {
    fn push(&mut self, bytes: &[u8], out: &mut VecDeque<SseEvent>) -> Result<(), ModelFailure> {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            // The prelude says how much is wanted.
            let wanted = if self.held.len() < PRELUDE { PRELUDE } else { total_length(&self.held)? };
            let (taken, rest) = bytes.split_at(wanted.saturating_sub(self.held.len()).min(bytes.len()));
            self.held.extend_from_slice(taken);
            bytes = rest;
            if self.held.len() == PRELUDE {
                total_length(&self.held)?;
            } else if self.held.len() > PRELUDE && self.held.len() == wanted {
                out.push_back(message(&self.held)?);
                self.held.clear();
            }
        }
        Ok(())
    }

    /// Half a message is a cut, which is reported as such.
    fn finish(self: Box<Self>) -> Result<Option<SseEvent>, ModelFailure> {
        Ok(None)
    }
}

/// The length of a message, told by its checked prelude.
fn total_length(held: &[u8]) -> Result<usize, ModelFailure> {
    let (Some(total), Some(headers), Some(sum)) = (number(held, 0), number(held, 4), number(held, 8)) else {
        return Err(garbage("half a prelude"));
    };
    let prelude = held.get(..8).unwrap_or_default();
    if crc32fast::hash(prelude) != sum {
        return Err(garbage("bytes that are no event stream of AWS"));
    }
    let (total, headers) = (total as usize, headers as usize);
    if total > MAX_EVENT_BYTES {
        return Err(garbage(format_args!("an event of more than {MAX_EVENT_BYTES} bytes")));
    }
    if total < PRELUDE + SUM + headers {
        return Err(garbage("an event that is shorter than its parts"));
    }
    Ok(total)
}

/// The event of a whole message.
fn message(bytes: &[u8]) -> Result<SseEvent, ModelFailure> {
    let (body, sum) = bytes.split_at(bytes.len() - SUM);
    if number(sum, 0) != Some(crc32fast::hash(body)) {
        return Err(garbage("an event whose checksum is wrong"));
    }
    let length = number(body, 4).unwrap_or_default() as usize;
    let (headers, payload) =
        body.get(PRELUDE..).and_then(|rest| rest.split_at_checked(length)).unwrap_or_default();
    let headers = EventHeaders::read(headers).ok_or_else(|| garbage("an event whose headers are none"))?;
    Ok(headers.event(String::from_utf8_lossy(payload).into_owned()))
}

/// The headers that say what an event is.
#[derive(Debug, Default)]
struct EventHeaders<'a> {
    message_type: Option<&'a str>,
    event_type: Option<&'a str>,
    exception_type: Option<&'a str>,
    error_code: Option<&'a str>,
    error_message: Option<&'a str>,
}

impl<'a> EventHeaders<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut names = Self::default();
        while !bytes.is_empty() {
            let (name, rest) = sized(bytes, 1)?;
            let (kind, rest) = rest.split_first()?;
            let (value, rest) = match kind {
                // True and false have no value; then numbers, bytes, text, time and ids.
                0 | 1 => (None, rest),
                2 => (None, rest.get(1..)?),
                3 => (None, rest.get(2..)?),
                4 => (None, rest.get(4..)?),
                5 | 8 => (None, rest.get(8..)?),
                6 => (None, sized(rest, 2)?.1),
                7 => {
                    let (value, rest) = sized(rest, 2)?;
                    (Some(std::str::from_utf8(value).ok()?), rest)
                }
                9 => (None, rest.get(16..)?),
                _ => return None,
            };
            bytes = rest;
            match name {
                b":message-type" => names.message_type = value,
                b":event-type" => names.event_type = value,
                b":exception-type" => names.exception_type = value,
                b":error-code" => names.error_code = value,
                b":error-message" => names.error_message = value,
                _ => {}
            }
        }
        Some(names)
    }

    fn event(&self, payload: String) -> SseEvent {
        match self.message_type {
            Some("exception") => SseEvent {
                name: Some(format!("{EXCEPTION}{}", self.exception_type.unwrap_or_default())),
                data: payload,
            },
            // An error outside the service's model.
            Some("error") => SseEvent {
                name: Some(format!("{EXCEPTION}{}", self.error_code.unwrap_or_default())),
                data: json!({"message": self.error_message.unwrap_or_default()}).to_string(),
            },
            Some(_) | None => SseEvent { name: self.event_type.map(str::to_owned), data: payload },
        }
    }
}

/// Bytes after their own length, which has `width` bytes, and what follows.
fn sized(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(width)?;
    let length = length.iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte));
    rest.split_at_checked(length)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four: [u8; 4] = bytes.get(at..)?.first_chunk().copied()?;
    Some(u32::from_be_bytes(four))
}

#[cfg(test)]
pub(crate) mod tests;
