//! Runs an agent once: prompt, context, the loop over model and tools, and the events it emits.
//!
//! A run is driven through four interfaces and knows nothing else: [`openclaw_models::Model`] streams events,
//! [`Toolbox`] holds the tools, [`Transcript`] appends and reads the branch, [`Steering`] brings queued user messages. It does
//! not know who asked or where the reply goes: it emits [`event::RunEvent`]s and returns an [`Outcome`].
//!
//! Modules by topic:
//!
//! | concern | module |
//! |---|---|
//! | parameters, limits; candidate models | [`mod@run`], `run_model` |
//! | the loop as a pure machine; retries; going on after a crash | `turn` |
//! | ending with an answer that is there, without a model | `standing_answer` |
//! | performing its steps: waiting, writing, calling | `driver`, `answer` (model), `tool_call` (tools), `stop` |
//! | what a run tells and returns | [`event`], [`reply`], `payload`, `tool_event`, `retry_notice`; in place of a tool that gave no result, `gateway_result` |
//! | reasoning tags, directives, the silent token | [`text`] |
//! | how much of the history a model is sent | `context` |
//! | how large it is; leaving out old tool results; summaries in place of what was long ago | [`tokens`], [`pruning`], [`compaction`] |
//! | images: what they are, made small enough; those of a conversation as they are sent | [`picture`], [`sent_images`] |
//! | the system prompt and its report | [`prompt`] |
//! | word of edits of files | [`file_watch`] |
//! | files under an open directory, that nothing leads out of | [`place`], [`workspace_file`] |
//! | workspace files, templates, identity, the user's clock | [`bootstrap`], [`workspace`], [`identity`], [`user_time`] |
//! | what a tool is, and the facts that are known of it | [`tool`] |
//! | which tools are offered | [`tool_policy`]; those of one run are a [`Toolbox`] |
//! | what tools may ask of the gateway | [`host`] |
//! | hooks: what they are told, what they may change | [`hooks`] |
//! | the settings at the head of `SKILL.md` and `HOOK.md`; what they need | [`frontmatter`], [`requirements`] |
//! | skills: finding them, whether they can be used, what runs are given of them | [`skills`] |
//! | adding, changing and removing agents, their workspace files | [`roster`] |

mod answer;
pub mod bootstrap;
pub mod compaction;
mod context;
mod driver;
pub mod error_surface;
pub mod event;
pub mod file_watch;
pub mod frontmatter;
mod gateway_result;
pub mod hooks;
pub mod host;
pub mod identity;
mod payload;
pub mod picture;
pub mod place;
pub mod prompt;
pub mod pruning;
mod reasoning_visibility;
mod redaction;
pub mod reply;
pub mod requirements;
mod retry_notice;
pub mod roster;
pub mod run;
mod run_model;
pub mod sent_images;
pub mod skills;
mod standing_answer;
mod stop;
pub mod text;
pub mod tokens;
pub mod tool;
mod tool_call;
mod tool_event;
pub mod tool_policy;
mod toolbox;
pub mod transcript;
mod turn;
mod unpack;
pub mod user_time;
pub mod workspace;
pub mod workspace_file;

pub use event::{RunEnd, RunEvent};
pub use reasoning_visibility::ReasoningVisibility;
pub use redaction::{MIN_SECRET_CHARS, Redactor};
pub use reply::{NO_ANSWER, Outcome, ReplyPayload, ReplyTo, RunMeta};
pub use run::{Expected, Limits, RunParams};
pub use run_model::RunModel;
pub use standing_answer::{standing_answer, standing_words};
pub use tool::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
pub use tool_call::DirectCall;
pub use toolbox::Toolbox;
pub use transcript::{QueuedMessage, Steering, Transcript, TranscriptError};
pub use turn::is_interrupted;

/// Works until the model is done, someone stops it, time is up, or it fails. Emits exactly one
/// [`RunEvent::Started`] first and exactly one [`RunEvent::Ended`] last, and leaves a well-formed transcript however it ends.
pub async fn run(params: RunParams<'_>) -> Outcome {
    driver::drive(params).await
}
