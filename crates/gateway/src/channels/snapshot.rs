//! How accounts stand, by the names clients know (spec `channels.md` §15).

use std::time::Duration;

use futures_util::future::join_all;
use openclaw_channels::access::{AccessSettings, Entry};
use openclaw_channels::{AccountStatus, Channel, Probe, Unusable};
use openclaw_config::Config;
use openclaw_protocol::params::channels::{ChannelMeta, ChannelsStatusResult};
use openclaw_sessions::time::now_ms;
use serde_json::{Map, Value, json};

use crate::state::GatewayState;

/// How all accounts stand. `probe` is how long platforms may take to be asked.
pub(crate) async fn status(state: &GatewayState, probe: Option<Duration>) -> ChannelsStatusResult {
    let config = state.config();
    let mut result = ChannelsStatusResult { ts: now_ms(), ..ChannelsStatusResult::default() };
    for channel in state.platforms.channels() {
        let info = channel.info();
        let id = info.id.to_owned();
        result.channel_order.push(id.clone());
        result.channel_labels.insert(id.clone(), info.label.to_owned());
        result.channel_detail_labels.insert(id.clone(), info.detail_label.to_owned());
        result.channel_system_images.insert(id.clone(), info.system_image.to_owned());
        result.channel_meta.push(ChannelMeta {
            id: id.clone(),
            label: info.label.to_owned(),
            detail_label: info.detail_label.to_owned(),
            system_image: info.system_image.to_owned(),
        });
        let accounts = channel.account_ids(&config);
        let default = state.platforms.default_account(&config, &id).unwrap_or_default();
        let one = |account: String| one(state, &config, channel.as_ref(), account, probe);
        let snapshots = join_all(accounts.into_iter().map(one)).await;
        let of_default = snapshots.iter().find(|snapshot| snapshot.get("accountId") == Some(&json!(default)));
        result.channels.insert(id.clone(), Value::Object(of_default.map(summary).unwrap_or_default()));
        result.channel_accounts.insert(id.clone(), snapshots);
        result.channel_default_account_id.insert(id, default);
    }
    result
}

/// What of an account stands in the summary of its platform.
fn summary(snapshot: &Map<String, Value>) -> Map<String, Value> {
    const SHOWN: [&str; 9] = [
        "configured",
        "tokenSource",
        "running",
        "mode",
        "lastStartAt",
        "lastStopAt",
        "lastError",
        "probe",
        "lastProbeAt",
    ];
    let mut shown: Map<String, Value> =
        SHOWN.iter().filter_map(|key| Some(((*key).to_owned(), snapshot.get(*key)?.clone()))).collect();
    shown.entry("lastProbeAt").or_insert(Value::Null);
    shown
}

async fn one(
    state: &GatewayState,
    config: &Config,
    channel: &dyn Channel,
    id: String,
    probe: Option<Duration>,
) -> Map<String, Value> {
    let name = channel.info().id;
    let at_work = state.platforms.at_work(name, &id);
    let stands = at_work.as_ref().map(|at_work| at_work.status.now()).unwrap_or_default();
    let made = channel.account(config, &id);
    let is_enabled = !matches!(made, Err(Unusable::Disabled));
    let is_configured = made.is_ok();
    let problem = match &made {
        Err(why @ Unusable::NotConfigured(_)) => Some(why.to_string()),
        Ok(_) | Err(Unusable::Disabled | Unusable::Unknown(_)) => None,
    };
    let account = at_work.map(|at_work| at_work.account).or(made.ok());
    let probed = match (probe, account) {
        (Some(patience), Some(account)) => {
            let asked = tokio::time::timeout(patience, account.probe(patience)).await;
            Some(asked.unwrap_or_else(|_| Probe {
                error: Some(format!("no answer within {} ms", patience.as_millis())),
                elapsed_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
                ..Probe::default()
            }))
        }
        (Some(_), None) | (None, _) => None,
    };
    let token = channel.credential_source(config, &id);
    snapshot(config, name, &id, &stands, Facts { is_enabled, is_configured, problem, token, probed })
}

/// What is known of an account besides how it stands.
struct Facts {
    is_enabled: bool,
    is_configured: bool,
    problem: Option<String>,
    token: &'static str,
    probed: Option<Probe>,
}

fn snapshot(
    config: &Config,
    channel: &str,
    id: &str,
    stands: &AccountStatus,
    facts: Facts,
) -> Map<String, Value> {
    let access = AccessSettings::of(config, channel, id).unwrap_or_default();
    let allow_from: Vec<&str> =
        access.allow_from.iter().flatten().map(|Entry(entry)| entry.as_str()).collect();
    let last_error = stands.last_error.clone().or(facts.problem);
    let value = json!({
        "accountId": id,
        "enabled": facts.is_enabled,
        "configured": facts.is_configured,
        "tokenSource": facts.token,
        "running": stands.running,
        "connected": stands.connected,
        "reconnectAttempts": stands.reconnect_attempts,
        "lastConnectedAt": stands.last_connected_at,
        "lastStartAt": stands.last_start_at,
        "lastStopAt": stands.last_stop_at,
        "lastError": last_error,
        "lastEventAt": stands.last_event_at,
        "mode": stands.mode.unwrap_or("polling"),
        "dmPolicy": access.dm_policy.as_str(),
        "allowFrom": allow_from,
        "allowUnmentionedGroups": access.groups.values().any(|group| group.rules.require_mention == Some(false)),
        "lastInboundAt": stands.last_inbound_at,
        "lastOutboundAt": stands.last_outbound_at,
    });
    let Value::Object(mut fields) = value else { return Map::new() };
    if let Some(probe) = facts.probed {
        let mut shown = probe.details.clone();
        shown.insert("ok".to_owned(), json!(probe.ok));
        shown.insert("status".to_owned(), json!(probe.status));
        shown.insert("error".to_owned(), json!(probe.error));
        shown.insert("elapsedMs".to_owned(), json!(probe.elapsed_ms));
        fields.insert("probe".to_owned(), Value::Object(shown));
        fields.insert("lastProbeAt".to_owned(), json!(now_ms()));
    }
    fields
}
