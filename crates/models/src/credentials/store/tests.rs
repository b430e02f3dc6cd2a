use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::super::credential::{Secret, pasted_secret};
use super::*;

const NOW: i64 = 1_760_000_000_000;

fn provider(id: &str) -> ProviderId {
    ProviderId::normalize(id)
}

fn key(of: &str, key: &str) -> Credential {
    Credential::new(provider(of), Secret::ApiKey(pasted_secret(key)))
}

fn written(store: &AuthStore) -> Value {
    serde_json::from_str(&store.text()).unwrap()
}

#[test]
fn profiles_are_read_and_odd_ones_passed_over() {
    let text = r#"{"version":1,"profiles":{
        "z.ai:a":{"type":"api_key","provider":"Z.AI","key":"k"},
        "t":{"type":"token","provider":"anthropic","token":"t","expires":0},
        "o":{"type":"oauth","provider":"openai-codex","access":"a","refresh":"r","expires":1760000000000.0},
        "new":{"type":"passkey","provider":"x"},
        "bare":{"type":"api_key","key":"k"},
        "odd":[1]},
        "order":{"z.ai":["z.ai:a", 7],"broken":7},
        "lastGood":{"Z.AI":"z.ai:a"},
        "usageStats":{"odd":5,"t":{"lastUsed":5,"cooldownUntil":7,"disabledUntil":9,"failureCounts":{"auth":1}}}}"#;
    let store = AuthStore::parse(text.as_bytes()).unwrap();
    let ids: Vec<_> = store.profiles().map(|(id, c)| format!("{id}={}", c.provider)).collect();
    assert_eq!(ids, ["z.ai:a=zai", "t=anthropic", "o=openai-codex"]);
    assert!(matches!(store.get("t").unwrap().secret, Secret::Token { expires: None, .. }));
    assert!(matches!(store.get("o").unwrap().secret, Secret::OAuth { expires: Some(1_760_000_000_000), .. }));
    assert_eq!(store.order(&provider("zai")), Some(["z.ai:a".to_owned()].as_slice()));
    assert_eq!(store.last_good(&provider("zai")), Some("z.ai:a"));
    assert_eq!(store.usage("t").unusable_until(5), 9);
    assert_eq!(store.usage("z.ai:a"), UsageStats::default());
    assert!(!format!("{store:?}").contains("\"k\""));
}

#[test]
fn a_section_that_is_no_object_is_damage() {
    for text in ["{\"profiles\": []}", "[]", "{\"order\": 1}", "{\"usageStats\": \"x\"}"] {
        assert_eq!(AuthStore::parse(text.as_bytes()).unwrap_err(), 0, "{text}");
    }
}

#[test]
fn writing_keeps_what_is_unknown() {
    let text = r#"{"version":1,"later":{"x":1},"profiles":{"new":{"type":"passkey","provider":"x"}}}"#;
    let mut store = AuthStore::parse(text.as_bytes()).unwrap();
    store.put("groq:default", key("Groq", " sk-\n1 \n"));
    assert_eq!(
        written(&store),
        json!({"version":1,"later":{"x":1},"profiles":{
            "new":{"type":"passkey","provider":"x"},
            "groq:default":{"type":"api_key","provider":"groq","key":"sk-1"}}})
    );
    let again = AuthStore::parse(store.text().as_bytes()).unwrap();
    let Secret::ApiKey(key) = &again.get("groq:default").unwrap().secret else { panic!() };
    assert_eq!(key.expose_secret(), "sk-1");
}

#[test]
fn an_order_replaces_every_spelling_of_its_provider() {
    let mut store =
        AuthStore::parse(br#"{"order":{"z.ai":["a"],"Z.AI":["b"],"groq":["g"]},"profiles":{}}"#).unwrap();
    store.set_order(&provider("zai"), Some(vec!["c".to_owned()]));
    assert_eq!(written(&store)["order"], json!({"groq":["g"],"zai":["c"]}));
    store.set_order(&provider("z.ai"), None);
    assert_eq!(
        (written(&store)["order"].clone(), store.order(&provider("zai"))),
        (json!({"groq":["g"]}), None)
    );
    store.set_order(&provider("groq"), None);
    assert_eq!(written(&store).get("order"), None);
    let before = store.text();
    store.set_order(&provider("groq"), None);
    assert_eq!(store.text(), before);
}

#[test]
fn success_and_failure_are_written_beside_what_others_wrote() {
    let mut store = AuthStore::parse(
        br#"{"profiles":{"a":{"type":"api_key","provider":"groq","key":"k"}},"usageStats":{"a":{"later":1}}}"#,
    )
    .unwrap();
    let rules = CooldownRules::default();
    assert!(store.record_failure("a", FailureKind::RateLimit, &rules, NOW));
    assert!(!store.record_failure("a", FailureKind::Format, &rules, NOW));
    assert!(!store.record_failure("gone", FailureKind::RateLimit, &rules, NOW));
    let stats = json!({"later": 1, "errorCount": 1, "cooldownUntil": NOW + 60_000,
        "failureCounts": {"rate_limit": 1}, "lastFailureAt": NOW});
    assert_eq!(written(&store)["usageStats"]["a"], stats);
    store.record_success("a", NOW + 1);
    assert_eq!(written(&store)["usageStats"]["a"], json!({"later": 1, "errorCount": 0, "lastUsed": NOW + 1}));
    assert_eq!(written(&store)["lastGood"], json!({"groq": "a"}));
}

#[test]
fn a_new_secret_does_not_inherit_the_failures_of_the_old_one() {
    let mut store = AuthStore::default();
    store.put("a", key("groq", "old"));
    store.record_failure("a", FailureKind::Billing, &CooldownRules::default(), NOW);
    store.put("a", key("groq", "old"));
    assert!(store.usage("a").is_cooling_down(NOW));
    store.put("a", key("groq", "new"));
    assert!(!store.usage("a").is_cooling_down(NOW));
}

#[test]
fn the_rounds_go_on_when_the_clock_was_set_back() {
    let mut store = AuthStore::default();
    for id in ["a", "b"] {
        store.put(id, key("groq", id));
    }
    store.record_success("a", NOW);
    store.record_success("b", NOW - 3_600_000);
    assert!(store.usage("b").last_used > store.usage("a").last_used);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    /// Whatever else is in the file, it is there after a profile, an order and a use were written.
    #[test]
    fn nothing_unknown_is_ever_lost(
        tops in prop::collection::btree_map("x[a-z]{0,4}", any_json(), 0..4),
        odd in prop::collection::btree_map("y[a-z]{0,4}", any_json(), 0..4),
        id in "[a-z]{1,5}",
    ) {
        let mut document = json!(tops);
        document["profiles"] = json!(odd);
        let mut store = AuthStore::parse(document.to_string().as_bytes()).unwrap();
        store.put(&id, key("groq", "k"));
        store.set_order(&provider("groq"), Some(vec![id.clone()]));
        store.record_success(&id, NOW);
        let after = written(&store);
        for (name, value) in &tops {
            prop_assert_eq!(&after[name], value);
        }
        for (name, value) in odd.iter().filter(|(name, _)| **name != id) {
            prop_assert_eq!(&after["profiles"][name], value);
        }
        let again = AuthStore::parse(store.text().as_bytes()).unwrap();
        prop_assert_eq!(again.text(), store.text());
        prop_assert_eq!(again.usage(&id), store.usage(&id));
        prop_assert_eq!(again.order(&provider("groq")).map(<[String]>::to_vec), Some(vec![id]));
    }

    /// No input is a panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = AuthStore::parse(&bytes);
    }
}
