//! Streaming settings of one turn: the parts that are switched on, and the size of its blocks (spec
//! `streaming.md` §1–§4, §9). An account's settings override its channel's, and those the agents'
//! defaults; an account or a channel without a setting takes nothing away.

use std::time::Duration;

use openclaw_channels::text::ChunkMode;
use openclaw_channels::{ChunkRule, reply_layers};
use openclaw_config::Config;
use openclaw_config::registry::{self, ReplyDefaults};
use openclaw_config::settings::{
    AgentDefaults, BlockChunk, BlockCoalesce, BlockStreamingBreak, BreakPreference, ChannelReplies,
    HumanDelay, OnOff, ReplyToMode, StreamMode,
};

use super::chunker::ChunkSettings;
use super::coalescer::CoalesceSettings;
use super::draft::DraftSettings;
use super::human_delay::Pause;

const BLOCK: (u64, u64) = (800, 1200);
const DRAFT: (u64, u64) = (200, 800);
const IDLE_MS: u64 = 1000;

/// Place that an answer goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surface<'a> {
    /// Channel id.
    pub channel: &'a str,
    /// Account on it.
    pub account: Option<&'a str>,
    /// Kind of chat, for settings that depend on it.
    pub chat: ChatKind,
}

/// Kinds of chats that settings tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChatKind {
    /// Chat with one person.
    #[default]
    Direct,
    /// Chat with several people.
    Group,
    /// A channel or room.
    Channel,
}

/// The settings of one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplySettings {
    /// True if blocks are sent while the answer is written.
    pub block_streaming: bool,
    /// Latest end of a block.
    pub block_break: BlockStreamingBreak,
    /// Size of blocks.
    pub chunk: ChunkSettings,
    /// Limits for gathering small blocks.
    pub coalesce: CoalesceSettings,
    /// The pause between blocks.
    pub pause: Option<Pause>,
    /// Characters of a message, in the platform's unit.
    pub text_limit: usize,
    /// Way in which long texts are cut into messages.
    pub chunk_mode: ChunkMode,
    /// Settings of drafts; `None` for no drafts.
    pub draft: Option<DraftSettings>,
    /// Messages that are quoted.
    pub reply_to: ReplyToMode,
    /// True if a reply tag counts although nothing is to be quoted (spec `messages.md` §8.2:
    /// `allowTagsWhenOff`).
    pub keeps_tags: bool,
    /// Prefix of replies as it is written; an empty one counts as none.
    pub prefix: Option<String>,
}

/// Returns the prefix of replies on a surface, as it is written.
pub fn prefix_of(config: &Config, surface: Surface<'_>) -> Option<String> {
    let scopes = reply_layers(config, surface.channel, surface.account);
    first(&scopes, |scope| scope.response_prefix.clone()).or_else(|| config.messages.response_prefix.clone())
}

impl ReplySettings {
    /// The settings for a surface. `human_delay` is the agent's own; see [`Pause::of`].
    pub fn of(config: &Config, human_delay: HumanDelay, surface: Surface<'_>) -> Self {
        let defaults = &config.agents.defaults;
        let scopes = reply_layers(config, surface.channel, surface.account);
        let channel = registry::reply_defaults(surface.channel);
        let ChunkRule { limit: text_limit, mode: chunk_mode } =
            ChunkRule::of(config, surface.channel, surface.account);
        let chunk = chunk_settings(defaults.block_streaming_chunk, BLOCK, text_limit, chunk_mode);
        Self {
            block_streaming: is_on(defaults, &scopes, channel),
            block_break: defaults.block_streaming_break.unwrap_or_default(),
            chunk,
            coalesce: coalesce_settings(defaults, &scopes, channel, chunk, text_limit, chunk_mode),
            pause: Pause::of(human_delay, defaults.human_delay),
            text_limit,
            chunk_mode,
            draft: draft_settings(&scopes, channel, text_limit),
            reply_to: reply_to(&scopes, channel, surface.chat),
            prefix: prefix_of(config, surface),
            keeps_tags: channel.keeps_tags,
        }
    }
}

