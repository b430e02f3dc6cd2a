//! Rows and directories of old versions.

use openclaw_protocol::AgentId;
use serde_json::{Value, json};

use super::*;
use openclaw_protocol::SessionScope;

const NOW: i64 = 1_770_631_932_123;

fn rules(main_key: &str, scope: SessionScope) -> KeyRules {
    KeyRules::new(AgentId::default(), main_key, scope)
}

fn stored(rows: &Value) -> Vec<StoredRow> {
    let row = |(key, value): (&String, &Value)| (key.clone(), serde_json::from_value(value.clone()).unwrap());
    rows.as_object().unwrap().iter().map(row).collect()
}

fn tidied(rows: &Value, rules: &KeyRules) -> (Value, Vec<String>) {
    let agent = AgentId::default();
    let owner = StoreOwner { agent: &agent, rules, is_shared: false };
    let Tidied { rows, changes } = rows::tidy(stored(rows), owner, NOW);
    let rows = rows.iter().map(|(key, entry)| (key.clone(), serde_json::to_value(&**entry).unwrap()));
    (Value::Object(rows.collect()), changes.iter().map(CleanupChange::to_string).collect())
}

/// Spec `sessions.md` §1.6, agent `main`, main key `work`.
#[test]
fn keys_of_old_versions_are_moved() {
    let rows = [
        ("main", "agent:main:work"),
        ("work", "agent:main:work"),
        ("agent:main:main", "agent:main:main"),
        ("global", "global"),
        ("Unknown", "unknown"),
        ("subagent:ABC", "agent:main:subagent:abc"),
        ("group:123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("whatsapp:123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("whatsapp:group:123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("group:abc", "agent:main:unknown:group:abc"),
        ("group:", "group:"),
        ("telegram:group:-1", "agent:main:telegram:group:-1"),
        ("discord:channel:9", "agent:main:discord:channel:9"),
        ("cron:job", "agent:main:cron:job"),
        ("+1555", "agent:main:+1555"),
        ("slack:channel:C1:thread:1.2", "agent:main:slack:channel:c1:thread:1.2"),
        ("agent:main:Slack:channel:C1", "agent:main:slack:channel:c1"),
        ("agent:main:telegram:direct:7", "agent:main:telegram:direct:7"),
        ("agent:main:telegram:dm:7", "agent:main:telegram:dm:7"),
        ("agent:main", "agent:main"),
        ("agent:other:main", "agent:other:main"),
    ];
    let rules = rules("work", SessionScope::PerSender);
    let agent = AgentId::default();
    let owner = StoreOwner { agent: &agent, rules: &rules, is_shared: false };
    for (old, new) in rows {
        // A main row beside it, so that none is elected.
        let with_main = json!({"agent:main:work": {"sessionId": "m", "updatedAt": 1}, old: {"sessionId": "a", "updatedAt": 5}});
        let (after, changes) = tidied(&with_main, &rules);
        assert_eq!(after[new]["sessionId"], "a", "{old}: {after}");
        assert_eq!(owner.is_old(old), old != new, "{old}");
        assert_eq!(changes.is_empty(), old == new, "{old}: {changes:?}");
        let (again, more) = tidied(&after, &rules);
        assert_eq!((again, more), (after, Vec::new()), "{old}: twice is once");
    }
}

#[test]
fn a_group_without_its_channel_goes_to_the_one_that_its_row_names() {
    let rules = rules("main", SessionScope::PerSender);
    let rows = [
        (json!({"channel": "telegram"}), "telegram"),
        (json!({"origin": {"provider": "Telegram"}}), "telegram"),
        (json!({"lastChannel": "slack"}), "slack"),
        (json!({"channel": "webchat", "lastChannel": "telegram"}), "telegram"),
        (json!({"deliveryContext": {"channel": "telegram", "to": "-100"}}), "telegram"),
        (json!({"deliveryContext": {"channel": "webchat"}, "origin": {"provider": "slack"}}), "slack"),
        (
            json!({"deliveryContext": {"channel": "telegram"}, "lastChannel": "slack", "origin": {"provider": "signal"}, "channel": "discord"}),
            "telegram",
        ),
        (json!({"lastChannel": "slack", "origin": {"provider": "signal"}, "channel": "discord"}), "slack"),
        (json!({"origin": {"provider": "signal"}, "channel": "discord"}), "signal"),
        (json!({"channel": "webchat", "origin": {"provider": "telegram"}}), "telegram"),
        (json!({"channel": "webchat", "origin": {"provider": "webchat", "surface": "telegram"}}), "telegram"),
        (json!({"lastChannel": "google-chat"}), "googlechat"),
        (json!({"lastTo": "telegram:-100"}), "telegram"),
        (json!({"channel": "webchat", "origin": {"from": "slack:group:-100"}}), "slack"),
        (json!({"lastTo": "-100", "origin": {"from": "webchat:me"}}), "unknown"),
        (json!({"channel": "unknown"}), "unknown"),
        (json!({}), "unknown"),
    ];
    let agent = AgentId::default();
    let owner = StoreOwner { agent: &agent, rules: &rules, is_shared: false };
    for (named, channel) in rows {
        for old in ["group:-100", "agent:main:unknown:group:-100", "agent:main:group:-100"] {
            let mut row = json!({"sessionId": "a", "updatedAt": 5});
            row.as_object_mut().unwrap().extend(named.as_object().unwrap().clone());
            let new = match (channel, old) {
                // Somebody's own name for a session looks the same.
                ("unknown", "agent:main:group:-100") => old.to_owned(),
                (channel, _) => format!("agent:main:{channel}:group:-100"),
            };
            let (after, _) = tidied(&json!({old: row}), &rules);
            assert_eq!(after[&new]["sessionId"], "a", "{old} {named}: {after}");
            let rows = stored(&json!({old: row}));
            let is_found = rows.iter().any(|row| owner.is_old(&row.0) || owner.is_misnamed(row, &rows));
            assert_eq!(is_found, old != new, "{old} {named}");
            let (again, more) = tidied(&after, &rules);
            assert_eq!((again, more), (after, Vec::new()), "twice is once");
        }
    }
    let both = json!({"group:-100": {"sessionId": "old", "updatedAt": 5, "channel": "telegram"},
        "agent:main:telegram:group:-100": {"sessionId": "new", "updatedAt": 9}});
    assert_eq!(tidied(&both, &rules).0["agent:main:telegram:group:-100"]["sessionId"], "new");
}

/// A group that has begun anew, because its row went to the wrong place or its channel is not known: nothing of it is removed.
#[test]
fn a_group_that_can_not_be_placed_is_never_removed() {
    let rules = rules("main", SessionScope::PerSender);
    let agent = AgentId::default();
    let owner = StoreOwner { agent: &agent, rules: &rules, is_shared: false };
    let named = json!({"sessionId": "old", "updatedAt": 5, "deliveryContext": {"channel": "telegram"}});
    let new = json!({"sessionId": "new", "updatedAt": 9});
    let unknown = "agent:main:unknown:group:-100";
    for both in [
        json!({unknown: named, "agent:main:telegram:group:-100": new}),
        json!({"group:-100": {"sessionId": "old", "updatedAt": 5}, unknown: new}),
    ] {
        let (after, changes) = tidied(&both, &rules);
        assert_eq!((&after, changes.len()), (&both, 0), "{changes:?}");
        let rows = stored(&both);
        assert!(!rows.iter().any(|row| owner.is_misnamed(row, &rows)), "{both}");
    }
}

/// Decision 47: OpenClaw 2026.2.9 finds its main session where it left it.
#[test]
fn a_main_session_of_the_name_main_stays_under_it() {
    let rules = rules("work", SessionScope::PerSender);
    let row = |id: &str, at: i64| json!({"sessionId": id, "updatedAt": at});
    let rows = [
        (json!({"agent:main:main": row("a", 5)}), json!({"agent:main:main": row("a", 5)})),
        // Nothing else becomes the main session, and what is older still gives way to it.
        (
            json!({"agent:main:main": row("a", 5), "+1555": row("b", 9)}),
            json!({"agent:main:main": row("a", 5), "agent:main:+1555": row("b", 9)}),
        ),
        (
            json!({"main": row("b", 9), "agent:main:main": row("a", 5)}),
            json!({"agent:main:main": row("b", 9)}),
        ),
        // Beside one of the configured name both stay.
        (
            json!({"agent:main:main": row("a", 9), "agent:main:work": row("b", 5)}),
            json!({"agent:main:main": row("a", 9), "agent:main:work": row("b", 5)}),
        ),
    ];
    for (before, expect) in rows {
        let (after, _) = tidied(&before, &rules);
        assert_eq!(after, expect, "{before}");
    }
}

#[test]
fn with_one_bucket_for_all_the_main_row_is_global() {
    let rules = rules("work", SessionScope::Global);
    for old in ["main", "work", "agent:main:main"] {
        let (after, _) = tidied(&json!({old: {"sessionId": "a", "updatedAt": 5}}), &rules);
        assert_eq!(after, json!({"global": {"sessionId": "a", "updatedAt": 5}}), "{old}");
    }
}

#[test]
fn of_two_rows_of_one_key_the_newer_stays() {
    let rules = rules("main", SessionScope::PerSender);
    let rows = [
        // The larger updatedAt wins, whatever its spelling.
        (
            json!({"main": {"sessionId": "old", "updatedAt": 9}, "agent:main:main": {"sessionId": "new", "updatedAt": 5}}),
            "agent:main:main",
            "old",
        ),
        // A tie goes to the canonical one, in either order.
        (
            json!({"main": {"sessionId": "old", "updatedAt": 5}, "agent:main:main": {"sessionId": "new", "updatedAt": 5}}),
            "agent:main:main",
            "new",
        ),
        (
            json!({"agent:main:main": {"sessionId": "new", "updatedAt": 5}, "main": {"sessionId": "old", "updatedAt": 5}}),
            "agent:main:main",
            "new",
        ),
        // A row whose activity is unknown does not win over a known one.
        (
            json!({"main": {"sessionId": "old", "updatedAt": "x"}, "agent:main:main": {"sessionId": "new", "updatedAt": 5}}),
            "agent:main:main",
            "new",
        ),
        // `dm` and `direct` are one bucket; a row of today keeps its spelling, an older one takes that of the bucket.
        (
            json!({"agent:main:tg:dm:7": {"sessionId": "dm", "updatedAt": 5}, "agent:main:tg:direct:7": {"sessionId": "direct", "updatedAt": 6}}),
            "agent:main:tg:direct:7",
            "direct",
        ),
        (
            json!({"agent:main:tg:direct:7": {"sessionId": "direct", "updatedAt": 5}, "agent:main:TG:direct:7": {"sessionId": "caps", "updatedAt": 6}}),
            "agent:main:tg:direct:7",
            "caps",
        ),
    ];
    for (before, key, winner) in rows {
        let (after, changes) = tidied(&before, &rules);
        assert_eq!(after.as_object().unwrap().len(), 1, "{before}");
        assert_eq!(after[key]["sessionId"], winner, "{before}: {changes:?}");
    }
}

#[test]
fn unusable_rows_go_and_bad_times_are_now() {
    let before = json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": "yesterday", "room": "#general"},
        "agent:main:x": {"updatedAt": 5},
        "agent:main:y": {"sessionId": 5, "updatedAt": 5},
        "agent:main:z": {"sessionId": "z", "updatedAt": 5, "novel": {"b": 1, "a": 2}},
    });
    let (after, changes) = tidied(&before, &rules("main", SessionScope::PerSender));
    let expect = json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": NOW, "room": "#general"},
        "agent:main:z": {"sessionId": "z", "updatedAt": 5, "novel": {"b": 1, "a": 2}},
    });
    assert_eq!(after, expect);
    assert_eq!(changes.len(), 3, "{changes:?}");
}

