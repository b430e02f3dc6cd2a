//! Status of accounts, under the names that clients know (spec `channels.md` §15).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_channels::access::{AccessSettings, Entry, Silence};
use openclaw_channels::{
    AccountStatus, Channel, Issue, IssueKind, Platforms, Probe, SET_THE_CLOCK, SwitchedOff, Unusable,
    clock_is_wrong, switched_off,
};
use openclaw_config::{Config, account_section};
use openclaw_dispatch::{AccountCounts, Dispatch, EventCount, LateConversation, SilentGroup};
use openclaw_protocol::params::channels::{ChannelMeta, ChannelsStatusResult};
use openclaw_protocol::printable::one_line;
use openclaw_sessions::time::{iso, now_ms};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::standing::{add_command, answer, command, obstacle, obstacle_of};
use crate::current_settings::CurrentSettings;

/// Maximum number of groups without listeners that are named.
const SILENT_GROUPS: usize = 5;
/// Characters of why a message could not be sent.
const SHOWN_ERROR: usize = 200;

/// Status of the accounts: the parts of the gateway that it is put together from.
pub(crate) struct AccountBoard {
    settings: CurrentSettings,
    platforms: Arc<Platforms>,
    dispatch: Dispatch,
    /// Accounts that are not configured and whose waiting messages were already logged.
    missing: Mutex<Vec<MissingAccount>>,
}

impl AccountBoard {
    pub(crate) fn new(settings: CurrentSettings, platforms: Arc<Platforms>, dispatch: Dispatch) -> Self {
        Self { settings, platforms, dispatch, missing: Mutex::default() }
    }

    /// Tells in the log of messages that wait for accounts that are not configured, once for as many.
    fn tell_missing(&self, missing: &[MissingAccount]) {
        let told = std::mem::replace(&mut *self.missing.lock(), missing.to_owned());
        for one in missing.iter().filter(|one| !told.contains(one)) {
            let MissingAccount { channel, account, .. } = one;
            tracing::warn!(channel, account, "{}; {}", one.told(), MissingAccount::REMEDY);
        }
    }
}

/// Status of all accounts. `probe` is how long platforms may take to be asked.
pub(crate) async fn status(board: &AccountBoard, probe: Option<Duration>) -> ChannelsStatusResult {
    let config = board.settings.config();
    let mut result = ChannelsStatusResult { ts: now_ms(), ..ChannelsStatusResult::default() };
    let missing = missing(board, &config).await;
    for channel in board.platforms.channels() {
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
        let mut accounts = channel.account_ids(&config);
        accounts.extend(missing.iter().filter(|one| one.channel == id).map(|one| one.account.clone()));
        let default = board.platforms.default_account(&config, &id).unwrap_or_default();
        let one = |account: String| one(board, &config, channel.as_ref(), account, probe);
        let snapshots = join_all(accounts.into_iter().map(one)).await;
        let of_default = snapshots.iter().find(|snapshot| snapshot.get("accountId") == Some(&json!(default)));
        result.channels.insert(id.clone(), Value::Object(of_default.map(summary).unwrap_or_default()));
        result.channel_accounts.insert(id.clone(), snapshots);
        result.channel_default_account_id.insert(id, default);
    }
    result
}

/// Fields of an account that stand in the summary of its platform.
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