/// The first scope that says something.
fn first<'a, T>(scopes: &[&'a ChannelReplies], said: impl Fn(&'a ChannelReplies) -> Option<T>) -> Option<T> {
    scopes.iter().find_map(|scope| said(scope))
}

/// True if blocks are sent. A switch of the channel or account overrides all others; without one
/// only some platforms follow the agents' default, and elsewhere blocks have to be switched on.
fn is_on(defaults: &AgentDefaults, scopes: &[&ChannelReplies], channel: &ReplyDefaults) -> bool {
    let by_default = channel.follows_block_default && defaults.block_streaming_default == Some(OnOff::On);
    first(scopes, |scope| scope.block_streaming).unwrap_or(by_default)
}

fn chunk_settings(chunk: BlockChunk, (min, max): (u64, u64), limit: usize, mode: ChunkMode) -> ChunkSettings {
    let max = size(chunk.max_chars.unwrap_or(max)).min(limit).max(1);
    ChunkSettings {
        min: size(chunk.min_chars.unwrap_or(min)).clamp(1, max),
        max,
        prefer: chunk.break_preference.unwrap_or_default(),
        by_paragraph: mode == ChunkMode::Newline,
    }
}

fn coalesce_settings(
    defaults: &AgentDefaults,
    scopes: &[&ChannelReplies],
    channel: &ReplyDefaults,
    chunk: ChunkSettings,
    limit: usize,
    mode: ChunkMode,
) -> CoalesceSettings {
    let said = scopes.iter().filter_map(|scope| scope.block_streaming_coalesce);
    let set =
        said.chain([defaults.block_streaming_coalesce]).fold(BlockCoalesce::default(), BlockCoalesce::over);
    let max = set.max_chars.map_or(limit, size).clamp(1, limit.max(1));
    let min = set.min_chars.map_or(channel.coalesce_min.unwrap_or(chunk.min), size);
    CoalesceSettings {
        min: min.clamp(1, max),
        max,
        idle: Duration::from_millis(set.idle_ms.unwrap_or(IDLE_MS)),
        joiner: match chunk.prefer {
            BreakPreference::Paragraph => "\n\n",
            BreakPreference::Newline => "\n",
            BreakPreference::Sentence => " ",
        },
        each: mode == ChunkMode::Newline,
    }
}

fn draft_settings(
    scopes: &[&ChannelReplies],
    channel: &ReplyDefaults,
    limit: usize,
) -> Option<DraftSettings> {
    let mode = first(scopes, |scope| scope.stream_mode).unwrap_or_default();
    let draft_limit = channel.draft_limit.filter(|_| mode != StreamMode::Off)?;
    let chunk = first(scopes, |scope| scope.draft_chunk).unwrap_or_default();
    let blocks = (mode == StreamMode::Block).then(|| chunk_settings(chunk, DRAFT, limit, ChunkMode::Length));
    Some(DraftSettings { blocks, limit: limit.min(draft_limit), ..DraftSettings::default() })
}

fn reply_to(scopes: &[&ChannelReplies], channel: &ReplyDefaults, chat: ChatKind) -> ReplyToMode {
    let by_chat = |scope: &ChannelReplies| {
        let modes = scope.reply_to_mode_by_chat_type;
        let own = match chat {
            ChatKind::Direct => modes.direct,
            ChatKind::Group => modes.group,
            ChatKind::Channel => modes.channel,
        };
        own.or(scope.reply_to_mode)
    };
    first(scopes, by_chat).unwrap_or(channel.reply_to)
}

