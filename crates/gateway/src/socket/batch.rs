//! Frames that are written together, as bytes for the socket (RFC 6455 §5.2). Parts that frames
//! share are not copied.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

use crate::frame_text::FrameText;
use crate::handshake::close::{Closing, NO_STATUS};

/// Size from which a part is written from where it is; a smaller one is copied, which costs less
/// than to write it by itself.
const SHARED_FROM: usize = 512;

/// Opcodes of the frames written here; every frame is complete, never a fragment.
#[derive(Debug, Clone, Copy)]
enum Opcode {
    Text = 0x1,
    Close = 0x8,
    Pong = 0xA,
}

/// Frames in the order of their sending.
#[derive(Debug, Default)]
pub(super) struct Batch {
    parts: WriteBatch,
    /// Bytes copied since the last shared part.
    copied: BytesMut,
}

/// Bytes to be written, one part after the other.
#[derive(Debug, Default)]
pub(super) struct WriteBatch(VecDeque<Bytes>);

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.0.is_empty() && self.copied.is_empty()
    }

    pub(super) fn text(&mut self, text: FrameText) {
        self.header(Opcode::Text, text.len());
        for part in [text.opening, text.payload, text.ending] {
            self.push(part);
        }
    }

    pub(super) fn pong(&mut self, data: &[u8]) {
        self.header(Opcode::Pong, data.len());
        self.copied.extend_from_slice(data);
    }

    pub(super) fn close(&mut self, closing: &Closing) {
        if closing.code == NO_STATUS {
            return self.header(Opcode::Close, 0);
        }
        let code = closing.code.to_be_bytes();
        self.header(Opcode::Close, code.len() + closing.reason.len());
        self.copied.extend_from_slice(&code);
        self.copied.extend_from_slice(closing.reason.as_bytes());
    }

    /// All of it.
    pub(super) fn parts(&mut self) -> &mut WriteBatch {
        self.end_copied();
        &mut self.parts
    }

    fn push(&mut self, part: Bytes) {
        if part.len() < SHARED_FROM {
            self.copied.extend_from_slice(&part);
        } else {
            self.end_copied();
            self.parts.0.push_back(part);
        }
    }

    fn end_copied(&mut self) {
        if !self.copied.is_empty() {
            self.parts.0.push_back(self.copied.split().freeze());
        }
    }

    /// The header of a final frame without a mask.
    fn header(&mut self, opcode: Opcode, len: usize) {
        const FINAL: u8 = 0x80;
        self.copied.extend_from_slice(&[FINAL | opcode as u8]);
        match (u8::try_from(len), u16::try_from(len)) {
            (Ok(short @ ..=125), _) => self.copied.extend_from_slice(&[short]),
            (_, Ok(medium)) => {
                self.copied.extend_from_slice(&[126]);
                self.copied.extend_from_slice(&medium.to_be_bytes());
            }
            (_, Err(_)) => {
                self.copied.extend_from_slice(&[127]);
                self.copied.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
    }
}

impl Buf for WriteBatch {
    fn remaining(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.0.front().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.iter_mut().zip(&self.0).map(|(slice, part)| *slice = IoSlice::new(part));
        filled.count()
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(part) = self.0.front_mut() {
            if count < part.len() {
                return part.advance(count);
            }
            count -= part.len();
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};

    use super::*;

    /// Bytes that a socket takes if it accepts so many at once, over so many slices.
    fn taken(batch: &mut Batch, at_once: usize) -> Vec<u8> {
        let (mut out, parts) = (Vec::new(), batch.parts());
        while parts.has_remaining() {
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = parts.chunks_vectored(&mut slices);
            let all: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            let some = &all[..all.len().min(at_once)];
            out.extend_from_slice(some);
            let count = some.len();
            parts.advance(count);
        }
        out
    }

    proptest! {
        #[test]
        fn a_client_reads_what_was_put_in(
            sizes in prop::collection::vec((0..200_usize, prop_oneof![0..200_usize, 500..520_usize, 65_400..65_600_usize], 0..200_usize), 0..6),
            pongs in any::<bool>(),
            at_once in 1_000..200_000_usize,
        ) {
            let part = |size: usize| Bytes::from("x".repeat(size));
            let (mut batch, mut expected) = (Batch::default(), Vec::new());
            for (opening, payload, ending) in sizes {
                batch.text(FrameText { opening: part(opening), payload: part(payload), ending: part(ending) });
                expected.push(Message::text("x".repeat(opening + payload + ending)));
                if pongs {
                    batch.pong(b"data");
                    expected.push(Message::Pong(Bytes::from_static(b"data")));
                }
            }
            prop_assert_eq!(batch.is_empty(), expected.is_empty());
            batch.close(&Closing::policy("slow consumer"));
            let mut client = WebSocket::from_raw_socket(Cursor::new(taken(&mut batch, at_once)), Role::Client, None);
            prop_assert!(batch.is_empty());
            for message in expected {
                prop_assert_eq!(client.read().unwrap(), message);
            }
            let Message::Close(Some(frame)) = client.read().unwrap() else { panic!("it is closed") };
            prop_assert_eq!((u16::from(frame.code), frame.reason.as_str()), (1008, "slow consumer"));
        }
    }
}
