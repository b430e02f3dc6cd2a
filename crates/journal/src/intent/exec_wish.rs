//! Request of `/exec`.

use openclaw_sessions::SessionEntry;
use serde::{Deserialize, Serialize};

/// Request of `/exec`; each part may be left out, or be wrong. Stored with a message as JSON:
/// fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecWish {
    /// Host that commands run on: `sandbox`, `gateway` or `node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Security level: `deny`, `allowlist` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<String>,
    /// Moment at which a person is asked: `off`, `on-miss` or `always`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// Node that commands run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Options with values they don't have: `host "bogus"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<String>,
    /// True if everything goes back to the configuration.
    #[serde(skip)]
    pub reset: bool,
}

impl ExecWish {
    /// Puts the request into a session's row.
    pub fn put_into(self, entry: &mut SessionEntry) {
        let Self { host, security, ask, node, .. } = self;
        let put = |into: &mut Option<Box<str>>, value: Option<String>| {
            if let Some(value) = value {
                *into = Some(value.into());
            }
        };
        put(&mut entry.exec_host, host);
        put(&mut entry.exec_security, security);
        put(&mut entry.exec_ask, ask);
        put(&mut entry.exec_node, node);
    }

    /// `host=gateway, ask=off`
    pub fn text(&self) -> String {
        let Self { host, security, ask, node, .. } = self;
        let parts = [("host", host), ("security", security), ("ask", ask), ("node", node)];
        let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        parts.collect::<Vec<_>>().join(", ")
    }
}