/// The platforms that are set up, as the health snapshot shows them. `probe` is how long they may take to be asked.
pub(crate) async fn health(board: &AccountBoard, probe: Option<Duration>) -> ChannelsHealth {
    let config = board.settings.config();
    // Health is made every minute: so the log hears of missing accounts.
    missing(board, &config).await;
    let mut found = ChannelsHealth::default();
    for channel in board.platforms.channels() {
        let info = channel.info();
        let is_set_up = config.document().pointer(&format!("/channels/{}", info.id)).is_some()
            || channel.account_ids(&config).iter().any(|id| channel.credential_source(&config, id) != "none");
        if !is_set_up {
            continue;
        }
        let one = |id: String| async {
            let snapshot = self::one(board, &config, channel.as_ref(), id.clone(), probe).await;
            let mut shown = summary(&snapshot);
            for key in ["enabled", "connected", "accountId", "outboxPending", "outboxFailed", "inbound"] {
                shown.extend(snapshot.get(key).map(|value| (key.to_owned(), value.clone())));
            }
            let why = obstacle_of(&board.platforms, &config, channel.as_ref(), &id);
            let stands = board.platforms.at_work(info.id, &id).map(|at_work| at_work.status.now());
            let said = answer(shown.get("probe"), why.as_deref(), stands.as_ref());
            shown.extend(said.map(|said| ("probe".to_owned(), said)));
            (id, Value::Object(shown))
        };
        let accounts: Map<String, Value> =
            join_all(channel.account_ids(&config).into_iter().map(one)).await.into_iter().collect();
        let default = board.platforms.default_account(&config, info.id).unwrap_or_default();
        let mut own = accounts.get(&default).and_then(Value::as_object).cloned().unwrap_or_default();
        own.insert("accounts".to_owned(), Value::Object(accounts));
        found.order.push(info.id.to_owned());
        found.labels.insert(info.id.to_owned(), json!(info.label));
        found.channels.insert(info.id.to_owned(), Value::Object(own));
    }
    found
}

/// The platforms in the health snapshot.
#[derive(Debug, Default)]
pub(crate) struct ChannelsHealth {
    pub(crate) channels: Map<String, Value>,
    pub(crate) order: Vec<String>,
    pub(crate) labels: Map<String, Value>,
}

/// An account that the configuration does not know (any more), and for which messages wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingAccount {
    pub(crate) channel: String,
    pub(crate) account: String,
    /// Number of waiting messages.
    pub(crate) pending: u64,
}

impl MissingAccount {
    /// Notice that messages wait for this account, for people.
    pub(crate) fn told(&self) -> String {
        let Self { channel, account, pending } = self;
        let (wait, are_sent) = match pending {
            1 => ("1 message waits".to_owned(), "it is sent"),
            pending => (format!("{pending} messages wait"), "they are sent"),
        };
        format!(
            "{wait} for {channel} account \"{account}\", which is not configured; {are_sent} when it is there again"
        )
    }

    /// Command that gets rid of the messages.
    pub(crate) const REMEDY: &str =
        "throw away: openclaw message discard <id> (list: openclaw message failed)";
}

/// Accounts that are not configured, and for which messages wait. New ones are logged.
async fn missing(board: &AccountBoard, config: &Config) -> Vec<MissingAccount> {
    let waiting = board.dispatch.outbox().waiting_accounts().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what waits for accounts can't be read");
        BTreeMap::new()
    });
    let is_known = |channel: &str, account: &String| {
        board.platforms.channel(channel).is_some_and(|one| one.account_ids(config).contains(account))
    };
    let missing = waiting.into_iter().filter(|((channel, account), _)| !is_known(channel, account));
    let missing: Vec<MissingAccount> =
        missing.map(|((channel, account), pending)| MissingAccount { channel, account, pending }).collect();
    board.tell_missing(&missing);
    missing
}

