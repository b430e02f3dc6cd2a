//! Chat platform for tests of this crate, whose ids are numbers.

use std::sync::Arc;

use openclaw_config::Config;
use openclaw_config::registry::{self, ChannelInfo};

use crate::{
    Account, AccountSetup, Capabilities, Channel, Sender, Target, TargetError, TokenSetup, Unusable,
};

/// Platform with the id of Telegram, without accounts: a configuration has a section for it.
pub(crate) struct Numbered;

impl Channel for Numbered {
    fn info(&self) -> &'static ChannelInfo {
        &registry::TELEGRAM
    }

    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities {
            chat_types: &["direct", "group"],
            poll_options: None,
            reactions: false,
            threads: false,
            media: false,
            buttons: false,
            block_streaming: false,
        }
    }

    fn account_ids(&self, _: &Config) -> Vec<String> {
        Vec::new()
    }

    fn account(&self, _: &Config, _: &str) -> Result<Arc<dyn Account>, Unusable> {
        Err(Unusable::Disabled)
    }

    fn credential_source(&self, _: &Config, _: &str) -> &'static str {
        "none"
    }

    fn setup(&self) -> &'static AccountSetup {
        &AccountSetup {
            token: TokenSetup {
                key: "botToken",
                file_key: "tokenFile",
                name: "token",
                form: "1:a",
                has_form: |text| text.contains(':'),
                origin: "It is made up.",
                advice: "Make one up.",
            },
            webhook: None,
        }
    }

    fn credential_mark(&self, _: &Config, _: &str) -> Option<[u8; 32]> {
        None
    }

    fn target(&self, written: &str) -> Result<Target, TargetError> {
        Ok(Target { id: self.message_id(written)?, thread: None, kind: None })
    }

    fn check_thread_id(&self, written: &str) -> Result<(), TargetError> {
        self.message_id(written).map(drop)
    }

    fn message_id(&self, written: &str) -> Result<String, TargetError> {
        written.parse::<i64>().map(|id| id.to_string()).map_err(|error| TargetError(error.to_string()))
    }

    fn target_hint(&self) -> &'static str {
        "<number>"
    }

    fn target_forms(&self) -> &'static str {
        "a number"
    }

    fn allow_entry(&self, written: &str) -> Option<String> {
        let text = self.info().bare_entry(written.trim());
        if text == "*" { Some(text.to_owned()) } else { self.message_id(text).ok() }
    }

    fn id_line(&self, sender: &Sender) -> String {
        format!("Your id: {}", sender.id)
    }
}
