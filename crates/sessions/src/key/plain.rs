//! Keys of a store that are canonical already, as nearly all are: they are shared with the row instead of made anew.

use std::sync::Arc;

use super::{DM_SEGMENTS, KeyRules, MAX_KEY_BYTES, SessionKey};

impl KeyRules {
    /// The key a stored text is without any change. Nothing when it takes a closer look
    /// ([`super::legacy::canonicalize`]), canonical or not.
    pub(crate) fn plainly(&self, stored: &Arc<str>) -> Option<SessionKey> {
        let tail = stored.strip_prefix("agent:")?;
        let (agent, rest) = tail.split_once(':')?;
        let is_plain = |byte: u8| matches!(byte, b'!'..=b'~') && !byte.is_ascii_uppercase();
        let [_, direct] = DM_SEGMENTS;
        let fits = stored.len() <= MAX_KEY_BYTES
            && is_plain_agent(agent)
            && rest != "main"
            && rest != self.main_key
            && rest.bytes().all(is_plain)
            && rest.split(':').all(|part| !part.is_empty() && part != direct);
        fits.then(|| SessionKey(Arc::clone(stored)))
    }
}

fn is_plain_agent(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    id.len() <= 64 && id.bytes().all(plain) && id.starts_with(|c: char| c.is_ascii_alphanumeric())
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
