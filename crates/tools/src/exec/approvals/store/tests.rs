use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::super::file::Policy;
use super::*;

struct Bench {
    dir: tempfile::TempDir,
    store: ApprovalsStore,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = ApprovalsStore::new(&dir.path().join("state"), dir.path());
        Self { dir, store }
    }

    fn own(&self) -> PathBuf {
        self.dir.path().join("state/exec-approvals.json")
    }

    fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn with_default(security: &str) -> ApprovalsFile {
    let defaults: Policy = serde_json::from_value(json!({"security": security})).unwrap();
    ApprovalsFile { defaults, ..ApprovalsFile::default() }
}

#[test]
fn a_missing_file_says_nothing() {
    let bench = Bench::new();
    let loaded = bench.store.load().unwrap();
    let expect =
        Loaded { path: bench.own(), exists: false, hash: hash_of(""), file: ApprovalsFile::default() };
    assert_eq!(loaded, expect);
}

#[test]
fn the_file_at_home_is_read_while_it_is_the_only_one_and_never_written() {
    let bench = Bench::new();
    let at_home = bench.dir.path().join(".openclaw/exec-approvals.json");
    let text = "{\"version\":1,\"socket\":{\"token\":\"t\"},\"defaults\":{\"security\":\"deny\",\"ask\":\"always\"}}";
    bench.write(&at_home, text);
    let seen = bench.store.load().unwrap();
    assert_eq!(seen.path, at_home);
    assert!(bench.store.is_shared());

    let begun = bench.store.update(|file| file.defaults.ask = None).unwrap();
    assert_eq!((&begun.path, &bench.store.load().unwrap()), (&bench.own(), &begun));
    assert_eq!(begun.file, ApprovalsFile { socket: seen.file.socket.clone(), ..with_default("deny") });
    assert!(!bench.store.is_shared());

    fs::remove_file(bench.own()).unwrap();
    assert!(matches!(bench.store.replace(with_default("full"), None), Err(ApprovalsError::HashRequired)));
    let replaced = bench.store.replace(with_default("full"), Some(&seen.hash)).unwrap();
    assert_eq!((&replaced.path, replaced.file.socket), (&bench.own(), seen.file.socket));
    assert_eq!(fs::read_to_string(&at_home).unwrap(), text, "it belongs to the instance at home");
    let names = fs::read_dir(at_home.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1, "nothing is put beside it");
}

#[test]
fn in_the_state_directory_at_home_there_is_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join(".openclaw/exec-approvals.json");
    fs::create_dir(dir.path().join(".openclaw")).unwrap();
    fs::write(&own, "{\"version\":1}").unwrap();
    let store = ApprovalsStore::new(&dir.path().join(".openclaw"), dir.path());
    assert!(!store.is_shared());
    assert_eq!(store.update(|file| assert!(file.allow("main", "/a", &mut mint))).unwrap().path, own);
    assert!(fs::read_to_string(own).unwrap().contains("/a"));
}

#[test]
fn a_file_that_can_not_be_used_is_an_error_that_names_it() {
    let bench = Bench::new();
    let at_home = bench.dir.path().join(".openclaw/exec-approvals.json");
    bench.write(&at_home, "{\"version\":1}");
    for text in ["", "{\"version\":1,", "{\"version\":9}"] {
        bench.write(&bench.own(), text);
        let error = bench.store.load().unwrap_err();
        assert!(matches!(error, ApprovalsError::Invalid { .. }), "{text:?}");
        assert!(error.to_string().contains(&bench.own().display().to_string()), "{error}");
        assert!(bench.store.update(|_| ()).is_err());
        assert_eq!(fs::read_to_string(bench.own()).unwrap(), text, "it is left as it was");
    }
    fs::remove_file(bench.own()).unwrap();
    std::os::unix::fs::symlink("/nowhere/approvals", bench.own()).unwrap();
    let error = bench.store.load().unwrap_err();
    assert!(
        matches!(error, ApprovalsError::Io { .. }),
        "a link that leads nowhere is no missing file: {error}"
    );
    fs::remove_file(bench.own()).unwrap();
    fs::create_dir(bench.own()).unwrap();
    assert!(matches!(bench.store.load(), Err(ApprovalsError::Io { .. })));
}

#[test]
fn only_who_saw_the_file_replaces_it() {
    let bench = Bench::new();
    let first = bench.store.replace(with_default("deny"), None).unwrap();
    assert_eq!(fs::metadata(bench.own()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(first.hash, hash_of(&fs::read_to_string(bench.own()).unwrap()));
    let says = |hash: Option<&str>| bench.store.replace(with_default("full"), hash).unwrap_err().to_string();
    assert_eq!(says(None), "exec approvals base hash required; re-run exec.approvals.get and retry");
    assert_eq!(
        says(Some("bad")),
        "exec approvals changed since last load; re-run exec.approvals.get and retry"
    );
    let second = bench.store.replace(with_default("allowlist"), Some(&first.hash)).unwrap();
    assert_ne!(second.hash, first.hash);
    assert!(matches!(
        bench.store.replace(with_default("full"), Some(&first.hash)),
        Err(ApprovalsError::Changed)
    ));
    assert_eq!(bench.store.load().unwrap(), second);
}

#[test]
fn a_file_from_a_client_keeps_the_socket_and_gets_ids() {
    let bench = Bench::new();
    bench.write(&bench.own(), "{\"version\":1,\"socket\":{\"path\":\"/s\",\"token\":\"t\"}}");
    let seen = bench.store.load().unwrap();
    let mut next = seen.file.redacted();
    let agent = serde_json::from_value(json!({"allowlist": [{"pattern": "/usr/bin/git"}]})).unwrap();
    next.agents.insert("main".into(), agent);
    let written = bench.store.replace(next, Some(&seen.hash)).unwrap();
    assert_eq!(written.file.socket, seen.file.socket);
    assert_eq!(written.file.agents["main"].allowlist[0].id.len(), 36);
    assert_eq!(bench.store.load().unwrap(), written);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let store = &bench.store;
            scope.spawn(move || {
                for at in 0..5 {
                    store
                        .update(|file| assert!(file.allow("main", &format!("/{writer}/{at}"), &mut mint)))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(bench.store.load().unwrap().file.agents["main"].allowlist.len(), 40);
}

#[test]
fn a_link_stays_a_link() {
    let bench = Bench::new();
    let target = bench.dir.path().join("elsewhere.json");
    bench.write(&target, "{\"version\":1}");
    fs::create_dir(bench.dir.path().join("state")).unwrap();
    std::os::unix::fs::symlink(&target, bench.own()).unwrap();
    bench.store.update(|file| assert!(file.allow("main", "/a", &mut mint))).unwrap();
    assert!(bench.own().is_symlink() && fs::read_to_string(&target).unwrap().contains("/a"));
}
