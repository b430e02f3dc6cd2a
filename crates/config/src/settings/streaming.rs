//! Streaming settings: cutting, pacing and sending of answers while they are written, for agents
//! and channels alike (spec `streaming.md` §1).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::reply_to_mode::ReplyToMode;

/// `blockStreamingChunk`, `draftChunk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlockChunk {
    /// Characters that a block has at least; default 800, of drafts 200.
    pub min_chars: Option<u64>,
    /// Characters that it has at most; default 1,200, of drafts 800.
    pub max_chars: Option<u64>,
    /// Preferred end of a block; default `paragraph`.
    pub break_preference: Option<BreakPreference>,
}

/// `breakPreference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakPreference {
    /// Break at a blank line, else at the end of a line, else of a sentence.
    #[default]
    Paragraph,
    /// Break at the end of a line.
    Newline,
    /// Break at the end of a sentence.
    Sentence,
}

/// `blockStreamingCoalesce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlockCoalesce {
    /// Characters that are waited for; default the channel's, else those of a block.
    pub min_chars: Option<u64>,
    /// Characters that are sent at once; default what a message of the channel takes.
    pub max_chars: Option<u64>,
    /// Quiet time after which they are sent, in milliseconds; default 1,000.
    pub idle_ms: Option<u64>,
}

impl BlockCoalesce {
    /// `self` laid over `below`, key by key.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            min_chars: self.min_chars.or(below.min_chars),
            max_chars: self.max_chars.or(below.max_chars),
            idle_ms: self.idle_ms.or(below.idle_ms),
        }
    }
}

/// `humanDelay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HumanDelay {
    /// Mode of the delay; default off.
    pub mode: Option<HumanDelayMode>,
    /// Shortest pause of mode `custom` in milliseconds; default 800.
    pub min_ms: Option<u64>,
    /// Longest pause of mode `custom` in milliseconds; default 2,500.
    pub max_ms: Option<u64>,
}

/// `humanDelay.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HumanDelayMode {
    /// No pauses.
    #[default]
    Off,
    /// Pauses as people make them.
    Natural,
    /// Pauses of `minMs` to `maxMs`.
    Custom,
}

impl HumanDelay {
    /// `self` laid over `below`, key by key.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            mode: self.mode.or(below.mode),
            min_ms: self.min_ms.or(below.min_ms),
            max_ms: self.max_ms.or(below.max_ms),
        }
    }
}

/// Reply settings of a channel or of an account of it. No defaults are filled in. Values of another
/// form count as absent: a plugin's channel may use the same name otherwise, and its section is not
/// checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ChannelReplies {
    /// True if answers are sent in blocks.
    #[serde(deserialize_with = "lenient")]
    pub block_streaming: Option<bool>,
    /// Coalescing of small blocks.
    #[serde(deserialize_with = "lenient")]
    pub block_streaming_coalesce: Option<BlockCoalesce>,
    /// Characters of one message.
    #[serde(deserialize_with = "lenient")]
    pub text_chunk_limit: Option<u64>,
    /// `length` or `newline`.
    #[serde(deserialize_with = "lenient")]
    pub chunk_mode: Option<String>,
    /// Lines of one message; Discord.
    #[serde(deserialize_with = "lenient")]
    pub max_lines_per_message: Option<u64>,
    /// Mode of showing drafts; Telegram.
    #[serde(deserialize_with = "lenient")]
    pub stream_mode: Option<StreamMode>,
    /// The steps of drafts in mode `block`; Telegram.
    #[serde(deserialize_with = "lenient")]
    pub draft_chunk: Option<BlockChunk>,
    /// Put before replies.
    #[serde(deserialize_with = "lenient")]
    pub response_prefix: Option<String>,
    /// Messages of an answer that quote what they answer.
    #[serde(deserialize_with = "lenient")]
    pub reply_to_mode: Option<ReplyToMode>,
    /// The same by kind of chat; Slack.
    #[serde(deserialize_with = "lenient")]
    pub reply_to_mode_by_chat_type: ReplyToModeByChatType,
    /// Treatment of Markdown.
    #[serde(deserialize_with = "lenient")]
    pub markdown: ChannelMarkdown,
}

/// `streamMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamMode {
    /// No drafts.
    Off,
    /// The draft is the text so far.
    #[default]
    Partial,
    /// The draft grows by blocks.
    Block,
}

/// `replyToModeByChatType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "lowercase")]
pub struct ReplyToModeByChatType {
    /// Mode in direct chats.
    pub direct: Option<ReplyToMode>,
    /// Mode in groups.
    pub group: Option<ReplyToMode>,
    /// Mode in channels.
    pub channel: Option<ReplyToMode>,
}

/// `markdown`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ChannelMarkdown {
    /// `off`, `bullets` or `code`.
    pub tables: Option<String>,
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}
