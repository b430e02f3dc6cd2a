//! A scripted `qmd`, and what is asked of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::settings::{MemoryQmdLimits, MemoryQmdSearch, MemoryQmdUpdate, SendPolicyRules};
use openclaw_memory::GetRequest;
use parking_lot::Mutex;
use rusqlite::Connection;
use serde_json::Value;

use crate::{
    Qmd, QmdCall, QmdCallError, QmdError, QmdExports, QmdPrograms, QmdQuestion, QmdRunning, QmdSettings,
    QmdSource, UpdateWish,
};

pub(crate) fn golden(name: &str) -> Value {
    let path = format!("{}/../../tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Settings with their defaults, for a workspace.
pub(crate) fn settings(workspace: &Path) -> QmdSettings {
    QmdSettings {
        program: Ok(PathBuf::from("/usr/bin/qmd")),
        workspace: workspace.to_owned(),
        home: workspace.join("state/agents/main/qmd"),
        environment: vec![("PATH".to_owned(), "/bin".to_owned()), ("NO_COLOR".to_owned(), String::new())],
        models: None,
        default_memory: true,
        sources: Vec::new(),
        exports: None,
        search: MemoryQmdSearch::Query,
        update: MemoryQmdUpdate::default(),
        limits: MemoryQmdLimits::default(),
        scope: SendPolicyRules::direct_chats(),
    }
}

type Script = dyn Fn(&[String]) -> Result<String, QmdCallError> + Send + Sync;

/// A program that answers as its script says, after a second, and remembers its calls.
struct Scripted {
    calls: Mutex<Vec<QmdCall>>,
    script: Mutex<Box<Script>>,
}

impl Scripted {
    fn new(script: impl Fn(&[String]) -> Result<String, QmdCallError> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { calls: Mutex::default(), script: Mutex::new(Box::new(script)) })
    }

    fn becomes(&self, script: impl Fn(&[String]) -> Result<String, QmdCallError> + Send + Sync + 'static) {
        *self.script.lock() = Box::new(script);
    }

    /// The command lines since the last look.
    fn lines(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.calls.lock()).into_iter().map(|call| call.arguments).collect()
    }

    /// First words of the command lines since the last look.
    fn words(&self) -> String {
        self.lines().iter().map(|line| line[0].as_str()).collect::<Vec<_>>().join(" ")
    }
}

impl QmdPrograms for Scripted {
    fn run(&self, call: QmdCall) -> QmdRunning<'_> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let answer = (self.script.lock())(&call.arguments);
            self.calls.lock().push(call);
            answer.map(String::into_bytes)
        })
    }
}

/// The recorded workspace, index and hits.
struct Stage {
    dir: tempfile::TempDir,
    settings: QmdSettings,
}

fn stage() -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path());
    settings.sources =
        vec![QmdSource { path: dir.path().join("notes"), pattern: None, name: Some("Docs!".to_owned()) }];
    settings.exports = Some(QmdExports { dir: settings.home.join("sessions"), retention: None });
    for (path, text) in golden("memory-corpus.json")["files"].as_object().unwrap() {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.as_str().unwrap()).unwrap();
    }
    std::fs::create_dir_all(dir.path().join("notes")).unwrap();
    std::fs::write(dir.path().join("notes/team.md"), "# Team notes (extra path)\n").unwrap();
    Stage { dir, settings }
}

impl Stage {
    /// Writes the index file as `qmd` does.
    fn index(&self) -> Connection {
        let path = self.settings.index();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch("CREATE TABLE documents (collection TEXT, path TEXT, hash TEXT, active INTEGER)")
            .unwrap();
        for row in golden("memory-qmd.json")["qmd_documents_table"].as_array().unwrap() {
            let texts = [0, 1, 2].map(|at| row[at].as_str().unwrap());
            let sql = "INSERT INTO documents VALUES (?1, ?2, ?3, 1)";
            connection.execute(sql, texts).unwrap();
        }
        connection
    }

