//! Holds an unauthenticated socket to one small frame at a time.
//!
//! The gate sits under the WebSocket layer. Closed, it looks at the frame headers that pass, gives out no byte beyond
//! the frame being read, and refuses frames (and fragments together) over its limit before any memory is set aside for
//! them. What a client sends behind its `connect` waits in the socket. Opened, the gate is not there.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of payload a client may send before it is authenticated (decision 13).
pub(crate) const LIMIT: u64 = 64 * 1024;

/// Bytes read at once while the gate is closed.
const PIECE: usize = 4 * 1024;

/// The error inside of the `io::Error` that a gate gives.
#[derive(Debug, thiserror::Error)]
#[error("frame of more than {LIMIT} bytes before authentication")]
pub(crate) struct TooBig;

/// Opens a gate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latch(Arc<AtomicBool>);

impl Latch {
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Where the gate is in the client's frames.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Progress {
    header: Header,
    /// Bytes left of the current frame's payload.
    payload: u64,
    /// Payload bytes announced so far.
    total: u64,
}

/// The header being read: at most 2 + 8 + 4 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Header {
    bytes: [u8; 10],
    seen: usize,
}

impl Header {
    /// Bytes of the header as far as it is known: two, then with the length field and the mask.
    fn size(&self) -> usize {
        if self.seen < 2 {
            return 2;
        }
        let second = self.bytes.get(1).copied().unwrap_or_default();
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        2 + self.length_size() + mask
    }

    fn length_size(&self) -> usize {
        match self.bytes.get(1).copied().unwrap_or_default() & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    fn payload_len(&self) -> u64 {
        match self.length_size() {
            0 => u64::from(self.bytes.get(1).copied().unwrap_or_default() & 0x7f),
            size => {
                let field = self.bytes.get(2..2 + size).unwrap_or_default();
                field.iter().fold(0, |length, byte| (length << 8) | u64::from(*byte))
            }
        }
    }
}

impl Progress {
    fn new() -> Self {
        Self { header: Header::default(), payload: 0, total: 0 }
    }

    /// Bytes that may be read now: the rest of the header as far as known, or of the payload.
    fn allowed(&self) -> usize {
        if self.payload > 0 {
            return usize::try_from(self.payload).unwrap_or(usize::MAX);
        }
        self.header.size() - self.header.seen
    }

    /// Notes bytes that have passed; never more than [`Self::allowed`].
    fn passed(&mut self, bytes: &[u8]) -> Result<(), TooBig> {
        if self.payload > 0 {
            self.payload = self.payload.saturating_sub(bytes.len() as u64);
            return Ok(());
        }
        for byte in bytes {
            // Beyond the length field lies the mask, which is of no interest.
            if let Some(slot) = self.header.bytes.get_mut(self.header.seen) {
                *slot = *byte;
            }
            self.header.seen += 1;
        }
        if self.header.seen == self.header.size() {
            self.payload = self.header.payload_len();
            self.total = self.total.saturating_add(self.payload);
            self.header = Header::default();
            if self.total > LIMIT {
                return Err(TooBig);
            }
        }
        Ok(())
    }
}

/// The gate around a byte stream.
#[derive(Debug)]
pub(crate) struct FrameGate<S> {
    inner: S,
    latch: Latch,
    progress: Progress,
}

impl<S> FrameGate<S> {
    /// A closed gate and what opens it.
    pub(crate) fn closed(inner: S) -> (Self, Latch) {
        let latch = Latch::default();
        (Self { inner, latch: latch.clone(), progress: Progress::new() }, latch)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameGate<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.latch.is_open() {
            return Pin::new(&mut this.inner).poll_read(cx, buf);
        }
        // Through a piece of our own, so that bytes are looked at before the reader has them.
        let mut piece = [0; PIECE];
        let size = this.progress.allowed().min(buf.remaining()).min(PIECE);
        let mut piece = ReadBuf::new(piece.get_mut(..size).unwrap_or_default());
        ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
        this.progress.passed(piece.filled()).map_err(io::Error::other)?;
        buf.put_slice(piece.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameGate<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A masked client frame of this payload size.
    fn frame(size: usize) -> Vec<u8> {
        let mut bytes = vec![0x81];
        match size {
            0..126 => bytes.push(0x80 | size as u8),
            126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&(size as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(size as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&[1, 2, 3, 4]);
        bytes.resize(bytes.len() + size, b'x');
        bytes
    }

    /// Reads until the end or an error; how many bytes passed.
    async fn read_all(input: &[u8]) -> (usize, Option<io::Error>) {
        let (mut gate, _latch) = FrameGate::closed(input);
        let mut seen = Vec::new();
        let error = gate.read_to_end(&mut seen).await.err();
        assert_eq!(seen, input[..seen.len()]);
        (seen.len(), error)
    }

    #[tokio::test]
    async fn frames_up_to_the_limit_pass_unchanged() {
        for sizes in [&[0, 1, 125, 126, 127, 300][..], &[65_535], &[65_536]] {
            let input: Vec<u8> = sizes.iter().flat_map(|size| frame(*size)).collect();
            let (seen, error) = read_all(&input).await;
            assert_eq!((seen, error.map(|e| e.to_string())), (input.len(), None), "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn a_bigger_frame_is_refused_at_its_header() {
        // The first two bytes of a header tell how long it is, the rest how long the frame is.
        for (sizes, passed) in [(&[65_537][..], 2), (&[40_000, 40_000], 8 + 40_000 + 2)] {
            let input: Vec<u8> = sizes.iter().flat_map(|size| frame(*size)).collect();
            let (seen, error) = read_all(&input).await;
            assert!(error.unwrap().get_ref().unwrap().is::<TooBig>());
            assert_eq!(seen, passed, "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn nothing_beyond_the_frame_is_read_until_the_gate_opens() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let (first, second) = (frame(5), frame(100_000));
        theirs.write_all(&first).await.unwrap();
        theirs.write_all(&second).await.unwrap();
        let (mut gate, latch) = FrameGate::closed(ours);
        let mut buf = vec![0; 1 << 20];
        let mut seen = 0;
        while seen < first.len() {
            seen += gate.read(&mut buf[seen..]).await.unwrap();
        }
        assert_eq!(seen, first.len());
        latch.open();
        let mut rest = vec![0; second.len()];
        gate.read_exact(&mut rest).await.unwrap();
        assert_eq!(rest, second);
    }
}
