//! Session stores: whether all of them can be read, and whether each session has one usable row.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use openclaw_protocol::AgentId;

use super::{Finding, Premises, Repair, Severity, finding, such_as};
use crate::key::legacy;
use crate::legacy_state::Remnant;
use crate::legacy_state::rows::{CleanupChange, tidy};
use crate::store::on_disk::{StoreOnDisk, StoredRow};

/// State of the days before there were several agents.
pub(super) fn check_old(premises: &Premises, found: &mut Vec<Finding>) -> io::Result<()> {
    if !premises.is_configured {
        return Ok(());
    }
    for remnant in premises.state.found()? {
        let (id, message) = match remnant {
            Remnant::Sessions(dir) => (
                "old.sessions",
                format!(
                    "Sessions of an older version in {}: they are not used until they are moved.",
                    dir.display()
                ),
            ),
            Remnant::AgentDir(dir) => (
                "old.agent-dir",
                format!(
                    "Agent directory of an older version: {}. Its credentials are not used.",
                    dir.display()
                ),
            ),
            Remnant::WhatsAppLogin(dir) => (
                "old.whatsapp",
                format!(
                    "WhatsApp login of an older version in {}: it is not used until it is moved.",
                    dir.display()
                ),
            ),
            // Said together with everything else about that store.
            Remnant::OldKeys { .. } => continue,
        };
        found.push(finding(id, Severity::Warning, message, vec![Repair::MigrateOldState]));
    }
    Ok(())
}

pub(super) fn check(premises: &Premises, found: &mut Vec<Finding>) -> io::Result<()> {
    if !premises.is_configured {
        return Ok(());
    }
    for (store, agent) in premises.state.stores() {
        let read = match StoreOnDisk::read(&store) {
            Ok(read) => read,
            Err(error) => {
                let message = format!("The session store {} cannot be read: {error}.", store.display());
                found.push(finding("store.unreadable", Severity::Error, message, Vec::new()));
                continue;
            }
        };
        let fix = Repair::TidyStore { store: store.clone(), agent: agent.clone() };
        check_file(&store, &read, &fix, found);
        check_rows(premises, &store, &agent, &read, &fix, found);
    }
    Ok(())
}

fn check_file(store: &Path, read: &StoreOnDisk, fix: &Repair, found: &mut Vec<Finding>) {
    if let Some(damage) = &read.document.damage {
        let message = format!(
            "CRITICAL: The session store {} {damage}. {} session(s) of it can be recovered.",
            store.display(),
            read.rows().len(),
        );
        found.push(finding("store.damaged", Severity::Error, message, vec![fix.clone()]));
    }
    if read.replayed.malformed_lines > 0 {
        let message = format!(
            "The journal of {} has {} unreadable line(s).",
            store.display(),
            read.replayed.malformed_lines
        );
        found.push(finding("store.journal", Severity::Error, message, vec![fix.clone()]));
    }
}

fn check_rows(
    premises: &Premises,
    store: &Path,
    agent: &AgentId,
    read: &StoreOnDisk,
    fix: &Repair,
    found: &mut Vec<Finding>,
) {
    let path = store.display();
    let rows = read.rows();
    let mut add =
        |id, severity, message: String, repairs| found.push(finding(id, severity, message, repairs));
    let fields = mistyped(&rows);
    if !fields.is_empty() {
        let list: Vec<String> = fields.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let message =
            format!("{path} has fields that are not used because of their type: {}.", list.join(", "));
        add("store.fields", Severity::Info, message, Vec::new());
    }
    let unreadable: Vec<&String> = rows
        .iter()
        .map(|(key, _)| key)
        .filter(|key| legacy::canonicalize(key, agent, &premises.state.rules).is_err())
        .collect();
    if !unreadable.is_empty() {
        let list =
            such_as(&unreadable, "row", |key| format!("{:?}", key.chars().take(60).collect::<String>()));
        let message = format!("{path} has keys that name no session: {list}. Rename or remove them by hand.");
        add("store.keys-unreadable", Severity::Warning, message, Vec::new());
    }
    let changes = tidy(rows, premises.state.owner(agent), premises.now).changes;
    let of = |is_wanted: fn(&CleanupChange) -> bool| -> Vec<String> {
        changes.iter().filter(|change| is_wanted(change)).map(key_of).collect()
    };
    let old = of(|change| matches!(change, CleanupChange::Moved { .. } | CleanupChange::BecameMain { .. }));
    let twice = of(|change| matches!(change, CleanupChange::Superseded { .. }));
    let mut unusable = of(|change| matches!(change, CleanupChange::NoSessionId { .. }));
    unusable.extend(read.keys_without_row().map(str::to_owned));
    let timeless = of(|change| matches!(change, CleanupChange::NoUpdatedAt { .. }));
    let labels = of(|change| matches!(change, CleanupChange::LabelTaken { .. }));
    let groups = [
        ("store.keys-old", old, "is stored under a key of an older version"),
        ("store.duplicates", twice, "has a second, older row"),
        ("store.rows", unusable, "has no session id or is no session at all"),
        ("store.times", timeless, "has no usable updatedAt"),
        ("store.labels", labels, "has the label of a newer session"),
    ];
    for (id, keys, what) in groups.into_iter().filter(|(_, keys, _)| !keys.is_empty()) {
        let message = match keys.as_slice() {
            [only] => format!("In {path} {only:?} {what}."),
            many => format!("In {path} each of {} {what}.", such_as(many, "row", |key| format!("{key:?}"))),
        };
        add(id, Severity::Warning, message, vec![fix.clone()]);
    }
}

fn key_of(change: &CleanupChange) -> String {
    match change {
        CleanupChange::Moved { from: key, .. }
        | CleanupChange::BecameMain { from: key, .. }
        | CleanupChange::Superseded { key, .. }
        | CleanupChange::NoSessionId { key }
        | CleanupChange::NoUpdatedAt { key }
        | CleanupChange::LabelTaken { key, .. } => key.clone(),
    }
}

/// Known fields of a type they can't have, by how many rows have them. Fields that decide over a
/// row are reported elsewhere.
fn mistyped(rows: &[StoredRow]) -> BTreeMap<&str, usize> {
    let mut fields = BTreeMap::new();
    for (_, entry) in rows {
        for name in entry.mistyped().filter(|name| !matches!(*name, "sessionId" | "updatedAt")) {
            *fields.entry(name).or_default() += 1;
        }
    }
    fields
}
