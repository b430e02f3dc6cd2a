//! An account of a chat platform that sends and does nothing else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_channels::{
    Account, AccountIo, Activity, Address, Answer, ChannelFuture, Exit, FetchError, Fetched, MediaRef,
    OutgoingPart, Part, PartFate, Probe, RateTurn, Receipt, Repeats, SendAttempt, SendError,
};

/// Behaviour of an account that sends.
pub trait Sends: Send + Sync + 'static {
    /// Effect of a second request.
    fn repeats(&self) -> Repeats;

    /// Tells if it is the conversation's turn now.
    fn turn(&self, at: &Address) -> RateTurn {
        let _ = at;
        RateTurn::Now
    }

    /// Time that one request may take.
    fn request_limit(&self) -> Duration {
        Duration::ZERO
    }

    /// Sends.
    fn send<'a>(
        &'a self,
        outgoing: OutgoingPart<'a>,
        attempt: SendAttempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>>;

    /// Looks whether it is there.
    fn confirm<'a>(&'a self, outgoing: OutgoingPart<'a>) -> ChannelFuture<'a, Result<PartFate, SendError>> {
        let _ = outgoing;
        Box::pin(async { Ok(PartFate::Unknown) })
    }
}

/// The account.
pub struct SendOnly<S>(pub Arc<S>);

impl<S: Sends> Account for SendOnly<S> {
    fn run(&self, io: AccountIo) -> ChannelFuture<'_, Exit> {
        Box::pin(async move {
            io.stop.cancelled().await;
            Exit::Stopped
        })
    }

    fn repeats(&self) -> Repeats {
        self.0.repeats()
    }

    fn turn(&self, at: &Address) -> RateTurn {
        self.0.turn(at)
    }

    fn request_limit(&self, _: &Part) -> Duration {
        self.0.request_limit()
    }

    fn send<'a>(
        &'a self,
        outgoing: OutgoingPart<'a>,
        attempt: SendAttempt,
    ) -> ChannelFuture<'a, Result<Receipt, SendError>> {
        self.0.send(outgoing, attempt)
    }

    fn confirm<'a>(&'a self, outgoing: OutgoingPart<'a>) -> ChannelFuture<'a, Result<PartFate, SendError>> {
        self.0.confirm(outgoing)
    }

    fn parts(&self, answer: &Answer) -> Vec<Part> {
        vec![Part::text(answer.text.clone())]
    }

    fn fetch<'a>(
        &'a self,
        _: &'a MediaRef,
        _: &'a Path,
        _: u64,
    ) -> ChannelFuture<'a, Result<Fetched, FetchError>> {
        Box::pin(async { Err(FetchError::Gone) })
    }

    fn show_activity<'a>(&'a self, _: &'a Address, _: Activity) -> ChannelFuture<'a, Result<(), SendError>> {
        Box::pin(async { Ok(()) })
    }

    fn actions(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn probe(&self, _: Duration) -> ChannelFuture<'_, Probe> {
        Box::pin(async { Probe { ok: true, ..Probe::default() } })
    }
}
