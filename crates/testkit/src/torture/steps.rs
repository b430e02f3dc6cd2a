//! The steps of the pipeline at which the gateway is killed, each known by what can be seen from outside.

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;

use super::watch_file::written;
use super::world::{Counts, World};
use crate::telegram::Moment;

/// Time to wait for a step. A round in which it does not come is one more kill at random.
const LONGEST: Duration = Duration::from_secs(2);

/// Step at which the gateway is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillStep {
    /// The platform has just given an update, and it is not stored.
    Brought,
    /// The journal was written: an event is stored, a message accepted, a run noted, a delivery stored, a receipt.
    Journal,
    /// The platform was told that an update was taken.
    Confirmed,
    /// A typing signal is shown.
    Typing,
    /// A client has the acknowledgement of a message.
    Acknowledged,
    /// A transcript was written: the message, a tool's result, the answer.
    Transcript,
    /// The model was asked.
    Asked,
    /// The model answers.
    Answering,
    /// The model was told what a tool gave.
    ToolDone,
    /// Clients are told of a run.
    Told,
    /// The row of a session was written.
    SessionRow,
    /// The platform is asked to take an answer.
    Sending,
    /// The platform has taken an answer, and says so.
    Sent,
    /// The journal was written after that: the receipt.
    Receipt,
    /// The gateway is starting, and takes up what was left.
    Starting,
    /// Kill at any time.
    Whenever,
}

/// All of them, in the order of the pipeline.
pub(super) const STEPS: &[KillStep] = &[
    KillStep::Brought,
    KillStep::Journal,
    KillStep::Confirmed,
    KillStep::Typing,
    KillStep::Acknowledged,
    KillStep::Transcript,
    KillStep::Asked,
    KillStep::Answering,
    KillStep::ToolDone,
    KillStep::Told,
    KillStep::SessionRow,
    KillStep::Sending,
    KillStep::Sent,
    KillStep::Receipt,
    KillStep::Starting,
    KillStep::Whenever,
];

/// The name under which a round is counted in which the step did not come.
const NOT_REACHED: &str = "not reached, at any time";

impl KillStep {
    fn name(self) -> &'static str {
        match self {
            Self::Brought => "an update is brought",
            Self::Journal => "the journal is written",
            Self::Confirmed => "an update is confirmed",
            Self::Typing => "typing is shown",
            Self::Acknowledged => "a message is acknowledged",
            Self::Transcript => "a transcript is written",
            Self::Asked => "the model is asked",
            Self::Answering => "the model answers",
            Self::ToolDone => "a tool's result is told",
            Self::Told => "clients are told",
            Self::SessionRow => "a session's row is written",
            Self::Sending => "an answer is being sent",
            Self::Sent => "an answer was sent",
            Self::Receipt => "a receipt is written",
            Self::Starting => "the gateway starts",
            Self::Whenever => "at any time",
        }
    }

    /// True if the step does not happen while the platform is down.
    pub(super) fn is_of_platform(self) -> bool {
        match self {
            Self::Brought | Self::Confirmed | Self::Typing | Self::Sending | Self::Sent | Self::Receipt => {
                true
            }
            Self::Journal
            | Self::Acknowledged
            | Self::Transcript
            | Self::Asked
            | Self::Answering
            | Self::ToolDone
            | Self::Told
            | Self::SessionRow
            | Self::Starting
            | Self::Whenever => false,
        }
    }

    /// Waits for it, from what was counted before the round began; gives the name to count it under.
    pub(super) async fn reached(self, world: &World, before: &Counts, chance: &mut StdRng) -> &'static str {
        let more = chance.random_range(1..=2);
        let pause = Duration::from_micros(chance.random_range(0..40_000));
        match tokio::time::timeout(LONGEST, self.comes(world, before, more, pause)).await {
            Ok(()) => self.name(),
            Err(_) => NOT_REACHED,
        }
    }

    async fn comes(self, world: &World, before: &Counts, more: usize, pause: Duration) {
        let server = &world.server;
        let state = world.gateway.state_dir();
        let sessions = state.join("agents/main/sessions");
        match self {
            Self::Brought => server.counted(Moment::Brought, before.brought + 1).await,
            Self::Confirmed => server.counted(Moment::Confirmed, before.confirmed + 1).await,
            Self::Typing => server.counted(Moment::Called("sendChatAction"), before.typing + more).await,
            Self::Sending => server.counted(Moment::Called("sendMessage"), before.sending + more).await,
            Self::Sent => server.counted(Moment::Answered("sendMessage"), before.sent + more).await,
            Self::Receipt => {
                server.counted(Moment::Answered("sendMessage"), before.sent + 1).await;
                written(state, "gateway.sqlite-wal", more).await;
            }
            Self::Journal => written(state, "gateway.sqlite-wal", more * 3).await,
            Self::Transcript => written(sessions, ".jsonl", more * 2).await,
            Self::SessionRow => written(sessions, "sessions.json", more).await,
            Self::Asked => world.was_asked(|asked| asked.all >= before.asked.all + more).await,
            Self::Answering => {
                world.was_asked(|asked| asked.all > before.asked.all).await;
                tokio::time::sleep(pause).await;
            }
            Self::ToolDone => {
                world.was_asked(|asked| asked.after_tool >= before.asked.after_tool + more).await
            }
            Self::Acknowledged => {
                world.was_seen(|seen| seen.acknowledged >= before.seen.acknowledged + more).await;
            }
            Self::Told => world.was_seen(|seen| seen.frames >= before.seen.frames + more * 15).await,
            Self::Starting | Self::Whenever => tokio::time::sleep(pause * 8).await,
        }
    }
}
