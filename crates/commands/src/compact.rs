//! `/compact [instructions]` (spec `agent-runtime.md` §10.8, `messages.md` §5): the conversation so far becomes a summary. It is not
//! answered from the table: the session's turn is needed for it, and the run under way is stopped. See
//! `crates/runs/src/compaction.rs`.

use super::command::{Category, ChatCommand, Does, Offered, Takes};

pub(crate) use openclaw_journal::request::COMPACT as NAME;

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    offered: Offered::Text,
    ..ChatCommand::new(
        NAME,
        Category::Session,
        Does::Compacts,
        "Replace the conversation so far by a summary.",
    )
    .taking(Takes::Words, "[instructions]")
    .keeping_lines()
};
