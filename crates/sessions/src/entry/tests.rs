use serde_json::{Value, json};

use super::*;

fn entry(value: Value) -> SessionEntry {
    serde_json::from_value(value).unwrap()
}

fn text(entry: &SessionEntry) -> String {
    serde_json::to_string(entry).unwrap()
}

#[test]
fn rows_keep_order_unknown_fields_and_wrong_types() {
    let rows = [
        r#"{"updatedAt":5,"sessionId":"a","later":{"b":1,"a":[2]},"systemSent":true,"model":"m"}"#,
        r#"{"sessionId":"a","thinkingLevel":7,"verboseLevel":"loud","inputTokens":-1,"x":null}"#,
        r#"{"sessionId":null,"updatedAt":"yesterday","label":null}"#,
        r#"{"skillsSnapshot":{"prompt":"p","skills":[{"name":"s"}],"version":0},"origin":{"to":"x","novel":1,"label":"l"}}"#,
        r#"{"deliveryContext":{"threadId":"1.5","channel":"slack"},"lastThreadId":12}"#,
        "{}",
    ];
    for row in rows {
        let read: SessionEntry = serde_json::from_str(row).unwrap();
        assert_eq!(text(&read), row);
    }
}

/// A row with every field of `sessions.md` §3.2.
const EVERY_FIELD: &str = r##"{
  "sessionId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "updatedAt": 1770631932123, "sessionFile": "/d/a.jsonl",
  "spawnedBy": "agent:main:main", "systemSent": true, "abortedLastRun": false, "chatType": "group",
  "thinkingLevel": "xhigh", "verboseLevel": "full", "reasoningLevel": "stream", "elevatedLevel": "off",
  "ttsAuto": "inbound", "execHost": "node", "execSecurity": "allowlist", "execAsk": "on-miss", "execNode": "n1",
  "responseUsage": "tokens", "providerOverride": "p", "modelOverride": "m", "authProfileOverride": "p:me",
  "authProfileOverrideSource": "auto", "authProfileOverrideCompactionCount": 1, "groupActivation": "mention",
  "groupActivationNeedsSystemIntro": true, "sendPolicy": "deny", "queueMode": "steer", "queueDebounceMs": 500,
  "queueCap": 20, "queueDrop": "old", "inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "modelProvider": "p",
  "model": "m", "contextTokens": 200000, "compactionCount": 1, "memoryFlushAt": 4, "memoryFlushCompactionCount": 1,
  "cliSessionIds": {"claude-cli": "c"}, "claudeCliSessionId": "c", "label": "l", "displayName": "slack:#ops",
  "channel": "slack", "groupId": "g1", "subject": "s", "groupChannel": "#ops", "space": "w",
  "origin": {"label": "l", "provider": "slack", "surface": "slack", "chatType": "group", "from": "slack:group:G1",
             "to": "slack:G1", "accountId": "default", "threadId": "1.2"},
  "deliveryContext": {"channel": "slack", "to": "G1", "accountId": "default", "threadId": "1.2"},
  "lastChannel": "slack", "lastTo": "G1", "lastAccountId": "default", "lastThreadId": "1.2",
  "lastHeartbeatText": "h", "lastHeartbeatSentAt": 5,
  "skillsSnapshot": {"prompt": "p", "skills": [{"name": "s", "primaryEnv": "E"}], "resolvedSkills": [], "version": 0},
  "systemPromptReport": {"source": "run"}
}"##;

#[test]
fn every_field_of_the_table_has_a_type() {
    let row: Value = serde_json::from_str(EVERY_FIELD).unwrap();
    let read = entry(row.clone());
    assert_eq!(read.extra, serde_json::Map::new());
    let (origin, delivery) = (read.origin.as_deref().unwrap(), read.delivery_context.as_deref().unwrap());
    assert!(origin.extra.is_empty() && delivery.extra.is_empty());
    assert_eq!(text(&read), row.to_string());
    let ours: Vec<&str> =
        Field::ALL.iter().map(|field| field.name()).filter(|name| row.get(name).is_none()).collect();
    assert_eq!(ours, ["lastInteractionAt", "lastInteractionKnownAt"]);
}