/// A line for each platform that is set up, and one for each of its accounts (spec `cli.md` §3.1).
pub(crate) async fn lines(board: &AccountBoard) -> Vec<String> {
    let config = board.settings.config();
    let mut lines = Vec::new();
    for channel in board.platforms.channels() {
        let info = channel.info();
        let section = config.document().pointer(&format!("/channels/{}", info.id));
        let accounts = channel.account_ids(&config);
        let source = |id: &String| channel.credential_source(&config, id);
        let configured: Vec<&String> = accounts.iter().filter(|id| source(id) != "none").collect();
        if section.is_none() && configured.is_empty() {
            continue;
        }
        let off = accounts.iter().map(|id| switched_off(&config, info.id, id)).collect::<Option<Vec<_>>>();
        let by_plugin = off.iter().flatten().find(|off| off.is_unwanted());
        let how = match (&off, by_plugin, configured.is_empty()) {
            (Some(_), Some(off), _) => format!("disabled: {off}. Run: {}", off.remedy()),
            (Some(_), None, _) => "disabled".to_owned(),
            (None, _, true) => "not configured".to_owned(),
            (None, _, false) => "configured".to_owned(),
        };
        lines.push(format!("{}: {how}", info.label));
        if off.is_none() {
            let line = |id: &&String| {
                let why = obstacle_of(&board.platforms, &config, channel.as_ref(), id);
                let why = why.map(|why| format!(", not working: {why}")).unwrap_or_default();
                format!("  - {id} (token:{}{why})", source(id))
            };
            lines.extend(configured.iter().map(line));
        }
    }
    let missing = missing(board, &config).await;
    lines.extend(missing.iter().map(|one| format!("{}; {}", one.told(), MissingAccount::REMEDY)));
    lines
}

async fn one(
    board: &AccountBoard,
    config: &Config,
    channel: &dyn Channel,
    id: String,
    probe: Option<Duration>,
) -> Map<String, Value> {
    let name = channel.info().id;
    let at_work = board.platforms.at_work(name, &id);
    let stands = at_work.as_ref().map(|at_work| at_work.status.now());
    let made = channel.account(config, &id);
    let token = channel.credential_source(config, &id);
    let off = switched_off(config, name, &id).filter(|_| matches!(made, Err(Unusable::Disabled)));
    let is_configured = match &made {
        Ok(_) => true,
        Err(Unusable::Disabled) => token != "none",
        Err(Unusable::Unknown(_) | Unusable::NotConfigured { .. }) => false,
    };
    let problem = match &made {
        Err(Unusable::NotConfigured { why, fix }) => {
            let fix = fix.clone().unwrap_or_else(|| format!("Run: {}", add_command(name, &id)));
            Some(SettingProblem { why: why.clone(), fix })
        }
        Ok(_) | Err(Unusable::Disabled | Unusable::Unknown(_)) => None,
    };
    let can_work = made.is_ok();
    let is_unknown = matches!(made, Err(Unusable::Unknown(_)));
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
        // Without what it needs there is nothing to ask with.
        (Some(_), None) => {
            problem.as_ref().map(|it| Probe { error: Some(it.why.clone()), ..Probe::default() })
        }
        (None, _) => None,
    };
    let mut counts = board.dispatch.outbox().counts(name, &id).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what waits for an account can't be read");
        AccountCounts::default()
    });
    let missing = (is_unknown && counts.pending > 0).then(|| MissingAccount {
        channel: name.to_owned(),
        account: id.clone(),
        pending: counts.pending,
    });
    let silent = board.dispatch.silent_groups(name, &id);
    let down_for = board.dispatch.outbox().down_for(name, &id);
    let is_stopped = can_work && obstacle(stands.as_ref()).is_some();
    let stands = stands.unwrap_or_default();
    // A reason that holds up all of the account is reported only once.
    if down_for.is_some() || !stands.running {
        (counts.late, counts.late_total) = (Vec::new(), 0);
    }
    let platform = channel.info().label;
    let facts = AccountFacts {
        platform,
        off,
        is_configured,
        is_stopped,
        problem,
        missing,
        token,
        probed,
        counts,
        down_for,
        silent,
    };
    snapshot(config, name, &id, &stands, facts)
}

/// Part of an account's section that people are shown, under its own key names.
struct AccountSection(Map<String, Value>);

impl AccountSection {
    const SHOWN: [(&'static str, &'static str); 5] = [
        ("name", "name"),
        ("webhookUrl", "webhookUrl"),
        ("webhookPath", "webhookPath"),
        ("webhookPort", "port"),
        ("apiRoot", "baseUrl"),
    ];

