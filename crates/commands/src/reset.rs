//! `/new` and `/reset`: a new conversation in the same session (spec `sessions.md` §5.3 to §5.5). What they do is that of reset
//! triggers, [`openclaw_sessions::reset`].

use super::command::{Category, ChatCommand, Does, Takes};

pub(crate) const NEW: ChatCommand =
    ChatCommand::new("new", Category::Session, Does::Resets, "Begin a new conversation.")
        .taking(Takes::Words, "[model] [text]");
pub(crate) const RESET: ChatCommand =
    ChatCommand::new("reset", Category::Session, Does::Resets, "Begin this conversation anew.")
        .taking(Takes::Words, "[model] [text]");
