//! Order in which the profiles of a provider are tried (spec `models.md` §8.2).

use openclaw_config::settings::AuthMode;
use secrecy::{ExposeSecret, SecretString};

use super::credential::{Credential, Secret};
use super::store::AuthStore;
use crate::reference::ProviderId;
use crate::settings::ModelSettings;

/// The usable profiles of a provider at `now` (Unix milliseconds). Profiles in cooldown come last,
/// the soonest back first.
pub fn profile_order(
    provider: &ProviderId,
    store: &AuthStore,
    settings: &ModelSettings,
    preferred: Option<&str>,
    now: i64,
) -> Vec<String> {
    let explicit = explicit_order(provider, store, settings);
    let base = explicit.clone().unwrap_or_else(|| all_profiles(provider, store, settings));
    let mut usable: Vec<String> = Vec::new();
    for id in base {
        if !usable.contains(&id) && is_usable(&id, provider, store, settings, now) {
            usable.push(id);
        }
    }
    let (mut ready, mut cooling_down): (Vec<_>, Vec<_>) =
        usable.into_iter().partition(|id| !store.usage(id).is_cooling_down(now));
    if explicit.is_none() {
        ready.sort_by_key(|id| (kind_rank(store.get(id)), store.usage(id).last_used.unwrap_or(0)));
    }
    cooling_down.sort_by_key(|id| store.usage(id).unusable_until(now));
    ready.extend(cooling_down);
    if let Some(at) = preferred.and_then(|wanted| ready.iter().position(|id| id == wanted)) {
        let first = ready.remove(at);
        ready.insert(0, first);
    }
    ready
}

fn explicit_order(provider: &ProviderId, store: &AuthStore, settings: &ModelSettings) -> Option<Vec<String>> {
    let configured = || {
        let found = settings.auth_order.iter().find(|(id, _)| ProviderId::normalize(id) == *provider);
        found.map(|(_, ids)| ids.clone())
    };
    store.order(provider).map(<[String]>::to_vec).or_else(configured)
}

/// The ids the configuration names, else all of the store.
fn all_profiles(provider: &ProviderId, store: &AuthStore, settings: &ModelSettings) -> Vec<String> {
    let named: Vec<String> = settings
        .auth_profiles
        .iter()
        .filter(|(_, profile)| ProviderId::normalize(&profile.provider) == *provider)
        .map(|(id, _)| id.clone())
        .collect();
    if !named.is_empty() {
        return named;
    }
    let of_provider = store.profiles().filter(|(_, credential)| credential.provider == *provider);
    of_provider.map(|(id, _)| id.to_owned()).collect()
}

fn is_usable(id: &str, provider: &ProviderId, store: &AuthStore, settings: &ModelSettings, now: i64) -> bool {
    let Some(credential) = store.get(id).filter(|credential| credential.provider == *provider) else {
        return false;
    };
    let agrees = settings.auth_profiles.get(id).is_none_or(|profile| {
        let mode_fits = match (profile.mode, &credential.secret) {
            (AuthMode::ApiKey, Secret::ApiKey(_))
            | (AuthMode::Token | AuthMode::Oauth, Secret::Token { .. })
            | (AuthMode::Oauth, Secret::OAuth { .. }) => true,
            (AuthMode::ApiKey | AuthMode::Token | AuthMode::Oauth, _) => false,
        };
        ProviderId::normalize(&profile.provider) == *provider && mode_fits
    });
    agrees && holds_something(credential, now)
}

fn holds_something(credential: &Credential, now: i64) -> bool {
    let some = |secret: &SecretString| !secret.expose_secret().trim().is_empty();
    match &credential.secret {
        Secret::ApiKey(key) => some(key),
        Secret::Token { token, expires } => some(token) && expires.is_none_or(|at| now < at),
        Secret::OAuth { access, refresh, .. } => some(access) || some(refresh),
    }
}

