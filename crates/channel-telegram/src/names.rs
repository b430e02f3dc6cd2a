//! Names in the lists of who is heard, who is an owner, whose tools are which in a group and who may
//! have commands elevated. They are looked up when the account is started (decision 21,
//! `name_lookup.rs`). From then on people are compared by their ids alone: a name that is given up
//! and taken by somebody else lets nobody in.

use std::collections::BTreeMap;

use openclaw_channels::access::{AccessSettings, Entry, named_elsewhere};
use openclaw_config::Config;
use parking_lot::Mutex;

use crate::{ID, target};

/// Names of one account that are looked up.
const MOST: usize = 100;

/// The names of an account, as they are compared, such as `@ada`.
#[derive(Debug, Default)]
pub(super) struct NameLookups(Mutex<BTreeMap<String, NameLookup>>);

/// Knowledge of the id behind a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameLookup {
    /// The name was not looked up yet, or the platform did not answer.
    Asked,
    /// The id that the name had at the start.
    Found(String),
    /// Telegram does not know it, or does not tell.
    Unknown,
}

impl NameLookups {
    /// Collects the names in an account's lists, and in other lists that may mean people of its
    /// platform.
    pub(super) fn of(config: &Config, access: &AccessSettings) -> Self {
        let mut access = access.clone();
        let mut elsewhere = named_elsewhere(config, ID);
        elsewhere.extend(access.senders_with_tools().map(str::to_owned));
        let entries = access.lists_mut().flatten().map(|Entry(entry)| entry.as_str());
        let entries = entries.chain(elsewhere.iter().map(String::as_str));
        let names = entries.filter_map(target::allow_name).take(MOST);
        Self(Mutex::new(names.map(|name| (name, NameLookup::Asked)).collect()))
    }

    /// The id behind an entry of a list that is a name.
    pub(super) fn id_of(&self, entry: &str) -> Option<String> {
        match self.0.lock().get(&target::allow_name(entry)?)? {
            NameLookup::Found(id) => Some(id.clone()),
            NameLookup::Asked | NameLookup::Unknown => None,
        }
    }

    /// The names that mean somebody.
    pub(super) fn of_id(&self, id: &str) -> Vec<String> {
        let names = self.0.lock();
        let own = names.iter().filter(|(_, name)| matches!(name, NameLookup::Found(found) if found == id));
        own.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the names in a state.
    pub(super) fn in_state(&self, state: &NameLookup) -> Vec<String> {
        let names = self.0.lock();
        names.iter().filter(|(_, own)| *own == state).map(|(name, _)| name.clone()).collect()
    }

    /// Sets the state of a name.
    pub(super) fn set(&self, name: String, state: NameLookup) {
        self.0.lock().insert(name, state);
    }
}
