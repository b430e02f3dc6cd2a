//! Protections: a run that would have to do without one that the config asks for does not begin.

use openclaw_config::settings::Exec;
use openclaw_journal::intent::ExecWish;
use openclaw_runtime::setup::Settings;
use openclaw_sessions::key::KeyForm;
use openclaw_sessions::{SessionEntry, SessionKey};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::NotBegun;

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

/// Returns the settings of `exec` in a session: the row's override the agent's (spec `tools.md`
/// §3).
pub(crate) fn exec_of(entry: &SessionEntry, agent: &Exec) -> Exec {
    let own = Exec {
        host: named(entry.exec_host.as_deref()),
        security: named(entry.exec_security.as_deref()),
        ask: named(entry.exec_ask.as_deref()),
        ..Exec::default()
    };
    own.over(agent)
}

/// Applies a message's request for its run to the settings.
pub(super) fn exec_with(wish: &ExecWish, settled: &Exec) -> Exec {
    let own = Exec {
        host: named(wish.host.as_deref()),
        security: named(wish.security.as_deref()),
        ask: named(wish.ask.as_deref()),
        ..Exec::default()
    };
    own.over(settled)
}

/// The setting of this name; a row that was edited by hand may hold anything.
fn named<'a, T: Deserialize<'a>>(name: Option<&'a str>) -> Option<T> {
    let name: StrDeserializer<'a, Error> = name?.into_deserializer();
    T::deserialize(name).ok()
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::{Config, ExecGate};
    use openclaw_config::unmet_protections;
    use serde_json::{Value, json};

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

    #[test]
    fn a_row_says_how_exec_works_in_its_session() {
        let entry = |row: Value| serde_json::from_value::<SessionEntry>(row).unwrap();
        let open = Exec::default();
        let denied = entry(json!({"execSecurity": "deny"}));
        for (row, gate) in [
            (&entry(json!({})), ExecGate::Open),
            (&denied, ExecGate::Denied),
            (&entry(json!({"execAsk": "on-miss"})), ExecGate::NeedsApproval),
            (&entry(json!({"execHost": "node"})), ExecGate::NeedsNode),
            (&entry(json!({"execHost": "no such"})), ExecGate::Open),
        ] {
            assert_eq!(exec_of(row, &open).gate(), gate, "{row:?}");
        }
        assert_eq!(exec_of(&entry(json!({})), &exec_of(&denied, &open)).gate(), ExecGate::Denied);
    }
}