fn kind_rank(credential: Option<&Credential>) -> u8 {
    match credential.map(|credential| &credential.secret) {
        Some(Secret::OAuth { .. }) => 0,
        Some(Secret::Token { .. }) => 1,
        Some(Secret::ApiKey(_)) | None => 2,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use openclaw_config::settings::AuthProfile;

    const NOW: i64 = 1_000_000;

    fn store(document: &Value) -> AuthStore {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(super::super::file::FILE), document.to_string()).unwrap();
        AuthStore::load(dir.path()).unwrap()
    }

    fn key(provider: &str) -> Value {
        json!({"type": "api_key", "provider": provider, "key": "k"})
    }

    fn oauth(provider: &str) -> Value {
        json!({"type": "oauth", "provider": provider, "access": "a", "refresh": "r", "expires": 1})
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
    fn check(document: Value, order: &[(&str, &[&str])], preferred: Option<&str>, expect: &[&str]) {
        let order = order
            .iter()
            .map(|(provider, ids)| ((*provider).to_owned(), ids.iter().map(|id| (*id).to_owned()).collect()))
            .collect();
        let settings = ModelSettings { auth_order: order, ..ModelSettings::default() };
        let provider = if document.to_string().contains("zai") { "zai" } else { "anthropic" };
        let found =
            profile_order(&ProviderId::normalize(provider), &store(&document), &settings, preferred, NOW);
        assert_eq!(found, expect, "{document}");
    }

    /// Vectors of `models.md` §8.2.
    #[test]
    fn profiles_are_ordered_as_the_spec_lists() {
        let used = |rows: &[(&str, i64)]| -> Value {
            rows.iter()
                .map(|(id, at)| ((*id).to_owned(), json!({"lastUsed": at})))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let two = json!({"work": key("anthropic"), "default": key("anthropic")});
        check(
            json!({"profiles": two, "usageStats": used(&[("work", 200), ("default", 100)]), "lastGood": {"anthropic": "work"}}),
            &[],
            None,
            &["default", "work"],
        );
        check(
            json!({"profiles": {"default": key("anthropic"), "work": oauth("anthropic")}}),
            &[],
            None,
            &["work", "default"],
        );
        check(
            json!({"profiles": {"a": oauth("anthropic"), "b": oauth("anthropic"), "c": key("anthropic")},
                "usageStats": used(&[("a", 300), ("b", 100), ("c", 50)])}),
            &[],
            None,
            &["b", "a", "c"],
        );
        check(json!({"profiles": two}), &[("anthropic", &["work", "default"])], None, &["work", "default"]);
        check(
            json!({"profiles": two, "usageStats": {"default": {"cooldownUntil": NOW + 60_000}}}),
            &[("anthropic", &["default", "work"])],
            None,
            &["work", "default"],
        );
        check(
            json!({"profiles": {"zai:work": key("zai"), "zai:b": key("z.ai")}}),
            &[("z.ai", &["zai:work", "zai:b"])],
            None,
            &["zai:work", "zai:b"],
        );
        check(
            json!({"profiles": {"old": {"type": "token", "provider": "anthropic", "token": "t", "expires": NOW - 1},
                "new": {"type": "token", "provider": "anthropic", "token": "t", "expires": NOW + 1}}}),
            &[],
            None,
            &["new"],
        );
        check(json!({"profiles": two}), &[], Some("default"), &["default", "work"]);
        check(
            json!({"profiles": two, "order": {"anthropic": ["default"]}}),
            &[("anthropic", &["work"])],
            None,
            &["default"],
        );
    }

    /// The rules of `models.md` §8.2 that its vectors leave out.
    #[test]
    fn what_is_in_cooldown_comes_last_by_its_end_and_what_is_unusable_not_at_all() {
        let profiles = json!({"a": key("anthropic"), "b": key("anthropic"), "c": key("anthropic"), "d": oauth("anthropic")});
        let rest = json!({"a": {"cooldownUntil": NOW + 9}, "b": {"disabledUntil": NOW + 5}, "d": {"cooldownUntil": NOW + 7}});
        let stored = json!({"profiles": profiles, "usageStats": rest});
        check(stored.clone(), &[], None, &["c", "b", "d", "a"]);
        check(stored, &[("anthropic", &["a", "c", "b", "d", "a"])], None, &["c", "b", "d", "a"]);
        let token = |text: &str| json!({"type": "token", "provider": "anthropic", "token": text});
        let login = |access: &str, refresh: &str| json!({"type": "oauth", "provider": "anthropic", "access": access, "refresh": refresh, "expires": 1});
        check(
            json!({"profiles": {"key": key("anthropic"), "token": token("t"), "blank": token(" "),
                "renewable": login("", "r"), "empty": login("", "")}}),
            &[],
            None,
            &["renewable", "token", "key"],
        );
    }

    #[test]
    fn the_configuration_may_name_profiles_and_their_mode() {
        let store = store(&json!({"profiles": {
            "a": key("anthropic"), "b": oauth("anthropic"),
            "t": {"type": "token", "provider": "anthropic", "token": "t"}, "blank": {"type": "api_key", "provider": "anthropic", "key": " "}, "elsewhere": key("anthropic")}}));
        let profile = |mode| AuthProfile { provider: "anthropic".to_owned(), mode };
        let settings = ModelSettings {
            auth_profiles: [
                ("a".to_owned(), profile(AuthMode::Oauth)),
                ("t".to_owned(), profile(AuthMode::Oauth)),
                ("blank".to_owned(), profile(AuthMode::ApiKey)),
                ("gone".to_owned(), profile(AuthMode::ApiKey)),
                (
                    "elsewhere".to_owned(),
                    AuthProfile { provider: "openai".to_owned(), mode: AuthMode::ApiKey },
                ),
            ]
            .into(),
            ..ModelSettings::default()
        };
        let found = profile_order(&ProviderId::normalize("anthropic"), &store, &settings, None, NOW);
        assert_eq!(found, ["t"]);
    }

    proptest::proptest! {
        /// Each profile appears once, those in cooldown come last, and a preferred one only moves to the front.
        #[test]
        fn the_order_is_a_permutation_with_those_in_cooldown_last(
            rows in proptest::collection::btree_map("[a-f]", (0..3_usize, 0..5_i64, proptest::bool::ANY), 0..6),
            order in proptest::option::of(proptest::collection::vec("[a-g]", 0..6)),
            preferred in proptest::option::of("[a-g]"),
        ) {
            let entry = |kind: usize| match kind {
                0 => key("groq"),
                1 => oauth("groq"),
                _ => json!({"type": "token", "provider": "groq", "token": "t"}),
            };
            let profiles: serde_json::Map<_, _> = rows.iter().map(|(id, row)| (id.clone(), entry(row.0))).collect();
            let usage: serde_json::Map<_, _> = rows.iter().map(|(id, row)| {
                let until = if row.2 { NOW + 1 + row.1 } else { NOW };
                (id.clone(), json!({"lastUsed": row.1, "cooldownUntil": until}))
            }).collect();
            let mut document = json!({"profiles": profiles, "usageStats": usage});
            if let Some(order) = &order {
                document["order"] = json!({"groq": order});
            }
            let (store, settings) = (store(&document), ModelSettings::default());
            let provider = ProviderId::normalize("groq");
            let plain = profile_order(&provider, &store, &settings, None, NOW);
            let mut sorted = plain.clone();
            sorted.sort();
            let mut expect: Vec<String> = match &order {
                Some(order) => order.iter().filter(|id| rows.contains_key(*id)).cloned().collect(),
                None => rows.keys().cloned().collect(),
            };
            expect.sort();
            expect.dedup();
            proptest::prop_assert_eq!(sorted, expect);
            let cooling_down: Vec<bool> = plain.iter().map(|id| store.usage(id).is_cooling_down(NOW)).collect();
            proptest::prop_assert!(cooling_down.is_sorted());
            let preferring = profile_order(&provider, &store, &settings, preferred.as_deref(), NOW);
            let mut without = preferring;
            if let Some(wanted) = preferred.filter(|wanted| plain.contains(wanted)) {
                proptest::prop_assert_eq!(&without.remove(0), &wanted);
                let rest: Vec<String> = plain.into_iter().filter(|id| *id != wanted).collect();
                proptest::prop_assert_eq!(without, rest);
            } else {
                proptest::prop_assert_eq!(without, plain);
            }
        }
    }
}
