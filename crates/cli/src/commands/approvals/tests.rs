use serde_json::json;

use super::*;
use crate::testing;

fn file(document: serde_json::Value) -> ApprovalsFile {
    serde_json::from_value(document).unwrap()
}

#[test]
fn an_agent_is_named_as_its_runs_look_it_up() {
    for (named, key) in [("*", "*"), (" ", "*"), ("Main", "main"), ("default", "main"), ("work", "work")] {
        assert_eq!(agent_key(named), key, "{named}");
    }
}

#[test]
fn a_pattern_is_added_once_and_removed_once() {
    let mut list = ApprovalsFile::default();
    let add = |list: &mut ApprovalsFile, agent| list.allow(agent, "~/bin/rg", &mut mint);
    assert!(add(&mut list, "*"));
    let entry = list.agents["*"].allowlist[0].clone();
    assert!(!entry.id.is_empty() && entry.last_used_at.is_none(), "{entry:?}");
    assert!(!add(&mut list, "*"));
    assert!(add(&mut list, "main"));
    assert_eq!(holders(&list, "~/bin/rg"), ["*", "main"]);
    assert_eq!(list.agents["*"].allowlist, [entry]);

    assert!(!remove(&mut list, "main", "~/bin/fd"));
    assert!(!remove(&mut list, "nobody", "~/bin/rg"));
    assert!(remove(&mut list, "main", "~/bin/rg"));
    assert!(!remove(&mut list, "main", "~/bin/rg"));
    assert!(!list.agents.contains_key("main"), "nothing is left to say of it");
    assert_eq!(list.agents["*"].allowlist.len(), 1);
}

#[test]
fn an_agent_with_other_rules_stays_without_its_list() {
    let mut rules =
        file(json!({"version": 1, "agents": {"main": {"ask": "always", "allowlist": ["/bin/x"]}}}));
    assert!(remove(&mut rules, "main", "/bin/x"));
    assert_eq!(rules, file(json!({"version": 1, "agents": {"main": {"ask": "always"}}})));
}

fn shown(file: ApprovalsFile, exists: bool) -> String {
    let context = testing::context("{}", &[]);
    let path = context.paths().state_dir().join("exec-approvals.json");
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned();
    report::lines(&context, "local", &Loaded { path, exists, hash, file }, 3_600_000).join("\n")
}

/// `spec/golden/cli-system.json`.
#[test]
fn no_file_is_shown_as_the_reference_does() {
    expect_test::expect![[r#"
        Approvals
        ┌───────────┬─────────────────────────────────────────────────────────────────────────────────────────────────────────┐
        │ Field     │ Value                                                                                                   │
        ├───────────┼─────────────────────────────────────────────────────────────────────────────────────────────────────────┤
        │ Target    │ local                                                                                                   │
        │ Path      │ ~/.openclaw/exec-approvals.json                                                                         │
        │ Exists    │ no                                                                                                      │
        │ Hash      │ e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855                                        │
        │ Version   │ 1                                                                                                       │
        │ Socket    │ default                                                                                                 │
        │ Defaults  │ none                                                                                                    │
        │ Agents    │ 0                                                                                                       │
        │ Allowlist │ 0                                                                                                       │
        └───────────┴─────────────────────────────────────────────────────────────────────────────────────────────────────────┘

        No allowlist entries."#]]
    .assert_eq(&shown(ApprovalsFile::default(), false));
}

#[test]
fn rules_and_lists_are_shown() {
    let rules = file(json!({
        "version": 1,
        "socket": {"path": "~/.openclaw/exec-approvals.sock", "token": "secret"},
        "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": false},
        "agents": {
            "*": {"allowlist": [{"pattern": "~/bin/rg", "lastUsedAt": 3_590_000.5}]},
            "main": {"allowlist": ["/usr/bin/jq", " "]},
        },
    }));
    let text = shown(rules, true);
    assert!(!text.contains("secret"));
    let table: Vec<&str> = text.lines().skip(3).collect();
    expect_test::expect![[r#"
        ├───────────┼─────────────────────────────────────────────────────────────────────────────────────────────────────────┤
        │ Target    │ local                                                                                                   │
        │ Path      │ ~/.openclaw/exec-approvals.json                                                                         │
        │ Exists    │ yes                                                                                                     │
        │ Hash      │ e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855                                        │
        │ Version   │ 1                                                                                                       │
        │ Socket    │ ~/.openclaw/exec-approvals.sock                                                                         │
        │ Defaults  │ security=allowlist, ask=on-miss, askFallback=deny, autoAllowSkills=off                                  │
        │ Agents    │ 2                                                                                                       │
        │ Allowlist │ 2                                                                                                       │
        └───────────┴─────────────────────────────────────────────────────────────────────────────────────────────────────────┘

        Allowlist
        ┌──────────┬────────┬─────────────────────────────────────────────────────────────────────────────────────┬───────────┐
        │ Target   │ Agent  │ Pattern                                                                             │ Last Used │
        ├──────────┼────────┼─────────────────────────────────────────────────────────────────────────────────────┼───────────┤
        │ local    │ *      │ ~/bin/rg                                                                            │ just now  │
        │ local    │ main   │ /usr/bin/jq                                                                         │ never     │
        └──────────┴────────┴─────────────────────────────────────────────────────────────────────────────────────┴───────────┘"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn json_holds_no_token() {
    let rules = file(json!({"version": 1, "socket": {"path": "/s", "token": "secret"}, "new": 1}));
    let loaded = Loaded { path: "/f".into(), exists: true, hash: "h".to_owned(), file: rules };
    let document = serde_json::to_value(report::document(&loaded)).unwrap();
    let file = json!({"version": 1, "socket": {"path": "/s"}, "defaults": {}, "agents": {}, "new": 1});
    assert_eq!(document, json!({"path": "/f", "exists": true, "hash": "h", "file": file}));
}