    fn of(config: &Config, channel: &str, id: &str) -> Self {
        let section = config.document().pointer(&format!("/channels/{channel}")).and_then(Value::as_object);
        let own = account_section(config.document(), channel, id).and_then(|(_, keys)| keys.as_object());
        let find = |key: &str| own.and_then(|keys| keys.get(key)).or_else(|| section?.get(key));
        let shown = Self::SHOWN.iter().filter_map(|(key, shown)| {
            // A label is the account's own.
            let is_label = *key == "name" && own.is_some_and(|keys| !keys.contains_key("name"));
            Some(((*shown).to_owned(), find(key)?.clone())).filter(|_| !is_label)
        });
        Self(shown.filter(|(_, value)| !value.is_null()).collect())
    }

    fn add_to(self, fields: &mut Map<String, Value>) {
        fields.extend(self.0);
    }
}

/// Issues that keep an account from working, each with its fix.
fn issues(channel: &str, id: &str, stands: &AccountStatus, facts: &AccountFacts) -> Vec<Value> {
    let mut found: Vec<Issue> = Vec::new();
    let issue =
        |kind, message: &str, fix: String| Issue { kind, message: message.to_owned(), fix: Some(fix) };
    let refused = refused(stands, facts);
    let another_token = || format!("Run: {}", add_command(channel, id));
    match (&facts.problem, &refused, &stands.last_error) {
        (Some(problem), ..) => found.push(issue(IssueKind::Config, &problem.why, problem.fix.clone())),
        (None, Some(why), _) => found.push(issue(IssueKind::Auth, why, another_token())),
        (None, None, Some(error)) if !stands.connected => {
            let fix = format!("Run: openclaw channels logs --channel {channel}");
            found.push(issue(IssueKind::Runtime, error, fix));
        }
        (None, None, Some(error)) => {
            found.push(Issue { kind: IssueKind::Runtime, message: error.clone(), fix: None })
        }
        (None, None, None) if facts.is_stopped => {
            let fix = format!("Run: {}", command("start", channel, id));
            found.push(issue(IssueKind::Runtime, "It is stopped.", fix));
        }
        (None, None, None) => {}
    }
    if let Some(off) = unwanted(facts) {
        let message = format!("{}.", sentence(&off.to_string()));
        found.push(issue(IssueKind::Config, &message, format!("Run: {}", off.remedy())));
    }
    if stands.clock_ahead_ms != 0 {
        let message = format!("{}.", clock_is_wrong(stands.clock_ahead_ms, facts.platform));
        found.push(issue(IssueKind::Runtime, &message, SET_THE_CLOCK.to_owned()));
    }
    if !stands.unknown_names.is_empty() {
        let message = format!(
            "Nobody is known by {} of a list: such a name matches nobody.",
            stands.unknown_names.join(", ")
        );
        let fix = format!(
            "Write numeric ids in the lists of channels.{channel}, commands.ownerAllowFrom and tools.elevated.allowFrom"
        );
        found.push(issue(IssueKind::Config, &message, fix));
    }
    if let Some(missing) = &facts.missing {
        let message = format!("{}.", missing.told());
        let fix = sentence(MissingAccount::REMEDY);
        found.push(issue(IssueKind::Config, &message, fix));
    } else if facts.counts.pending > 0 && !stands.running {
        let message = match facts.counts.pending {
            1 => "1 message waits until it runs.".to_owned(),
            pending => format!("{pending} messages wait until it runs."),
        };
        let remedy = match (&facts.off, &facts.problem, &refused) {
            (Some(off), ..) => format!("Run: {}", off.remedy()),
            (None, Some(problem), _) => problem.fix.clone(),
            // A start would be refused again.
            (None, None, Some(_)) => another_token(),
            (None, None, None) => format!("Run: {}", command("start", channel, id)),
        };
        found.push(issue(IssueKind::Runtime, &message, remedy));
    }
    if let Some(down_for) = facts.down_for.filter(|_| facts.counts.pending > 0) {
        let since = iso(now_ms().saturating_sub(i64::try_from(down_for.as_millis()).unwrap_or(i64::MAX)));
        let wait = match facts.counts.pending {
            1 => "1 message waits and is sent by itself".to_owned(),
            pending => format!("{pending} messages wait and are sent by themselves"),
        };
        let message = format!("{} has taken no message since {since}: {wait}.", facts.platform);
        found.push(issue(IssueKind::Runtime, &message, format!("List: {FAILED_COMMAND}")));
    }
    found.extend(facts.counts.late.iter().map(late));
    let listed = u64::try_from(facts.counts.late.len()).unwrap_or(u64::MAX);
    if let more @ 1.. = facts.counts.late_total.saturating_sub(listed) {
        let conversations = if more == 1 { "conversation" } else { "conversations" };
        let message = format!("Messages wait for {more} more {conversations}.");
        found.push(issue(IssueKind::Runtime, &message, format!("List: {FAILED_COMMAND}")));
    }
    if let Some(message) = given_up(facts.counts.failed) {
        let fix = format!("Run: {FAILED_COMMAND}");
        found.push(issue(IssueKind::Runtime, &format!("{message}."), fix));
    }
    for SilentGroup { id: group, title, why } in facts.silent.iter().take(SILENT_GROUPS) {
        let title = title.as_ref().map(|title| format!(" ({})", one_line(title))).unwrap_or_default();
        let message = format!("Nobody is heard in group {group}{title}: {why}.");
        let fix = match why {
            Silence::NotListed => format!("List it in channels.{channel}.groups"),
            Silence::NobodyListed => format!(
                "Name who is heard in channels.{channel}.groupAllowFrom, or set groupPolicy to \"open\""
            ),
            Silence::OwnListEmpty => {
                format!(
                    "Name who is heard in its allowFrom below channels.{channel}.groups, or take that out"
                )
            }
        };
        found.push(issue(IssueKind::Config, &message, fix));
    }
    found.extend(facts.probed.iter().flat_map(|probe| probe.issues.iter().cloned()));
    let shown =
        |issue: Issue| json!({"kind": issue.kind.as_str(), "message": issue.message, "fix": issue.fix});
    found.into_iter().map(shown).collect()
}

