//! Settings of `exec` in a session: those of its agent, with the session's overrides and a message's wish (spec `tools.md` §3).

use openclaw_config::settings::Exec;
use openclaw_journal::intent::ExecWish;
use openclaw_sessions::SessionEntry;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

/// Returns the settings of `exec` in a session: the row's override the agent's (spec `tools.md`
/// §3).
pub fn exec_of(entry: &SessionEntry, agent: &Exec) -> Exec {
    let own = Exec {
        host: named(entry.exec_host.as_deref()),
        security: named(entry.exec_security.as_deref()),
        ask: named(entry.exec_ask.as_deref()),
        ..Exec::default()
    };
    own.over(agent)
}

/// Applies a message's request for its run to the settings.
pub fn exec_with(wish: &ExecWish, settled: &Exec) -> Exec {
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
    use openclaw_config::settings::ExecGate;
    use serde_json::{Value, json};

    use super::*;

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
