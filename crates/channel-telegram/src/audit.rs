//! Audit that the bot is in the groups where the configuration expects it to read along, and may
//! see the messages there.

use std::time::{Duration, Instant};

use openclaw_channels::access::AccessSettings;
use openclaw_channels::{Issue, IssueKind};
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::client::Client;
use crate::params::chat_id;
use crate::wire::Wire as _;

/// Groups that are looked at, one after the other.
const MOST: usize = 50;
/// Statuses of group members that see the messages.
const INSIDE: [&str; 3] = ["creator", "administrator", "member"];

/// Findings of the audit.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Audit {
    groups: Vec<Checked>,
    /// Keys that are no ids.
    unresolved: usize,
    /// True if the bot is to read along in every group.
    has_wildcard: bool,
    elapsed_ms: u64,
}

/// A group.
#[derive(Debug, Clone, PartialEq)]
struct Checked {
    id: String,
    /// Status of the bot in the group.
    status: Option<String>,
    error: Option<String>,
}

impl Checked {
    fn is_ok(&self) -> bool {
        self.error.is_none() && self.status.as_deref().is_some_and(|status| INSIDE.contains(&status))
    }
}

/// Looks at the groups whose messages need not mention the bot. `None` where there is none.
pub(super) async fn audit(bot: &Bot, me: i64, patience: Duration) -> Option<Audit> {
    let (ids, unresolved, has_wildcard) = expected(&bot.settings.access);
    if ids.is_empty() && unresolved == 0 && !has_wildcard {
        return None;
    }
    let start = Instant::now();
    let mut groups = Vec::new();
    for id in ids.into_iter().take(MOST) {
        let left = patience.saturating_sub(start.elapsed());
        let checked = if left.is_zero() {
            Checked { id, status: None, error: Some("there was no time left to look".to_owned()) }
        } else {
            check(&bot.client, id, me, left).await
        };
        groups.push(checked);
    }
    let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Some(Audit { groups, unresolved, has_wildcard, elapsed_ms })
}

/// The groups in which the bot is to read along, how many keys are no ids, and whether any group is meant.
fn expected(access: &AccessSettings) -> (Vec<String>, usize, bool) {
    let reads_along = access.groups.iter().filter(|(_, group)| {
        group.rules.enabled != Some(false) && group.rules.require_mention == Some(false)
    });
    let (mut ids, mut unresolved, mut has_wildcard) = (Vec::new(), 0, false);
    for (key, _) in reads_along {
        match key.trim() {
            "*" => has_wildcard = true,
            id if id.parse::<i64>().is_ok() => ids.push(id.to_owned()),
            _ => unresolved += 1,
        }
    }
    (ids, unresolved, has_wildcard)
}

async fn check(client: &Client, id: String, me: i64, left: Duration) -> Checked {
    let params = json!({"chat_id": chat_id(&id), "user_id": me});
    match client.call_within("getChatMember", &params, left).await {
        Ok(member) => {
            let sees = member.text("status") == Some("restricted") && member.flag("is_member");
            let status = if sees { Some("member") } else { member.text("status") };
            Checked { id, status: status.map(str::to_owned), error: None }
        }
        Err(error) => Checked { id, status: None, error: Some(error.to_string()) },
    }
}

impl Audit {
    /// As `channels.status` shows it.
    pub(super) fn shown(&self) -> Value {
        let group = |group: &Checked| {
            json!({
                "chatId": group.id,
                "ok": group.is_ok(),
                "status": group.status,
                "error": group.error,
                "matchKey": group.id,
                "matchSource": "id",
            })
        };
        let is_ok = self.unresolved == 0 && !self.has_wildcard && self.groups.iter().all(Checked::is_ok);
        json!({
            "ok": is_ok,
            "checkedGroups": self.groups.len(),
            "unresolvedGroups": self.unresolved,
            "hasWildcardUnmentionedGroups": self.has_wildcard,
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
            "elapsedMs": self.elapsed_ms,
        })
    }

    /// Returns the issues. `sees_all`: the bot's privacy mode is off, as Telegram says.
    pub(super) fn issues(&self, sees_all: bool) -> Vec<Issue> {
        let issue = |kind, message: String, fix: &str| Issue { kind, message, fix: Some(fix.to_owned()) };
        let mut issues = Vec::new();
        if !sees_all {
            issues.push(issue(
                IssueKind::Config,
                "Config allows unmentioned group messages (requireMention=false). Telegram Bot API privacy mode will block most group messages unless disabled.".to_owned(),
                "In BotFather run /setprivacy → Disable for this bot (then restart the gateway).",
            ));
        }
        if self.has_wildcard {
            issues.push(issue(
                IssueKind::Config,
                "Telegram groups config uses \"*\" with requireMention=false; membership probing is not possible without explicit group IDs.".to_owned(),
                "Add explicit numeric group ids under channels.telegram.groups (or per-account groups) to enable probing.",
            ));
        }
        if self.unresolved > 0 {
            issues.push(issue(
                IssueKind::Config,
                format!(
                    "Some configured Telegram groups are not numeric IDs (unresolvedGroups={}). Membership probe can only check numeric group IDs.",
                    self.unresolved
                ),
                "Use numeric chat IDs (e.g. -100...) as keys in channels.telegram.groups for requireMention=false groups.",
            ));
        }
        for group in self.groups.iter().filter(|group| !group.is_ok()) {
            let status = group.status.as_ref().map(|status| format!(" status={status}")).unwrap_or_default();
            let error = group.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            issues.push(issue(
                IssueKind::Runtime,
                format!("Group {} not reachable by bot.{status}{error}", group.id),
                "Invite the bot to the group, then DM the bot once (/start) and restart the gateway.",
            ));
        }
        issues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_are_read_along_in_are_looked_at() {
        let access: AccessSettings = serde_json::from_value(json!({"groups": {
            "-1": {"requireMention": false},
            "-2": {},
            "-3": {"requireMention": false, "enabled": false},
            "*": {"requireMention": false},
            "@team": {"requireMention": false},
        }}))
        .unwrap();
        assert_eq!(expected(&access), (vec!["-1".to_owned()], 1, true));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let checked = |status: Option<&str>, error: Option<&str>| Checked {
            id: "-1".to_owned(),
            status: status.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let audit = |groups| Audit { groups, ..Audit::default() };
        assert_eq!(audit(vec![checked(Some("member"), None)]).issues(true), []);
        assert_eq!(audit(vec![checked(Some("member"), None)]).issues(false).len(), 1);
        let left = audit(vec![checked(Some("left"), None), checked(None, Some("gone"))]);
        let said: Vec<String> = left.issues(true).into_iter().map(|issue| issue.message).collect();
        assert_eq!(
            said,
            ["Group -1 not reachable by bot. status=left", "Group -1 not reachable by bot.: gone"]
        );
        assert_eq!(left.shown()["ok"], false);
        let all = Audit { unresolved: 2, has_wildcard: true, ..Audit::default() };
        assert_eq!(all.issues(true).len(), 2);
    }
}
