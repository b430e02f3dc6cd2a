//! Which hooks may be used here (spec `agent-runtime.md` §8.1): the gates of skills, without their list of bundled ones.

use openclaw_config::Config;

use super::discover::{Home, Hook};
use super::handler::{Handler, HandlerProblem, Runtimes};
use crate::requirements::{BinPath, Requirements, Surroundings, is_truthy_at};

/// Paths of the configuration that count as set where they are not.
const TRUE_WHEN_UNSET: &[&str] = &["browser.enabled", "browser.evaluateEnabled", "workspace.dir"];

/// How a hook stands.
#[derive(Debug)]
pub struct Standing {
    /// Whether the owner switched it off.
    pub disabled: bool,
    /// What it needs and there is not.
    pub missing: Requirements,
    /// What handles its events.
    pub handler: Result<Handler, HandlerProblem>,
}

impl Standing {
    /// Whether it is used when hooks are on.
    pub fn is_ready(&self) -> bool {
        !self.disabled && self.missing.is_empty() && self.handler.is_ok()
    }
}

/// Looks at hooks with the eyes of one configuration.
#[derive(Debug)]
pub struct Gate<'a> {
    config: &'a Config,
    bins: BinPath,
    /// What scripts are run with.
    pub runtimes: Runtimes,
}

impl<'a> Gate<'a> {
    /// The gate of a configuration and its environment.
    pub fn new(config: &'a Config) -> Self {
        let bins = BinPath::new(config.environment().get("PATH").unwrap_or_default());
        Self { config, runtimes: Runtimes::new(bins.clone()), bins }
    }

    /// Where programs are looked for.
    pub fn bins(&self) -> &BinPath {
        &self.bins
    }

    /// How a hook stands. Blocking.
    pub fn standing(&self, hook: &Hook) -> Standing {
        let about = &hook.about;
        let here = Here { gate: self, key: &about.key };
        Standing {
            disabled: self.entry(&about.key).is_some_and(|entry| entry.enabled == Some(false)),
            missing: about.requirements.missing(about.strictness, &here),
            handler: match &hook.home {
                Home::BuiltIn(hook) => Ok(Handler::BuiltIn(*hook)),
                Home::Directory(dir) => self.runtimes.handler_of(dir, &about.export),
            },
        }
    }

    /// Whether a path of the configuration counts as set.
    pub fn has_config(&self, path: &str) -> bool {
        is_truthy_at(self.config.document(), path, TRUE_WHEN_UNSET)
    }

    fn entry(&self, key: &str) -> Option<&openclaw_config::settings::HookEntry> {
        self.config.hooks.internal.entries.get(key)
    }
}

struct Here<'a> {
    gate: &'a Gate<'a>,
    key: &'a str,
}

impl Surroundings for Here<'_> {
    fn has_bin(&self, name: &str) -> bool {
        self.gate.bins.find(name).is_some()
    }

    fn has_env(&self, name: &str) -> bool {
        let is_given = self.gate.entry(self.key).is_some_and(|entry| entry.env.contains_key(name));
        is_given || self.gate.config.environment().get(name).is_some_and(|value| !value.is_empty())
    }

    fn has_config(&self, path: &str) -> bool {
        self.gate.has_config(path)
    }
}
