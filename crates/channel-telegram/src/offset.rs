//! Offset up to which an account has read: `<state>/telegram/update-offset-<account>.json`, which
//! OpenClaw 2026.2.9 reads too.

use std::path::{Path, PathBuf};

use openclaw_config::private_file::{Durability, replace};
use serde::{Deserialize, Serialize};

use crate::api_root::ApiRoot;
use crate::update::LAST_NUMBER;

/// The file. `botId`, `savedAt` and `apiRoot` are ours; OpenClaw leaves them out and ignores them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredOffset {
    version: u32,
    last_update_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bot_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saved_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_root: Option<String>,
}

/// The last update that was taken, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// Update id.
    pub(super) update: i64,
    /// Unix milliseconds.
    pub(super) at: i64,
}

/// The file of one account.
#[derive(Debug, Clone)]
pub(super) struct OffsetFile {
    path: PathBuf,
    bot: i64,
    root: String,
}

impl OffsetFile {
    /// The file of an account of a bot at a Bot API server. The offset of another bot means nothing
    /// for this one, and another server may number otherwise: asked from the beginning, it brings
    /// what was not confirmed, and the inbox knows what of that it had.
    pub(super) fn new(state_dir: &Path, account: &str, bot: i64, root: &ApiRoot) -> Self {
        let path = state_dir.join("telegram").join(file_name("update-offset", account));
        Self { path, bot, root: root.as_str().to_owned() }
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the offset; `None` if there is none for this bot. Blocking.
    pub(super) fn read(&self) -> Option<Taken> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let Ok(stored) = serde_json::from_str::<StoredOffset>(&text) else {
            tracing::warn!(path = %self.path.display(), "the file can't be read; updates are asked for from the beginning");
            return None;
        };
        if stored.version != 1 || stored.bot_id.is_some_and(|bot| bot != self.bot) {
            return None;
        }
        if stored.api_root.is_some_and(|root| root != self.root) {
            tracing::info!(path = %self.path.display(), "another Bot API server was read from before; this one is asked from the beginning");
            return None;
        }
        let at = stored.saved_at.or_else(|| modified(&self.path)).unwrap_or_default();
        stored.last_update_id.filter(|id| (0..=LAST_NUMBER).contains(id)).map(|update| Taken { update, at })
    }

    /// Writes it. Blocking. Not synced: after a power cut some updates come again, and the inbox knows them.
    pub(super) fn write(&self, taken: Taken) -> std::io::Result<()> {
        let stored = StoredOffset {
            version: 1,
            last_update_id: Some(taken.update),
            bot_id: Some(self.bot),
            saved_at: Some(taken.at),
            api_root: Some(self.root.clone()),
        };
        let mut text = serde_json::to_vec_pretty(&stored)?;
        text.push(b'\n');
        replace(&self.path, &text, Durability::Renewable)
    }
}

/// The name of a file of an account.
pub(super) fn file_name(kind: &str, account: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    format!("{kind}-{}.json", account.chars().map(plain).collect::<String>())
}

fn modified(path: &Path) -> Option<i64> {
    let time = std::fs::metadata(path).ok()?.modified().ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    fn root(text: Option<&str>) -> ApiRoot {
        ApiRoot::find(text, &Environment::default()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_by_the_same_bot_at_the_same_server_only() {
        let dir = tempfile::tempdir().unwrap();
        let (here, elsewhere) = (root(None), root(Some("https://a.example")));
        let file = OffsetFile::new(dir.path(), "my/bot", 7, &here);
        assert_eq!(file.read(), None);
        file.write(Taken { update: 42, at: 5 }).unwrap();
        assert_eq!(file.read(), Some(Taken { update: 42, at: 5 }));
        assert_eq!(OffsetFile::new(dir.path(), "my/bot", 8, &here).read(), None);
        assert_eq!(OffsetFile::new(dir.path(), "my/bot", 7, &elsewhere).read(), None);
        let text = std::fs::read_to_string(dir.path().join("telegram/update-offset-my_bot.json")).unwrap();
        assert_eq!(
            text,
            "{\n  \"version\": 1,\n  \"lastUpdateId\": 42,\n  \"botId\": 7,\n  \"savedAt\": 5,\n  \"apiRoot\": \"https://api.telegram.org\"\n}\n"
        );
    }

    #[test]
    fn a_file_of_openclaw_counts_and_a_broken_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = OffsetFile::new(dir.path(), "default", 7, &root(None));
        std::fs::create_dir(dir.path().join("telegram")).unwrap();
        let rows = [
            (r#"{"version":1,"lastUpdateId":9}"#, Some(9)),
            (r#"{"version":1,"lastUpdateId":9223372036854775807}"#, None),
            (r#"{"version":2,"lastUpdateId":9}"#, None),
            (r#"{"version":1,"lastUpdateId":null}"#, None),
            (r#"{"version":1,"lastUpd"#, None),
        ];
        for (text, expect) in rows {
            std::fs::write(dir.path().join("telegram/update-offset-default.json"), text).unwrap();
            assert_eq!(file.read().map(|taken| taken.update), expect, "{text}");
        }
    }
}
