//! Environment variables as given, never read from the process here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::net::is_local_url;

const OF_PROCESS: &str = "env: ";
const OF_SHELL: &str = "shell env: ";

/// Returns true if the source of a key is an environment variable.
pub(crate) fn is_variable(source: &str) -> bool {
    source.starts_with(OF_PROCESS) || source.starts_with(OF_SHELL)
}

/// The environment variables credentials may come from.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables {
    values: BTreeMap<String, String>,
    /// Variables that came from a login shell.
    from_shell: BTreeSet<String>,
}

impl Variables {
    /// A variable's value, trimmed; blank counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The first of several that is set, with its name.
    pub fn first<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<(&'n str, &str)> {
        names.into_iter().find_map(|name| Some((name, self.get(name)?)))
    }

    /// Returns the name of a variable as the source of a key (spec `models.md` §8.3).
    pub fn source(&self, name: &str) -> String {
        let kind = if self.from_shell.contains(name) { OF_SHELL } else { OF_PROCESS };
        format!("{kind}{name}")
    }

    /// The address in a variable of a server on this machine that stands in for others, without a slash at its end. Other
    /// addresses are ignored: whoever answers there is given credentials.
    pub(crate) fn stand_in(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|url| is_local_url(url)).map(|url| url.trim_end_matches('/'))
    }

    /// All of them, for a child process.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let values = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { values, from_shell: BTreeSet::new() }
    }
}

/// Values may be secrets, so only the names are shown.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl From<&openclaw_config::Environment> for Variables {
    fn from(environment: &openclaw_config::Environment) -> Self {
        let from_shell = environment.from_shell().map(str::to_owned).collect();
        Self { from_shell, ..environment.vars().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of `models.md` §8.3.
    #[test]
    fn a_variable_of_the_login_shell_is_called_so() {
        let variables = Variables {
            from_shell: ["ZAI_API_KEY".to_owned()].into(),
            ..[("ZAI_API_KEY", "1"), ("XAI_API_KEY", "2")].into_iter().collect()
        };
        assert_eq!(variables.source("ZAI_API_KEY"), "shell env: ZAI_API_KEY");
        assert_eq!(variables.source("XAI_API_KEY"), "env: XAI_API_KEY");
    }
}
