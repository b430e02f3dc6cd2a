//! Settings that lie over the config file until the process ends (`/debug`): nothing of them is written.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::{Config, InvalidConfig, Loaded, value_path};

/// The settings of one process. Leaf data: nothing waits under its lock.
#[derive(Debug, Default)]
pub struct Overrides {
    /// Values by path, in the order in which they were set.
    set: Mutex<Vec<(Vec<String>, Value)>>,
}

impl Overrides {
    /// Lays a value over a path, if the whole is valid then.
    ///
    /// # Errors
    /// Returns the issues that the change would cause; nothing was changed.
    pub fn set(&self, loaded: &Loaded, path: &[String], value: Value) -> Result<(), InvalidConfig> {
        let mut set = self.set.lock();
        let mut next: Vec<_> = set.iter().filter(|(known, _)| !known.starts_with(path)).cloned().collect();
        next.push((path.to_vec(), value));
        laid_over(loaded, &next).config()?;
        *set = next;
        Ok(())
    }

    /// Takes away what lies over a path and below it. `false`: nothing did.
    pub fn unset(&self, path: &[String]) -> bool {
        let mut set = self.set.lock();
        let before = set.len();
        set.retain(|(known, _)| !known.starts_with(path));
        set.len() < before
    }

    /// Takes all away. `false`: there was none.
    pub fn reset(&self) -> bool {
        !std::mem::take(&mut *self.set.lock()).is_empty()
    }

    /// All of them as one document.
    pub fn shown(&self) -> Value {
        let mut document = Value::Object(Map::new());
        for (path, value) in self.set.lock().iter() {
            value_path::set(&mut document, path, value.clone());
        }
        document
    }

    /// The config with them.
    ///
    /// # Errors
    /// When the file is not valid, with them or by itself.
    pub fn over(&self, loaded: &Loaded) -> Result<Arc<Config>, InvalidConfig> {
        let set = self.set.lock();
        if set.is_empty() {
            return loaded.config().cloned();
        }
        laid_over(loaded, &set).config().cloned()
    }
}

fn laid_over(loaded: &Loaded, set: &[(Vec<String>, Value)]) -> Loaded {
    let mut document = loaded.snapshot.parsed.clone();
    for (path, value) in set {
        value_path::set(&mut document, path, value.clone());
    }
    loaded.with(&document)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Environment, load};

    #[test]
    fn they_lie_over_the_file_and_leave_it_alone() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".openclaw")).unwrap();
        let file = home.path().join(".openclaw/openclaw.json");
        std::fs::write(&file, r#"{"messages": {"responsePrefix": "a", "queue": {"mode": "steer"}}}"#)
            .unwrap();
        let home_text = home.path().display().to_string();
        let loaded = load(&Environment::new([("HOME", home_text.as_str())], home.path()));
        let overrides = Overrides::default();
        let path = |text: &str| value_path::parse_path(text).unwrap();
        let prefix = |config: &Config| config.document()["messages"]["responsePrefix"].clone();
        overrides.set(&loaded, &path("messages.responsePrefix"), json!("b")).unwrap();
        let config = overrides.over(&loaded).unwrap();
        assert_eq!(prefix(&config), "b");
        assert_eq!(config.document()["messages"]["queue"]["mode"], "steer", "what is beside it stays");
        let wrong = overrides.set(&loaded, &path("messages.queue.mode"), json!(7)).unwrap_err();
        assert!(wrong.issues.iter().any(|issue| issue.path.starts_with("messages.queue")), "{wrong}");
        assert_eq!(overrides.shown(), json!({"messages": {"responsePrefix": "b"}}));
        assert!(overrides.unset(&path("messages")) && !overrides.unset(&path("messages")));
        assert_eq!(prefix(&overrides.over(&loaded).unwrap()), "a");
        overrides.set(&loaded, &path("messages.responsePrefix"), json!("c")).unwrap();
        assert!(overrides.reset() && !overrides.reset());
        assert!(std::fs::read_to_string(&file).unwrap().contains(r#""responsePrefix": "a""#));
    }
}
