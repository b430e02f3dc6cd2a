//! Telegram, by its Bot API: an implementation of [`openclaw_channels::Channel`].
//!
//! Knows the syntax of the platform and nothing else: no agents, no sessions, no policy.
//!
//! Begin with [`receive`], which brings updates to the inbox, by long polling ([`polling`] decides)
//! or by [`webhook`]; [`update`] says what they mean. [`send`] sends what [`parts`] has cut, as
//! [`outgoing`] puts it. [`client`] is the only code that knows addresses, [`failure`] the only code
//! that reads errors.

mod account;
mod actions;
mod addresses;
mod api_root;
mod attachment;
mod audit;
mod bot;
mod client;
mod credentials;
mod directory;
mod draft;
mod entities;
mod failure;
mod fetch;
pub mod html;
mod keyboards;
mod kinds;
mod menu;
mod message;
mod name_lookup;
mod names;
mod offset;
mod outgoing;
mod pace;
mod params;
mod parts;
mod people;
mod platform_clock;
mod poller_slot;
mod polling;
mod pressed;
mod probe;
mod reactions;
mod reading;
mod receive;
mod reception;
mod send;
pub mod settings;
mod stickers;
mod target;
mod thread;
mod update;
mod webhook;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use openclaw_channels::{
    Account, AccountSetup, Capabilities, Channel, Inbound, Sender, Target, TargetError, TokenSetup, Unusable,
    WebhookKeys,
};
use openclaw_config::Config;
use openclaw_config::registry::{self, ChannelInfo};
use serde_json::Value;

pub use credentials::{BotToken, NoToken, TokenSource};
pub use settings::AccountSettings;

/// Channel id of Telegram.
const ID: &str = registry::TELEGRAM.id;
/// UTF-16 units that Telegram takes in one message.
const MESSAGE_LIMIT: usize = 4096;
/// Answers of a poll. OpenClaw 2026.2.9 sends none to Telegram.
const POLL_OPTIONS: usize = 12;

const CAPABILITIES: Capabilities = Capabilities {
    chat_types: &["direct", "group", "channel", "thread"],
    poll_options: Some(POLL_OPTIONS),
    reactions: true,
    threads: true,
    media: true,
    buttons: true,
    block_streaming: true,
};

const SETUP: AccountSetup = AccountSetup {
    token: TokenSetup {
        key: credentials::TOKEN_KEY,
        file_key: credentials::FILE_KEY,
        name: "bot token",
        form: "123456789:AA…",
        has_form: credentials::has_token_form,
        origin: "Telegram's @BotFather makes bots (/newbot) and shows their tokens (/token).",
        advice: "Copy it whole from @BotFather, with the number and the colon in front.",
    },
    webhook: Some(WebhookKeys { url: "webhookUrl", path: "webhookPath", secret: "webhookSecret" }),
};

/// The platform.
#[derive(Debug, Clone, Copy, Default)]
pub struct Telegram;

impl Channel for Telegram {
    fn info(&self) -> &'static ChannelInfo {
        &registry::TELEGRAM
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn account_ids(&self, config: &Config) -> Vec<String> {
        settings::account_ids(config)
    }

    fn account(&self, config: &Config, id: &str) -> Result<Arc<dyn Account>, Unusable> {
        account::open(config, id)
    }

    fn credential_source(&self, config: &Config, id: &str) -> &'static str {
        BotToken::find(config, id).map_or("none", |token| token.source().as_str())
    }

    fn setup(&self) -> &'static AccountSetup {
        &SETUP
    }

    fn credential_mark(&self, config: &Config, id: &str) -> Option<[u8; 32]> {
        BotToken::find(config, id).map(|token| token.digest())
    }

    fn target(&self, written: &str) -> Result<Target, TargetError> {
        target::read(written)
    }

    fn check_thread_id(&self, written: &str) -> Result<(), TargetError> {
        target::natural(written, "topic", "42").map(drop)
    }

    fn message_id(&self, written: &str) -> Result<String, TargetError> {
        target::natural(written, "message", "501").map(|id| id.to_string())
    }

    fn target_hint(&self) -> &'static str {
        target::HINT
    }

    fn target_forms(&self) -> &'static str {
        target::FORMS
    }

    fn allow_entry(&self, written: &str) -> Option<String> {
        target::allow_entry(written)
    }

    fn id_line(&self, sender: &Sender) -> String {
        format!("Your Telegram user id: {}", sender.id)
    }
}

/// Returns the events of an update for the bot of this id and name; none for unknown kinds. For
/// recordings and fuzzing: accounts read their updates themselves.
pub fn events_of(update: &Value, account: &str, bot: (i64, Option<&str>), now: i64) -> Vec<Inbound> {
    let me = entities::Me { id: bot.0, username: bot.1.map(str::to_owned), ..entities::Me::default() };
    update::read(update, account, &me, update::UpdateTimes { now, ahead: 0 }).events
}