#[test]
fn the_newest_old_direct_row_becomes_the_main_session_where_there_is_none() {
    let rules = rules("main", SessionScope::PerSender);
    let row = |id: &str, at: i64| json!({"sessionId": id, "updatedAt": at});
    let before = json!({
        "+1555": row("older", 5), "telegram:7": row("newer", 6), "telegram:group:1": row("group", 9),
        "subagent:x": row("sub", 9), "cron:job": row("cron", 9), "global": row("global", 9), "agent:main:x": row("x", 9),
        "hook:h": row("hook", 9),
    });
    let (after, changes) = tidied(&before, &rules);
    assert_eq!(after["agent:main:main"]["sessionId"], "newer");
    assert_eq!(after["agent:main:+1555"]["sessionId"], "older");
    assert!(after.get("agent:main:telegram:7").is_none());
    assert!(changes.iter().any(|change| change.contains("is the main session")));
    let with_main = json!({"+1555": row("older", 5), "main": row("main", 1)});
    assert_eq!(tidied(&with_main, &rules).0["agent:main:main"]["sessionId"], "main");
}

#[test]
fn a_label_stays_with_the_session_that_was_active_last() {
    let row = |at: i64| json!({"sessionId": "a", "updatedAt": at, "label": "x"});
    let before = json!({"agent:main:a": row(5), "agent:main:b": row(7), "agent:main:c": row(6)});
    let (after, changes) = tidied(&before, &rules("main", SessionScope::PerSender));
    let has_label = |(key, row): (&String, &Value)| row.get("label").map(|_| key.clone());
    let labelled: Vec<String> = after.as_object().unwrap().iter().filter_map(has_label).collect();
    assert_eq!((labelled, changes.len()), (vec!["agent:main:b".to_owned()], 2));
}

