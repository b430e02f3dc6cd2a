//! Selection of the addresses of the Bot API's host that are tried: `network.autoSelectFamily`
//! (spec `channels.md` §7.1).

use std::net::SocketAddr;

use openclaw_config::Environment;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::settings::NetworkSettings;

/// Variables that overrule the configuration.
const ENABLE: &str = "OPENCLAW_TELEGRAM_ENABLE_AUTO_SELECT_FAMILY";
const DISABLE: &str = "OPENCLAW_TELEGRAM_DISABLE_AUTO_SELECT_FAMILY";

/// Addresses that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Addresses {
    /// Tries addresses of both families, the second soon after the first, until one answers.
    #[default]
    Both,
    /// Tries addresses of the family that the system names first: for networks where the other
    /// looks reachable and is not.
    FirstFamily,
}

/// Returns the selection from the environment, else from the configuration.
pub(super) fn addresses(settings: &NetworkSettings, env: &Environment) -> Addresses {
    let is_set = |name: &str| {
        let value = env.get(name).map(|value| value.trim().to_ascii_lowercase());
        value.is_some_and(|value| matches!(value.as_str(), "1" | "true" | "yes" | "on"))
    };
    let selects = match (is_set(DISABLE), is_set(ENABLE)) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => settings.auto_select_family.unwrap_or(true),
    };
    if selects { Addresses::Both } else { Addresses::FirstFamily }
}

/// Looks names up and keeps the family that comes first.
#[derive(Debug)]
pub(super) struct FirstFamily;

impl Resolve for FirstFamily {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let addresses: Addrs = Box::new(first_family(found).into_iter());
            Ok(addresses)
        })
    }
}

fn first_family(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_v4 = found.first().is_some_and(SocketAddr::is_ipv4);
    found.into_iter().filter(|address| address.is_ipv4() == is_v4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrules_the_configuration() {
        let of = |configured: Option<bool>, variables: &[(&str, &str)]| {
            let home = tempfile::tempdir().unwrap();
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let env = Environment::new(variables, home.path());
            addresses(&NetworkSettings { auto_select_family: configured }, &env)
        };
        use Addresses::{Both, FirstFamily};
        assert_eq!(of(None, &[]), Both);
        assert_eq!(of(Some(false), &[]), FirstFamily);
        assert_eq!(of(Some(false), &[(ENABLE, "1")]), Both);
        assert_eq!(of(Some(true), &[(DISABLE, "true")]), FirstFamily);
        assert_eq!(of(Some(true), &[(DISABLE, "0")]), Both);
    }

    #[test]
    fn one_family_is_kept() {
        let all: Vec<SocketAddr> =
            ["[2001:db8::1]:0", "192.0.2.1:0", "[2001:db8::2]:0"].map(|text| text.parse().unwrap()).into();
        assert_eq!(first_family(all.clone()), [all[0], all[2]]);
        assert!(first_family(Vec::new()).is_empty());
    }
}