/// A conversation in which sends fail for long, with what to do.
/// Text about a token that the platform refuses: to the account at work, or to the probe of one that is stopped.
fn refused(stands: &AccountStatus, facts: &AccountFacts) -> Option<String> {
    const UNAUTHORIZED: u16 = 401;
    if stands.is_refused {
        return stands.last_error.clone();
    }
    let probe = facts.probed.as_ref().filter(|probe| probe.status == Some(UNAUTHORIZED))?;
    Some(format!("{} refuses the token ({}).", facts.platform, probe.error.as_deref()?))
}

fn late(one: &LateConversation) -> Issue {
    let LateConversation { target, id, since, error, waiting } = one;
    let wait = match waiting {
        1 => "1 message waits".to_owned(),
        waiting => format!("{waiting} messages wait"),
    };
    let error: String = error.chars().take(SHOWN_ERROR).collect();
    let message = format!(
        "{wait} for {}, the first since {}: {}.",
        one_line(target),
        iso(*since),
        one_line(error.trim_end_matches('.'))
    );
    let fix = format!(
        "See: openclaw trace {id}; try it now: openclaw message retry {id}; throw it away: openclaw message discard {id}"
    );
    Issue { kind: IssueKind::Runtime, message, fix: Some(fix) }
}

/// Setting that switches the account off, unless somebody switched it off on purpose: they know
/// already.
fn unwanted(facts: &AccountFacts) -> Option<&SwitchedOff> {
    facts.off.as_ref().filter(|off| off.is_unwanted())
}

/// Text with a capital letter first.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The command that lists what was given up.
const FAILED_COMMAND: &str = "openclaw message failed";

/// Notice that messages were given up, if any were.
fn given_up(failed: u64) -> Option<String> {
    match failed {
        0 => None,
        1 => Some("1 message could not be sent and was given up".to_owned()),
        failed => Some(format!("{failed} messages could not be sent and were given up")),
    }
}