/// A state directory of the days before agents, beside a store of today.
struct Old {
    dir: tempfile::TempDir,
    state: OldState,
}

impl Old {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("state");
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let file = root.join("sessions/s2.jsonl").display().to_string();
        let old = json!({
            "main": {"sessionId": "s1", "updatedAt": 50},
            "group:abc": {"sessionId": "s2", "updatedAt": 20, "sessionFile": file, "room": "#r"},
            "+1555": {"sessionId": "s3", "updatedAt": 30}, "bad": {"updatedAt": 1},
        });
        let new = json!({
            "agent:main:main": {"sessionId": "n1", "updatedAt": 40, "novel": 1},
            "cron:job": {"sessionId": "n2", "updatedAt": 41},
        });
        write("sessions/sessions.json", &old.to_string());
        for (name, text) in [("s1", "one"), ("s2", "two"), ("s3", "three"), ("n1", "not that")] {
            write(&format!("sessions/{name}.jsonl"), text);
        }
        write("agents/main/sessions/sessions.json", &new.to_string());
        let line = json!([{"key": "agent:main:main", "set": {"label": "L"}}, {"key": "journaled", "new": true, "set": {"sessionId": "j", "updatedAt": 1}}]);
        write("agents/main/sessions/sessions.json.journal.3", &format!("{line}\n"));
        write("agents/main/sessions/n1.jsonl", "new one");
        write("agent/auth-profiles.json", "profiles");
        write("agent/models.json", "old models");
        write("agents/main/agent/models.json", "new models");
        for name in ["creds.json", "pre-key-1.json", "session-2.json", "oauth.json", "telegram-pairing.json"]
        {
            write(&format!("credentials/{name}"), name);
        }
        let state = OldState {
            layout: Layout::new(&root, dir.path(), None),
            rules: rules("main", SessionScope::PerSender),
            agents: vec![AgentId::default()],
            agent_dir: root.join("agents/main/agent"),
            credentials_dir: root.join("credentials"),
        };
        Self { dir, state }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
    }

    /// Asserts what must hold after a migration.
    fn check(&self, context: &str) {
        assert_eq!(self.state.found().unwrap(), [], "{context}");
        let rows: Value = serde_json::from_str(&self.text("agents/main/sessions/sessions.json")).unwrap();
        let moved = self.root().join("agents/main/sessions/s2.jsonl").display().to_string();
        let expect = json!({
            "agent:main:main": {"sessionId": "s1", "updatedAt": 50},
            "agent:main:cron:job": {"sessionId": "n2", "updatedAt": 41},
            "agent:main:journaled": {"sessionId": "j", "updatedAt": 1},
            "agent:main:unknown:group:abc": {"sessionId": "s2", "updatedAt": 20, "sessionFile": moved, "groupChannel": "#r"},
            "agent:main:+1555": {"sessionId": "s3", "updatedAt": 30},
        });
        assert_eq!(rows, expect, "{context}");
        for (name, text) in [("s1", "one"), ("s2", "two"), ("s3", "three"), ("n1", "new one")] {
            assert_eq!(self.text(&format!("agents/main/sessions/{name}.jsonl")), text, "{context}");
        }
        let store = StoreOnDisk::read(&self.root().join("agents/main/sessions/sessions.json")).unwrap();
        assert!(
            store.journal.paths().next().is_none() && !self.root().join("sessions").exists(),
            "{context}"
        );
        assert_eq!(self.text("agents/main/agent/auth-profiles.json"), "profiles", "{context}");
        assert_eq!(self.text("agents/main/agent/models.json"), "new models", "{context}");
        for name in ["creds.json", "pre-key-1.json", "session-2.json"] {
            assert_eq!(self.text(&format!("credentials/whatsapp/default/{name}")), name, "{context}");
        }
        assert_eq!(self.text("credentials/oauth.json"), "oauth.json", "{context}");
        let left: Vec<String> = std::fs::read_dir(self.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains(".legacy-"))
            .collect();
        assert_eq!(left.len(), 2, "{context}: {left:?}");
    }
}

