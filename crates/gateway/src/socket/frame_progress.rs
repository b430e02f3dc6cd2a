//! Position in the WebSocket frames of a client's byte stream (RFC 6455 §5.2). Pure: bytes in, what
//! they announce out.

/// The header being read: at most 2 + 8 + 4 bytes, of which the mask is of no interest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct FrameHeader {
    bytes: [u8; 10],
    seen: usize,
}

impl FrameHeader {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or_default()
    }

    /// Bytes of the header as far as it is known: two, then with the length field and the mask.
    fn size(&self) -> usize {
        if self.seen < 2 {
            return 2;
        }
        let mask = if self.byte(1) & 0x80 == 0 { 0 } else { 4 };
        2 + self.length_size() + mask
    }

    fn length_size(&self) -> usize {
        match self.byte(1) & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    fn payload(&self) -> u64 {
        match self.length_size() {
            0 => u64::from(self.byte(1) & 0x7f),
            size => {
                let field = self.bytes.get(2..2 + size).unwrap_or_default();
                field.iter().fold(0, |length, byte| (length << 8) | u64::from(*byte))
            }
        }
    }

    fn announced(&self) -> Announced {
        let first = self.byte(0);
        Announced { payload: self.payload(), is_control: first & 0x08 != 0, is_last: first & 0x80 != 0 }
    }
}

/// Fields of a complete frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced {
    /// Bytes of payload that follow.
    pub(super) payload: u64,
    /// A ping, pong or close: it belongs to no message.
    pub(super) is_control: bool,
    /// The last frame of its message.
    pub(super) is_last: bool,
}

/// Position of the byte stream in its frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FrameProgress {
    header: FrameHeader,
    /// Bytes left of the current frame's payload.
    payload: u64,
}

impl FrameProgress {
    /// Bytes up to the end of the current part: the rest of the header as far as known, or of the
    /// payload.
    pub(super) fn allowed(&self) -> usize {
        if self.payload > 0 {
            return usize::try_from(self.payload).unwrap_or(usize::MAX);
        }
        self.header.size() - self.header.seen
    }

    /// True if every frame that began is complete.
    pub(super) fn is_between_frames(&self) -> bool {
        self.payload == 0 && self.header.seen == 0
    }

    /// Takes bytes, never more than [`Self::allowed`]. Gives what the header says that they complete.
    pub(super) fn passed(&mut self, bytes: &[u8]) -> Option<Announced> {
        if self.payload > 0 {
            self.payload = self.payload.saturating_sub(bytes.len() as u64);
            return None;
        }
        for byte in bytes {
            // Beyond the length field lies the mask.
            if let Some(slot) = self.header.bytes.get_mut(self.header.seen) {
                *slot = *byte;
            }
            self.header.seen += 1;
        }
        if self.header.seen < self.header.size() {
            return None;
        }
        let announced = self.header.announced();
        self.payload = announced.payload;
        self.header = FrameHeader::default();
        Some(announced)
    }
}
