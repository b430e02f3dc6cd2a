//! Servers that are asked for quotas.

use crate::variables::Variables;

/// Names a server on this machine that stands in for all of them. For tests.
pub const SERVER_VARIABLE: &str = "OPENCLAW_QUOTA_SERVER";

/// The servers of the providers, or the one that stands in for them.
#[derive(Debug, Clone)]
pub(super) struct QuotaServers {
    stand_in: Option<String>,
}

impl QuotaServers {
    /// Returns the server that replaces this one, or this one itself.
    pub(super) fn at<'a>(&'a self, server: &'a str) -> &'a str {
        self.stand_in.as_deref().unwrap_or(server)
    }
}

impl From<&Variables> for QuotaServers {
    fn from(variables: &Variables) -> Self {
        Self { stand_in: variables.stand_in(SERVER_VARIABLE).map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_on_this_machine_stands_in() {
        let rows = [
            ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
            ("https://evil.example", "https://api.z.ai"),
            ("", "https://api.z.ai"),
        ];
        for (url, expect) in rows {
            let variables: Variables = [(SERVER_VARIABLE, url)].into_iter().collect();
            assert_eq!(QuotaServers::from(&variables).at("https://api.z.ai"), expect, "{url}");
        }
    }
}