#[test]
fn a_directory_of_the_days_before_agents_is_taken_over_once() {
    let old = Old::new();
    let before = old.state.found().unwrap();
    assert_eq!(before.len(), 4, "{before:?}");
    let done = old.state.migrate(NOW).unwrap();
    old.check("at once");
    let kept = done.backup.unwrap();
    let text = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
    assert!(text("sessions/sessions.json").contains("\"bad\""));
    assert!(text("agents/main/sessions/sessions.json").contains("novel"));
    assert!(text("agents/main/sessions/sessions.json.journal.3").contains("journaled"));
    assert!(text("manifest.jsonl").lines().count() > 8);
    assert_eq!(old.text(&format!("sessions.legacy-{NOW}/n1.jsonl")), "not that");
    assert_eq!(old.text(&format!("agent.legacy-{NOW}/models.json")), "old models");
    let again = old.state.migrate(NOW + 1).unwrap();
    assert_eq!((again.changes, again.backup), (Vec::new(), None));
}

#[test]
fn a_migration_that_fails_anywhere_goes_on_where_it_stopped() {
    for steps in 0.. {
        let old = Old::new();
        let mut failing = Backup::new(&old.root(), NOW).failing_after(steps);
        let first = old.state.migrate_into(&mut failing, NOW);
        let stopped = first.is_err();
        // Nothing is lost yet, whatever was done: a second try gets to the same end.
        old.state.migrate(NOW + 1).unwrap();
        old.check(&format!("stopped after {steps} steps"));
        if !stopped {
            assert!(steps > 12, "only {steps} steps");
            break;
        }
    }
}

