//! Checks the requirements of skills against this host.

use std::cell::RefCell;
use std::collections::HashMap;

use openclaw_config::Config;

use crate::requirements::{BinPath, RequirementEnv, is_truthy_at};

/// Paths of the configuration that count as truthy while they are not set.
const TRUTHY_WHEN_UNSET: &[&str] = &["browser.enabled", "browser.evaluateEnabled"];

/// Environment of this host under a configuration, against which requirements are checked. Programs
/// are looked for once each.
pub(super) struct Here<'a> {
    config: &'a Config,
    path: BinPath,
    bins: RefCell<HashMap<String, bool>>,
}

impl<'a> Here<'a> {
    /// Uses the `PATH` of the configuration's environment.
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, path: BinPath::of(config), bins: RefCell::default() }
    }
}

impl RequirementEnv for Here<'_> {
    fn has_bin(&self, name: &str) -> bool {
        if let Some(known) = self.bins.borrow().get(name) {
            return *known;
        }
        let found = self.path.find(name).is_some();
        self.bins.borrow_mut().insert(name.to_owned(), found);
        found
    }

    fn has_env(&self, name: &str) -> bool {
        self.config.environment().get(name).is_some_and(|value| !value.is_empty())
    }

    fn has_config(&self, path: &str) -> bool {
        is_truthy_at(self.config.document(), path, TRUTHY_WHEN_UNSET)
    }
}
