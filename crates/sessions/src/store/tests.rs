use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::layout::Layout;

struct Bench {
    dir: tempfile::TempDir,
    options: FileStoreOptions,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path(), dir.path(), None);
        let mut options = FileStoreOptions::new(layout, KeyRules::default(), Vec::new());
        // Nothing is written on its own: tests flush.
        options.quiet = Duration::from_secs(3600);
        options.at_most = Duration::from_secs(3600);
        Self { dir, options }
    }

    fn with_file(text: &str) -> Self {
        let bench = Self::new();
        std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
        std::fs::write(bench.path(), text).unwrap();
        bench
    }

    fn open(&self) -> FileStore {
        FileStore::open(self.options.clone()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.options.layout.store_path(&AgentId::default())
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path().parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn key(text: &str) -> SessionKey {
    KeyRules::default().canonical(text).unwrap()
}

fn set(patch: Value) -> Change {
    Box::new(move |edit| {
        for (name, value) in patch.as_object().unwrap() {
            if value.is_null() {
                edit.entry.clear_field(name)
            } else {
                edit.entry.set_field(name, value.clone())
            }
        }
        Ok(())
    })
}

async fn row(store: &dyn SessionStore, text: &str) -> Option<Value> {
    store.get(&key(text)).await.unwrap().map(|row| serde_json::to_value(&*row.entry).unwrap())
}

impl contract::Storage for Bench {
    fn open(&self) -> Arc<dyn SessionStore> {
        Arc::new(FileStore::open(self.options.clone()).unwrap())
    }
}

#[tokio::test]
async fn the_file_store_keeps_every_law() {
    contract::keeps_every_law(Bench::new).await;
}

impl contract::Storage for StoredRows {
    fn open(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.open())
    }
}

#[tokio::test]
async fn the_store_in_memory_keeps_every_law() {
    contract::keeps_every_law(|| StoredRows::new(KeyRules::default())).await;
}

#[tokio::test]
async fn one_shared_file_keeps_every_law() {
    contract::keeps_every_law(|| {
        let mut bench = Bench::new();
        let path = bench.dir.path().join("all.json");
        bench.options.layout = Layout::new(bench.dir.path(), bench.dir.path(), path.to_str());
        bench
    })
    .await;
}

#[tokio::test]
async fn a_file_for_each_agent_by_template_keeps_every_law() {
    contract::keeps_every_law(|| {
        let mut bench = Bench::new();
        let path = bench.dir.path().join("stores/{agentId}/of-{agentId}.json");
        bench.options.layout = Layout::new(bench.dir.path(), bench.dir.path(), path.to_str());
        bench.options.agents = vec![AgentId::normalize("ops")];
        bench
    })
    .await;
}

#[tokio::test]
async fn the_file_is_openclaws_own() {
    let bench = Bench::new();
    let store = bench.open();
    store.update(&key("main"), set(json!({"sessionId": "a", "updatedAt": 5}))).await.unwrap();
    assert!(!bench.path().exists(), "an update costs no rewrite");
    store.flush().await.unwrap();
    let expect = "{\n  \"agent:main:main\": {\n    \"sessionId\": \"a\",\n    \"updatedAt\": 5\n  }\n}";
    assert_eq!(bench.text(), expect);
    assert_eq!(bench.files(), ["sessions.json"], "no journal, lock or temporary file is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&bench.path()), 0o600);
        assert_eq!(mode(bench.path().parent().unwrap()), 0o700);
    }
}

const TWO_ROWS: &str = r#"{
  "agent:main:zeta": {
    "updatedAt": 1,
    "novel": {
      "b": 1,
      "a": []
    },
    "sessionId": "z"
  },
  "odd": 5,
  "agent:main:telegram:direct:7": {
    "sessionId": "t",
    "updatedAt": 2
  }
}"#;

