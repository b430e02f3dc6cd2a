//! The chat platforms there are, and their accounts at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use openclaw_config::Config;
use parking_lot::RwLock;

use crate::telegram::Telegram;
use crate::{Account, Channel, StatusReport};

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
    /// How it stands.
    pub status: StatusReport,
}

impl Default for Platforms {
    /// Every platform of this build, in OpenClaw's order.
    fn default() -> Self {
        Self::new(vec![Arc::new(Telegram)])
    }
}

impl Platforms {
    /// These.
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

    /// The account at work; or one made from the configuration, to cut parts with. `None` where there can't be one.
    pub fn account(&self, config: &Config, channel: &str, id: &str) -> Option<Arc<dyn Account>> {
        let at_work = self.at_work(channel, id).map(|at_work| at_work.account);
        at_work.or_else(|| self.channel(channel)?.account(config, id).ok())
    }

    /// The account that sends where none is named: `default` if there is one, else the first (spec `channels.md` §1.3).
    pub fn default_account(&self, config: &Config, channel: &str) -> Option<String> {
        let ids = self.channel(channel)?.account_ids(config);
        let default = ids.iter().find(|id| *id == DEFAULT_ACCOUNT).or_else(|| ids.first());
        default.cloned()
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
