//! Logins at providers: what is opened, waited for and exchanged, and how a login is renewed (spec `models.md` §8.4).
//!
//! [`codex`] is OpenAI's login with a code that comes back to this machine ([`callback`]) or is
//! pasted ([`pasted`]); [`github`] shows a code to enter on another device. Storing a login is not
//! done in this module.

pub mod callback;
pub mod codex;
pub mod endpoint;
pub mod github;
pub mod pasted;
pub mod pkce;

use crate::variables::Variables;

/// Names a server on this machine that stands in for all login servers. For tests.
pub const SERVER_VARIABLE: &str = "OPENCLAW_LOGIN_SERVER";

/// Servers on which logins happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginServers {
    /// OpenAI's, without a slash at its end.
    pub openai: String,
    /// GitHub's pages.
    pub github: String,
    /// GitHub's API.
    pub github_api: String,
    /// Google's.
    pub google: String,
}

impl Default for LoginServers {
    fn default() -> Self {
        Self {
            openai: "https://auth.openai.com".to_owned(),
            github: "https://github.com".to_owned(),
            github_api: "https://api.github.com".to_owned(),
            google: "https://oauth2.googleapis.com".to_owned(),
        }
    }
}

impl From<&Variables> for LoginServers {
    fn from(variables: &Variables) -> Self {
        variables.stand_in(SERVER_VARIABLE).map_or_else(Self::default, Self::all_at)
    }
}

impl LoginServers {
    /// Uses one server for everything.
    pub fn all_at(url: &str) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        Self { openai: url.clone(), github: url.clone(), github_api: url.clone(), google: url }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_on_this_machine_stands_in() {
        let rows = [
            ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
            ("https://evil.example", "https://auth.openai.com"),
            ("", "https://auth.openai.com"),
        ];
        for (url, expect) in rows {
            let variables: Variables = [(SERVER_VARIABLE, url)].into_iter().collect();
            assert_eq!(LoginServers::from(&variables).openai, expect, "{url}");
        }
    }
}
