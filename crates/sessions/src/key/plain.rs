//! Keys of a store that are canonical already, as nearly all are: they are shared with the row instead of made anew.

use std::sync::Arc;

use super::{KeyRules, SessionKey};

impl KeyRules {
    /// The key a stored text is without any change. `None` when it takes a closer look
    /// ([`super::legacy::canonicalize`]), canonical or not.
    pub(crate) fn plainly(&self, stored: &Arc<str>) -> Option<SessionKey> {
        SessionKey::plainly(stored).filter(|key| key.rest() != "main" && key.rest() != self.main_key)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::AgentId;
    use proptest::prelude::*;

    use super::super::legacy;
    use super::*;
    use openclaw_protocol::SessionScope;

    fn rules() -> impl Strategy<Value = KeyRules> {
        let scope = prop_oneof![Just(SessionScope::PerSender), Just(SessionScope::Global)];
        let main = prop_oneof![Just("main"), Just("work"), Just("a:b")];
        (main, scope).prop_map(|(main, scope)| KeyRules::new(AgentId::normalize("ops"), main, scope))
    }

    fn keys() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            prop::sample::select(vec![
                "agent", "main", "work", "dm", "direct", "group", "channel", "telegram", "cron", "run",
                "thread", "a", "b", "global", "unknown", "subagent", "", " ", "-1", "X", "é", "1@g.us",
                "node-x", "_x", "a b",
            ])
            .prop_map(str::to_owned),
            "[a-z0-9@+._ -]{0,6}",
        ];
        let parts = prop::collection::vec(part, 0..6);
        (any::<bool>(), parts).prop_map(|(full, parts)| {
            let rest = parts.join(":");
            if full { format!("agent:{rest}") } else { rest }
        })
    }

    proptest! {
        #[test]
        fn a_plain_key_is_what_canonicalisation_makes_of_it(rules in rules(), stored in keys()) {
            let stored: Arc<str> = Arc::from(stored);
            if let Some(key) = rules.plainly(&stored) {
                prop_assert_eq!(key.as_str(), &*stored);
                prop_assert_eq!(legacy::canonicalize(&stored, &AgentId::default(), &rules), Ok(key));
            }
        }
    }

    #[test]
    fn keys_of_today_are_plain() {
        let rules = KeyRules::default();
        for key in
            ["agent:main:telegram:group:-100:topic:5", "agent:main:telegram:dm:7", "agent:ops:subagent:0a-1"]
        {
            assert_eq!(rules.plainly(&Arc::from(key)), SessionKey::parse(key).ok(), "{key}");
        }
    }
}
