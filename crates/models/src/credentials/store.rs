//! The content of `auth-profiles.json`: the credentials of one agent (spec `models.md` §8.1).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cooldown::UsageStats;
use super::credential::Credential;
use crate::reference::ProviderId;
use crate::settings::CooldownRules;
use crate::stream::FailureKind;

/// The credentials of one agent. Fields unknown to this version are kept when the file is written
/// again.
#[derive(Debug, Clone, Default)]
pub struct AuthStore {
    /// Profiles by id, in the file's order.
    profiles: Vec<(String, Credential)>,
    order: BTreeMap<String, Vec<String>>,
    usage: BTreeMap<String, UsageStats>,
    document: StoreDocument,
}

/// The whole file; its `Debug` shows nothing of it.
#[derive(Clone, Default, PartialEq)]
pub(super) struct StoreDocument(Map<String, Value>);

impl std::fmt::Debug for StoreDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl AuthStore {
    /// Parses the file's content; the error is the line where it is no JSON, 0 where it is JSON of another kind.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let document: Value = serde_json::from_slice(bytes).map_err(|error| error.line())?;
        let Value::Object(document) = document else { return Err(0) };
        let sections = ["profiles", "order", "lastGood", "usageStats"];
        if sections.iter().any(|name| document.get(*name).is_some_and(|it| !it.is_object() && !it.is_null()))
        {
            return Err(0);
        }
        let section = |name: &str| document.get(name).and_then(Value::as_object).into_iter().flatten();
        let profiles = section("profiles")
            .filter_map(|(id, entry)| Some((id.clone(), Credential::read(entry)?)))
            .collect();
        let order = section("order")
            .filter_map(|(provider, ids)| {
                let ids = ids.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
                Some((provider.clone(), ids.collect()))
            })
            .collect();
        let usage = section("usageStats")
            .filter_map(|(id, stats)| Some((id.clone(), UsageStats::read(stats.as_object()?))))
            .collect();
        Ok(Self { profiles, order, usage, document: StoreDocument(document) })
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        format!("{:#}\n", Value::Object(self.document.0.clone()))
    }

    /// Document that would be written, to detect changes.
    pub(super) fn document(&self) -> &StoreDocument {
        &self.document
    }

    /// The profile with an id.
    pub fn get(&self, id: &str) -> Option<&Credential> {
        self.profiles.iter().find(|(known, _)| known == id).map(|(_, credential)| credential)
    }

    /// All profiles in the file's order.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &Credential)> {
        self.profiles.iter().map(|(id, credential)| (id.as_str(), credential))
    }

    /// The file's own order of a provider's profiles, whatever spelling of the provider it uses.
    pub fn order(&self, provider: &ProviderId) -> Option<&[String]> {
        let mut orders = self.order.iter();
        orders.find(|(id, _)| ProviderId::normalize(id) == *provider).map(|(_, ids)| ids.as_slice())
    }

    /// Returns the usage statistics of a profile.
    pub fn usage(&self, id: &str) -> UsageStats {
        self.usage.get(id).cloned().unwrap_or_default()
    }

    /// The profile that last answered for a provider. It decides nothing (spec `models.md` §8.2).
    pub fn last_good(&self, provider: &ProviderId) -> Option<&str> {
        let mut known = self.document.0.get("lastGood")?.as_object()?.iter();
        known.find(|(id, _)| ProviderId::normalize(id) == *provider)?.1.as_str()
    }

    /// Adds a profile, or replaces the one of the same id. A new secret begins without the failures of the old one.
    pub fn put(&mut self, id: &str, credential: Credential) {
        let profiles = self.section("profiles");
        let old = profiles.get(id);
        let entry = credential.write(old);
        let is_new = old != Some(&entry);
        profiles.insert(id.to_owned(), entry);
        if is_new && let Some(stats) = self.usage.get_mut(id) {
            *stats = UsageStats { last_used: stats.last_used, ..UsageStats::default() };
            self.write_usage(id);
        }
        self.show(id, credential);
    }

    /// Adds a profile for this process alone: it is never written.
    pub(super) fn show(&mut self, id: &str, credential: Credential) {
        match self.profiles.iter_mut().find(|(known, _)| known == id) {
            Some((_, known)) => *known = credential,
            None => self.profiles.push((id.to_owned(), credential)),
        }
    }

    /// Sets the order in which a provider's profiles are asked; nothing removes it.
    pub fn set_order(&mut self, provider: &ProviderId, ids: Option<Vec<String>>) {
        let is_of = |id: &String| ProviderId::normalize(id) == *provider;
        self.order.retain(|id, _| !is_of(id));
        if ids.is_none() && !self.document.0.contains_key("order") {
            return;
        }
        let section = self.section("order");
        section.retain(|id, _| !is_of(id));
        if let Some(ids) = &ids {
            section.insert(provider.to_string(), json!(ids));
        }
        if section.is_empty() {
            self.document.0.shift_remove("order");
        }
        self.order.extend(ids.map(|ids| (provider.to_string(), ids)));
    }

    /// A profile answered: its failures are forgotten, and the next turn takes another one of its kind.
    pub fn record_success(&mut self, id: &str, now: i64) {
        let Some(provider) = self.get(id).map(|credential| credential.provider.clone()) else { return };
        // Later than every other one of the provider, also where a clock was set back: the rounds go on.
        let others =
            self.profiles.iter().filter(|(other, credential)| other != id && credential.provider == provider);
        let newest = others.filter_map(|(other, _)| self.usage.get(other)?.last_used).max().unwrap_or(0);
        self.usage.entry(id.to_owned()).or_default().record_success(now.max(newest.saturating_add(1)));
        self.write_usage(id);
        let last_good = self.section("lastGood");
        last_good.retain(|known, _| ProviderId::normalize(known) != provider);
        last_good.insert(provider.to_string(), json!(id));
    }

    /// A profile failed: its cooldown is as long as the rules say. Says whether there is one.
    pub fn record_failure(&mut self, id: &str, kind: FailureKind, rules: &CooldownRules, now: i64) -> bool {
        let Some(provider) = self.get(id).map(|credential| credential.provider.clone()) else { return false };
        let mut stats = self.usage(id);
        let counts = stats.record_failure(kind, &provider, rules, now);
        if counts {
            self.usage.insert(id.to_owned(), stats);
            self.write_usage(id);
        }
        counts
    }

    fn write_usage(&mut self, id: &str) {
        let stats = self.usage(id);
        let entry = self.section("usageStats").entry(id).or_insert_with(|| json!({}));
        if !entry.is_object() {
            *entry = json!({});
        }
        if let Some(entry) = entry.as_object_mut() {
            stats.write(entry);
        }
    }

    /// A section of the document, made when missing.
    fn section(&mut self, name: &str) -> &mut Map<String, Value> {
        let document = &mut self.document.0;
        document.entry("version").or_insert_with(|| json!(1));
        let section = document.entry(name).or_insert_with(|| json!({}));
        if !section.is_object() {
            *section = json!({});
        }
        #[expect(clippy::expect_used, reason = "made an object just above")]
        section.as_object_mut().expect("an object")
    }
}

#[cfg(test)]
mod tests;
