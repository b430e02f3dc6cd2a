//! A tool that a client calls without a model: `POST /tools/invoke` (spec `gateway-protocol.md` §10.3). The policy of the session holds as
//! for its runs.

use openclaw_channels::{Address, registry};
use openclaw_protocol::message::Block;
use openclaw_sessions::key::normalize_account_id;
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use tokio_util::sync::CancellationToken;

use crate::handle::Dispatch;

/// Call of a tool by a client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolInvocation {
    /// The tool.
    pub tool: String,
    /// Action, for tools that can do several things.
    pub action: Option<String>,
    /// Arguments of the tool.
    pub args: Map<String, Value>,
    /// The session in whose name it is called; absent is the main session.
    pub session_key: Option<String>,
    /// Channel and account that the client says it calls from.
    pub caller: CallerChannel,
}

/// Channel that a client says it calls from. Used in the place of the session's own: for the tools
/// of a group, and for what other sessions are told about the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerChannel {
    /// Id of the channel; `None` if the client does not name one.
    pub(crate) channel: Option<String>,
    /// The account on it.
    pub(crate) account: Option<String>,
}

impl CallerChannel {
    /// Reads the channel and account as a client writes them. Blank is absent; channels that this
    /// gateway does not know keep the name they are given.
    pub fn new(channel: Option<&str>, account: Option<&str>) -> Self {
        let given =
            |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let id = |name: String| {
            registry::by_name(&name).map_or_else(|| name.to_lowercase(), |info| info.id.to_owned())
        };
        Self { channel: given(channel).map(id), account: given(account).as_deref().map(normalize_account_id) }
    }

    /// Returns the conversation that tools use if none is named: the session's, if it is on this
    /// channel.
    pub(crate) fn bound_to(&self, route: Address) -> Option<Address> {
        if self.channel.as_ref().is_some_and(|channel| *channel != route.channel) {
            return None;
        }
        let account = self.account.clone().unwrap_or_else(|| route.account.clone());
        Some(Address { account, ..route })
    }
}

/// Result of a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invoked {
    /// Texts and images.
    pub content: Vec<Block>,
    /// Result for programs.
    pub details: Option<Value>,
}

/// Reasons for which a tool gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// The tool does not exist, or the session may not have it.
    #[error("Tool not available: {0}")]
    Unavailable(String),
    /// The session's key is invalid.
    #[error("{0}")]
    Session(String),
    /// The tool failed, with this text of its own.
    #[error("{0}")]
    Failed(String),
}

impl Dispatch {
    /// Calls a tool in the name of a session.
    ///
    /// # Errors
    /// See [`InvokeError`].
    pub async fn invoke_tool(
        &self,
        invocation: ToolInvocation,
        cancel: &CancellationToken,
    ) -> Result<Invoked, InvokeError> {
        let rules = self.runner().key_rules();
        let named = invocation.session_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
        let key = rules.canonical(named.unwrap_or("main"));
        let key = key.map_err(|error| InvokeError::Session(error.to_string()))?;
        Box::pin(self.runner().invoke(key, invocation, cancel)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_known_by_its_names_and_an_account_by_its_id() {
        let of = |channel: Option<&str>, account: Option<&str>| {
            let CallerChannel { channel, account } = CallerChannel::new(channel, account);
            (channel, account)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(Some(" IMsg "), Some(" Work ")), (some("imessage"), some("work")));
        assert_eq!(of(Some("Fax"), None), (some("fax"), None));
        assert_eq!(of(Some("  "), Some("")), (None, None));
    }

    #[test]
    fn a_session_on_another_channel_is_not_written_to_by_itself() {
        let route = Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: "5".to_owned(),
            thread: None,
        };
        let rows = [
            (None, None, Some("default")),
            (Some("telegram"), None, Some("default")),
            (Some("telegram"), Some("work"), Some("work")),
            (None, Some("work"), Some("work")),
            (Some("slack"), Some("work"), None),
        ];
        for (channel, account, expect) in rows {
            let bound = CallerChannel::new(channel, account).bound_to(route.clone());
            assert_eq!(bound.map(|bound| bound.account).as_deref(), expect, "{channel:?} {account:?}");
        }
    }
}
