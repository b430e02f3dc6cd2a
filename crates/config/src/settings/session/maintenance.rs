//! `session.maintenance`: our opt-in extension, in the shape that later releases of OpenClaw gave it
//! (spec `sessions.md` §3.5). Absent, nothing is ever pruned.

use serde::{Deserialize, Deserializer};

use crate::byte_size::parse_byte_size;
use crate::duration::{DurationUnit, parse_duration};

/// `session.maintenance`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionMaintenance {
    /// Only say what would be done, or do it.
    pub mode: MaintenanceMode,
    #[serde(deserialize_with = "age")]
    prune_after: Option<u64>,
    prune_days: Option<u64>,
    max_entries: Option<usize>,
    #[serde(deserialize_with = "size")]
    rotate_bytes: Option<u64>,
    reset_archive_retention: Retention,
    #[serde(deserialize_with = "size")]
    max_disk_bytes: Option<u64>,
    #[serde(deserialize_with = "size")]
    high_water_bytes: Option<u64>,
}

/// `session.maintenance.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaintenanceMode {
    /// The log says what would be done.
    #[default]
    Warn,
    /// Maintenance is carried out.
    Enforce,
}

const DAY_MS: u64 = 86_400_000;
/// Age of a row that is pruned, in milliseconds: 30 days.
const PRUNE_AFTER_MS: u64 = 30 * DAY_MS;
/// Default maximum number of rows of a store.
const MAX_ENTRIES: usize = 500;
/// Size of a `sessions.json` of which a copy is kept before rows are removed from it: 10 MiB.
const ROTATE_BYTES: u64 = 10 * 1024 * 1024;

impl SessionMaintenance {
    /// Rows without activity for this long are removed, in milliseconds; `pruneDays` is the older name. Nothing: never.
    pub fn prune_after_ms(&self) -> Option<u64> {
        let days = self.prune_days.map(|days| days.saturating_mul(DAY_MS));
        positive(self.prune_after.or(days).unwrap_or(PRUNE_AFTER_MS))
    }

    /// Maximum number of rows of a store.
    pub fn max_entries(&self) -> usize {
        self.max_entries.unwrap_or(MAX_ENTRIES)
    }

    /// Size of a `sessions.json` of which a copy is kept before rows are removed from it. Nothing: no copy.
    pub fn rotate_bytes(&self) -> Option<u64> {
        positive(self.rotate_bytes.unwrap_or(ROTATE_BYTES))
    }

    /// Age at which archived transcripts are deleted, in milliseconds: as `pruneAfter` unless set. Nothing: never.
    pub fn archive_retention_ms(&self) -> Option<u64> {
        match self.reset_archive_retention {
            Retention::AsPruneAfter => self.prune_after_ms(),
            Retention::Forever => None,
            Retention::For(ms) => positive(ms),
        }
    }

    /// Size limit of a sessions directory, in bytes. Nothing: anything.
    pub fn max_disk_bytes(&self) -> Option<u64> {
        positive(self.max_disk_bytes?)
    }

    /// Size of a sessions directory after a cleaning, in bytes: four fifths of `maxDiskBytes`
    /// unless set, and never more than that.
    pub fn high_water_bytes(&self) -> Option<u64> {
        let most = self.max_disk_bytes()?;
        Some(self.high_water_bytes.and_then(positive).unwrap_or(most / 5 * 4).min(most))
    }
}

/// Zero switches a limit off.
fn positive(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

/// `resetArchiveRetention`: a duration, or `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Retention {
    #[default]
    AsPruneAfter,
    Forever,
    For(u64),
}

impl<'de> Deserialize<'de> for Retention {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Limit::deserialize(deserializer)? {
            Limit::Flag(false) => Self::Forever,
            Limit::Flag(true) => Self::AsPruneAfter,
            other => other.age::<D>()?.map_or(Self::AsPruneAfter, Self::For),
        })
    }
}

/// A limit as files spell it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Limit {
    Flag(bool),
    Number(f64),
    Text(String),
}