/// Counts of inbound events by outcome, as far as they are remembered. The number received is the
/// sum of the others but `repeats`, which were passed over.
fn inbound(events: &[EventCount]) -> Value {
    let sum = |fate: &str| -> u64 {
        events.iter().filter(|event| event.fate == fate).map(|event| event.count).sum()
    };
    let reasons: BTreeMap<&str, u64> = events
        .iter()
        .filter(|event| event.fate == "dropped")
        .map(|event| (event.reason.as_deref().unwrap_or("unknown"), event.count))
        .collect();
    json!({
        "received": events.iter().map(|event| event.count).sum::<u64>(),
        "waiting": sum("waiting"),
        "run": sum("run"),
        "noted": sum("noted"),
        "handled": sum("handled"),
        "dropped": sum("dropped"),
        "droppedBy": reasons,
        "repeats": events.iter().map(|event| event.repeats).sum::<u64>(),
    })
}

/// Problem in an account's configuration (a missing or wrong setting), and its fix.
struct SettingProblem {
    why: String,
    fix: String,
}

/// Known facts of an account besides its status.
struct AccountFacts {
    /// Name of the platform, for people.
    platform: &'static str,
    /// Setting that switches the account off.
    off: Option<SwitchedOff>,
    is_configured: bool,
    /// True if the account could work, and is not started.
    is_stopped: bool,
    problem: Option<SettingProblem>,
    /// Set if the account is not in the configuration, and messages wait for it.
    missing: Option<MissingAccount>,
    token: &'static str,
    probed: Option<Probe>,
    counts: AccountCounts,
    /// Time for which nothing could be sent.
    down_for: Option<Duration>,
    silent: Vec<SilentGroup>,
}

fn snapshot(
    config: &Config,
    channel: &str,
    id: &str,
    stands: &AccountStatus,
    facts: AccountFacts,
) -> Map<String, Value> {
    let access = AccessSettings::of(config, channel, id).unwrap_or_default();
    let allow_from: Vec<&str> =
        access.allow_from.iter().flatten().map(|Entry(entry)| entry.as_str()).collect();
    let issues = issues(channel, id, stands, &facts);
    let section = AccountSection::of(config, channel, id);
    let off = unwanted(&facts).map(|off| format!("{off}. Run: {}", off.remedy()));
    let missing = facts.missing.map(|missing| missing.told());
    let last_error =
        stands.last_error.clone().or(facts.problem.map(|problem| problem.why)).or(off).or(missing);
    let lost = stands
        .last_disconnect
        .as_ref()
        .map(|lost| json!({"at": lost.at, "error": lost.error, "loggedOut": lost.logged_out}));
    let value = json!({
        "accountId": id,
        "enabled": facts.off.is_none(),
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
        "lastOutboundAt": facts.counts.last_sent_at,
        "lastDisconnect": lost,
        "inboxDepth": facts.counts.inbox,
        "outboxPending": facts.counts.pending,
        "outboxFailed": facts.counts.failed,
        "outboxLate": facts.counts.late_total,
        "inbound": inbound(&facts.counts.events),
        "restartCount": stands.restart_count,
        "issues": issues,
    });
    let Value::Object(mut fields) = value else { return Map::new() };
    section.add_to(&mut fields);
    if !stands.unknown_names.is_empty() {
        fields.insert("unknownNames".to_owned(), json!(stands.unknown_names));
    }
    if stands.clock_ahead_ms != 0 {
        fields.insert("clockAheadMs".to_owned(), json!(stands.clock_ahead_ms));
    }
    let probed = facts.probed.as_ref().and_then(|probe| probe.details.get("bot"));
    if let Some(bot) = probed.or_else(|| stands.identity.get("bot")) {
        fields.insert("bot".to_owned(), bot.clone());
    }
    if let Some(probe) = facts.probed {
        if let Some(audit) = probe.audit {
            fields.insert("audit".to_owned(), audit);
        }
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
