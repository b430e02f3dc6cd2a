//! Chat platforms of a build, and their accounts at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use openclaw_config::Config;
use openclaw_sessions::routing::default_agent_account;
use openclaw_sessions::settings::SessionSettings;
use parking_lot::RwLock;

use crate::access::written_owners;
use crate::{Account, Address, Channel, StatusReport, Unusable, told_unusable};

/// Account without a name of its own.
pub const DEFAULT_ACCOUNT: &str = "default";

/// The table of platforms, and the accounts at work.
pub struct Platforms {
    channels: Vec<Arc<dyn Channel>>,
    at_work: RwLock<BTreeMap<(String, String), AtWork>>,
}

/// An account that is started.
#[derive(Clone)]
pub struct AtWork {
    /// The account.
    pub account: Arc<dyn Account>,
    /// Status report of the account.
    pub status: StatusReport,
}

impl Platforms {
    /// Returns a table with these platforms, in OpenClaw's order; no account is at work yet.
    pub fn new(channels: Vec<Arc<dyn Channel>>) -> Self {
        Self { channels, at_work: RwLock::default() }
    }

    /// All of them, in order.
    pub fn channels(&self) -> &[Arc<dyn Channel>] {
        &self.channels
    }

    /// The platform of an id.
    pub fn channel(&self, id: &str) -> Option<&Arc<dyn Channel>> {
        self.channels.iter().find(|channel| channel.info().id == id)
    }

    /// The account at work.
    pub fn at_work(&self, channel: &str, id: &str) -> Option<AtWork> {
        self.at_work.read().get(&(channel.to_owned(), id.to_owned())).cloned()
    }

    /// `commands.ownerAllowFrom`, with the ids in the place of names that an account has looked up (decision 21).
    pub fn owners(&self, config: &Config, channel: &str, account: &str) -> Vec<String> {
        let owners = written_owners(config);
        let Some(at_work) = self.at_work(channel, account) else { return owners };
        owners.into_iter().map(|entry| at_work.account.id_of_name(&entry).unwrap_or(entry)).collect()
    }

    /// The account at work; or one made from the configuration, to cut parts with. `None` where there can't be one.
    pub fn account(&self, config: &Config, channel: &str, id: &str) -> Option<Arc<dyn Account>> {
        let at_work = self.at_work(channel, id).map(|at_work| at_work.account);
        at_work.or_else(|| self.channel(channel)?.account(config, id).ok())
    }

    /// Returns true if buttons may be shown in a conversation. Asked wherever the gateway puts some
    /// below a message of its own.
    pub fn shows_buttons(&self, config: &Config, at: &Address) -> bool {
        let account = self.account(config, &at.channel, &at.account);
        account.is_some_and(|account| account.permits_buttons(at).is_ok())
    }

    /// The account that is meant where none is named: the one that the default agent is bound to,
    /// else `default`, else the first (spec `channels.md` §1.3). Sending goes by
    /// [`Platforms::sending_account`].
    pub fn default_account(&self, config: &Config, channel: &str) -> Option<String> {
        let ids = self.channel(channel)?.account_ids(config);
        let bound = default_agent_account(&SessionSettings::from(config), channel);
        let named = |wanted: &str| ids.iter().find(|id| *id == wanted);
        let default =
            bound.as_deref().and_then(named).or_else(|| named(DEFAULT_ACCOUNT)).or_else(|| ids.first());
        default.cloned()
    }

    /// The account that sends where none is named: the one that is meant, or, where that can't be
    /// used, the first that can (spec `channels.md` §1.4). If none can, the one that is meant:
    /// people are told the reason why it can't be used.
    pub fn sending_account(&self, config: &Config, channel: &str) -> Option<String> {
        self.usable_account(config, channel).or_else(|| self.default_account(config, channel))
    }

    fn usable_account(&self, config: &Config, channel: &str) -> Option<String> {
        let meant = self.default_account(config, channel)?;
        let others = self.channel(channel)?.account_ids(config);
        let others = others.into_iter().filter(|id| *id != meant);
        let mut all = std::iter::once(meant.clone()).chain(others);
        all.find(|id| self.account(config, channel, id).is_some())
    }

    /// The ids of the platforms that have a usable account, in order.
    pub fn usable(&self, config: &Config) -> Vec<&'static str> {
        let ids = self.channels.iter().map(|channel| channel.info().id);
        ids.filter(|id| self.usable_account(config, id).is_some()).collect()
    }

    /// Returns the message that no platform can send, with the obstacle of one that is set up.
    pub fn none_usable(&self, config: &Config) -> String {
        let why = self.obstacle(config);
        let why = why.unwrap_or_else(|| "no configured channels detected".to_owned());
        format!("Channel is required ({}).", why.trim_end_matches('.'))
    }

    /// Returns the obstacle that keeps a configured platform from sending, if none can send.
    /// `None`: none is set up.
    pub fn obstacle(&self, config: &Config) -> Option<String> {
        let obstacle = |channel: &Arc<dyn Channel>| {
            let id = channel.info().id;
            config.document().pointer(&format!("/channels/{id}"))?;
            let account = self.default_account(config, id)?;
            let why = channel.account(config, &account).err()?;
            let told = told_unusable(config, id, &account, &why);
            match why {
                Unusable::NotConfigured { .. } | Unusable::Disabled => Some(told),
                Unusable::Unknown(_) => None,
            }
        };
        self.channels.iter().find_map(obstacle)
    }

    /// An account is started. It takes the place of one that was there.
    pub fn begin(&self, channel: &str, id: &str, at_work: AtWork) {
        self.at_work.write().insert((channel.to_owned(), id.to_owned()), at_work);
    }

    /// An account is stopped.
    pub fn end(&self, channel: &str, id: &str) {
        self.at_work.write().remove(&(channel.to_owned(), id.to_owned()));
    }
}

impl std::fmt::Debug for Platforms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<_> = self.channels.iter().map(|channel| channel.info().id).collect();
        f.debug_struct("Platforms").field("channels", &ids).finish_non_exhaustive()
    }
}