#[test]
fn a_store_that_is_configured_to_be_at_the_old_place_stays() {
    let old = Old::new();
    let store = old.root().join("sessions/sessions.json").display().to_string();
    let layout = Layout::new(old.root(), old.dir.path(), Some(&store));
    let state = OldState { layout, ..old.state.clone() };
    let found = state.found().unwrap();
    assert!(!found.iter().any(|remnant| matches!(remnant, Remnant::Sessions(_))), "{found:?}");
    state.migrate(NOW).unwrap();
    let rows: Value = serde_json::from_str(&old.text("sessions/sessions.json")).unwrap();
    assert!(rows.get("agent:main:main").is_some() && old.root().join("sessions/s1.jsonl").exists());
}

#[test]
fn a_shared_store_keeps_the_agents_apart() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("all.json");
    let row = |id: &str| json!({"sessionId": id, "updatedAt": 5});
    let rows = json!({"main": row("a"), "agent:ops:Main": row("b"), "agent:ops:X": row("c")});
    std::fs::write(&store, rows.to_string()).unwrap();
    let state = OldState {
        layout: Layout::new(dir.path().join("state"), dir.path(), store.to_str()),
        rules: rules("main", SessionScope::PerSender),
        agents: vec![AgentId::default(), AgentId::normalize("ops")],
        agent_dir: dir.path().join("state/agents/main/agent"),
        credentials_dir: dir.path().join("state/credentials"),
    };
    let done = state.migrate(NOW).unwrap();
    let after: Value = serde_json::from_slice(&std::fs::read(&store).unwrap()).unwrap();
    let keys: Vec<&String> = after.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["agent:main:main", "agent:ops:main", "agent:ops:x"]);
    assert!(done.backup.unwrap().join("elsewhere").exists());
}
