//! Commands of OpenClaw 2026.2.9 that this gateway does not have: they are not offered, and they say so.

use super::table::{BASH, Category, Command, Does, Offered, Takes};

pub(super) const BASH_COMMAND: Command = Command {
    offered: Offered::Text,
    ..Command::new(BASH, Category::Tools, Does::Missing, "Run a shell command here.")
        .taking(Takes::Words, "<command>|poll [id]|stop [id]|help")
};

pub(super) const TTS: Command = Command::new("tts", Category::Media, Does::Missing, "Have answers spoken.")
    .taking(Takes::Words, "on|off|status|provider|limit|summary|audio|help");