#[test]
fn every_word_of_the_table_is_known() {
    let rows: [(&str, &[&str]); 9] = [
        ("chatType", &["direct", "group", "channel"]),
        ("verboseLevel", &["on", "full", "off"]),
        ("reasoningLevel", &["on", "stream"]),
        ("elevatedLevel", &["on", "off", "ask", "full"]),
        ("ttsAuto", &["always", "inbound", "tagged", "off"]),
        ("responseUsage", &["tokens", "full"]),
        ("authProfileOverrideSource", &["auto", "user"]),
        ("groupActivation", &["mention", "always"]),
        ("sendPolicy", &["allow", "deny"]),
    ];
    for (field, words) in rows {
        for word in words {
            let mut row = entry(json!({field: word}));
            assert!(row.extra.is_empty(), "{field} {word}");
            row.normalize();
            assert_eq!(text(&row), json!({field: word}).to_string());
        }
    }
    assert_eq!(entry(json!({"responseUsage": "on"})).response_usage, Some(ResponseUsage::Tokens));
}

#[test]
fn a_set_field_takes_its_old_place_and_replaces_a_wrong_value() {
    let mut row: SessionEntry =
        serde_json::from_str(r#"{"sessionId":"a","thinkingLevel":7,"x":1,"updatedAt":5}"#).unwrap();
    row.thinking_level = Some("high".into());
    row.label = Some("l".into());
    row.normalize();
    let again: SessionEntry = serde_json::from_str(&text(&row)).unwrap();
    assert_eq!(again, row);
    assert!(again.extra.get("thinkingLevel").is_none());
    assert_eq!(text(&row), r#"{"sessionId":"a","x":1,"updatedAt":5,"thinkingLevel":"high","label":"l"}"#);
}

#[test]
fn changes_carry_a_row_into_another() {
    let rows = [
        json!({"sessionId": "a", "updatedAt": 1, "label": "x", "novel": 1}),
        json!({"sessionId": "b", "updatedAt": 2, "thinkingLevel": 5, "novel": {"a": 1}}),
        json!({"thinkingLevel": "high", "origin": {"label": "o"}}),
        json!({}),
    ];
    for from in &rows {
        for to in &rows {
            let (mut from, to) = (entry(from.clone()), entry(to.clone()));
            let changes = from.changes_to(&to);
            from.apply(&changes);
            assert_eq!(from, to, "{changes:?}");
            assert!(from.changes_to(&to).is_empty());
        }
    }
}

#[test]
fn merge_keeps_what_the_patch_does_not_name() {
    let mut row = entry(json!({"sessionId": "a", "updatedAt": 50, "queueMode": "steer", "label": "x"}));
    let patch = json!({"label": null, "thinkingLevel": "low", "updatedAt": 20, "novel": 1});
    row.merge(patch.as_object().unwrap(), 40);
    let expect =
        json!({"sessionId": "a", "updatedAt": 50, "queueMode": "steer", "thinkingLevel": "low", "novel": 1});
    assert_eq!(row, entry(expect));

    let mut fresh = SessionEntry::default();
    fresh.merge(&serde_json::Map::new(), 7);
    assert_eq!(fresh.updated_at, Some(7));
    assert!(fresh.session_id.is_some());
}

/// Rules of `sessions.md` §3.3.
#[test]
fn merge_takes_the_latest_time_and_the_id_of_the_patch() {
    let rows = [
        (json!({}), 40, ("a", 50)),
        (json!({"updatedAt": 90}), 40, ("a", 90)),
        (json!({"updatedAt": 90}), 95, ("a", 95)),
        (json!({"sessionId": "b"}), 40, ("b", 50)),
        (json!({"sessionId": null, "updatedAt": null}), 40, ("a", 50)),
    ];
    for (patch, now, expect) in rows {
        let mut row = entry(json!({"sessionId": "a", "updatedAt": 50}));
        row.merge(patch.as_object().unwrap(), now);
        let got = (row.session_id.as_ref().unwrap().as_str(), row.updated_at_ms());
        assert_eq!(got, expect, "{patch} {now}");
    }
}

#[test]
fn old_field_names_are_renamed_without_overwriting() {
    let rows = [
        (
            json!({"provider": "slack", "lastProvider": "x", "room": "#r"}),
            json!({"channel": "slack", "lastChannel": "x", "groupChannel": "#r"}),
        ),
        (json!({"provider": "slack", "channel": "discord"}), json!({"channel": "discord"})),
        (json!({"room": 5}), json!({})),
        (json!({"provider": 5}), json!({"provider": 5})),
    ];
    for (old, new) in rows {
        let mut row = entry(old.clone());
        row.rename_legacy_fields();
        assert_eq!(row, entry(new), "{old}");
    }
}

/// Vectors of `sessions.md` §3.8.
#[test]
fn delivery_context_and_last_route_agree() {
    let rows = [
        (
            json!({"channel": "telegram", "lastTo": "1", "deliveryContext": {"channel": "slack", "to": "z", "accountId": "b"}}),
            json!({"channel": "telegram", "lastChannel": "telegram", "lastTo": "1", "lastAccountId": "b",
                   "deliveryContext": {"channel": "telegram", "to": "1", "accountId": "b"}}),
        ),
        (
            json!({"lastChannel": " webchat "}),
            json!({"lastChannel": "webchat", "deliveryContext": {"channel": "webchat"}}),
        ),
        (json!({"deliveryContext": {"to": "  "}, "lastTo": ""}), json!({})),
        (
            json!({"lastChannel": "slack", "lastTo": "C", "lastThreadId": 4.9}),
            json!({"lastChannel": "slack", "lastTo": "C", "lastThreadId": 4,
                   "deliveryContext": {"channel": "slack", "to": "C", "threadId": 4}}),
        ),
    ];
    for (old, new) in rows {
        let mut row = entry(old.clone());
        row.normalize();
        assert_eq!(row, entry(new), "{old}");
    }
}

#[test]
fn a_new_route_drops_the_old_thread_and_webchat_does_not_take_over() {
    let route = |value: Value| -> DeliveryContext { serde_json::from_value(value).unwrap() };
    let mut row = entry(json!({}));
    delivery::update_last_route(&mut row, &route(json!({"channel": "telegram", "to": "g", "threadId": 5})));
    delivery::update_last_route(&mut row, &route(json!({"channel": "telegram", "to": "me"})));
    assert_eq!(row.last_thread_id, None);
    delivery::update_last_route(&mut row, &route(json!({"channel": "webchat"})));
    let expect = json!({"lastChannel": "telegram", "lastTo": "me", "deliveryContext": {"channel": "telegram", "to": "me"}});
    assert_eq!(row, entry(expect));
    let mut fresh = entry(json!({}));
    delivery::update_last_route(&mut fresh, &route(json!({"channel": "webchat"})));
    assert_eq!(fresh.last_channel.as_deref(), Some("webchat"));
}

/// Rules of `sessions.md` §3.8, on a row answered in topic 5 of `g` by the account `biz`.
#[test]
fn a_route_changes_what_it_names() {
    let rows = [
        (
            json!({"accountId": "b"}),
            json!({"channel": "telegram", "to": "g", "accountId": "b", "threadId": 5}),
        ),
        (json!({"to": "me"}), json!({"channel": "telegram", "to": "me", "accountId": "biz"})),
        (json!({"channel": "slack"}), json!({"channel": "slack", "to": "g", "accountId": "biz"})),
        (json!({"to": "g", "threadId": ""}), json!({"channel": "telegram", "to": "g", "accountId": "biz"})),
        (
            json!({"to": "g", "accountId": " ", "threadId": 6}),
            json!({"channel": "telegram", "to": "g", "accountId": "biz", "threadId": 6}),
        ),
        (json!({}), json!({"channel": "telegram", "to": "g", "accountId": "biz", "threadId": 5})),
    ];
    for (route, expect) in rows {
        let mut row = entry(json!({
            "lastChannel": "telegram", "lastTo": "g", "lastAccountId": "biz", "lastThreadId": 5,
        }));
        delivery::update_last_route(&mut row, &serde_json::from_value(route.clone()).unwrap());
        let mut after = entry(json!({"deliveryContext": expect}));
        after.normalize();
        row.normalize();
        assert_eq!(row, after, "{route}");
    }
}

#[test]
fn a_reset_keeps_settings_and_drops_the_conversation() {
    let old = entry(json!({
        "sessionId": "a", "updatedAt": 1, "systemSent": true, "abortedLastRun": true, "thinkingLevel": "high",
        "providerOverride": "p", "modelOverride": "m", "queueMode": "steer", "label": "l", "sendPolicy": "deny",
        "sessionFile": "/x", "inputTokens": 5, "totalTokens": 9, "compactionCount": 2, "modelProvider": "p",
        "model": "m", "contextTokens": 100, "skillsSnapshot": {"prompt": ""}, "novel": 1, "lastChannel": "webchat",
    }));
    let kept = json!({
        "sessionId": "b", "updatedAt": 7, "systemSent": false, "abortedLastRun": false, "thinkingLevel": "high",
        "providerOverride": "p", "modelOverride": "m", "queueMode": "steer", "label": "l", "sendPolicy": "deny",
        "inputTokens": 0, "outputTokens": 0, "totalTokens": 0, "model": "m", "contextTokens": 100, "novel": 1,
        "lastChannel": "webchat",
    });
    let mut with_skills = kept.clone();
    with_skills["skillsSnapshot"] = json!({"prompt": ""});
    let id = || SessionId::new("b");
    assert_eq!(old.reset(id(), 7, ResetKind::Method), entry(with_skills));
    let mut counted = kept;
    counted["compactionCount"] = json!(0);
    assert_eq!(old.reset(id(), 7, ResetKind::Chat), entry(counted));
}

/// Rules of `sessions.md` §5.3 and decision 6.
#[test]
fn a_reset_forgets_what_was_counted_and_nothing_people_set() {
    let cleared = json!({
        "lastInteractionAt": 1, "memoryFlushAt": 1, "memoryFlushCompactionCount": 1, "cliSessionIds": {"claude-cli": "c"},
        "claudeCliSessionId": "c", "lastHeartbeatText": "h", "lastHeartbeatSentAt": 1, "systemPromptReport": {},
        "authProfileOverrideCompactionCount": 1, "compactionCount": 1, "sessionFile": "/x",
    });
    let kept = json!({
        "verboseLevel": "full", "reasoningLevel": "on", "elevatedLevel": "ask", "responseUsage": "full", "ttsAuto": "off",
        "execHost": "node", "execSecurity": "full", "execAsk": "off", "execNode": "n", "queueCap": 1, "queueDrop": "new",
        "queueDebounceMs": 2, "groupActivation": "always", "spawnedBy": "agent:main:main", "chatType": "group",
        "authProfileOverride": "p:me", "authProfileOverrideSource": "user", "displayName": "x", "origin": {"label": "o"},
        "lastChannel": "slack", "lastTo": "C", "lastAccountId": "biz", "lastThreadId": "1.2",
        "deliveryContext": {"channel": "slack", "to": "C", "accountId": "biz", "threadId": "1.2"},
    });
    let with = |row: &Value, more: &Value| {
        let mut both = row.clone();
        both.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry(both)
    };
    let fresh = json!({
        "sessionId": "b", "updatedAt": 7, "systemSent": false, "abortedLastRun": false, "inputTokens": 0, "outputTokens": 0,
        "totalTokens": 0,
    });
    let mut counted = fresh.clone();
    counted["compactionCount"] = json!(0);
    for (kind, fresh) in [(ResetKind::Method, fresh), (ResetKind::Chat, counted)] {
        let reset = with(&kept, &cleared).reset(SessionId::new("b"), 7, kind);
        assert_eq!(reset, with(&kept, &fresh), "{kind:?}");
    }
}