#[tokio::test]
async fn only_what_changed_changes_in_a_file() {
    let bench = Bench::with_file(TWO_ROWS);
    let store = bench.open();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 2);
    store.update(&key("zeta"), Box::new(|_| Ok(()))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(
        (bench.text().as_str(), bench.files().len()),
        (TWO_ROWS, 1),
        "reading and idle updates write nothing"
    );
    store.update(&key("agent:main:telegram:dm:7"), set(json!({"updatedAt": 3}))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(bench.text(), TWO_ROWS.replace("\"updatedAt\": 2", "\"updatedAt\": 3"));
}

/// Decision 1: a row keeps its spelling, and its key is reported so, however it is asked for.
#[tokio::test]
async fn a_key_is_told_as_the_file_spells_it() {
    const DIRECT: &str = "agent:main:telegram:direct:7";
    const DM: &str = "agent:main:telegram:dm:7";
    let bench = Bench::with_file(TWO_ROWS);
    let store = bench.open();
    let told = |row: Row| row.key.to_string();
    for (at, asked) in [DM, DIRECT].into_iter().enumerate() {
        let key = &key(asked);
        assert_eq!(key.to_string(), DM, "what is asked for says nothing of the row");
        assert_eq!(store.get(key).await.unwrap().map(told).as_deref(), Some(DIRECT));
        let label = format!("l{at}");
        assert_eq!(told(store.update(key, set(json!({"label": label}))).await.unwrap()), DIRECT);
        assert_eq!(told(store.update(key, Box::new(|_| Ok(()))).await.unwrap()), DIRECT);
        assert_eq!(told(store.record(key, set(json!({"updatedAt": 5 + at}))).await.unwrap()), DIRECT);
        assert_eq!(spelled(&store, key.clone()).await.spelled(), DIRECT);
        for query in [
            Query::newest(1),
            Query { label: Some(label), ..Query::default() },
            Query { search: Some("telegram:direct".to_owned()), ..Query::default() },
            Query { search: Some("telegram:dm".to_owned()), ..Query::default() },
        ] {
            let found: Vec<String> =
                store.select(Rows::All, &query).await.unwrap().rows.into_iter().map(told).collect();
            assert_eq!(found, [DIRECT], "{query:?}");
        }
    }
    store.flush().await.unwrap();
    assert_eq!(
        bench.json().as_object().unwrap().keys().collect::<Vec<_>>(),
        ["agent:main:zeta", "odd", DIRECT]
    );

    assert_eq!(store.delete(&key(DM)).await.unwrap().map(told).as_deref(), Some(DIRECT));
    let gone = SessionKey::parse(DIRECT).unwrap();
    assert_eq!((gone.spelled(), spelled(&store, gone.clone()).await.spelled()), (DIRECT, DM));
    assert_eq!(told(store.update(&gone, set(json!({"sessionId": "n"}))).await.unwrap()), DM);
    store.flush().await.unwrap();
    assert_eq!(bench.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["agent:main:zeta", "odd", DM]);
}

#[tokio::test]
async fn rows_of_old_versions_move_to_their_key_when_changed() {
    let bench = Bench::with_file(
        r#"{"main":{"sessionId":"new","updatedAt":9},"agent:main:main":{"sessionId":"old","updatedAt":1}}"#,
    );
    let store = bench.open();
    assert_eq!(row(&store, "main").await.unwrap()["sessionId"], "new");
    store.update(&key("main"), set(json!({"systemSent": true}))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(
        bench.json(),
        json!({"agent:main:main": {"sessionId": "new", "updatedAt": 9, "systemSent": true}})
    );
}

#[tokio::test]
async fn deleting_a_session_removes_every_row_of_it() {
    let bench =
        Bench::with_file(r#"{"main":{"updatedAt":1},"agent:main:main":{"updatedAt":2},"agent:main:x":{}}"#);
    let store = bench.open();
    store.delete(&key("main")).await.unwrap().unwrap();
    assert_eq!(row(&store, "main").await, None);
    store.flush().await.unwrap();
    assert_eq!(bench.json(), json!({"agent:main:x": {}}));
}

#[tokio::test]
async fn what_was_acknowledged_survives_without_a_snapshot() {
    let bench = Bench::with_file(TWO_ROWS);
    {
        let store = bench.open();
        store.update(&key("zeta"), set(json!({"label": "l"}))).await.unwrap();
        store.update(&key("new"), set(json!({"sessionId": "n"}))).await.unwrap();
        store.delete(&key("agent:main:telegram:dm:7")).await.unwrap();
    }
    assert_eq!(bench.text(), TWO_ROWS);
    let store = bench.open();
    assert_eq!(row(&store, "zeta").await.unwrap()["label"], "l");
    assert_eq!(row(&store, "new").await.unwrap()["sessionId"], "n");
    assert_eq!(row(&store, "agent:main:telegram:dm:7").await, None);
    store.close().await.unwrap();
    assert_eq!(bench.files(), ["sessions.json"]);
    let keys: Vec<String> = bench.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["agent:main:zeta", "odd", "agent:main:new"]);
}

#[tokio::test]
async fn a_journal_torn_at_any_byte_keeps_the_updates_before() {
    let bench = Bench::new();
    {
        let store = bench.open();
        for n in 0..3 {
            store
                .update(&key(&format!("s{n}")), set(json!({"sessionId": format!("id{n}"), "updatedAt": n})))
                .await
                .unwrap();
        }
    }
    let journal = bench.path().with_file_name("sessions.json.journal.1");
    let whole = std::fs::read(&journal).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(&journal, &whole[..cut]).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let store = bench.open();
        assert_eq!(store.rows(Rows::All).await.unwrap().len(), lines, "{cut}");
        // The next update must be as durable as if nothing had been torn.
        store.update(&key("after"), set(json!({"sessionId": "after"}))).await.unwrap();
        drop(store);
        let again = bench.open();
        assert_eq!(again.rows(Rows::All).await.unwrap().len(), lines + 1, "{cut}");
        for name in bench.files().iter().filter(|name| **name != "sessions.json.journal.1") {
            std::fs::remove_file(bench.path().with_file_name(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn edits_by_hand_are_seen_and_merged() {
    let bench = Bench::with_file(
        r#"{"agent:main:a":{"sessionId":"a","updatedAt":1},"agent:main:b":{"sessionId":"b","updatedAt":1}}"#,
    );
    let store = bench.open();
    store.update(&key("a"), set(json!({"inputTokens": 5}))).await.unwrap();
    store.update(&key("c"), set(json!({"sessionId": "c", "updatedAt": 1}))).await.unwrap();
    let by_hand = r#"{"agent:main:a":{"sessionId":"a","updatedAt":1,"sendPolicy":"deny"},"agent:main:d":{"sessionId":"d","updatedAt":1}}"#;
    std::fs::write(bench.path(), by_hand).unwrap();
    assert_eq!(row(&store, "b").await, None, "the removed row is gone");
    assert_eq!(row(&store, "d").await.unwrap()["sessionId"], "d");
    let merged = json!({"sessionId": "a", "updatedAt": 1, "sendPolicy": "deny", "inputTokens": 5});
    assert_eq!(row(&store, "a").await.unwrap(), merged);
    store.flush().await.unwrap();
    let expect = json!({"agent:main:a": merged, "agent:main:d": {"sessionId": "d", "updatedAt": 1},
                        "agent:main:c": {"sessionId": "c", "updatedAt": 1}});
    assert_eq!(bench.json(), expect);
}

#[tokio::test]
async fn a_store_that_is_removed_is_empty_and_comes_back_with_the_next_update() {
    let bench = Bench::with_file(TWO_ROWS);
    let store = bench.open();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 2);
    std::fs::remove_file(bench.path()).unwrap();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 0);
    store.update(&key("a"), set(json!({"sessionId": "a", "updatedAt": 1}))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(bench.json(), json!({"agent:main:a": {"sessionId": "a", "updatedAt": 1}}));
}

#[tokio::test]
async fn a_store_cut_in_half_is_kept_in_a_copy_and_recovered() {
    let cut = &TWO_ROWS[..TWO_ROWS.len() - 20];
    let bench = Bench::with_file(cut);
    let store = bench.open();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 1);
    let copies = |bench: &Bench| -> Vec<String> {
        bench.files().into_iter().filter(|name| name.contains(".damaged-")).collect()
    };
    let copy = copies(&bench);
    assert_eq!(copy.len(), 1);
    assert_eq!(std::fs::read_to_string(bench.path().with_file_name(&copy[0])).unwrap(), cut);
    assert_eq!(bench.text(), cut, "reading does not change the file");
    drop(store);
    let store = bench.open();
    store.update(&key("zeta"), set(json!({"updatedAt": 9}))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(bench.json()["agent:main:zeta"]["updatedAt"], 9);
    assert_eq!(copies(&bench), copy, "one copy is enough");
}

#[tokio::test]
async fn a_file_broken_while_running_is_kept_before_it_is_replaced() {
    let bench = Bench::with_file(TWO_ROWS);
    let store = bench.open();
    store.update(&key("zeta"), set(json!({"updatedAt": 9}))).await.unwrap();
    std::fs::write(bench.path(), "[1, 2").unwrap();
    assert_eq!(row(&store, "zeta").await.unwrap()["updatedAt"], 9);
    store.flush().await.unwrap();
    assert_eq!(bench.json().as_object().unwrap().len(), 3);
    let copy = bench.files().into_iter().find(|name| name.contains(".damaged-")).unwrap();
    assert_eq!(std::fs::read_to_string(bench.path().with_file_name(copy)).unwrap(), "[1, 2");
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_refuses_updates_and_changes_nothing() {
    let bench = Bench::new();
    // A file where the directory should be: it fails for every user.
    std::fs::create_dir_all(bench.dir.path().join("agents/main")).unwrap();
    let blocker = bench.dir.path().join("agents/main/sessions");
    std::fs::write(&blocker, "").unwrap();
    let store = bench.open();
    let error = store.update(&key("main"), set(json!({}))).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("sessions.json"), "{error}");
    std::fs::remove_file(&blocker).unwrap();
    assert_eq!(row(&store, "main").await, None);
    store.update(&key("main"), set(json!({}))).await.unwrap();
}

#[tokio::test]
async fn the_lock_of_a_living_process_holds_the_snapshot_up_but_no_update() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
    let lock = bench.path().with_file_name("sessions.json.lock");
    let parent = nix::unistd::getppid();
    std::fs::write(&lock, format!("{{\"pid\":{parent},\"startedAt\":{}}}", crate::time::now_ms())).unwrap();
    let store = bench.open();
    store.update(&key("main"), set(json!({"sessionId": "a"}))).await.unwrap();
    let flushing = {
        let store = store.clone();
        tokio::spawn(async move { store.flush().await })
    };
    store.update(&key("main"), set(json!({"sessionId": "b"}))).await.unwrap();
    assert!(!bench.path().exists() && lock.exists());
    std::fs::remove_file(&lock).unwrap();
    flushing.await.unwrap().unwrap();
    assert_eq!(bench.json()["agent:main:main"]["sessionId"], "b");
    assert!(!lock.exists());
}

#[tokio::test]
async fn a_lock_of_a_dead_process_is_taken_over() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
    let lock = bench.path().with_file_name("sessions.json.lock");
    std::fs::write(&lock, r#"{"pid":2147483646,"startedAt":1}"#).unwrap();
    let store = bench.open();
    store.update(&key("main"), set(json!({"sessionId": "a"}))).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(bench.files(), ["sessions.json"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_updates_are_all_kept() {
    let bench = Bench::new();
    let store = bench.open();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            for turn in 0..25 {
                let count: Change = Box::new(|edit| {
                    edit.entry.input_tokens = Some(edit.entry.input_tokens.unwrap_or(0) + 1);
                    Ok(())
                });
                store.update(&key("shared"), count).await.unwrap();
                store
                    .update(&key(&format!("own-{task}-{turn}")), set(json!({"updatedAt": turn})))
                    .await
                    .unwrap();
                if turn == 12 {
                    store.flush().await.unwrap();
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(row(&store, "shared").await.unwrap()["inputTokens"], 200);
    drop(store);
    let again = bench.open();
    assert_eq!(row(&again, "shared").await.unwrap()["inputTokens"], 200);
    assert_eq!(again.rows(Rows::All).await.unwrap().len(), 201);
}

#[tokio::test]
async fn what_is_no_object_is_kept_in_a_copy_and_the_store_begins_empty() {
    for text in ["[]", "", "null", "[1, 2", "{\"agent:main:a\": {\"sessionId\": \"a\"", "\u{0}\u{0}\u{0}"] {
        let bench = Bench::with_file(text);
        let store = bench.open();
        assert_eq!(store.rows(Rows::All).await.unwrap().len(), 0, "{text:?}");
        assert_eq!(bench.text(), text, "reading does not change the file");
        store.update(&key("b"), set(json!({"sessionId": "b", "updatedAt": 1}))).await.unwrap();
        store.close().await.unwrap();
        assert_eq!(bench.json(), json!({"agent:main:b": {"sessionId": "b", "updatedAt": 1}}), "{text:?}");
        let copies: Vec<String> =
            bench.files().into_iter().filter(|name| name.contains(".damaged-")).collect();
        assert_eq!((copies.len(), bench.files().len()), (1, 2), "{text:?}");
        assert_eq!(std::fs::read_to_string(bench.path().with_file_name(&copies[0])).unwrap(), text);
    }
}

#[tokio::test]
async fn rows_of_wrong_types_are_kept_and_the_others_work() {
    let odd = r#"{"agent:main:a": 5, "b": [], "agent:main:c": {"sessionId": 7, "updatedAt": "x", "label": {}}, "": {}, "agent:main:d": {"sessionId": "d", "updatedAt": 2}}"#;
    let bench = Bench::with_file(odd);
    let store = bench.open();
    store.update(&key("d"), set(json!({"inputTokens": 1}))).await.unwrap();
    store.update(&key("a"), set(json!({"sessionId": "a", "updatedAt": 3}))).await.unwrap();
    store.close().await.unwrap();
    let mut expect: Value = serde_json::from_str(odd).unwrap();
    expect["agent:main:a"] = json!({"sessionId": "a", "updatedAt": 3});
    expect["agent:main:d"]["inputTokens"] = json!(1);
    assert_eq!(bench.json(), expect);
}

#[tokio::test]
async fn a_key_of_ten_kilobytes_is_refused_and_its_row_kept() {
    let long = format!("agent:main:{}", "k".repeat(10_000));
    let bench = Bench::with_file(&json!({&long: {"sessionId": "a", "updatedAt": 1}}).to_string());
    let store = bench.open();
    let rows = store.rows(Rows::All).await.unwrap();
    store.update(&key("b"), set(json!({"sessionId": "b", "updatedAt": 1}))).await.unwrap();
    assert_eq!(rows.len(), 0);
    assert!(KeyRules::default().canonical(&long).is_err());
    store.close().await.unwrap();
    assert_eq!(bench.json()[&long]["sessionId"], "a");
}

#[tokio::test]
async fn a_store_of_200_megabytes_is_opened_and_an_update_of_it_is_small() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
    let mut text = String::with_capacity(210 << 20);
    let big = "x".repeat(1 << 20);
    for n in 0..200 {
        let comma = if n == 0 { "{" } else { "," };
        text.push_str(&format!(
            "{comma}\"agent:main:s{n}\":{{\"sessionId\":\"s{n}\",\"updatedAt\":{n},\"novel\":\"{big}\"}}"
        ));
    }
    text.push('}');
    std::fs::write(bench.path(), &text).unwrap();
    let store = bench.open();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 200);
    store.update(&key("s7"), set(json!({"inputTokens": 5}))).await.unwrap();
    drop(store);
    let journal = bench.path().with_file_name("sessions.json.journal.1");
    assert!(std::fs::metadata(journal).unwrap().len() < 200);
    assert_eq!(std::fs::metadata(bench.path()).unwrap().len(), text.len() as u64, "not written anew");
}

#[tokio::test]
async fn a_file_replaced_by_a_directory_refuses_until_it_is_gone() {
    let bench = Bench::with_file(TWO_ROWS);
    let store = bench.open();
    store.update(&key("zeta"), set(json!({"updatedAt": 9}))).await.unwrap();
    std::fs::remove_file(bench.path()).unwrap();
    std::fs::create_dir(bench.path()).unwrap();
    for _ in 0..2 {
        let error = store.update(&key("zeta"), set(json!({"updatedAt": 10}))).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot read the session store "), "{error}");
        assert!(store.flush().await.is_err());
    }
    std::fs::remove_dir(bench.path()).unwrap();
    std::fs::write(bench.path(), TWO_ROWS).unwrap();
    store.update(&key("new"), set(json!({"sessionId": "n", "updatedAt": 1}))).await.unwrap();
    store.close().await.unwrap();
    let expect: Value = serde_json::from_str(TWO_ROWS).unwrap();
    assert_eq!(bench.json()["agent:main:zeta"]["updatedAt"], 9, "ours is on top of what came back");
    assert_eq!(bench.json()["odd"], expect["odd"]);
    assert_eq!(bench.files(), ["sessions.json"]);
}

#[tokio::test]
async fn a_disk_that_refuses_everything_costs_nothing_that_was_acknowledged() {
    let root = PathBuf::from("/refusing");
    let disk = crate::disk::faulty::FaultyDisk::new(1, &root);
    let mut options = FileStoreOptions::new(Layout::new(&root, &root, None), KeyRules::default(), Vec::new());
    (options.quiet, options.at_most) = (Duration::from_secs(3600), Duration::from_secs(3600));
    options.disk = Arc::new(disk.clone());
    let store = FileStore::open(options.clone()).unwrap();
    store.update(&key("a"), set(json!({"sessionId": "a", "updatedAt": 1}))).await.unwrap();
    disk.fail_one_in(1);
    for _ in 0..3 {
        let error = store.update(&key("a"), set(json!({"updatedAt": 2}))).await.unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(store.flush().await.is_err());
    }
    disk.fail_one_in(0);
    assert_eq!(row(&store, "a").await.unwrap(), json!({"sessionId": "a", "updatedAt": 1}));
    store.update(&key("a"), set(json!({"updatedAt": 3}))).await.unwrap();
    disk.fail_one_in(1);
    assert!(store.close().await.is_err(), "the file can't be brought up to date");
    let after = disk.after(crate::disk::faulty::End::Machine);
    options.disk = Arc::new(after.clone());
    let store = FileStore::open(options).unwrap();
    assert_eq!(row(&store, "a").await.unwrap(), json!({"sessionId": "a", "updatedAt": 3}));
    store.close().await.unwrap();
    assert_eq!(after.names(&root.join("agents/main/sessions")), ["sessions.json"]);
}

#[tokio::test]
async fn a_store_that_was_prepared_syncs_its_own_directories_for_the_first_row_and_keeps_it() {
    let root = PathBuf::from("/prepared/far/below");
    let disk = crate::disk::faulty::FaultyDisk::new(1, &root);
    let mut options = FileStoreOptions::new(Layout::new(&root, &root, None), KeyRules::default(), Vec::new());
    options.disk = Arc::new(disk.clone());
    let store = FileStore::open(options.clone()).unwrap();
    let prepared = store.clone();
    tokio::task::spawn_blocking(move || prepared.prepare()).await.unwrap();
    let before = disk.log().matches("sync directory").count();
    assert_eq!(before, 4, "below, far, prepared and the root");
    store.update(&key("a"), set(json!({"sessionId": "a", "updatedAt": 1}))).await.unwrap();
    let own = disk.log().matches("sync directory").count() - before;
    assert_eq!(own, 4, "sessions, main, agents and the state directory");
    let after = disk.after(crate::disk::faulty::End::Machine);
    options.disk = Arc::new(after);
    let store = FileStore::open(options).unwrap();
    assert_eq!(row(&store, "a").await.unwrap(), json!({"sessionId": "a", "updatedAt": 1}));
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_a_former_process_left_beside_the_store_is_removed() {
    let bench = Bench::with_file(TWO_ROWS);
    let beside = |name: &str| bench.path().with_file_name(format!("sessions.json.{name}"));
    let id = uuid::Uuid::new_v4();
    let (own, parent) = (std::process::id(), nix::unistd::getppid());
    for name in [&format!("{own}.{id}.tmp"), &format!("2147483646.{id}.tmp"), "lock"] {
        std::fs::write(beside(name), "{\"pid\":2147483646,\"startedAt\":1}").unwrap();
    }
    let of_transcript = |pid: i64| bench.path().with_file_name(format!("s.jsonl.{pid}.{id}.tmp"));
    std::fs::write(of_transcript(2_147_483_646), "{").unwrap();
    let used = of_transcript(i64::from(parent.as_raw()));
    std::fs::write(&used, "{").unwrap();
    let alive = format!("{parent}.{id}.tmp");
    std::fs::write(beside(&alive), "{").unwrap();
    std::fs::write(beside("mine.tmp"), "{").unwrap();
    let store = bench.open();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 2);
    store.close().await.unwrap();
    let expect = [
        used.file_name().unwrap().to_str().unwrap().to_owned(),
        "sessions.json".to_owned(),
        format!("sessions.json.{alive}"),
        "sessions.json.mine.tmp".to_owned(),
    ];
    assert_eq!(bench.files(), expect);
    assert_eq!(bench.text(), TWO_ROWS);
}

#[tokio::test]
async fn agents_that_are_configured_later_are_seen_where_a_template_hides_them() {
    let mut bench = Bench::new();
    let template = bench.dir.path().join("stores/{agentId}.json");
    bench.options.layout = Layout::new(bench.dir.path(), bench.dir.path(), template.to_str());
    std::fs::create_dir_all(bench.dir.path().join("stores")).unwrap();
    std::fs::write(bench.dir.path().join("stores/ops.json"), r#"{"agent:ops:main":{"sessionId":"o"}}"#)
        .unwrap();
    let store = bench.open();
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 0);
    store.set_agents(vec![AgentId::normalize("ops")]);
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 1);
    store.set_agents(Vec::new());
    assert_eq!(store.rows(Rows::All).await.unwrap().len(), 0);
}

/// Reading a pipe waits for somebody to write into it, for good.
#[tokio::test]
async fn a_store_that_is_a_pipe_or_a_directory_is_refused_at_once() {
    type Make = fn(&Path);
    let pipe: Make = |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let directory: Make = |path| std::fs::create_dir(path).unwrap();
    for (make, expect) in [(pipe, "is a pipe, not a regular file"), (directory, "is a directory")] {
        let bench = Bench::new();
        std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
        make(&bench.path());
        let error = bench.open().get(&key("main")).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
}

/// Rule of `sessions.md` §7: of one key in two stores the newer row wins, field by field.
#[tokio::test]
async fn rows_of_one_key_in_two_stores_are_one_row() {
    let older = json!({"agent:ops:x": {"sessionId": "a", "updatedAt": 5, "label": "l", "subject": "old"}});
    let newer = json!({"agent:ops:x": {"sessionId": "b", "updatedAt": 9, "subject": "new"}});
    for (in_main, in_ops) in [(&older, &newer), (&newer, &older)] {
        let bench = Bench::with_file(&in_main.to_string());
        let ops = bench.options.layout.store_path(&AgentId::normalize("ops"));
        std::fs::create_dir_all(ops.parent().unwrap()).unwrap();
        std::fs::write(ops, in_ops.to_string()).unwrap();
        let store = bench.open();
        let labelled = |label: &str| Query { label: Some(label.into()), ..Query::default() };
        let saying = |text: &str| Query { search: Some(text.into()), ..Query::default() };
        let rows = [
            (Query::default(), 1),
            (labelled("l"), 1),
            (labelled("x"), 0),
            (saying("new"), 1),
            (saying("old"), 0),
        ];
        for (query, count) in rows {
            let found = store.select(Rows::All, &query).await.unwrap();
            assert_eq!((found.rows.len(), found.total), (count, 1), "{query:?}");
            for row in found.rows {
                let expect = json!({"sessionId": "b", "updatedAt": 9, "label": "l", "subject": "new"});
                assert_eq!(row.key.as_str(), "agent:ops:x");
                assert_eq!(serde_json::to_value(&*row.entry).unwrap(), expect, "{query:?}");
            }
        }
    }
}