fn size(chars: u64) -> usize {
    usize::try_from(chars).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(config: Value, channel: &str, account: Option<&str>) -> ReplySettings {
        let config: Config = serde_json::from_value(config).unwrap();
        let surface = Surface { channel, account, chat: ChatKind::Direct };
        ReplySettings::of(&config, HumanDelay::default(), surface)
    }

    /// Spec `streaming.md` §1.
    #[test]
    fn blocks_are_as_large_as_messages_allow() {
        let chunk = |value: Value| json!({"agents": {"defaults": {"blockStreamingChunk": value}}});
        let rows = [
            (json!({}), "discord", (800, 1200, false)),
            (chunk(json!({"maxChars": 5000})), "discord", (800, 2000, false)),
            (json!({"channels": {"discord": {"textChunkLimit": 500}}}), "discord", (500, 500, false)),
            (json!({}), "twitch", (500, 500, false)),
            (chunk(json!({"minChars": 2000, "maxChars": 100})), "slack", (100, 100, false)),
            (json!({"channels": {"telegram": {"chunkMode": "newline"}}}), "telegram", (800, 1200, true)),
            (json!({"channels": {"telegram": {"textChunkLimit": 0}}}), "telegram", (800, 1200, false)),
            (json!({}), "webchat", (800, 1200, false)),
            (json!({"channels": {"webchat": {"chunkMode": "newline"}}}), "webchat", (800, 1200, false)),
        ];
        for (config, channel, expect) in rows {
            let chunk = of(config.clone(), channel, None).chunk;
            assert_eq!((chunk.min, chunk.max, chunk.by_paragraph), expect, "{channel} {config}");
        }
    }

    #[test]
    fn tags_count_on_slack_although_nothing_is_quoted_there() {
        for (channel, expect) in [("slack", true), ("telegram", false), ("discord", false)] {
            assert_eq!(of(json!({}), channel, None).keeps_tags, expect, "{channel}");
        }
    }

    /// Spec `streaming.md` §3, read below `channels` and not at the root.
    #[test]
    fn blocks_are_gathered_as_account_channel_and_defaults_say() {
        let shared = json!({"minChars": 10, "maxChars": 9000, "idleMs": 50});
        let cascade = json!({
            "agents": {"defaults": {"blockStreamingCoalesce": {"minChars": 1, "maxChars": 900, "idleMs": 1}}},
            "channels": {"discord": {
                "blockStreamingCoalesce": {"minChars": 2, "maxChars": 800},
                "accounts": {"work": {"blockStreamingCoalesce": {"minChars": 3}}},
            }},
        });
        let rows = [
            (json!({}), "discord", None, (1500, 2000, 1000)),
            (json!({}), "telegram", None, (800, 4000, 1000)),
            (
                json!({"agents": {"defaults": {"blockStreamingCoalesce": shared}}}),
                "telegram",
                None,
                (10, 4000, 50),
            ),
            (cascade.clone(), "discord", Some("Work"), (3, 800, 1)),
            (cascade.clone(), "discord", Some("other"), (2, 800, 1)),
            (cascade, "slack", None, (1, 900, 1)),
        ];
        for (config, channel, account, expect) in rows {
            let set = of(config.clone(), channel, account).coalesce;
            assert_eq!((set.min, set.max, set.idle.as_millis()), expect, "{channel} {account:?} {config}");
        }
        let joiners = [("paragraph", "\n\n"), ("newline", "\n"), ("sentence", " ")];
        for (prefer, joiner) in joiners {
            let config =
                json!({"agents": {"defaults": {"blockStreamingChunk": {"breakPreference": prefer}}}});
            assert_eq!(of(config, "slack", None).coalesce.joiner, joiner);
        }
    }

    /// Spec `streaming.md` §9, `channels.md` §4.4: the account's limit, else the channel's, else that of the platform.
    #[test]
    fn messages_are_as_long_as_their_platform_and_the_file_say() {
        let platforms = [
            ("telegram", 4000),
            ("whatsapp", 4000),
            ("discord", 2000),
            ("slack", 4000),
            ("signal", 4000),
            ("imessage", 4000),
            ("googlechat", 4000),
            ("bluebubbles", 4000),
            ("matrix", 4000),
            ("mattermost", 4000),
            ("msteams", 4000),
            ("feishu", 4000),
            ("nextcloud-talk", 4000),
            ("nostr", 4000),
            ("line", 5000),
            ("tlon", 10_000),
            ("zalo", 2000),
            ("zalouser", 2000),
            ("twitch", 500),
            ("of tomorrow", 4000),
        ];
        for (channel, limit) in platforms {
            assert_eq!(of(json!({}), channel, None).text_limit, limit, "{channel}");
        }
        let set = json!({"channels": {"discord": {"textChunkLimit": 900, "chunkMode": "newline", "accounts": {
            "Work": {"textChunkLimit": 300, "chunkMode": "length"},
        }}}});
        let rows = [(Some("work"), 300, ChunkMode::Length), (Some("other"), 900, ChunkMode::Newline)];
        for (account, limit, mode) in rows {
            let found = of(set.clone(), "discord", account);
            assert_eq!((found.text_limit, found.chunk_mode), (limit, mode), "{account:?}");
        }
    }

    #[test]
    fn blocks_are_asked_for_everywhere_but_on_telegram() {
        let on = json!({"defaults": {"blockStreamingDefault": "on"}});
        let slack = json!({"slack": {"blockStreaming": true, "accounts": {"a": {"blockStreaming": false}}}});
        let rows = [
            (json!({}), "telegram", None, false),
            (json!({"agents": on}), "telegram", None, true),
            (json!({"agents": on}), "whatsapp", None, false),
            (
                json!({"agents": on, "channels": {"telegram": {"blockStreaming": false}}}),
                "telegram",
                None,
                false,
            ),
            (json!({"channels": slack}), "slack", None, true),
            (json!({"channels": slack}), "slack", Some("a"), false),
        ];
        for (config, channel, account, expect) in rows {
            assert_eq!(of(config.clone(), channel, account).block_streaming, expect, "{channel} {config}");
        }
    }

    #[test]
    fn only_telegram_has_drafts() {
        let mode = |mode: &str| json!({"channels": {"telegram": {"streamMode": mode}}});
        let partial = of(json!({}), "telegram", None).draft.unwrap();
        assert_eq!((partial.blocks, partial.limit), (None, 4000));
        let blocks = of(mode("block"), "telegram", None).draft.unwrap().blocks.unwrap();
        assert_eq!((blocks.min, blocks.max), (200, 800));
        assert_eq!(of(mode("off"), "telegram", None).draft, None);
        assert_eq!(of(json!({}), "slack", None).draft, None);
    }

    #[test]
    fn quoting_and_prefix_follow_the_same_cascade() {
        let config = json!({
            "messages": {"responsePrefix": "all"},
            "channels": {
                "slack": {"replyToMode": "all", "replyToModeByChatType": {"direct": "first"}, "responsePrefix": ""},
                "signal": {"accounts": {"a": {"responsePrefix": "auto", "replyToMode": "off"}}},
                "plugin": {"blockStreaming": "yes", "chunkMode": 5, "markdown": true, "textChunkLimit": "x"},
            },
        });
        let rows = [
            ("slack", None, ReplyToMode::First, Some("")),
            ("signal", Some("a"), ReplyToMode::Off, Some("auto")),
            ("signal", None, ReplyToMode::All, Some("all")),
            ("telegram", None, ReplyToMode::First, Some("all")),
            ("discord", None, ReplyToMode::Off, Some("all")),
            ("plugin", None, ReplyToMode::All, Some("all")),
        ];
        for (channel, account, reply_to, prefix) in rows {
            let set = of(config.clone(), channel, account);
            assert_eq!((set.reply_to, set.prefix.as_deref()), (reply_to, prefix), "{channel}");
        }
    }
}
