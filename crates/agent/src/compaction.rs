//! A summary in the place of what was long ago (spec `agent-runtime.md` §10), so that a conversation never outgrows the model's
//! context window.
//!
//! | concern | module |
//! |---|---|
//! | what the configuration says; when there is too much | [`settings`](CompactionSettings), [`Budget`] |
//! | where the history is cut, what becomes of each part | `cut`, `plan` |
//! | tool results that are too long to be kept whole | `long_results` |
//! | sizes of the parts that are summarised one by one | `chunks` |
//! | what the summarising model is told | `conversation`, `quoted`, `wording` |
//! | what is added to a summary: files, failures of tools | `files`, `tool_failures` |
//! | the calls themselves | `summarise` |
//! | all of it, from an open transcript to the entry in it | [`work`] |
//! | saving to memory before | [`memory_flush`] |

mod budget;
mod chunks;
mod conversation;
mod cut;
mod files;
mod long_results;
pub mod memory_flush;
mod plan;
mod quoted;
mod settings;
mod summarise;
mod tool_failures;
mod wording;
pub mod work;

pub use budget::Budget;
pub use plan::{CompactionPlan, Nothing, Range, Urgency, plan, shorten};
pub use settings::{CompactionSettings, FileSettings};
