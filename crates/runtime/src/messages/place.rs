//! Place of an action: platform, account, conversation and thread (spec `channels.md` §6.1).

use std::sync::Arc;

use openclaw_channels::{Account, Address, Channel, Platforms, Unusable};
use openclaw_config::registry;
use openclaw_config::{Config, normalize_account_id};

use super::MessageError;

/// A place that was found.
#[derive(Clone)]
pub struct MessageTarget {
    /// The platform.
    pub channel: Arc<dyn Channel>,
    /// The account that acts: the one at work, or one made from the configuration.
    pub account: Arc<dyn Account>,
    /// The conversation.
    pub address: Address,
    /// True if the account is at work: deliveries stored for another wait until it is.
    pub is_at_work: bool,
}

/// Parts of the place that were asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct TargetWish {
    pub(super) channel: Option<String>,
    pub(super) account: Option<String>,
    pub(super) target: Option<String>,
    pub(super) thread: Option<String>,
}

/// Finds the platforms, from the settings in force.
#[derive(Clone, Copy)]
pub(super) struct Finder<'a> {
    pub(super) platforms: &'a Platforms,
    pub(super) config: &'a Config,
    /// Conversation that the caller is bound to: parts that are not named are taken from it.
    pub(super) bound: Option<&'a Address>,
}

impl Finder<'_> {
    /// Returns the ids of the platforms that have a usable account.
    pub(super) fn configured(self) -> Vec<&'static str> {
        self.platforms.usable(self.config)
    }

    /// Returns the platform that is meant.
    pub(super) fn channel(self, named: Option<&str>) -> Result<Arc<dyn Channel>, MessageError> {
        let named = named.map(str::trim).filter(|name| !name.is_empty());
        let id = match (named, self.bound) {
            (Some(name), _) => registry::by_name(name).map(|info| info.id).ok_or_else(|| unknown(name))?,
            (None, Some(bound)) => bound.channel.as_str(),
            (None, None) => self.only()?,
        };
        self.platforms
            .channel(id)
            .cloned()
            .ok_or_else(|| MessageError::Invalid(format!("Unsupported channel: {id}")))
    }

    fn only(self) -> Result<&'static str, MessageError> {
        match self.configured().as_slice() {
            [] => Err(MessageError::Invalid(self.platforms.none_usable(self.config))),
            [only] => Ok(only),
            several => Err(MessageError::Invalid(format!(
                "Channel is required when multiple channels are configured: {}",
                several.join(", ")
            ))),
        }
    }

    /// Returns the account that is meant: the named one, that of the conversation, or the default
    /// one.
    pub(super) fn account(
        self,
        channel: &Arc<dyn Channel>,
        named: Option<&str>,
    ) -> Result<(String, Arc<dyn Account>, bool), MessageError> {
        let info = channel.info();
        let named = named.map(str::trim).filter(|id| !id.is_empty()).map(normalize_account_id);
        let bound = || self.bound.filter(|bound| bound.channel == info.id).map(|bound| bound.account.clone());
        let default = || self.platforms.sending_account(self.config, info.id);
        let id = named.or_else(bound).or_else(default).unwrap_or_default();
        if let Some(at_work) = self.platforms.at_work(info.id, &id) {
            return Ok((id, at_work.account, true));
        }
        match channel.account(self.config, &id) {
            Ok(account) => Ok((id, account, false)),
            Err(Unusable::Disabled) => {
                Err(MessageError::Invalid(format!("{} account \"{id}\" is disabled", info.label)))
            }
            Err(why) => Err(MessageError::Invalid(why.to_string())),
        }
    }

    /// The whole place.
    pub(super) fn find(self, wish: &TargetWish) -> Result<MessageTarget, MessageError> {
        let channel = self.channel(wish.channel.as_deref())?;
        let (id, account, is_at_work) = self.account(&channel, wish.account.as_deref())?;
        let info = channel.info();
        if let Some(thread) = &wish.thread {
            let checked = channel.check_thread_id(thread);
            checked.map_err(|error| MessageError::Invalid(format!("threadId: {error}")))?;
        }
        let same_channel = self.bound.filter(|bound| bound.channel == info.id);
        let address = match &wish.target {
            Some(written) => {
                let target =
                    channel.target(written).map_err(|error| MessageError::Invalid(error.to_string()))?;
                // A run that answers a topic stays in it when it names the chat of the topic.
                let own = same_channel.filter(|bound| bound.target == target.id);
                let thread =
                    wish.thread.clone().or(target.thread).or_else(|| own.and_then(|own| own.thread.clone()));
                Address { channel: info.id.to_owned(), account: id, target: target.id, thread }
            }
            None => {
                let Some(bound) = same_channel else {
                    return Err(MessageError::Invalid(format!(
                        "Delivering to {} requires target {}",
                        info.label,
                        channel.target_hint()
                    )));
                };
                let thread = wish.thread.clone().or_else(|| bound.thread.clone());
                Address { account: id, thread, ..bound.clone() }
            }
        };
        Ok(MessageTarget { channel, account, address, is_at_work })
    }
}

