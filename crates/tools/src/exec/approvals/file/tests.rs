use proptest::prelude::*;
use serde_json::json;

use super::*;

fn counted() -> impl FnMut() -> String {
    let mut next = 0;
    move || {
        next += 1;
        format!("id-{next}")
    }
}

fn parse(value: &Value) -> Result<ApprovalsFile, String> {
    ApprovalsFile::parse(&value.to_string(), &mut counted()).map_err(|error| error.to_string())
}

fn written(file: &ApprovalsFile) -> Value {
    serde_json::from_str(&file.to_text().unwrap()).unwrap()
}

#[test]
fn a_file_is_written_as_it_was_read() {
    let whole = json!({
        "version": 1,
        "new": {"a": [1]},
        "socket": {"path": "/s", "token": "t", "new": 1},
        "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": true, "new": 2},
        "agents": {
            "*": {"security": "deny", "new": 3},
            "main": {"ask": "always", "allowlist": [{
                "id": "x", "pattern": "/usr/bin/git", "lastUsedAt": 1_795_230_101_417.5, "lastUsedCommand": "git status",
                "lastResolvedPath": "/usr/bin/git", "new": 4,
            }]},
        },
    });
    assert_eq!(written(&parse(&whole).unwrap()), whole);
    let least = json!({"version": 1, "socket": {}, "defaults": {}, "agents": {}});
    assert_eq!(written(&parse(&json!({"version": 1})).unwrap()), least);
    assert_eq!(written(&ApprovalsFile::default()), least);
}

#[test]
fn older_forms_are_brought_up_to_date() {
    let old = json!({"version": 1, "agents": {
        "default": {"security": "full", "ask": "off", "new": 1, "allowlist": ["/a", {"pattern": "/B"}, "/c"]},
        "main": {"security": "deny", "allowlist": [{"id": "x", "pattern": "/b"}, {"id": " ", "pattern": "/d"}]},
        "other": {"allowlist": ["/e"]},
    }});
    let new = json!({"version": 1, "socket": {}, "defaults": {}, "agents": {
        "main": {"security": "deny", "ask": "off", "new": 1, "allowlist": [
            {"id": "x", "pattern": "/b"}, {"id": "id-1", "pattern": "/d"}, {"id": "id-2", "pattern": "/a"},
            {"id": "id-3", "pattern": "/c"},
        ]},
        "other": {"allowlist": [{"id": "id-4", "pattern": "/e"}]},
    }});
    let file = parse(&old).unwrap();
    assert_eq!(written(&file), new);
    let alone = json!({"version": 1, "agents": {"default": {"ask": "always"}}});
    assert_eq!(parse(&alone).unwrap().agents.keys().collect::<Vec<_>>(), ["main"]);
}

#[test]
fn what_does_not_say_what_it_should_is_an_error() {
    for (value, says) in [
        (json!({}), "missing field `version`"),
        (json!({"version": 2}), "version 2 is not known, only 1 is"),
        (json!([]), "found a list, expected an object with"),
        (json!({"version": 1, "defaults": {"security": "some"}}), "unknown setting `some`"),
        (json!({"version": 1, "defaults": {"ask": true}}), "expected"),
        (json!({"version": 1, "agents": []}), "found a list, expected an object"),
        (json!({"version": 1, "agents": {"a": {"autoAllowSkills": "yes"}}}), "found "),
        (json!({"version": 1, "agents": {"a": {"allowlist": [1]}}}), "an allowlist entry must be a pattern"),
        (
            json!({"version": 1, "agents": {"a": {"allowlist": [{"id": "x"}]}}}),
            "an allowlist entry must be a pattern",
        ),
        (json!({"version": 1, "agents": {"a": {"allowlist": "/a"}}}), "found "),
    ] {
        let error = parse(&value).unwrap_err();
        assert!(error.contains(says), "{value}: {error}");
    }
    for torn in ["", " ", "{\"version\":1", "{\"version\":1}{", "null"] {
        assert!(ApprovalsFile::parse(torn, &mut counted()).is_err(), "{torn:?}");
    }
}

