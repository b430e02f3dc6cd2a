//! Decision between an answer and a stop that come at the same time. Clients are told of the one
//! that comes first, and the transcript shows the same: so a start after a crash reads there what
//! was told (`docs/durability.md`, "Stopping").

use parking_lot::Mutex;

/// End of a run that clients are told, decided before it is written or told.
#[derive(Debug, Default)]
pub struct EndClaim(Mutex<Claimed>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Claimed {
    #[default]
    Open,
    /// The whole answer is being written, or stands in the transcript.
    Answer,
    /// Clients are told that the run was stopped.
    Stop,
}

impl EndClaim {
    /// Claims the end for a whole answer, before it is written; `false` if a stop was first.
    pub fn answer(&self) -> bool {
        self.claim(Claimed::Answer)
    }

    /// Claims the end for a stop, before clients are told; `false` if an answer was first.
    pub fn stop(&self) -> bool {
        self.claim(Claimed::Stop)
    }

    /// Gives up the claim of an answer that was not written, or that was not the last.
    pub fn give_up_answer(&self) {
        let mut claimed = self.0.lock();
        if *claimed == Claimed::Answer {
            *claimed = Claimed::Open;
        }
    }

    /// True if clients are told of a stop.
    pub fn is_stop(&self) -> bool {
        *self.0.lock() == Claimed::Stop
    }

    fn claim(&self, end: Claimed) -> bool {
        let mut claimed = self.0.lock();
        if *claimed == Claimed::Open {
            *claimed = end;
        }
        *claimed == end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_claim_holds() {
        let end = EndClaim::default();
        assert!(end.answer() && end.answer() && !end.stop(), "answered");
        end.give_up_answer();
        assert!(end.stop() && end.stop() && !end.answer() && end.is_stop(), "stopped");
        end.give_up_answer();
        assert!(end.is_stop(), "a stop that was told stays");
    }
}
