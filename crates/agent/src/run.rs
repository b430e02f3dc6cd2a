//! Parameters and limits of one run.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_models::KeptRequest;
use openclaw_models::credentials::AgentFlag;
use openclaw_protocol::SessionId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::compaction::CompactionSettings;
use crate::error_surface::ErrorSurface;
use crate::event::RunEvent;
use crate::hooks::RunHooks;
use crate::host::Host;
use crate::pruning::{PruneSettings, Pruned};
use crate::reasoning_visibility::ReasoningVisibility;
use crate::redaction::Redactor;
use crate::run_model::RunModel;
use crate::sent_images::SentImages;
use crate::toolbox::Toolbox;
use crate::transcript::{Steering, Transcript};

/// Parameters of a run. The run holds no state of its own between calls.
pub struct RunParams<'a> {
    /// The transcript's id: request metadata and `meta.agentMeta.sessionId`.
    pub session_id: SessionId,
    /// Candidate models in order of preference, never empty: the requested model with each usable
    /// credential, then the fallbacks. A failure that another candidate may not have moves on to
    /// the next (spec `models.md` §9.2, §9.3).
    pub models: &'a [RunModel<'a>],
    /// Models that were left out from the start, as `provider/model: why`; shown if all candidates
    /// fail.
    pub passed_over: &'a [String],
    /// Flag with which commands mean the agent, for advice.
    pub agent: AgentFlag,
    /// Reader of the error if the run fails, for advice.
    pub error_surface: ErrorSurface,
    /// The system prompt, byte-stable for the session.
    pub system_prompt: &'a Arc<str>,
    /// The tools, policy applied.
    pub tools: &'a Toolbox,
    /// Interface of the tools to the gateway.
    pub host: Arc<dyn Host>,
    /// Hooks that observe tool calls and may change them.
    pub hooks: RunHooks,
    /// Takes secrets out of what the tools say.
    pub redactor: &'a Redactor,
    /// Source of the history and destination of new messages. The history ends with the message to
    /// answer; or, when an earlier process ended while the run was under way, with what that
    /// process has written since. Unanswered tool calls are then closed with an error result, and
    /// an answer that is already there is returned without calling the model.
    pub transcript: &'a mut dyn Transcript,
    /// Number of times an earlier process died while it worked on this run.
    pub deaths: u32,
    /// Last request sent for this transcript: the next request extends it.
    pub kept: KeptRequest,
    /// Messages that the user sends while the run is active.
    pub steering: &'a dyn Steering,
    /// Visibility of reasoning: tells if it becomes a reply of its own.
    pub reasoning: ReasoningVisibility,
    /// Time, rounds, loops.
    pub limits: Limits,
    /// Settings that decide when messages are compacted and how many are kept.
    pub compaction: CompactionSettings,
    /// Tokens of the system prompt and the tools, by estimate.
    pub fixed_tokens: u64,
    /// Pruning of old tool results; `None` prunes none.
    pub pruning: Option<&'a PruneSettings>,
    /// Results already pruned in this transcript.
    pub pruned: &'a mut Pruned,
    /// Smaller forms of images in this transcript that were too large to send.
    pub images: &'a mut SentImages,
    /// Keep this many user turns before the one under way (spec `agent-runtime.md` §9.5); absent keeps all.
    pub history_limit: Option<NonZeroU32>,
    /// Stops the run.
    pub cancel: CancellationToken,
    /// Base directory for relative paths of tools. The process never changes its own directory.
    pub workspace: PathBuf,
    /// Takes the events in order. The receiver must be drained while the run works (the run waits for room); dropping
    /// it is allowed and loses the events only.
    pub events: mpsc::Sender<RunEvent>,
}

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of the whole run, tools included; `None` is unlimited.
    pub timeout: Option<Duration>,
    /// Model calls that asked for tools before the run is stopped; off by default, as in the reference.
    pub max_tool_rounds: Option<NonZeroU32>,
    /// Number of times in a row that a failed call is repeated with the same candidate, after a
    /// backoff of 2, 4 and 8 s (spec `agent-runtime.md` §2.8). See also
    /// [`RunModel::repeats_itself`].
    pub retries: u32,
    /// Number of consecutive identical calls after which the result tells the model that it is
    /// going in circles.
    pub identical_calls_warn: u32,
    /// Number of consecutive identical calls after which the run is stopped.
    pub identical_calls_stop: u32,
    /// Kind of answer that is expected, which decides what an answer without words means.
    pub expects: Expected,
}

/// Kind of answer that is expected of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expected {
    /// Words, or the silent token: without either a model is asked once more, then the fallbacks, and then the run has failed.
    #[default]
    Words,
    /// Like `Words`, but if no model says anything the run ends in silence instead of failing, as
    /// in a group.
    WordsOrSilence,
    /// Any answer: silence is as good as words.
    Anything,
}

impl Limits {
    /// Returns the message for people when a run reached its time limit.
    pub fn time_is_up(&self) -> String {
        let limit = self.timeout.unwrap_or_default().as_secs();
        format!(
            "The run timed out: it was stopped at its time limit of {limit} s. Ask for less at once, or allow more time: with --timeout of \
             the command that asked, or in agents.defaults.timeoutSeconds."
        )
    }
}

impl Default for Limits {
    /// Spec `agent-runtime.md` §2.4 (10 and 30 identical calls). The time limit of a run is set by
    /// the caller.
    fn default() -> Self {
        Self {
            timeout: None,
            max_tool_rounds: None,
            retries: 3,
            identical_calls_warn: 10,
            identical_calls_stop: 30,
            expects: Expected::default(),
        }
    }
}
