//! `openclaw doctor` on broken state directories: it says what is wrong, repairs it, finds nothing more, and the gateway
//! starts with every session that could be saved.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use openclaw_testkit::{DeviceIdentity, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{openclaw, unprivileged};
use crate::support::conversation::{history, sessions_dir};
use crate::support::files::{append, chmod};

const NOBODY: u32 = 2_147_483_646;

/// A state directory in order with two sessions, and no gateway.
async fn sound() -> GatewayUnderTest {
    let gateway = gateway().prepare().unwrap();
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    let row = |id: &str, at: u64| json!({"sessionId": id, "updatedAt": at, "totalTokens": 7});
    let rows = json!({"agent:main:main": row("s-main", 1_770_000_000_000), "agent:main:two": row("s-two", 1_770_000_000_001)});
    std::fs::write(dir.join("sessions.json"), serde_json::to_string_pretty(&rows).unwrap()).unwrap();
    for name in ["main", "two"] {
        std::fs::write(dir.join(format!("s-{name}.jsonl")), transcript(name)).unwrap();
    }
    let fixed = openclaw(&gateway, &["doctor", "--fix", "--check"]).await;
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert_eq!(doctor(&gateway, &[]).await.0, [""; 0], "a sound directory has no findings");
    gateway
}

fn transcript(name: &str) -> String {
    let header = json!({"type": "session", "version": 3, "id": format!("s-{name}"), "timestamp": "2026-02-09T10:11:12.123Z", "cwd": "/"});
    let said = json!({"role": "user", "content": [{"type": "text", "text": format!("hello {name}")}], "timestamp": 1_770_000_000_000_u64});
    let entry = json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2026-02-09T10:11:12.123Z", "message": said});
    format!("{header}\n{entry}\n")
}

/// The ids of what is not in order, with the document they are from.
async fn doctor(gateway: &GatewayUnderTest, args: &[&str]) -> (Vec<String>, Value) {
    let ended = openclaw(gateway, &[&["doctor", "--json", "--non-interactive"], args].concat()).await;
    let document: Value =
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(ended.code.map(i64::from), document["exit"].as_i64(), "{ended:?}");
    let open = document["checks"].as_array().unwrap().iter().filter(|check| check["fixed"] == false);
    (open.map(|check| check["id"].as_str().unwrap().to_owned()).collect(), document)
}