    fn qmd(&self, programs: &Arc<Scripted>) -> Qmd {
        Qmd::new(self.settings.clone(), Arc::clone(programs) as Arc<dyn QmdPrograms>, None)
    }
}

fn asks(query: &str) -> QmdQuestion {
    QmdQuestion { query: query.to_owned(), ..QmdQuestion::default() }
}

fn boom(_: &[String]) -> Result<String, QmdCallError> {
    Err(QmdCallError::Failed { code: Some(3), said: "boom".to_owned() })
}

fn recorded_hits(line: &[String]) -> Result<String, QmdCallError> {
    match line[0].as_str() {
        "query" => Ok(golden("memory-qmd.json")["qmd_stdout"].to_string()),
        _ => Ok(String::new()),
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_started_as_recorded() {
    let stage = stage();
    let programs = Scripted::new(|_| Ok(String::new()));
    let qmd = stage.qmd(&programs);
    qmd.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let calls = programs.calls.lock().clone();
    let recorded = golden("memory-qmd.json");
    let plain = |text: &str| {
        text.replace("<WORKSPACE>", &stage.dir.path().display().to_string())
            .replace("<STATE>", &stage.dir.path().join("state").display().to_string())
    };
    let lines: Vec<Vec<String>> = recorded["boot_commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_array().unwrap().iter().map(|word| plain(word.as_str().unwrap())).collect())
        .collect();
    assert_eq!(programs.lines(), lines);
    for call in &calls {
        assert_eq!(call.directory, stage.dir.path());
        for (name, value) in recorded["env"].as_object().unwrap() {
            let own = call.environment.iter().filter(|(own, _)| own == name);
            assert_eq!(
                own.map(|(_, value)| value.clone()).collect::<Vec<_>>(),
                [plain(value.as_str().unwrap())]
            );
        }
        assert!(call.environment.contains(&("PATH".to_owned(), "/bin".to_owned())));
    }
    // Known collections are not made again, and vectors not each time.
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(programs.words(), "update");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(programs.words().matches("embed").count(), 1);
    qmd.close().await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(programs.words(), "");
}

#[tokio::test(start_paused = true)]
async fn hits_are_found_as_recorded_and_each_collection_is_asked() {
    let stage = stage();
    stage.index();
    let programs = Scripted::new(recorded_hits);
    let qmd = stage.qmd(&programs);
    let hits = qmd.search(&asks("--websocket")).await.unwrap();
    let recorded = golden("memory-qmd.json");
    let made: Vec<Value> = hits
        .iter()
        .map(|hit| {
            serde_json::json!({
                "path": hit.path, "startLine": hit.start_line, "endLine": hit.end_line, "score": hit.score,
                "source": hit.source.as_str(),
            })
        })
        .collect();
    assert_eq!(&Value::from(made), &recorded["search_results"]);
    let queries: Vec<Vec<String>> = programs.lines().into_iter().filter(|line| line[0] == "query").collect();
    let asked = recorded["query_command_2026_2_9"].as_array().unwrap().iter();
    let asked: Vec<&str> = asked.map(|word| word.as_str().unwrap()).collect();
    // Those without documents are not asked.
    let expect = ["memory-root", "memory-dir", "docs"];
    assert_eq!(queries, expect.map(|name| [asked.as_slice(), &["-c", name]].concat()));

    let question = QmdQuestion { max_results: Some(2), min_score: Some(0.5), ..asks("websocket") };
    assert_eq!(qmd.search(&question).await.unwrap().len(), 2);
    assert!(programs.lines().iter().all(|line| line[4] == "2"));
    assert_eq!(qmd.search(&asks(" -- ")).await.unwrap(), []);
    assert_eq!(programs.lines().len(), 0);
    let status = qmd.status().await;
    assert_eq!(status.documents.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 0]);
    assert_eq!(status.collections, 5);
}

#[tokio::test(start_paused = true)]
async fn files_are_read_as_recorded_and_no_link_leads_out() {
    let stage = stage();
    let secret = stage.dir.path().join("secret.md");
    std::fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, stage.dir.path().join("notes/link.md")).unwrap();
    let qmd = stage.qmd(&Scripted::new(boom));
    for row in golden("memory-qmd.json")["memory_get"].as_array().unwrap() {
        let path = row["path"].as_str().unwrap().to_owned();
        let request = GetRequest { path: path.clone(), from: None, lines: row["lines"].as_i64() };
        match (qmd.get(&request).await, row["error"].as_str()) {
            (Some(Ok(answer)), None) => {
                assert_eq!(
                    (answer.text.as_str(), answer.path.as_str()),
                    (row["out"]["text"].as_str().unwrap(), path.as_str())
                );
            }
            (Some(Err(error)), Some(expect)) => assert_eq!(error.to_string(), expect),
            // Whoever asked looks among its own files.
            (None, Some(expect)) => assert!(!path.starts_with("qmd/"), "{path}: {expect}"),
            (found, expect) => panic!("{path}: {found:?} {expect:?}"),
        }
    }
    let link = GetRequest { path: "qmd/docs/link.md".to_owned(), ..GetRequest::default() };
    assert_eq!(qmd.get(&link).await.unwrap().unwrap_err().to_string(), "path required");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_and_the_next_request_begins_anew() {
    let stage = stage();
    stage.index();
    let programs = Scripted::new(recorded_hits);
    let qmd = stage.qmd(&programs);
    qmd.search(&asks("a")).await.unwrap();
    programs.lines();
    programs.becomes(boom);
    let reason = qmd.search(&asks("FAIL")).await.unwrap_err().to_string();
    let recorded = golden("memory-qmd.json");
    let recorded = recorded["failure"]["tool_result"]["fallback"]["reason"].as_str().unwrap();
    assert_eq!(reason, recorded.replace(" failed", " -c memory-root failed"));
    assert_eq!(qmd.failure().as_deref(), Some(reason.as_str()));
    assert_eq!(programs.words(), "query");
    programs.becomes(recorded_hits);
    assert_eq!(qmd.search(&asks("a")).await.unwrap().len(), 3);
    assert!(programs.words().starts_with("collection"));
    assert_eq!(qmd.failure(), None);

    programs.becomes(boom);
    for _ in 0..2 {
        qmd.search(&asks("a")).await.unwrap_err();
    }
    programs.lines();
    programs.becomes(recorded_hits);
    assert!(matches!(qmd.search(&asks("a")).await, Err(QmdError::Pausing(_))));
    assert_eq!(programs.lines().len(), 0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(qmd.search(&asks("a")).await.unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn bad_answers_are_failures_with_their_reason() {
    let stage = stage();
    let index = stage.index();
    let line = "qmd query a --json -n 6 -c memory-root";
    for (answer, expect) in [
        (Ok("oops".to_owned()), "returned invalid JSON: expected value"),
        (Ok("{}".to_owned()), "returned invalid JSON: no list"),
        (Err(QmdCallError::TimedOut), "timed out after 4000ms"),
        (Err(QmdCallError::TooMuchOutput), "printed too much"),
        (Err(QmdCallError::Failed { code: None, said: String::new() }), "was killed: "),
    ] {
        let programs =
            Scripted::new(move |line| if line[0] == "query" { answer.clone() } else { Ok("[]".to_owned()) });
        let error = stage.qmd(&programs).search(&asks("a")).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{line} {expect}")), "{error}");
    }
    let programs = Scripted::new(recorded_hits);
    index.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = stage.qmd(&programs).search(&asks("a")).await.unwrap_err().to_string();
    assert_eq!(error, "the index of qmd can't be read: database is locked");
    index.execute_batch("COMMIT").unwrap();
    // A program that does not even list is not asked for more.
    let programs = Scripted::new(|_| Err(QmdCallError::TimedOut));
    let error = stage.qmd(&programs).search(&asks("a")).await.unwrap_err().to_string();
    assert_eq!(error, "qmd collection list --json timed out after 30000ms");
    let mut settings = stage.settings.clone();
    settings.program = Err("qmd is not installed".to_owned());
    let missing = Qmd::new(settings, programs, None);
    assert_eq!(missing.search(&asks("a")).await.unwrap_err().to_string(), "qmd is not installed");
    assert_eq!(missing.failure().as_deref(), Some("qmd is not installed"));
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_update_joins_the_one_that_runs_and_forced_ones_queue() {
    let stage = stage();
    let programs = Scripted::new(|_| Ok(String::new()));
    let qmd = Arc::new(stage.qmd(&programs));
    qmd.update(UpdateWish::IfDue).await.unwrap();
    programs.lines();
    qmd.update(UpdateWish::IfDue).await.unwrap();
    assert_eq!(programs.words(), "", "a young one is enough");
    let run = |wish| {
        let qmd = Arc::clone(&qmd);
        async move { qmd.update(wish).await.unwrap() }
    };
    let (forced, due) = (UpdateWish::Forced, UpdateWish::IfDue);
    tokio::join!(run(forced), run(due), run(forced), run(due), run(forced));
    assert_eq!(programs.words(), "update embed update embed update embed");
    tokio::time::sleep(Duration::from_secs(15)).await;
    tokio::join!(run(due), run(due));
    assert_eq!(programs.words(), "update");

    programs.becomes(boom);
    assert!(
        qmd.update(UpdateWish::Forced)
            .await
            .unwrap_err()
            .to_string()
            .ends_with("qmd update failed (code 3): boom")
    );
    // Vectors that can't be made are no failure.
    programs.becomes(|line| if line[0] == "embed" { boom(line) } else { Ok(String::new()) });
    qmd.update(UpdateWish::Forced).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn words_alone_need_no_vectors() {
    let mut stage = stage();
    stage.settings.search = MemoryQmdSearch::Search;
    stage.index();
    let programs =
        Scripted::new(|line| if line[0] == "search" { Ok("[]".to_owned()) } else { Ok(String::new()) });
    let qmd = stage.qmd(&programs);
    qmd.update(UpdateWish::Forced).await.unwrap();
    qmd.search(&asks("a")).await.unwrap();
    let words = programs.words();
    assert!(words.ends_with("update search search search") && !words.contains("embed"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn collections_are_made_once_their_directory_is_there() {
    let stage = stage();
    let memory = stage.dir.path().join("memory");
    std::fs::remove_dir_all(&memory).unwrap();
    let listed = r#"["memory-root", {"name": "docs"}]"#;
    let programs = Scripted::new(move |line| match line.get(1).map_or("", String::as_str) {
        "list" => Ok(listed.to_owned()),
        _ if line.contains(&"memory-alt".to_owned()) => Err(QmdCallError::Failed {
            code: Some(1),
            said: "Collection 'memory-alt' already exists".to_owned(),
        }),
        _ => Ok(String::new()),
    });
    let qmd = stage.qmd(&programs);
    let names = |lines: Vec<Vec<String>>| {
        let added = lines.into_iter().filter(|line| line.get(1).is_some_and(|word| word == "add"));
        added.map(|line| line[4].clone()).collect::<Vec<_>>()
    };
    qmd.update(UpdateWish::Forced).await.unwrap();
    assert_eq!(names(programs.lines()), ["memory-alt", "sessions"]);
    std::fs::create_dir(&memory).unwrap();
    qmd.update(UpdateWish::Forced).await.unwrap();
    assert_eq!(names(programs.lines()), ["memory-dir"]);
}

#[tokio::test(start_paused = true)]
async fn models_that_are_there_are_shared() {
    let mut stage = stage();
    let models = stage.dir.path().join("cache/models");
    std::fs::create_dir_all(&models).unwrap();
    stage.settings.models = Some(models.clone());
    let programs = Scripted::new(|_| Ok(String::new()));
    stage.qmd(&programs).update(UpdateWish::Forced).await.unwrap();
    assert_eq!(std::fs::read_link(stage.settings.cache().join("qmd/models")).unwrap(), models);
}
