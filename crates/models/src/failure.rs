//! Failures of model calls: what kind they are, what people are told, whether to try again.

mod classify;
mod pattern;
mod text;

pub(crate) use classify::affordable_tokens;
pub use classify::{
    classify_answer, classify_text, is_compaction_failure, is_context_overflow, refuses_tools,
};
pub(crate) use text::WEB_PAGE;
pub use text::{is_web_page, user_text};
