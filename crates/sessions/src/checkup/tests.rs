//! Broken state directories: the findings about them, and that they are in order after the repairs.

use std::path::{Path, PathBuf};

use openclaw_protocol::AgentId;
use serde_json::{Value, json};

use super::*;
use crate::key::KeyRules;
use crate::layout::Layout;

const NOW: i64 = 1_770_631_932_123;
const HEADER: &str = r#"{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/w"}"#;
const ENTRY: &str = r#"{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":"2026-02-09T10:11:12.123Z","message":{"role":"user","content":"hi"}}"#;

/// A state directory in order.
struct Dir {
    root: tempfile::TempDir,
    premises: Premises,
}

impl Dir {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join(".openclaw");
        let premises = Premises {
            state: OldState {
                layout: Layout::new(&state, root.path(), None),
                rules: KeyRules::default(),
                agents: vec![AgentId::default()],
                agent_dir: state.join("agents/main/agent"),
                credentials_dir: state.join("credentials"),
            },
            home: root.path().to_path_buf(),
            config_path: state.join("openclaw.json"),
            agent_dirs: vec![state.join("agents/main/agent")],
            is_running: false,
            is_configured: true,
            archive_orphans: false,
            now: NOW,
        };
        for dir in ["agents/main/agent", "agents/main/sessions", "credentials"] {
            crate::disk::create_parent(&crate::disk::RealDisk, &state.join(dir).join("x")).unwrap();
        }
        let dir = Self { root, premises };
        dir.write("openclaw.json", "{}");
        dir.store(&json!({"agent:main:main": {"sessionId": "a", "updatedAt": 5, "totalTokens": 5}}));
        dir.write("agents/main/sessions/a.jsonl", &format!("{HEADER}\n{ENTRY}\n"));
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.premises.state.layout.state_dir().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        crate::backup::make_private(&path).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| format!("{name}: {error}"))
    }

    fn store(&self, rows: &Value) {
        self.write("agents/main/sessions/sessions.json", &rows.to_string());
    }

    fn rows(&self) -> Value {
        serde_json::from_str(&self.read("agents/main/sessions/sessions.json")).unwrap()
    }

    fn found(&self) -> Vec<Finding> {
        check(&self.premises)
    }

    fn ids(&self) -> Vec<&'static str> {
        self.found().iter().map(|finding| finding.id).collect()
    }

    /// Carries everything out that can be done. Returns where the backup is.
    fn repair(&self) -> Option<PathBuf> {
        let mut backup = Backup::new(self.premises.state.layout.state_dir(), NOW);
        for finding in self.found() {
            for action in &finding.repairs {
                repair(&self.premises, action, &mut backup)
                    .unwrap_or_else(|error| panic!("{action:?}: {error}"));
            }
        }
        backup.dir().map(Path::to_path_buf)
    }

    /// Checks that exactly this is found, that repairing ends it, and that what was changed is in the backup.
    #[track_caller]
    fn is_mended(&self, ids: &[&str]) -> Option<PathBuf> {
        assert_eq!(self.ids(), ids, "{:#?}", self.found());
        let backup = self.repair();
        assert_eq!(self.ids(), [""; 0], "{:#?}", self.found());
        backup
    }
}

#[test]
fn a_directory_in_order_has_no_findings() {
    assert_eq!(Dir::new().is_mended(&[]), None);
}

#[test]
fn missing_directories_are_made() {
    let dir = Dir::new();
    std::fs::remove_dir_all(dir.path("")).unwrap();
    dir.is_mended(&[
        "state.dir-missing",
        "sessions.dir-missing",
        "agent.dir-missing",
        "credentials.dir-missing",
    ]);
}

