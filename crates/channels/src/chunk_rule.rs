//! Limit and mode by which answers are cut into messages (spec `streaming.md` §9, `channels.md`
//! §4.4). Decided here once: the platform cuts by them, and streaming shapes blocks to fit.

use openclaw_config::Config;
use openclaw_config::registry::{self, ReplyDefaults};
use openclaw_config::settings::ChannelReplies;

use crate::text::ChunkMode;

/// Rule by which answers of an account are cut into messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRule {
    /// Characters of a message, in the platform's unit.
    pub limit: usize,
    /// Places at which long answers are cut.
    pub mode: ChunkMode,
}

impl Default for ChunkRule {
    fn default() -> Self {
        Self { limit: ReplyDefaults::OTHER.text_limit, mode: ChunkMode::default() }
    }
}

impl ChunkRule {
    /// Returns the rule of an account: its own settings, else the channel's, else the platform's
    /// default.
    pub fn of(config: &Config, channel: &str, account: Option<&str>) -> Self {
        let layers = reply_layers(config, channel, account);
        let limit = layers.iter().find_map(|layer| layer.text_chunk_limit).filter(|limit| *limit > 0);
        let mode = layers.iter().find_map(|layer| layer.chunk_mode.as_deref());
        Self {
            limit: limit.map_or(registry::reply_defaults(channel).text_limit, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            }),
            // A page shows an answer whole.
            mode: ChunkMode::from_config(mode.filter(|_| channel != registry::WEBCHAT)),
        }
    }
}

/// Returns the reply settings of an account, then those of its channel: the layer that is asked
/// first comes first.
pub fn reply_layers<'c>(config: &'c Config, channel: &str, account: Option<&str>) -> Vec<&'c ChannelReplies> {
    config.channels.replies(channel, account).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_account_is_found_however_its_name_is_written_and_the_first_in_the_file_counts() {
        let config: Config = serde_json::from_value(json!({"channels": {"telegram": {
            "textChunkLimit": 900, "chunkMode": "newline",
            "accounts": {"my-bot": {"textChunkLimit": 300, "chunkMode": "length"}, "My Bot!": {"textChunkLimit": 200}},
        }}}))
        .unwrap();
        let rows = [
            (Some("my-bot"), 300, ChunkMode::Length),
            (Some("My Bot!"), 300, ChunkMode::Length),
            (Some("other"), 900, ChunkMode::Newline),
            (None, 900, ChunkMode::Newline),
        ];
        for (account, limit, mode) in rows {
            assert_eq!(ChunkRule::of(&config, "telegram", account), ChunkRule { limit, mode }, "{account:?}");
        }
        let bare = ChunkRule::of(&config, "discord", Some("my-bot"));
        assert_eq!(bare, ChunkRule { limit: 2000, mode: ChunkMode::Length });
    }
}