#[test]
fn patterns_are_added_once() {
    let mut file = ApprovalsFile::default();
    let mut mint = counted();
    for (agent, pattern, is_added) in [
        ("", " /a ", true),
        ("main", "/a", false),
        ("other", "/a", true),
        ("other", "/b", true),
        ("*", "/c", true),
        ("other", " ", false),
        // The entry would become the main agent's.
        ("default", "/d", false),
    ] {
        assert_eq!(file.allow(agent, pattern, &mut mint), is_added, "{agent} {pattern}");
    }
    assert_eq!(
        written(&file)["agents"],
        json!({
            "*": {"allowlist": [{"id": "id-4", "pattern": "/c"}]},
            "main": {"allowlist": [{"id": "id-1", "pattern": "/a"}]},
            "other": {"allowlist": [{"id": "id-2", "pattern": "/a"}, {"id": "id-3", "pattern": "/b"}]},
        })
    );
    assert!(file.agent("default").is_none());
}

#[test]
fn a_content_takes_the_place_of_the_one_before_and_survives() {
    let mut file = ApprovalsFile::default();
    let mut mint = counted();
    for (pattern, sha256, is_new) in [
        ("/a", Some("1"), true),
        ("/a", Some("1"), false),
        ("/a", Some("2"), true),
        ("/b", None, true),
        // Any content is allowed already.
        ("/b", Some("1"), false),
        ("/c", Some("1"), true),
        ("/c", None, true),
    ] {
        let remembered = Remembered { pattern, sha256 };
        assert_eq!(file.remember("main", remembered, &mut mint), is_new, "{remembered:?}");
    }
    let list = json!([
        {"id": "id-1", "pattern": "/a", "sha256": "2"}, {"id": "id-2", "pattern": "/b"}, {"id": "id-3", "pattern": "/c"},
    ]);
    assert_eq!(written(&file)["agents"]["main"]["allowlist"], list);
    let read = ApprovalsFile::parse(&file.to_text().unwrap(), &mut mint).unwrap();
    assert_eq!(read, file);
}

#[test]
fn a_use_is_noted_where_the_entry_is() {
    let mut file = parse(&json!({"version": 1, "agents": {
        "*": {"allowlist": [{"id": "x", "pattern": "/x"}]},
        "main": {"allowlist": [{"id": "y", "pattern": "/y"}]},
        "other": {"allowlist": [{"id": "x", "pattern": "/x"}]},
    }}))
    .unwrap();
    file.record_use("main", "/x", &"é".repeat(2000), Path::new("/x"), 5);
    file.record_use("", "/y", "y", Path::new("/y"), 6);
    let used = |agent: &str| file.agents[agent].allowlist[0].clone();
    assert_eq!(used("*").last_used_at, Some(5.into()));
    assert_eq!(used("*").last_used_command, Some("é".repeat(1000)));
    assert_eq!(used("*").last_resolved_path.as_deref(), Some("/x"));
    assert_eq!(used("main").last_used_at, Some(6.into()));
    assert_eq!(used("other").last_used_at, None);
}

#[test]
fn the_token_is_shown_to_nobody() {
    let file = parse(&json!({"version": 1, "socket": {"path": "/s", "token": "secret"}})).unwrap();
    assert_eq!(written(&file.redacted())["socket"], json!({"path": "/s"}));
    assert!(!format!("{file:?}").contains("secret"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|[\\[{\"a-z1:,}\\] ]*") {
        if let Ok(file) = ApprovalsFile::parse(&text, &mut counted()) {
            let again = ApprovalsFile::parse(&file.to_text().unwrap(), &mut || unreachable!());
            prop_assert_eq!(again.unwrap(), file);
        }
    }
}