#[tokio::test]
async fn keys_of_older_versions_are_moved_in_the_file_and_not_told_again() {
    let mut gateway = sound().await;
    let path = gateway.state_dir().join("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["agent"] = json!({"skipBootstrap": true});
    std::fs::write(&path, config.to_string()).unwrap();
    let (found, document) = doctor(&gateway, &[]).await;
    assert_eq!(found, ["config.moved"], "{document}");
    assert_eq!(document["checks"][0]["fixable"], true, "{document}");
    let text = openclaw(&gateway, &["doctor"]).await.out;
    assert!(text.contains("Run \"openclaw doctor --fix\" to apply changes."), "{text}");
    gateway.start().await.unwrap();
    gateway.logged("Moved agent → agents.defaults.").await.unwrap();
    gateway.terminate().await.unwrap();
    let (left, document) = doctor(&gateway, &["--fix"]).await;
    assert_eq!(left, [""; 0], "{document}");
    let config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(
        (&config["agent"], &config["agents"]["defaults"]["skipBootstrap"]),
        (&Value::Null, &json!(true))
    );
    let told = gateway.log().matches("Moved agent").count();
    gateway.start().await.unwrap();
    gateway.terminate().await.unwrap();
    assert_eq!(gateway.log().matches("gateway started").count(), 2, "{}", gateway.log());
    assert_eq!(gateway.log().matches("Moved agent").count(), told, "{}", gateway.log());
}

/// Damage to a directory, the texts about it, and the sessions that are there in the end.
type Case = (&'static str, fn(&Path, &Path), &'static [&'static str], &'static [&'static str]);

const BOTH: &[&str] = &["main", "two"];

const CASES: &[Case] = &[
    (
        "modes",
        |state, dir| {
            chmod(state, 0o755);
            chmod(&state.join("openclaw.json"), 0o644);
            chmod(&dir.join("s-two.jsonl"), 0o644);
        },
        &["state.permissions", "config.permissions", "state.file-permissions"],
        BOTH,
    ),
    (
        "missing directories",
        |state, _| {
            std::fs::remove_dir_all(state.join("agents")).unwrap();
            std::fs::remove_dir_all(state.join("credentials")).unwrap();
        },
        &["sessions.dir-missing", "agent.dir-missing", "credentials.dir-missing"],
        &[],
    ),
    (
        "half a store",
        |_, dir| {
            let store = dir.join("sessions.json");
            let whole = std::fs::read(&store).unwrap();
            std::fs::write(&store, &whole[..whole.len() - 20]).unwrap();
        },
        &["store.damaged", "transcript.orphans"],
        &["main"],
    ),
    (
        "a store that is an array",
        |_, dir| std::fs::write(dir.join("sessions.json"), "[]").unwrap(),
        &["store.damaged", "transcript.orphans"],
        &[],
    ),
    (
        "a foul journal",
        |_, dir| {
            let change = json!([{"key": "agent:main:three", "new": true, "set": {"sessionId": "s-three", "updatedAt": 9}}]);
            std::fs::write(dir.join("sessions.json.journal.5"), format!("foul\n{change}\n")).unwrap();
            std::fs::write(dir.join("s-three.jsonl"), transcript("three")).unwrap();
            for name in ["sessions.json.journal.5", "s-three.jsonl"] {
                chmod(&dir.join(name), 0o600);
            }
        },
        &["store.journal"],
        &["main", "two", "three"],
    ),
    (
        "rows of all sorts",
        |_, dir| {
            let rows = json!({
                "main": {"sessionId": "s-main", "updatedAt": 2_u64, "room": "#x"}, "two": {"sessionId": "s-two", "updatedAt": "soon"},
                "agent:main:two": {"sessionId": "other", "updatedAt": "never"}, "agent:main:none": {"updatedAt": 1}, "five": 5,
                "agent:main:late": {"sessionId": "late", "updatedAt": 9, "label": "L"}, "agent:main:later": {"sessionId": "later", "updatedAt": 10, "label": "L"},
            });
            std::fs::write(dir.join("sessions.json"), rows.to_string()).unwrap();
        },
        &["store.keys-old", "store.duplicates", "store.rows", "store.times", "store.labels"],
        &["main"],
    ),
    (
        "transcripts",
        |_, dir| {
            append(&dir.join("s-main.jsonl"), "foul line\n{\"type\":\"mess");
            let body = transcript("two").lines().nth(1).unwrap().to_owned();
            std::fs::write(dir.join("s-two.jsonl"), format!("{body}\n")).unwrap();
        },
        &["transcript.header", "transcript.lines"],
        BOTH,
    ),
    (
        "what dead processes left",
        |_, dir| {
            let lock = format!("{{\"pid\":{NOBODY},\"startedAt\":1}}");
            for name in [
                "sessions.json.lock".to_owned(),
                "s-main.jsonl.lock".to_owned(),
                format!("sessions.json.{NOBODY}.x.tmp"),
            ] {
                std::fs::write(dir.join(&name), &lock).unwrap();
                chmod(&dir.join(&name), 0o600);
            }
        },
        &["lock.stale", "files.temporary"],
        BOTH,
    ),
    (
        "the days before agents",
        |state, dir| {
            let old = state.join("sessions");
            std::fs::create_dir(&old).unwrap();
            std::fs::rename(dir.join("s-two.jsonl"), old.join("s-two.jsonl")).unwrap();
            std::fs::write(
                old.join("sessions.json"),
                json!({"two": {"sessionId": "s-two", "updatedAt": 3}}).to_string(),
            )
            .unwrap();
            std::fs::write(
                dir.join("sessions.json"),
                json!({"main": {"sessionId": "s-main", "updatedAt": 2}}).to_string(),
            )
            .unwrap();
            std::fs::create_dir(state.join("agent")).unwrap();
            std::fs::write(state.join("agent/models.json"), "{\"providers\":{}}").unwrap();
        },
        &["old.sessions", "old.agent-dir", "store.keys-old"],
        BOTH,
    ),
    (
        "a database that is none",
        |state, _| {
            std::fs::write(state.join("gateway.sqlite"), "this is no database, whatever its name says")
                .unwrap();
            chmod(&state.join("gateway.sqlite"), 0o600);
        },
        &["database.damaged"],
        BOTH,
    ),
];

#[tokio::test]
async fn every_kind_of_broken_directory_is_repaired_and_used_again() {
    for (name, break_it, ids, sessions) in CASES {
        let mut gateway = sound().await;
        let (state, dir) = (gateway.state_dir(), sessions_dir(&gateway));
        break_it(&state, &dir);
        let (found, _) = doctor(&gateway, &[]).await;
        assert_eq!(found, *ids, "{name}");
        let (left, document) = doctor(&gateway, &["--fix", "--check"]).await;
        // Transcripts that no session uses stay.
        let stays: Vec<&str> =
            left.iter().map(String::as_str).filter(|id| *id != "transcript.orphans").collect();
        assert_eq!((stays, &document["exit"]), (Vec::new(), &json!(0)), "{name}: {document}");
        let (again, _) = doctor(&gateway, &["--check"]).await;
        assert_eq!(again, left, "{name}");
        gateway.start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        for session in *sessions {
            assert_eq!(history(&mut client, session).await, [format!("user: hello {session}")], "{name}");
        }
        gateway.terminate().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_repaired_is_kept_in_a_backup_that_is_named() {
    let gateway = sound().await;
    let store = sessions_dir(&gateway).join("sessions.json");
    std::fs::write(&store, "{\"agent:main:main\": {").unwrap();
    let text = openclaw(&gateway, &["doctor"]).await;
    assert!(
        text.out.contains("is torn or malformed") && text.out.contains("openclaw doctor --fix"),
        "{text:?}"
    );
    assert_eq!(
        std::fs::read_to_string(&store).unwrap(),
        "{\"agent:main:main\": {",
        "looking changes nothing"
    );
    let (_, document) = doctor(&gateway, &["--repair", "--yes"]).await;
    let backup = PathBuf::from(document["backup"].as_str().unwrap());
    assert!(backup.starts_with(gateway.state_dir().join("backups")), "{backup:?}");
    let kept = std::fs::read_to_string(backup.join("agents/main/sessions/sessions.json")).unwrap();
    assert_eq!(kept, "{\"agent:main:main\": {");
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "{}");
}

#[tokio::test]
async fn beside_a_running_gateway_only_harmless_things_are_repaired() {
    let mut gateway = sound().await;
    gateway.start().await.unwrap();
    let dir = sessions_dir(&gateway);
    let foul = "no transcript\n";
    std::fs::write(dir.join("x.jsonl"), foul).unwrap();
    chmod(&dir.join("x.jsonl"), 0o644);
    let (left, document) = doctor(&gateway, &["--fix", "--check"]).await;
    assert_eq!(document["gateway"]["pid"].as_u64(), gateway.pid().map(u64::from), "{document}");
    assert_eq!(
        (left.as_slice(), &document["exit"]),
        (["transcript.header", "transcript.orphans"].map(str::to_owned).as_slice(), &json!(1)),
        "{document}"
    );
    assert!(document["notes"].to_string().contains("has its database for itself"), "{document}");
    assert_eq!(std::fs::metadata(dir.join("x.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(gateway.state_dir().join("agents/main/sessions/sessions.json"), "[]").unwrap();
    let text = openclaw(&gateway, &["doctor", "--fix", "--check"]).await;
    assert_eq!(text.code, Some(1), "{text:?}");
    assert!(text.out.contains(&format!("A gateway (pid {})", gateway.pid().unwrap())), "{text:?}");
    assert_eq!(std::fs::read_to_string(dir.join("x.jsonl")).unwrap(), foul);
}

#[tokio::test]
async fn a_state_directory_its_owner_cannot_write_is_made_writable_first() {
    let gateway = sound().await;
    let state = gateway.state_dir();
    std::fs::write(sessions_dir(&gateway).join("sessions.json"), "[]").unwrap();
    chmod(&state, 0o500);
    let found = unprivileged(&gateway, &["doctor"]).await;
    assert!(found.out.contains("Cannot be written by its owner"), "{found:?}");
    let fixed = unprivileged(&gateway, &["doctor", "--fix", "--check"]).await;
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    // Repairs that need the lock are made after that.
    assert_eq!(std::fs::read_to_string(sessions_dir(&gateway).join("sessions.json")).unwrap(), "{}");

    // So are directories, and what is written into the config.
    for name in ["agents", "credentials", "logs"] {
        let _ = std::fs::remove_dir_all(state.join(name));
    }
    let path = state.join("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["agent"] = json!({"skipBootstrap": true});
    std::fs::write(&path, config.to_string()).unwrap();
    chmod(&path, 0o400);
    chmod(&state, 0o500);
    let found = unprivileged(&gateway, &["doctor"]).await.out;
    assert!(found.contains("Let this user write in") && !found.contains("Move away"), "{found}");
    let fixed = unprivileged(&gateway, &["doctor", "--fix", "--check"]).await;
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    assert!(!fixed.out.contains("Could not be repaired"), "{fixed:?}");
    let config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(config["agents"]["defaults"]["skipBootstrap"], true, "{config}");
    assert!(["agents/main/sessions", "credentials"].iter().all(|dir| state.join(dir).is_dir()));
}

#[tokio::test]
async fn a_generated_token_in_a_new_config_is_seen_by_the_same_doctor() {
    let gateway = gateway().whole_config(Value::Null).prepare().unwrap();
    let made = openclaw(&gateway, &["doctor", "--generate-gateway-token"]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(
        made.out.contains("Generated a gateway token") && !made.out.contains("Missing config"),
        "{made:?}"
    );
    assert!(made.out.contains("set gateway.mode=local (current: unset)"), "{made:?}");
}

#[tokio::test]
async fn a_config_that_cannot_be_parsed_is_reported_and_left_alone() {
    let gateway = sound().await;
    let path = gateway.state_dir().join("openclaw.json");
    std::fs::write(&path, "{ oops").unwrap();
    let (left, document) = doctor(&gateway, &["--fix", "--check"]).await;
    assert_eq!(
        (left, document["exit"].as_i64()),
        (vec!["config.unreadable".to_owned()], Some(1)),
        "{document}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ oops");
    let without = openclaw(&gateway, &["doctor"]).await;
    assert_eq!(without.code, Some(0), "{without:?}");
    std::fs::write(path.with_added_extension("bak"), "{}").unwrap();
    for words in [&["doctor"][..], &["doctor", "--fix"]] {
        let told = openclaw(&gateway, words).await.out;
        assert!(told.contains("Fix it by hand, or put back") && told.contains("openclaw.json.bak"), "{told}");
    }
}

#[tokio::test]
async fn flags_for_parts_that_are_not_here_are_refused() {
    let gateway = gateway().prepare().unwrap();
    for flag in ["--deep", "--force"] {
        openclaw(&gateway, &["doctor", flag]).await.failed(&["not implemented yet", flag]);
    }
}

#[tokio::test]
async fn damaged_pairing_files_are_named_and_what_can_be_read_stays_paired() {
    let mut gateway = sound().await;
    gateway.start().await.unwrap();
    let login = || Login::token(TOKEN).device(DeviceIdentity::from_seed(7));
    WsClient::connect(gateway.port(), login()).await.unwrap();
    gateway.terminate().await.unwrap();
    let devices = gateway.state_dir().join("devices");
    let (paired, pending) = (devices.join("paired.json"), devices.join("pending.json"));
    let whole = std::fs::read_to_string(&paired).unwrap();
    let torn = &whole[..whole.len() - 1];
    std::fs::write(&paired, torn).unwrap();
    std::fs::write(&pending, "[]").unwrap();
    chmod(&pending, 0o600);

    let (found, document) = doctor(&gateway, &["--check"]).await;
    assert_eq!((found, &document["exit"]), (vec!["devices.damaged".to_owned(); 2], &json!(1)), "{document}");
    assert_eq!(std::fs::read_to_string(&paired).unwrap(), torn, "looking changes nothing");
    let text = openclaw(&gateway, &["doctor"]).await.out;
    assert!(text.contains("paired.json is damaged") && text.contains("pending.json is damaged"), "{text}");

    let (left, document) = doctor(&gateway, &["--fix", "--check"]).await;
    assert_eq!((left.len(), &document["exit"]), (0, &json!(0)), "{document}");
    let copy = |name: &str| {
        let files = std::fs::read_dir(&devices).unwrap().map(|file| file.unwrap().path());
        let start = format!("{name}.damaged-");
        files
            .into_iter()
            .find(|file| file.file_name().unwrap().to_str().unwrap().starts_with(&start))
            .unwrap()
    };
    for (name, was) in [("paired.json", torn), ("pending.json", "[]")] {
        let copy = copy(name);
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), was);
        assert!(document["notes"].to_string().contains(copy.to_str().unwrap()), "{document}");
    }
    assert_eq!(std::fs::read_to_string(&paired).unwrap(), whole);
    gateway.start().await.unwrap();
    WsClient::connect(gateway.port(), login()).await.unwrap();
}

#[tokio::test]
async fn what_commands_fail_over_is_not_in_order() {
    type Break = fn(&Path);
    let cases: &[(&str, Break, &str)] = &[
        ("identity.damaged", |state| write(&state.join("identity/device.json"), "{"), "identity/device.json"),
        (
            "credentials.damaged",
            |state| write(&state.join("agents/main/agent/auth-profiles.json"), "[]"),
            "not the JSON that belongs there",
        ),
        ("models.ignored", |state| write(&state.join("agents/main/agent/models.json"), "{"), "models.json"),
        ("workspace.unusable", |state| in_place_of(&state.join("workspace")), "agents.defaults.workspace"),
        ("state.logs", |state| in_place_of(&state.join("logs")), "logs is not a directory"),
    ];
    for (id, break_it, says) in cases {
        let gateway = sound().await;
        break_it(&gateway.state_dir());
        let (ids, document) = doctor(&gateway, &["--check"]).await;
        assert_eq!(ids, [*id], "{document}");
        assert!(document.to_string().contains(says), "{document}");
    }
    let gateway = sound().await;
    let dir = gateway.state_dir().join("agents/main/agent");
    write(&dir.join("models.json"), "{\"providers\": {");
    let (ids, document) = doctor(&gateway, &["--fix"]).await;
    assert_eq!(ids, [""; 0], "{document}");
    let mut names = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name());
    assert!(names.any(|name| name.to_string_lossy().starts_with("models.json.damaged-")), "{document}");
    let gateway = sound().await;
    let config = gateway.state_dir().join("openclaw.json");
    std::fs::remove_file(&config).unwrap();
    std::fs::create_dir(&config).unwrap();
    chmod(&config, 0o755);
    let (ids, document) = doctor(&gateway, &["--fix"]).await;
    assert_eq!(ids, ["config.invalid"], "{document}");
    assert_eq!(
        std::fs::metadata(&config).unwrap().permissions().mode() & 0o777,
        0o755,
        "it is no file to close"
    );
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    chmod(path.parent().unwrap(), 0o700);
    std::fs::write(path, text).unwrap();
    chmod(path, 0o600);
}

fn in_place_of(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir);
    write(dir, "");
}

/// A config that was written by hand has no directories beside it; those of an agent are made with its first message.
#[tokio::test]
async fn a_start_makes_the_credentials_directory_and_closes_the_others() {
    let mut gateway = gateway().prepare().unwrap();
    let logs = gateway.state_dir().join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    chmod(&logs, 0o777);
    gateway.start().await.unwrap();
    assert_eq!(std::fs::metadata(&logs).unwrap().permissions().mode() & 0o777, 0o700);
    gateway.terminate().await.unwrap();
    let (ids, document) = doctor(&gateway, &[]).await;
    assert_eq!(ids, ["sessions.dir-missing", "agent.dir-missing"], "{document}");
}
