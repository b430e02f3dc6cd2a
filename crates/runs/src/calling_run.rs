//! Run whose tools make requests to the gateway.

use std::sync::Arc;

use openclaw_channels::Address;
use openclaw_config::registry;
use openclaw_config::{ResolvedAgent, normalize_account_id};
use openclaw_journal::lineage::Lineage;
use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::rights::Rights;
use openclaw_runtime::messages::turn::MessageTurn;

use crate::lent::LanePlace;

/// Channel that a client says it calls from. Used in the place of the session's own: for the tools
/// of a group, and for what other sessions are told about the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerChannel {
    /// Id of the channel; `None` if the client does not name one.
    pub channel: Option<String>,
    /// The account on it.
    pub account: Option<String>,
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
    pub fn bound_to(&self, route: Address) -> Option<Address> {
        if self.channel.as_ref().is_some_and(|channel| *channel != route.channel) {
            return None;
        }
        let account = self.account.clone().unwrap_or_else(|| route.account.clone());
        Some(Address { account, ..route })
    }
}

/// Run whose tools make requests.
pub struct CallingRun {
    /// The run, its session, and what it has sent.
    pub turn: Arc<MessageTurn>,
    /// Agent of the run.
    pub agent: ResolvedAgent,
    /// Rights of the run.
    pub rights: Rights,
    /// Conversation that it was asked for in, if on a chat platform.
    pub origin: Option<Box<MessageOrigin>>,
    /// True if a person asked for it.
    pub by_person: bool,
    /// Count of automatic steps that led to it since a person or the clock began.
    pub lineage: Lineage,
    /// Place in its global lane; `None` if no session stands still for it, because a client calls
    /// the tool.
    pub place: Option<Arc<LanePlace>>,
    /// Channel and account that such a client says it speaks on.
    pub caller: CallerChannel,
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
