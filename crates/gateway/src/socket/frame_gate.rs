//! Holds a socket to messages that it may send, before any memory is set aside for them.
//!
//! The gate sits under the WebSocket layer and looks at the frame headers that pass. A stranger
//! gets one small frame at a time: no byte beyond the frame being read is given out, so anything
//! that a client sends behind its `connect` waits in the socket. Once a client is admitted, a
//! message that is too large ends the connection at its header, and a large one waits for its part
//! of the [budget](crate::connection::frame_budget).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::PollSemaphore;

use super::frame_progress::{Announced, FrameProgress};
use crate::connection::frame_budget::{Allowance, FrameBytes, SMALL, patience};

/// Bytes of payload a client may send before it is authenticated (decision 13).
pub(crate) const LIMIT: u64 = 64 * 1024;
/// Bytes read at once from a stranger.
const PIECE: usize = 4 * 1024;

/// The error inside of the `io::Error` that a gate gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Overstep {
    /// The message is larger than the client's may be.
    #[error("message of more than {0} bytes")]
    TooBig(u64),
    /// A large message comes in so slowly that others wait for the memory it holds.
    #[error("a message took too long to arrive")]
    TooSlow,
}

/// State of the gate.
#[derive(Debug, Clone, Default)]
enum GateMode {
    /// The client is not authenticated.
    #[default]
    Stranger,
    /// The client is authenticated, and may send this much.
    Admitted(Allowance),
}

/// Tells a gate what to do, and takes from it what a message holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latch(Arc<Mutex<GateOrders>>);

#[derive(Debug, Default)]
struct GateOrders {
    mode: GateMode,
    held: Option<FrameBytes>,
}

impl Latch {
    /// The client is authenticated.
    pub(crate) fn admit(&self, allowance: Allowance) {
        self.0.lock().mode = GateMode::Admitted(allowance);
    }

    /// Budget bytes held by the message that was just read; `None` for a small message.
    pub(crate) fn take_held(&self) -> Option<FrameBytes> {
        self.0.lock().held.take()
    }
}

/// The message being read of an admitted client.
#[derive(Debug, Default)]
struct IncomingMessage {
    /// Bytes announced so far, in all its frames.
    bytes: u64,
    is_last: bool,
    /// Bytes to be taken from the budget before more of it is read.
    wanted: Option<u32>,
    has_taken: bool,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl IncomingMessage {
    /// Notes a header that was read. A large message takes all its bytes at once, so that no two
    /// wait for each other; the size of one in several frames is not known.
    fn announced(&mut self, header: Announced, largest: u32) -> Result<(), Overstep> {
        if header.is_control {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(header.payload);
        self.is_last = header.is_last;
        if self.bytes > u64::from(largest) {
            return Err(Overstep::TooBig(largest.into()));
        }
        if self.bytes > u64::from(SMALL) && !self.has_taken {
            self.has_taken = true;
            let whole = u32::try_from(self.bytes).unwrap_or(largest);
            self.wanted = Some(if header.is_last { whole } else { largest });
        }
        Ok(())
    }
}

/// The gate around a byte stream.
#[derive(Debug)]
pub(crate) struct FrameGate<S> {
    inner: S,
    latch: Latch,
    progress: FrameProgress,
    /// Payload bytes that a stranger announced so far.
    total: u64,
    message: IncomingMessage,
    /// Waits for bytes of the budget, once one was needed.
    budget: Option<PollSemaphore>,
}

impl<S> FrameGate<S> {
    /// Gate before a stranger, and the latch that controls it.
    pub(crate) fn closed(inner: S) -> (Self, Latch) {
        let latch = Latch::default();
        let gate = Self {
            inner,
            latch: latch.clone(),
            progress: FrameProgress::default(),
            total: 0,
            message: IncomingMessage::default(),
            budget: None,
        };
        (gate, latch)
    }

    pub(crate) fn into_inner(self) -> S {
        self.inner
    }

    /// Bytes of a stranger have passed.
    fn passed(&mut self, bytes: &[u8]) -> Result<(), Overstep> {
        if let Some(header) = self.progress.passed(bytes) {
            self.total = self.total.saturating_add(header.payload);
            if self.total > LIMIT {
                return Err(Overstep::TooBig(LIMIT));
            }
        }
        Ok(())
    }

    /// Bytes of an admitted client have passed: the end of one frame and the begin of others, as they come.
    fn scan(&mut self, bytes: &[u8], largest: u32) -> Result<(), Overstep> {
        let mut rest = bytes;
        while let Some((now, later)) = rest.split_at_checked(self.progress.allowed().min(rest.len())) {
            if now.is_empty() {
                break;
            }
            rest = later;
            if let Some(header) = self.progress.passed(now) {
                self.message.announced(header, largest)?;
            }
            if self.progress.is_between_frames() && self.message.is_last {
                self.message = IncomingMessage::default();
            }
        }
        Ok(())
    }

    /// Waits until the message being read may take its memory, and not longer for its bytes than they may take.
    fn poll_allowed(&mut self, allowance: &Allowance, cx: &mut Context<'_>) -> Poll<Result<(), Overstep>> {
        if let Some(bytes) = self.message.wanted {
            let budget = self.budget.get_or_insert_with(|| PollSemaphore::new(Arc::clone(&allowance.budget)));
            // Nothing is held only of a semaphore that was closed, which this one never is.
            let held = ready!(budget.poll_acquire_many(cx, bytes));
            self.latch.0.lock().held = held;
            self.message.wanted = None;
            self.message.deadline = Some(Box::pin(sleep(patience(bytes))));
        }
        match self.message.deadline.as_mut().map(|deadline| deadline.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(Overstep::TooSlow)),
            Some(Poll::Pending) | None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncRead + Unpin> FrameGate<S> {
    /// Reads into a buffer of our own, so that bytes are checked before the reader has them.
    fn poll_stranger(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut piece = [0; PIECE];
        let size = self.progress.allowed().min(buf.remaining()).min(PIECE);
        let mut piece = ReadBuf::new(piece.get_mut(..size).unwrap_or_default());
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut piece))?;
        self.passed(piece.filled()).map_err(io::Error::other)?;
        buf.put_slice(piece.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameGate<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mode = this.latch.0.lock().mode.clone();
        let allowance = match mode {
            GateMode::Stranger => return this.poll_stranger(cx, buf),
            GateMode::Admitted(allowance) => allowance,
        };
        ready!(this.poll_allowed(&allowance, cx)).map_err(io::Error::other)?;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        let fresh = buf.filled().get(before..).unwrap_or_default();
        if let Err(overstep) = this.scan(fresh, allowance.largest) {
            // An error comes without bytes.
            buf.set_filled(before);
            return Poll::Ready(Err(io::Error::other(overstep)));
        }
        Poll::Ready(Ok(()))
    }
}

/// Discards the WebSocket layer's own answers (pongs, a close): they would end up in the middle of
/// other frames. The connection's writer answers.
impl<S: Unpin> AsyncWrite for FrameGate<S> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
