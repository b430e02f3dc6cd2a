//! `channels.telegram`: the settings that are in force for one account (spec `channels.md` §1.2, §1.3, §7.1).
//!
//! Settings of an account override those of its channel, key by key, and defaults come last: an
//! account that sets only its token keeps its channel's policies.

use openclaw_channels::access::AccessSettings;
use openclaw_channels::markdown::TableMode;
use openclaw_channels::{ChunkRule, RetryPolicy, switched_off};
use openclaw_config::settings::Secret;
use openclaw_config::{Config, account_keys, account_section, normalize_account_id};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{ID, MESSAGE_LIMIT};

/// Account without a name of its own.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The settings of one account. Unset fields are `None` or empty; the methods give the defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AccountSettings {
    /// True if the account, and the channel, may be used.
    #[serde(skip)]
    pub is_enabled: bool,
    /// Rule by which answers are cut.
    #[serde(skip)]
    pub chunks: ChunkRule,
    /// Rules on who is heard.
    #[serde(skip)]
    pub access: AccessSettings,
    /// Label for people.
    pub name: Option<String>,
    /// Commands of the owner's own for the bot's menu.
    pub custom_commands: Vec<CustomCommand>,
    /// Megabytes of a file.
    pub media_max_mb: Option<f64>,
    /// Seconds of one request.
    pub timeout_seconds: Option<f64>,
    /// Retry policy of requests.
    pub retry: RetryPolicy,
    /// Network settings of the Bot API.
    pub network: NetworkSettings,
    /// Proxy of the Bot API.
    pub proxy: Option<Secret>,
    /// Address that Telegram pushes updates to; polled where absent.
    pub webhook_url: Option<String>,
    /// Secret with which Telegram authenticates its pushes.
    pub webhook_secret: Option<Secret>,
    /// Path of the webhook on our listener.
    pub webhook_path: Option<String>,
    /// Address of our listener (ours).
    pub webhook_host: Option<String>,
    /// Port of our listener (ours).
    pub webhook_port: Option<u16>,
    /// Address of the Bot API (ours).
    pub api_root: Option<String>,
    /// Actions that the agent may do.
    pub actions: ActionGates,
    /// Reaction level of the agent.
    pub reaction_level: ReactionLevel,
    /// False if links show no preview.
    pub link_preview: Option<bool>,
    /// Capabilities of the bot beyond text.
    pub capabilities: Option<Value>,
    /// Settings for showing Markdown.
    pub markdown: MarkdownSettings,
    /// Native commands.
    pub commands: CommandSettings,
}

/// `network`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkSettings {
    /// True if addresses of both families are tried.
    pub auto_select_family: Option<bool>,
}

/// `customCommands[]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CustomCommand {
    /// Name.
    pub command: String,
    /// Description of the command.
    pub description: String,
}

/// `actions`: what is not there is on, but stickers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ActionGates {
    /// React.
    pub reactions: bool,
    /// Send.
    pub send_message: bool,
    /// Delete.
    pub delete_message: bool,
    /// Edit.
    pub edit_message: bool,
    /// Send and find stickers.
    pub sticker: bool,
    /// Ask questions with answers to choose from (ours).
    pub poll: bool,
    /// Pin and unpin (ours).
    pub pins: bool,
    /// Make topics of forums (ours).
    pub create_forum_topic: bool,
}

impl Default for ActionGates {
    fn default() -> Self {
        Self {
            reactions: true,
            send_message: true,
            delete_message: true,
            edit_message: true,
            sticker: false,
            poll: true,
            pins: true,
            create_forum_topic: true,
        }
    }
}

/// `reactionLevel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReactionLevel {
    /// Never reacts.
    Off,
    /// Reacts only to acknowledge.
    Ack,
    /// The agent may, seldom.
    #[default]
    Minimal,
    /// The agent may, often.
    Extensive,
}

impl ReactionLevel {
    /// Returns the level as it is written in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ack => "ack",
            Self::Minimal => "minimal",
            Self::Extensive => "extensive",
        }
    }
}

/// `markdown`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct MarkdownSettings {
    /// Table mode: `off`, `bullets`, `code`.
    pub tables: Option<String>,
}

/// `commands`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CommandSettings {
    /// `true`, `false` or `"auto"`.
    pub native: Option<Value>,
    /// Use of native commands for skills.
    pub native_skills: Option<Value>,
}

impl CommandSettings {
    /// Returns true if commands are in the menu: `auto` counts as yes.
    pub fn has_native(&self) -> bool {
        self.native != Some(Value::Bool(false))
    }

    /// Returns true if commands of skills are in the menu.
    pub fn has_native_skills(&self) -> bool {
        self.native_skills != Some(Value::Bool(false))
    }

