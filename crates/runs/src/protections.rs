//! Protections: a run that would have to do without one that the config asks for does not begin.

use openclaw_runtime::setup::Settings;
use openclaw_sessions::key::KeyForm;
use openclaw_sessions::{SessionEntry, SessionKey};

use crate::not_begun::NotBegun;

/// Checks that the run may begin. `entry` is its session's row, if it has one.
pub(super) fn check(
    settings: &Settings,
    key: &SessionKey,
    entry: Option<&SessionEntry>,
) -> Result<(), NotBegun> {
    if settings.unmet.is_empty() {
        return Ok(());
    }
    let spawner = entry.and_then(|entry| SessionKey::parse(entry.spawned_by.as_deref()?).ok());
    let groups: Vec<&str> =
        [Some(key), spawner.as_ref()].into_iter().flatten().filter_map(group_channel).collect();
    match settings.unmet.iter().find(|unmet| unmet.refuses_run(&groups)) {
        Some(unmet) => Err(NotBegun::because(format!("Error: the run did not begin. {unmet}"))),
        None => Ok(()),
    }
}

fn group_channel(key: &SessionKey) -> Option<&str> {
    match key.form() {
        KeyForm::Group { channel, .. } | KeyForm::Channel { channel, .. } => Some(channel),
        KeyForm::Direct { .. } | KeyForm::CronRun { .. } | KeyForm::Opened(..) | KeyForm::Named(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::Config;
    use openclaw_config::unmet_protections;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_groups_tool_policy_holds_for_what_the_group_spawned() {
        let row = |spawner: &str| serde_json::from_value(json!({"spawnedBy": spawner})).unwrap();
        // The document is only there in a config that was read from a file: the list is given instead.
        let dir = openclaw_config::Environment::new([("HOME", "/home/user")], "/");
        let document = json!({"channels": {"discord": {"guilds": {"-1": {"tools": {"deny": ["exec"]}}}}}});
        let config = Config::from_json5(&document.to_string(), &dir).unwrap();
        let settings = Settings { unmet: unmet_protections(&config).into(), ..Settings::default() };
        let spawned: SessionEntry = row("agent:main:discord:group:-1");
        for (key, entry, begins) in [
            ("agent:main:main", None, true),
            ("agent:main:slack:group:-1", None, true),
            ("agent:main:discord:group:-2", None, false),
            ("agent:main:discord:channel:-2", None, false),
            ("agent:main:subagent:x", Some(&spawned), false),
            ("agent:main:subagent:x", None, true),
        ] {
            let session = SessionKey::parse(key).unwrap();
            assert_eq!(check(&settings, &session, entry).is_ok(), begins, "{key}");
        }
    }
}
