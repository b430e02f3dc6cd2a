//! Audit of chat platforms: who is heard there, and who may give commands.

use openclaw_channels::Unusable;
use openclaw_channels::access::{AccessSettings, DmPolicy, Entry, GroupPolicy, GroupRules, PairingStore};
use openclaw_config::registry::ChannelInfo;
use openclaw_config::{Config, account_section};
use openclaw_gateway::platforms;
use openclaw_protocol::DmScope;
use serde_json::Value;

use super::{AuditFinding, Severity};
use crate::commands::channels::warnings;
use crate::context::CliContext;

/// An account that is set up and not switched off.
pub(super) struct Audited {
    info: &'static ChannelInfo,
    id: String,
    /// The path of what it says itself.
    path: String,
    pub(super) settings: AccessSettings,
}

/// All accounts that may bring messages.
pub(super) fn accounts(config: &Config) -> Vec<Audited> {
    let set_up = warnings::set_up(config);
    let platforms = platforms();
    let mut found = Vec::new();
    for channel in platforms.channels().iter().filter(|channel| set_up.contains(&channel.info().id)) {
        let info = channel.info();
        for id in channel.account_ids(config) {
            if matches!(channel.account(config, &id), Err(Unusable::Disabled | Unusable::Unknown(_))) {
                continue;
            }
            // Settings that have no meaning let nobody in.
            let Ok(settings) = AccessSettings::of(config, info.id, &id) else { continue };
            let path = match account_section(config.document(), info.id, &id) {
                Some((name, _)) => format!("channels.{}.accounts.{name}", info.id),
                None => format!("channels.{}", info.id),
            };
            found.push(Audited { info, id, path, settings });
        }
    }
    found
}

/// Returns the policy of an account's groups, and those that single groups and topics override it with.
pub(super) fn group_policies(settings: &AccessSettings) -> Vec<GroupPolicy> {
    let of_account = settings.group_policy.unwrap_or_default();
    std::iter::once(of_account).chain(rules(settings).filter_map(|rules| rules.group_policy)).collect()
}

/// Returns the rules that groups and topics have of their own.
fn rules(settings: &AccessSettings) -> impl Iterator<Item = &GroupRules> {
    settings.groups.values().flat_map(|group| std::iter::once(&group.rules).chain(group.topics.values()))
}

fn has_anyone(list: Option<&Vec<Entry>>) -> bool {
    list.into_iter().flatten().any(|Entry(entry)| entry.trim() == "*")
}