fn unknown(name: &str) -> MessageError {
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    MessageError::Invalid(format!("Unknown channel: {name}"))
}

#[cfg(test)]
mod tests {
    use openclaw_channel_telegram::Telegram;
    use openclaw_config::Environment;
    use serde_json::{Value, json};

    use super::*;

    const TOKEN: &str = "123456:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc";

    fn bound() -> Address {
        Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: "-1001".to_owned(),
            thread: Some("42".to_owned()),
        }
    }

    fn shown(config: &Value, wish: &TargetWish, bound: Option<&Address>) -> String {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
        let config = Config::from_json5(&config.to_string(), &env).unwrap();
        let platforms = Platforms::new(vec![Arc::new(Telegram)]);
        match (Finder { platforms: &platforms, config: &config, bound }).find(wish) {
            Ok(place) => {
                let Address { channel, account, target, thread } = place.address;
                format!("{channel}/{account}/{target}/{}", thread.unwrap_or_default())
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_not_named_is_taken_from_the_conversation() {
        let config = json!({"channels": {"telegram": {"botToken": TOKEN}}});
        let wish = |target: Option<&str>, thread: Option<&str>, channel: Option<&str>| TargetWish {
            channel: channel.map(str::to_owned),
            target: target.map(str::to_owned),
            thread: thread.map(str::to_owned),
            account: None,
        };
        let own = bound();
        let rows = [
            (wish(None, None, None), Some(&own), "telegram/default/-1001/42"),
            (wish(Some("telegram:-1001"), None, None), Some(&own), "telegram/default/-1001/42"),
            (wish(Some("-1001"), Some("7"), None), Some(&own), "telegram/default/-1001/7"),
            (wish(Some("-1001:topic:9"), None, None), Some(&own), "telegram/default/-1001/9"),
            (wish(Some("5"), None, None), Some(&own), "telegram/default/5/"),
            (wish(Some("5"), None, None), None, "telegram/default/5/"),
            (wish(None, None, None), None, "Delivering to Telegram requires target <chatId>"),
            (wish(Some("a b"), None, None), None, "Unknown target \"a b\" for Telegram. Hint: <chatId>"),
            (
                wish(Some("5"), Some("abc"), None),
                None,
                "threadId: \"abc\" is no id of a Telegram topic: that is a number, such as 42",
            ),
            (wish(Some("5"), None, Some("pigeon")), None, "Unknown channel: pigeon"),
            (wish(Some("5"), None, Some("slack")), None, "Unsupported channel: slack"),
            (wish(Some("5"), None, Some("webchat")), None, "Unsupported channel: webchat"),
        ];
        for (wish, bound, expect) in rows {
            assert_eq!(shown(&config, &wish, bound), expect, "{wish:?}");
        }
    }

    #[test]
    fn without_a_channel_there_has_to_be_one_that_is_configured() {
        let wish = TargetWish { target: Some("5".to_owned()), ..TargetWish::default() };
        assert_eq!(shown(&json!({}), &wish, None), "Channel is required (no configured channels detected).");
        let named = TargetWish { account: Some("work".to_owned()), ..wish };
        let config = json!({"channels": {"telegram": {"botToken": TOKEN}}});
        assert_eq!(shown(&config, &named, None), "unknown account \"work\" (known: default)");
    }
}