    /// Fills fields that the account leaves out from the settings for all channels.
    fn or_global(self, document: &Value) -> Self {
        let global = |key: &str| document.get("commands").and_then(|commands| commands.get(key)).cloned();
        Self {
            native: self.native.or_else(|| global("native")),
            native_skills: self.native_skills.or_else(|| global("nativeSkills")),
        }
    }
}

/// People who may be shown buttons: `capabilities.inlineButtons`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InlineButtons {
    /// Shows buttons to nobody.
    Off,
    /// Private chats.
    Dm,
    /// Groups.
    Group,
    /// Shows buttons to everybody.
    All,
    /// Shows buttons to listed people.
    #[default]
    Allowlist,
}

impl AccountSettings {
    /// The settings of an account, by its normalised id; `None` where the file has no such account.
    pub fn of(config: &Config, id: &str) -> Option<Result<Self, serde_json::Error>> {
        let id = normalize_account_id(id);
        account_ids(config).contains(&id).then(|| Self::read(config, &id))
    }

    fn read(config: &Config, id: &str) -> Result<Self, serde_json::Error> {
        let keys = account_keys(config.document(), ID, id);
        let settings: Self = serde_json::from_value(Value::Object(keys))?;
        Ok(Self {
            is_enabled: switched_off(config, ID, id).is_none(),
            chunks: ChunkRule::of(config, ID, Some(id)),
            access: AccessSettings::of(config, ID, id)?,
            commands: settings.commands.or_global(config.document()),
            ..settings
        })
    }

    /// Bytes of a file that is fetched: the setting (5 MiB), but no more than bots can fetch.
    pub fn fetch_limit(&self) -> u64 {
        const MIB: u64 = 1024 * 1024;
        const BOT_API: u64 = 20 * MIB;
        // Saturates, and what is no number is 0.
        let wanted = (self.media_max_mb.unwrap_or(5.0) * MIB as f64) as u64;
        wanted.min(BOT_API)
    }

    /// Returns the table mode.
    pub fn tables(&self) -> TableMode {
        self.markdown.tables.as_deref().and_then(TableMode::parse).unwrap_or_default()
    }

    /// Characters of one message: the setting (4,000), but no more than Telegram takes.
    pub fn text_limit(&self) -> usize {
        self.chunks.limit.clamp(1, MESSAGE_LIMIT)
    }

    /// Returns true if links show a preview.
    pub fn shows_link_previews(&self) -> bool {
        self.link_preview.unwrap_or(true)
    }

    /// Returns the people who may be shown buttons. A list of capabilities, as old files have it,
    /// means everybody.
    pub fn inline_buttons(&self) -> InlineButtons {
        match &self.capabilities {
            Some(Value::Array(names)) if names.iter().any(|name| name == "inlineButtons") => {
                InlineButtons::All
            }
            Some(Value::Array(_)) => InlineButtons::Off,
            Some(Value::Object(map)) => match map.get("inlineButtons").and_then(Value::as_str) {
                Some("off") => InlineButtons::Off,
                Some("dm") => InlineButtons::Dm,
                Some("group") => InlineButtons::Group,
                Some("all") => InlineButtons::All,
                Some(_) | None => InlineButtons::Allowlist,
            },
            Some(_) | None => InlineButtons::Allowlist,
        }
    }
}

/// The accounts of the file and those that bindings name, sorted; `default` where there is none.
pub fn account_ids(config: &Config) -> Vec<String> {
    let accounts = channel_section(config).and_then(|keys| keys.get("accounts")).and_then(Value::as_object);
    let named = accounts.into_iter().flatten().map(|(name, _)| normalize_account_id(name));
    let bound = config
        .bindings
        .iter()
        .filter(|binding| binding.matches.channel.trim().eq_ignore_ascii_case(ID))
        .filter_map(|binding| binding.matches.account_id.as_deref().map(str::trim))
        .filter(|account| !account.is_empty() && *account != "*")
        .map(normalize_account_id);
    let mut ids: Vec<String> = named.chain(bound).collect();
    ids.sort();
    ids.dedup();
    if ids.is_empty() { vec![DEFAULT_ACCOUNT.to_owned()] } else { ids }
}

/// The channel's own keys, for what only the default account may use.
pub(super) fn channel_section(config: &Config) -> Option<&Map<String, Value>> {
    config.document().get("channels")?.get(ID)?.as_object()
}

/// Returns the account's own section.
pub(super) fn own_section<'a>(config: &'a Config, id: &str) -> Option<&'a Map<String, Value>> {
    account_section(config.document(), ID, id)?.1.as_object()
}

/// Returns the config path of a key of an account: in its own section, or in the shared one.
pub(super) fn place_of(config: &Config, id: &str, key: &str) -> String {
    match account_section(config.document(), ID, id).filter(|(_, keys)| keys.get(key).is_some()) {
        Some((name, _)) => format!("channels.{ID}.accounts.{name}.{key}"),
        None => format!("channels.{ID}.{key}"),
    }
}

#[cfg(test)]
mod tests;
