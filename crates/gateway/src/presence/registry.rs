//! The rows of the presence list.

use openclaw_protocol::params::NonEmpty;
use openclaw_protocol::params::system::{PresenceEntry, SystemEventParams};

use super::beacon::Beacon;
use crate::connection::ConnectionInfo;
use crate::handshake::client_kind::is_cli;

/// A row is dropped this long after its last change, unless its client is connected.
const TTL_MS: i64 = 300_000;
/// Rows kept besides the gateway's own.
const MAX_ROWS: usize = 200;
/// Longest piece of a note that serves as its key.
const KEY_CHARS: usize = 64;

/// The rows. A client has one row, whichever of its names it comes by.
#[derive(Debug)]
pub struct PresenceRegistry {
    own: PresenceEntry,
    own_key: String,
    rows: Vec<PresenceRow>,
    /// Orders rows of the same millisecond: the one changed last comes first.
    changes: u64,
}

#[derive(Debug, Default)]
struct PresenceRow {
    /// The names it is found by, in lower case.
    names: Vec<String>,
    entry: PresenceEntry,
    /// Connections it stands for; while there is one the row stays (KB-26).
    connections: usize,
    change: u64,
}

/// Effect of a `system-event` on the list.
#[derive(Debug, Clone, PartialEq)]
pub struct PresenceChange {
    /// The row's key.
    pub key: String,
    /// The row before, if there was one.
    pub before: Option<PresenceEntry>,
    /// The row now.
    pub after: PresenceEntry,
}

impl PresenceRegistry {
    /// A list with the gateway's own row.
    pub fn new(own: PresenceEntry) -> Self {
        let own_key = normal(own.host.as_deref().unwrap_or("gateway"));
        Self { own, own_key, rows: Vec::new(), changes: 0 }
    }

    /// A client has connected. Returns whether the list has changed: command-line clients don't show up.
    pub fn connected(&mut self, info: &ConnectionInfo, now: i64) -> bool {
        if is_cli(&info.client) {
            return false;
        }
        let names = names_of(info);
        let mut row = self.take(&names).unwrap_or_default();
        row.connections += 1;
        row.entry = merge(row.entry, client_entry(info, "connect"), now);
        self.put(row, names);
        true
    }

    /// A client has gone. Its row stays a while if it can come back under the same name (KB-41). Returns whether the
    /// list has changed.
    pub fn disconnected(&mut self, info: &ConnectionInfo, now: i64) -> bool {
        let names = names_of(info);
        if is_cli(&info.client) {
            return false;
        }
        let Some(mut row) = self.take(&names) else { return false };
        row.connections = row.connections.saturating_sub(1);
        if row.connections == 0 {
            row.entry.reason = Some("disconnect".to_owned());
            row.entry.ts = now;
        }
        if row.connections > 0 || info.is_lasting() {
            self.put(row, names);
        }
        true
    }

    /// A device reports, or a person leaves a note. Explicit fields count more than the text, and
    /// the text more than what was known.
    pub fn report(&mut self, params: &SystemEventParams, text: &str, now: i64) -> PresenceChange {
        let beacon = Beacon::parse(text);
        let names = self.report_names(params, &beacon, text);
        let key = names.first().cloned().unwrap_or_default();
        let known = self.take(&names);
        let before = known.as_ref().map(|row| row.entry.clone());
        let fresh = PresenceEntry {
            host: params.host.clone().or(beacon.host),
            ip: params.ip.clone().or(beacon.ip),
            version: params.version.clone().or(beacon.version),
            platform: params.platform.clone(),
            device_family: params.device_family.clone(),
            model_identifier: params.model_identifier.clone(),
            mode: params.mode.clone().or(beacon.mode),
            last_input_seconds: params.last_input_seconds.or(beacon.last_input_seconds),
            device_id: params.device_id.clone(),
            roles: params.roles.clone(),
            scopes: params.scopes.clone(),
            instance_id: params.instance_id.clone(),
            reason: params.reason.clone().or(beacon.reason),
            tags: None,
            text: Some(text.to_owned()),
            ts: now,
        };
        let mut row = known.unwrap_or_default();
        row.entry = merge(row.entry, fresh, now);
        let after = row.entry.clone();
        self.put(row, names);
        PresenceChange { key, before, after }
    }

    /// Device and instance where they are said, else the first of what else names it.
    fn report_names(&self, params: &SystemEventParams, beacon: &Beacon, text: &str) -> Vec<String> {
        let start: String = text.chars().take(KEY_CHARS).collect();
        let given = |names: &[Option<&str>]| -> Vec<String> {
            names.iter().flatten().map(|name| normal(name)).filter(|name| !name.is_empty()).collect()
        };
        let lasting = given(&[params.device_id.as_deref(), params.instance_id.as_deref()]);
        if !lasting.is_empty() {
            return lasting;
        }
        let others =
            given(&[beacon.host.as_deref(), beacon.ip.as_deref(), Some(&start), Some(&self.own_key)]);
        others.into_iter().take(1).collect()
    }