pub(super) fn findings(context: &CliContext, config: &Config) -> Vec<AuditFinding> {
    let accounts = accounts(config);
    let mut found = Vec::new();
    for account in &accounts {
        for finding in account.private_chats(context, config).into_iter().chain(account.groups(config)) {
            // Accounts without settings of their own share those of their platform.
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    let open: Vec<&str> = accounts
        .iter()
        .filter(|account| account.has_open_groups())
        .map(|account| account.path.as_str())
        .collect();
    if !open.is_empty() && config.tools.elevated.enabled != Some(false) {
        found.push(
            AuditFinding::new(
                "security.exposure.open_groups_with_elevated",
                Severity::Critical,
                "Open groups while commands may be elevated",
                format!(
                    "Anybody in a group may make the agent run ({}), and tools.elevated is enabled: words of strangers stand \
                     beside those of somebody who may have commands run on this host.",
                    open.join(", ")
                ),
            )
            .remedy("Set groupPolicy to \"allowlist\", or tools.elevated.enabled to false."),
        );
    }
    found
}

impl Audited {
    fn finding(&self, check: &str, severity: Severity, title: &str, detail: String) -> AuditFinding {
        let title = format!("{} {title}", self.info.label);
        AuditFinding::new(format!("channels.{}.{check}", self.info.id), severity, title, detail)
    }

    fn has_open_groups(&self) -> bool {
        group_policies(&self.settings).contains(&GroupPolicy::Open)
    }

    /// The policy of private chats as it is written.
    fn written_policy<'a>(&self, config: &'a Config) -> Option<&'a str> {
        let at = |path: &str| config.document().pointer(&format!("/{}/dmPolicy", path.replace('.', "/")));
        let shared = format!("channels.{}", self.info.id);
        at(&self.path).or_else(|| at(&shared)).and_then(Value::as_str)
    }

    fn private_chats(&self, context: &CliContext, config: &Config) -> Vec<AuditFinding> {
        let Self { path, settings, .. } = self;
        let policy = settings.dm_policy;
        if policy == DmPolicy::Disabled {
            let detail = format!("{path}: nobody may write to it in private.");
            return vec![self.finding("dm.disabled", Severity::Info, "DMs are disabled", detail)];
        }
        let anyone = has_anyone(settings.allow_from.as_ref());
        let mut found = Vec::new();
        if anyone {
            let detail = format!(
                "{path}: dmPolicy=\"{}\" and \"*\" in allowFrom: anybody may talk to the agent, and through it use its tools.",
                policy.as_str()
            );
            found.push(
                self.finding("dm.open", Severity::Critical, "DMs are open", detail)
                    .remedy("Set dmPolicy to \"pairing\" and take \"*\" out of allowFrom."),
            );
        } else if self.written_policy(config) == Some("open") {
            let detail = format!(
                "{path}: dmPolicy=\"open\" without \"*\" in allowFrom lets in those of the list alone."
            );
            found.push(
                self.finding("dm.open_invalid", Severity::Warn, "DM policy says open and is not", detail)
                    .remedy("Set dmPolicy to \"allowlist\", or put \"*\" in if everybody is meant."),
            );
        }
        found.extend(self.shared_session(context, config, anyone));
        found
    }

    /// Several people in private chats that are one conversation.
    fn shared_session(&self, context: &CliContext, config: &Config, anyone: bool) -> Option<AuditFinding> {
        if config.session.dm_scope != DmScope::Main {
            return None;
        }
        let guests = PairingStore::new(context.paths().credentials_dir(), self.info.id, &self.id).guests();
        let mut people: Vec<String> =
            self.settings.allow_from.iter().flatten().map(|Entry(entry)| entry.clone()).collect();
        people.extend(guests.entries);
        people.sort();
        people.dedup();
        let who = match people.iter().filter(|person| person.as_str() != "*").count() {
            _ if anyone => "anybody".to_owned(),
            count if count > 1 => format!("{count} people"),
            _ => return None,
        };
        let detail = format!(
            "{}: {who} may write in private, and session.dmScope=\"main\" puts them into one conversation: each may be told \
             what another has said.",
            self.path
        );
        Some(
            self.finding("dm.scope_main_multiuser", Severity::Warn, "DMs share the main session", detail)
                .remedy("Set session.dmScope to \"per-channel-peer\"."),
        )
    }

    fn groups(&self, config: &Config) -> Vec<AuditFinding> {
        let Self { path, settings, .. } = self;
        let mut found = Vec::new();
        if self.has_open_groups() {
            let which = if settings.groups.is_empty() {
                "in any group that takes the bot in"
            } else {
                "in the groups that are listed"
            };
            let detail = format!("{path}: groupPolicy=\"open\" lets anybody {which} talk to the agent.");
            found.push(
                self.finding("warning.1", Severity::Warn, "groups are open", detail)
                    .remedy("Set groupPolicy to \"allowlist\" and name people in groupAllowFrom."),
            );
        }
        let shared = settings.group_allow_from.as_ref().or(settings.allow_from.as_ref());
        let own = rules(settings).filter_map(|rules| rules.allow_from.as_ref());
        let is_reached = group_policies(settings).iter().any(|policy| *policy != GroupPolicy::Disabled);
        if is_reached && own.chain(shared).any(|list| has_anyone(Some(list))) {
            let detail = format!(
                "{path}: a list that holds in groups has \"*\", so every member may give commands such as /new and /model."
            );
            found.push(
                self.finding(
                    "groups.allowFrom.wildcard",
                    Severity::Critical,
                    "groups take commands from everybody",
                    detail,
                )
                .remedy("Name people by their ids in groupAllowFrom, or in the group's allowFrom."),
            );
        } else if self.has_open_groups() && config.commands.use_access_groups == Some(false) {
            let detail = format!(
                "{path}: groupPolicy=\"open\" and commands.useAccessGroups=false: every member may give commands."
            );
            found.push(
                self.finding(
                    "groups.allowFrom.missing",
                    Severity::Critical,
                    "groups take commands from everybody",
                    detail,
                )
                .remedy("Set commands.useAccessGroups to true, or groupPolicy to \"allowlist\"."),
            );
        }
        found
    }
}
