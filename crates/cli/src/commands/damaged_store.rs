//! Check that a session store can be read whole. The listing itself takes what can be read of a
//! damaged one, and would call any other file an empty store.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::Path;

use openclaw_config::{json5, shared_place};
use serde::de::IgnoredAny;

use crate::context::CliContext;

/// Problem of a store of the config and who can mend it; `None` where there is none, or no store
/// yet.
pub(super) fn of_configured(context: &CliContext, path: &Path) -> Option<String> {
    let doctor = context.hint_command("openclaw doctor");
    let problem = problem(path)?;
    let what = problem.sentence(path);
    match problem {
        StoreDamage::Missing => None,
        StoreDamage::Unreadable(_) => Some(format!("{what} `{doctor}` says what can be done.")),
        StoreDamage::NoObject => {
            Some(format!("{what} `{doctor}` says what can be done, and `{doctor} --fix` does it."))
        }
    }
}

/// Problem of a file that was named as a store.
pub(super) fn of_named(path: &Path) -> Option<String> {
    Some(problem(path)?.sentence(path))
}

enum StoreDamage {
    Missing,
    Unreadable(io::Error),
    NoObject,
}

impl StoreDamage {
    fn sentence(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Missing => format!("There is no session store at {path}."),
            Self::Unreadable(error) => format!("The session store {path} cannot be read: {error}."),
            Self::NoObject => {
                format!(
                    "The session store {path} is damaged: it is no whole JSON object. What can be read of it is listed."
                )
            }
        }
    }
}

fn problem(path: &Path) -> Option<StoreDamage> {
    match is_object(path) {
        Ok(true) => None,
        Ok(false) => Some(StoreDamage::NoObject),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(StoreDamage::Missing),
        Err(error) => Some(StoreDamage::Unreadable(error)),
    }
}

/// JSON as the gateway writes it, else JSON5 as it reads it.
fn is_object(path: &Path) -> io::Result<bool> {
    match serde_json::from_reader::<_, BTreeMap<String, IgnoredAny>>(BufReader::new(shared_place::open(
        path,
    )?)) {
        Ok(_) => Ok(true),
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) => {
            let bytes = shared_place::read(path)?;
            let text = String::from_utf8_lossy(&bytes);
            Ok(json5::parse_value(text.trim_start_matches('\u{feff}')).is_ok_and(|value| value.is_object()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_object_is_a_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions.json");
        assert!(of_named(&path).unwrap().starts_with("There is no session store at "));
        let rows = [
            ("{}", true),
            ("{\"agent:main:main\": {\"sessionId\": \"a\\ud800\"}}\n", true),
            ("\u{feff}{}", true),
            ("{'agent:main:main': {},} // by hand", true),
            ("", false),
            ("[]", false),
            ("{\"agent:main:main\": {", false),
            ("{} {}", false),
            ("root:x:0:0:root:/root:/bin/sh\n", false),
        ];
        for (text, is_store) in rows {
            std::fs::write(&path, text).unwrap();
            assert_eq!(of_named(&path), (!is_store).then(|| StoreDamage::NoObject.sentence(&path)), "{text}");
        }
        assert!(of_named(dir.path()).unwrap().contains("not a regular file"));
    }
}
