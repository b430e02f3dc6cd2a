//! Where quotas are asked for.

use crate::net::is_local_url;
use crate::variables::Variables;

/// Names a server on this machine that stands in for all of them; other addresses are ignored, since whoever answers there is
/// given credentials. For tests.
pub const SERVER_VARIABLE: &str = "OPENCLAW_QUOTA_SERVER";

/// The servers, without a slash at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotaServers {
    pub(super) anthropic: String,
    pub(super) chatgpt: String,
    pub(super) github: String,
    pub(super) cloud_code: String,
    pub(super) minimax: String,
    pub(super) minimax_china: String,
    pub(super) zai: String,
}

impl Default for QuotaServers {
    fn default() -> Self {
        let at = str::to_owned;
        Self {
            anthropic: at("https://api.anthropic.com"),
            chatgpt: at("https://chatgpt.com"),
            github: at("https://api.github.com"),
            cloud_code: at("https://cloudcode-pa.googleapis.com"),
            minimax: at("https://api.minimax.io"),
            minimax_china: at("https://api.minimaxi.com"),
            zai: at("https://api.z.ai"),
        }
    }
}

impl From<&Variables> for QuotaServers {
    fn from(variables: &Variables) -> Self {
        let Some(url) = variables.get(SERVER_VARIABLE).filter(|url| is_local_url(url)) else {
            return Self::default();
        };
        let url = || url.trim_end_matches('/').to_owned();
        Self {
            anthropic: url(),
            chatgpt: url(),
            github: url(),
            cloud_code: url(),
            minimax: url(),
            minimax_china: url(),
            zai: url(),
        }
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
            assert_eq!(QuotaServers::from(&variables).zai, expect, "{url}");
        }
    }
}