    /// The list, newest first. Drops what is due.
    pub fn list(&mut self, now: i64) -> Vec<PresenceEntry> {
        self.prune(now);
        self.own.ts = now;
        let mut rows: Vec<(&PresenceEntry, u64)> =
            self.rows.iter().map(|row| (&row.entry, row.change)).collect();
        rows.push((&self.own, u64::MAX));
        rows.sort_by_key(|(entry, change)| std::cmp::Reverse((entry.ts, *change)));
        rows.into_iter().map(|(entry, _)| entry.clone()).collect()
    }

    fn prune(&mut self, now: i64) {
        self.rows.retain(|row| row.connections > 0 || now.saturating_sub(row.entry.ts) <= TTL_MS);
        let excess = self.rows.len().saturating_sub(MAX_ROWS);
        if excess > 0 {
            self.rows.sort_unstable_by_key(|row| (row.entry.ts, row.change));
            self.rows.drain(..excess);
        }
    }

    /// Connected clients are still here: called on every tick (KB-26).
    pub fn refresh_connected(&mut self, now: i64) {
        for row in self.rows.iter_mut().filter(|row| row.connections > 0) {
            row.entry.ts = now;
        }
    }

    /// Takes out the row that has one of these names. Two that turn out to be of the same client become one.
    fn take(&mut self, names: &[String]) -> Option<PresenceRow> {
        let is_named = |row: &mut PresenceRow| row.names.iter().any(|name| names.contains(name));
        self.rows.extract_if(.., is_named).reduce(|mut one, other| {
            let now = one.entry.ts.max(other.entry.ts);
            one.names.extend(other.names);
            one.connections += other.connections;
            one.entry = merge(one.entry, other.entry, now);
            one
        })
    }

    /// Puts a row back that was changed.
    fn put(&mut self, mut row: PresenceRow, names: Vec<String>) {
        self.changes += 1;
        row.change = self.changes;
        for name in names {
            if !row.names.contains(&name) {
                row.names.push(name);
            }
        }
        self.rows.push(row);
    }
}

fn names_of(info: &ConnectionInfo) -> Vec<String> {
    info.presence_names().into_iter().map(normal).collect()
}

fn normal(key: &str) -> String {
    key.trim().to_lowercase()
}

fn client_entry(info: &ConnectionInfo, reason: &str) -> PresenceEntry {
    let client = &info.client;
    let own = |name: &Option<NonEmpty>| name.as_ref().map(|name| name.0.clone());
    PresenceEntry {
        host: Some(own(&client.display_name).unwrap_or_else(|| client.id.as_str().to_owned())),
        ip: info.remote_ip.map(|ip| ip.to_string()),
        version: Some(client.version.0.clone()),
        platform: Some(client.platform.0.clone()),
        device_family: own(&client.device_family),
        model_identifier: own(&client.model_identifier),
        mode: Some(client.mode.as_str().to_owned()),
        last_input_seconds: None,
        device_id: info.device_id.clone(),
        roles: Some(vec![info.role.as_str().to_owned()]),
        scopes: Some(info.scopes.clone()),
        // Beacons of the client carry the same id (decision 32).
        instance_id: own(&client.instance_id).or_else(|| info.device_id.clone()),
        reason: Some(reason.to_owned()),
        tags: None,
        text: None,
        ts: 0,
    }
}

/// New fields over old ones; roles and scopes are added up.
fn merge(old: PresenceEntry, new: PresenceEntry, now: i64) -> PresenceEntry {
    let mut merged = PresenceEntry {
        host: new.host.or(old.host),
        ip: new.ip.or(old.ip),
        version: new.version.or(old.version),
        platform: new.platform.or(old.platform),
        device_family: new.device_family.or(old.device_family),
        model_identifier: new.model_identifier.or(old.model_identifier),
        mode: new.mode.or(old.mode),
        last_input_seconds: new.last_input_seconds.or(old.last_input_seconds),
        device_id: new.device_id.or(old.device_id),
        roles: union(old.roles, new.roles),
        scopes: union(old.scopes, new.scopes),
        instance_id: new.instance_id.or(old.instance_id),
        reason: new.reason.or(old.reason),
        tags: new.tags.or(old.tags),
        text: new.text.or(old.text),
        ts: now,
    };
    if merged.text.is_none() {
        let host = merged.host.as_deref().unwrap_or("unknown");
        let mode = merged.mode.as_deref().unwrap_or("unknown");
        merged.text = Some(format!("Node: {host} · mode {mode}"));
    }
    merged
}

fn union(old: Option<Vec<String>>, new: Option<Vec<String>>) -> Option<Vec<String>> {
    let mut all = old.unwrap_or_default();
    for item in new.into_iter().flatten() {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests;
