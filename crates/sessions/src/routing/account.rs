//! Accounts of channels, as bindings see them.

use openclaw_config::settings::BindingMatch;
use openclaw_protocol::AgentId;

use super::binding::bound_agent;
use crate::key::peer::normalize_channel;
use crate::settings::SessionSettings;
use openclaw_config::normalize_account_id;

const DEFAULT_ACCOUNT: &str = "default";
pub(super) const ANY_ACCOUNT: &str = "*";

/// The account of a message or binding that names none is `default`; the case counts.
pub(super) fn account_of(account: Option<&str>) -> &str {
    account.map(str::trim).filter(|account| !account.is_empty()).unwrap_or(DEFAULT_ACCOUNT)
}

pub(super) fn fits_account(binding: &BindingMatch, account: &str) -> bool {
    match account_of(binding.account_id.as_deref()) {
        ANY_ACCOUNT => true,
        wanted => wanted == account,
    }
}

pub(super) fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// The accounts of a channel that bindings name, sorted, for starting them and as outbound defaults.
pub fn bound_accounts(settings: &SessionSettings, channel: &str) -> Vec<String> {
    let mut accounts: Vec<String> = channel_accounts(settings, channel).map(|(_, account)| account).collect();
    accounts.sort();
    accounts.dedup();
    accounts
}

/// The account the default agent is bound to on a channel: that of its first binding with a concrete account.
pub fn default_agent_account(settings: &SessionSettings, channel: &str) -> Option<String> {
    let default = settings.default_agent();
    channel_accounts(settings, channel).find(|(agent, _)| *agent == default).map(|(_, account)| account)
}

fn channel_accounts<'a>(
    settings: &'a SessionSettings,
    channel: &str,
) -> impl Iterator<Item = (AgentId, String)> + 'a {
    let channel = normalize_channel(channel);
    settings.bindings.iter().filter_map(move |binding| {
        let account = given(&binding.matches.account_id).filter(|account| *account != ANY_ACCOUNT)?;
        let on_channel = normalize_channel(&binding.matches.channel) == channel;
        let agent = bound_agent(settings, &AgentId::normalize(&binding.agent_id));
        on_channel.then(|| (agent, normalize_account_id(account)))
    })
}
