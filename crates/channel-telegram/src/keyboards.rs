//! The buttons below messages of ours: an edit that does not speak of buttons keeps them, and Telegram takes away what an edit does not name.
//! `<state>/telegram/keyboards-<account>.json` is ours alone; without it an edit takes the buttons away.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::clock::now_ms;
use openclaw_config::private_file::{Durability, replace};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::offset::file_name;

/// Messages that are remembered, the newest. Telegram lets bots edit for two days.
const MOST: usize = 1000;
const KEPT_MS: i64 = 2 * 24 * 3600 * 1000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptKeyboard {
    chat: String,
    message: String,
    keyboard: Value,
    at: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct KeyboardFile {
    version: u32,
    messages: Vec<KeptKeyboard>,
}

/// The buttons of one account.
#[derive(Debug, Clone)]
pub(super) struct Keyboards {
    path: PathBuf,
    /// Keyboards in memory; read on first use.
    kept: Arc<Mutex<Option<Vec<KeptKeyboard>>>>,
}

impl Keyboards {
    /// Opens the keyboards of an account.
    pub(super) fn new(state_dir: &Path, account: &str) -> Self {
        let path = state_dir.join("telegram").join(file_name("keyboards", account));
        Self { path, kept: Arc::default() }
    }

    /// The buttons below a message, as it was sent or edited last.
    pub(super) async fn of(&self, chat: &str, message: &str) -> Option<Value> {
        let (own, chat, message) = (self.clone(), chat.to_owned(), message.to_owned());
        let found = tokio::task::spawn_blocking(move || own.with(|kept| find(kept, &chat, &message)));
        found.await.ok().flatten()
    }

    /// A message has these buttons now, or none.
    pub(super) async fn put(&self, chat: &str, message: &str, keyboard: Option<Value>) {
        let own = self.clone();
        let (chat, message) = (chat.to_owned(), message.to_owned());
        let written = tokio::task::spawn_blocking(move || {
            own.with(|kept| {
                change(kept, chat, message, keyboard, now_ms());
                own.write(kept)
            })
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!(path = %self.path.display(), %error, "buttons are forgotten with the next start");
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<KeptKeyboard>) -> T) -> T {
        let mut kept = self.kept.lock();
        work(kept.get_or_insert_with(|| read(&self.path)))
    }

    fn write(&self, kept: &[KeptKeyboard]) -> std::io::Result<()> {
        let text = serde_json::to_vec(&KeyboardFile { version: 1, messages: kept.to_vec() })?;
        replace(&self.path, &text, Durability::Whole)
    }
}

fn read(path: &Path) -> Vec<KeptKeyboard> {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice::<KeyboardFile>(&text).unwrap_or_default().messages
}

fn find(kept: &[KeptKeyboard], chat: &str, message: &str) -> Option<Value> {
    let found = kept.iter().find(|one| one.chat == chat && one.message == message);
    found.map(|one| one.keyboard.clone())
}

fn change(kept: &mut Vec<KeptKeyboard>, chat: String, message: String, keyboard: Option<Value>, now: i64) {
    kept.retain(|one| now - one.at < KEPT_MS && !(one.chat == chat && one.message == message));
    if let Some(keyboard) = keyboard {
        kept.push(KeptKeyboard { chat, message, keyboard, at: now });
    }
    let surplus = kept.len().saturating_sub(MOST);
    kept.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn buttons_are_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let keyboards = Keyboards::new(dir.path(), "default");
        keyboards.put("5", "1", Some(json!({"inline_keyboard": [[]]}))).await;
        keyboards.put("5", "2", Some(json!(2))).await;
        keyboards.put("5", "2", None).await;
        let again = Keyboards::new(dir.path(), "default");
        assert_eq!(again.of("5", "1").await, Some(json!({"inline_keyboard": [[]]})));
        assert_eq!(again.of("5", "2").await, None);
        assert_eq!(Keyboards::new(dir.path(), "other").of("5", "1").await, None);
    }

    #[test]
    fn old_ones_are_forgotten() {
        let mut kept = Vec::new();
        change(&mut kept, "5".to_owned(), "1".to_owned(), Some(json!(1)), 0);
        for at in 0..=MOST {
            change(&mut kept, "6".to_owned(), at.to_string(), Some(json!(1)), 1);
        }
        assert_eq!((kept.len(), find(&kept, "5", "1"), find(&kept, "6", "0")), (MOST, None, None));
        change(&mut kept, "7".to_owned(), "1".to_owned(), Some(json!(1)), KEPT_MS + 1);
        assert_eq!(kept.len(), 1);
    }
}