impl Limit {
    /// Milliseconds; a number without unit counts days.
    fn age<'de, D: Deserializer<'de>>(self) -> Result<Option<u64>, D::Error> {
        let text = self.text();
        let read = |text: String| parse_duration(&text, DurationUnit::Days).map_err(serde::de::Error::custom);
        text.map(read).transpose()
    }

    fn text(self) -> Option<String> {
        match self {
            Self::Flag(_) => None,
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text),
        }
    }
}

fn age<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Limit::deserialize(deserializer)?.age::<D>()
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let read = |text: String| parse_byte_size(&text).map_err(serde::de::Error::custom);
    Limit::deserialize(deserializer)?.text().map(read).transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Config, Environment};

    fn read(block: &Value) -> Result<SessionMaintenance, Vec<String>> {
        let env = Environment::new([("HOME", "/home/user")], "/");
        let document = json!({"session": {"maintenance": block}}).to_string();
        match Config::from_json5(&document, &env) {
            Ok(config) => Ok(config.session.maintenance.unwrap()),
            Err(error) => Err(error.issues.iter().map(crate::Issue::line).collect()),
        }
    }

    #[test]
    fn an_empty_block_only_warns_with_the_defaults() {
        let read = read(&json!({})).unwrap();
        let got = (
            read.mode,
            read.prune_after_ms(),
            read.max_entries(),
            read.rotate_bytes(),
            read.archive_retention_ms(),
            read.max_disk_bytes(),
            read.high_water_bytes(),
        );
        let month = Some(30 * DAY_MS);
        assert_eq!(got, (MaintenanceMode::Warn, month, 500, Some(10 << 20), month, None, None));
    }

    #[test]
    fn limits_are_texts_or_numbers_and_zero_is_none() {
        let block = json!({
            "mode": "enforce", "pruneAfter": "36h", "pruneDays": 9, "maxEntries": 7, "rotateBytes": 0,
            "resetArchiveRetention": false, "maxDiskBytes": "1gb",
        });
        let block = read(&block).unwrap();
        assert_eq!(block.mode, MaintenanceMode::Enforce);
        assert_eq!(block.prune_after_ms(), Some(36 * 3_600_000));
        assert_eq!(
            (block.max_entries(), block.rotate_bytes(), block.archive_retention_ms()),
            (7, None, None)
        );
        assert_eq!(
            (block.max_disk_bytes(), block.high_water_bytes()),
            (Some(1 << 30), Some((1 << 30) / 5 * 4))
        );
        let rows = [
            (json!({"pruneDays": 2}), Some(2 * DAY_MS), Some(2 * DAY_MS)),
            (json!({"pruneAfter": 3}), Some(3 * DAY_MS), Some(3 * DAY_MS)),
            (json!({"pruneAfter": 0, "resetArchiveRetention": "1d"}), None, Some(DAY_MS)),
        ];
        for (block, prune, retain) in rows {
            let read = read(&block).unwrap();
            assert_eq!((read.prune_after_ms(), read.archive_retention_ms()), (prune, retain), "{block}");
        }
    }

    #[test]
    fn what_is_no_limit_is_named() {
        let rows = [
            (json!({"pruneAfter": "soon"}), "session.maintenance.pruneAfter"),
            (json!({"resetArchiveRetention": "x"}), "session.maintenance.resetArchiveRetention"),
            (json!({"resetArchiveRetention": true}), "session.maintenance.resetArchiveRetention"),
            (json!({"maxDiskBytes": "many"}), "session.maintenance.maxDiskBytes"),
            (json!({"mode": "delete"}), "session.maintenance.mode"),
            (json!({"prune": 1}), "session.maintenance"),
            (json!({"maxEntries": 0}), "session.maintenance.maxEntries"),
        ];
        for (block, path) in rows {
            let issues = read(&block).unwrap_err();
            assert!(issues.iter().any(|issue| issue.starts_with(path)), "{block}: {issues:?}");
        }
    }
}
