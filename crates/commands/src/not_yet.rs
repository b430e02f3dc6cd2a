//! Commands of OpenClaw 2026.2.9 that this gateway does not have: they are not offered, and they say so.

use super::command::{Category, ChatCommand, Does, Takes};

pub(crate) const TTS: ChatCommand =
    ChatCommand::new("tts", Category::Media, Does::Missing, "Have answers spoken.")
        .taking(Takes::Words, "on|off|status|provider|limit|summary|audio|help");