#[cfg(unix)]
#[test]
fn what_others_may_read_is_made_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = Dir::new();
    let set = |name: &str, mode: u32| {
        std::fs::set_permissions(dir.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("", 0o755);
    set("openclaw.json", 0o644);
    set("credentials", 0o750);
    set("agents/main/sessions/a.jsonl", 0o604);
    set("agents/main/sessions/sessions.json", 0o666);
    dir.is_mended(&[
        "state.permissions",
        "config.permissions",
        "state.dir-permissions",
        "state.file-permissions",
    ]);
    set("agents/main/sessions/a.jsonl", 0o400);
    dir.is_mended(&["state.not-writable"]);
    let mode = std::fs::metadata(dir.path("agents/main/sessions/a.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn other_state_directories_are_named() {
    let dir = Dir::new();
    std::fs::create_dir(dir.root.path().join(".moltbot")).unwrap();
    assert_eq!(dir.ids(), [""; 0], "an empty one is none");
    std::fs::create_dir(dir.root.path().join(".moltbot/agents")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path(""), dir.root.path().join(".clawdbot")).unwrap();
    assert_eq!(dir.ids(), ["state.several"]);
    assert!(dir.found()[0].message.contains(".moltbot") && !dir.found()[0].message.contains(".clawdbot"));
}

#[test]
fn a_torn_store_is_written_anew_with_what_can_be_read() {
    let whole = json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": 5}, "agent:main:b": {"sessionId": "b", "updatedAt": 5},
    });
    let text = whole.to_string();
    let rows: &[(&str, usize)] =
        &[(&text[..text.len() - 10], 1), ("[1, 2]", 0), ("", 0), ("not json", 0), ("{", 0)];
    for (torn, left) in rows {
        let dir = Dir::new();
        std::fs::remove_file(dir.path("agents/main/sessions/a.jsonl")).unwrap();
        dir.write("agents/main/sessions/sessions.json", torn);
        let backup = dir.is_mended(&["store.damaged"]).unwrap();
        assert_eq!(dir.rows().as_object().unwrap().len(), *left, "{torn}");
        let kept = std::fs::read_to_string(backup.join("agents/main/sessions/sessions.json")).unwrap();
        assert_eq!(kept, *torn);
    }
}

#[test]
fn a_foul_journal_gives_up_what_it_has() {
    let dir = Dir::new();
    let good = json!([{"key": "agent:main:j", "new": true, "set": {"sessionId": "j", "updatedAt": 6}}]);
    let name = "agents/main/sessions/sessions.json.journal.7";
    dir.write(name, &format!("oops\n{good}\n[{{\"key\":"));
    let backup = dir.is_mended(&["store.journal"]).unwrap();
    assert_eq!(dir.rows()["agent:main:j"]["sessionId"], "j");
    assert!(!dir.path(name).exists() && backup.join(name).exists());
}

#[test]
fn rows_are_put_in_order() {
    let dir = Dir::new();
    let long = "x".repeat(10_000);
    dir.store(&json!({
        "main": {"sessionId": "a", "updatedAt": 9, "totalTokens": 1},
        "agent:main:main": {"sessionId": "z", "updatedAt": 5},
        "agent:main:x": {"updatedAt": 5}, "note": 3,
        "agent:main:t": {"sessionId": "t", "updatedAt": "now"},
        "agent:main:l1": {"sessionId": "l1", "updatedAt": 1, "label": "L", "totalTokens": "many"},
        "agent:main:l2": {"sessionId": "l2", "updatedAt": 2, "label": "L"},
        long.as_str(): {"sessionId": "long", "updatedAt": 2},
    }));
    let expect = [
        "store.fields",
        "store.keys-unreadable",
        "store.keys-old",
        "store.duplicates",
        "store.rows",
        "store.times",
        "store.labels",
    ];
    assert_eq!(dir.ids(), expect, "{:#?}", dir.found());
    dir.repair();
    assert_eq!(dir.ids(), ["store.fields", "store.keys-unreadable"], "these are for a person");
    let rows = dir.rows();
    assert_eq!(rows.as_object().unwrap().len(), 5, "{rows}");
    assert_eq!(rows["agent:main:main"]["sessionId"], "a");
    assert_eq!(rows["agent:main:t"]["updatedAt"], NOW);
    assert_eq!((rows["agent:main:l1"].get("label"), &rows["agent:main:l2"]["label"]), (None, &json!("L")));
    assert_eq!(rows["agent:main:l1"]["totalTokens"], "many");
}

#[test]
fn transcripts_are_mended() {
    let name = "agents/main/sessions/a.jsonl";
    let good = format!("{HEADER}\n{ENTRY}\n");
    let made = r#"{"type":"session","version":3,"id":"a","timestamp":"2026-02-09T10:11:12.123Z","cwd":""}"#;
    let rows = [
        (format!("{HEADER}\nnonsense\n\0\0\0\n{ENTRY}\n"), "transcript.lines", good.clone()),
        (format!("{HEADER}\n{ENTRY}\n{{\"type\":\"mess"), "transcript.lines", good.clone()),
        (format!("{ENTRY}\n{ENTRY}\n"), "transcript.header", format!("{made}\n{ENTRY}\n{ENTRY}\n")),
        (format!("{ENTRY}\n{HEADER}\n"), "transcript.header", good),
    ];
    for (text, id, after) in rows {
        let dir = Dir::new();
        dir.write(name, &text);
        let backup = dir.is_mended(&[id]).unwrap();
        assert_eq!(dir.read(name), after);
        assert_eq!(std::fs::read_to_string(backup.join(name)).unwrap(), text);
    }
}

#[test]
fn a_transcript_without_anything_is_set_aside() {
    let dir = Dir::new();
    dir.write("agents/main/sessions/b.jsonl", "nothing\n");
    assert_eq!(dir.ids(), ["transcript.header", "transcript.orphans"]);
    let backup = dir.repair().unwrap();
    assert_eq!(dir.ids(), [""; 0]);
    assert!(backup.join("agents/main/sessions/b.jsonl").exists());
}

#[test]
fn orphans_stay_unless_they_are_to_be_archived() {
    let mut dir = Dir::new();
    for name in ["b.jsonl", "a-topic-5.jsonl"] {
        dir.write(&format!("agents/main/sessions/{name}"), &format!("{HEADER}\n"));
    }
    assert_eq!(dir.ids(), ["transcript.orphans"]);
    assert!(dir.found()[0].message.contains("1 transcript: b.jsonl"), "{:?}", dir.found());
    dir.repair();
    assert_eq!(dir.ids(), ["transcript.orphans"]);
    dir.premises.archive_orphans = true;
    dir.is_mended(&["transcript.orphans"]);
    assert!(dir.path("agents/main/sessions/b.jsonl.deleted.2026-02-09T10-12-12.123Z").exists());
}

#[test]
fn sessions_without_their_transcript_are_named() {
    let dir = Dir::new();
    dir.store(&json!({
        "agent:main:main": {"sessionId": "a", "updatedAt": 5, "totalTokens": 5},
        "agent:main:gone": {"sessionId": "gone", "updatedAt": 6, "totalTokens": 5},
        "agent:main:only-set": {"sessionId": "set", "updatedAt": 7},
    }));
    dir.write("agents/main/sessions/a.jsonl", &format!("{HEADER}\n"));
    assert_eq!(dir.ids(), ["transcript.missing", "transcript.main-empty"]);
    assert!(
        dir.found()[0].message.starts_with("1/2 recent sessions have no transcript, such as agent:main:gone")
    );
}

#[test]
fn what_dead_processes_left_is_cleared() {
    let dir = Dir::new();
    let parent = nix::unistd::getppid();
    let uuid = "0b0b7f5c-7f3c-4c43-9b8e-6f7b1c2d3e4f";
    dir.write("agents/main/sessions/sessions.json.lock", "{\"pid\":2147483646,\"startedAt\":1}");
    dir.write("agents/main/sessions/a.jsonl.lock", "{\"pid\":2147483646}");
    dir.write("agents/main/sessions/b.jsonl.lock", &format!("{{\"pid\":{parent}}}"));
    dir.write(&format!("agents/main/sessions/sessions.json.2147483646.{uuid}.tmp"), "left");
    dir.write(&format!("agents/main/sessions/sessions.json.{parent}.{uuid}.tmp"), "in use");
    let backup = dir.is_mended(&["lock.stale", "files.temporary"]).unwrap();
    assert!(dir.path("agents/main/sessions/b.jsonl.lock").exists());
    assert!(dir.path(&format!("agents/main/sessions/sessions.json.{parent}.{uuid}.tmp")).exists());
    assert!(backup.join(format!("agents/main/sessions/sessions.json.2147483646.{uuid}.tmp")).exists());
}

#[test]
fn locks_of_the_system_stay() {
    let dir = Dir::new();
    for name in ["openclaw.json.lock", "exec-approvals.json.lock"] {
        dir.write(name, "");
        let lock = std::fs::File::options().write(true).open(dir.path(name)).unwrap();
        lock.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(dir.ids(), [""; 0], "{name}");
    }
}

#[test]
fn a_store_that_is_a_pipe_is_reported_and_not_waited_for() {
    let dir = Dir::new();
    let store = dir.path("agents/main/sessions/sessions.json");
    std::fs::remove_file(&store).unwrap();
    nix::unistd::mkfifo(&store, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).unwrap();
    let found = dir.found();
    let about = found.iter().find(|finding| finding.id == "store.unreadable").unwrap();
    assert!(about.message.contains("is a pipe, not a regular file"), "{}", about.message);
}

#[test]
fn state_of_older_versions_is_moved() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("sessions")).unwrap();
    std::fs::create_dir(dir.path("agent")).unwrap();
    dir.write("sessions/sessions.json", r#"{"group:abc": {"sessionId": "g", "updatedAt": 3}}"#);
    dir.write("sessions/g.jsonl", &format!("{HEADER}\n{ENTRY}\n"));
    dir.write("agent/auth-profiles.json", "{}");
    dir.write("credentials/creds.json", "{}");
    dir.is_mended(&["old.sessions", "old.agent-dir", "old.whatsapp"]);
    assert_eq!(dir.rows()["agent:main:unknown:group:abc"]["sessionId"], "g");
    assert!(dir.path("agents/main/sessions/g.jsonl").exists());
}

#[test]
fn without_a_config_stores_are_left_alone() {
    let mut dir = Dir::new();
    dir.write("agents/main/sessions/sessions.json", "[]");
    dir.premises.is_configured = false;
    assert_eq!(dir.ids(), [""; 0]);
}

#[test]
fn beside_a_gateway_only_modes_and_directories_are_changed() {
    let path = || PathBuf::from("/x");
    let safe = [Repair::MakeDir(path()), Repair::Chmod { path: path(), mode: 0o600 }];
    let unsafe_ones = [
        Repair::MigrateOldState,
        Repair::TidyStore { store: path(), agent: AgentId::default() },
        Repair::MendTranscript(path()),
        Repair::Archive(vec![path()]),
        Repair::RemoveLock(path()),
        Repair::SetAside(vec![path()]),
    ];
    assert!(safe.iter().all(Repair::is_safe_beside_a_gateway));
    assert!(!unsafe_ones.iter().any(Repair::is_safe_beside_a_gateway));
}
