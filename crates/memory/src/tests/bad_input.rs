//! Files that are no notes, directories that change under the reader, disks that refuse, and queries of all kinds.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

#[tokio::test]
async fn files_that_are_too_large_are_named_and_cost_nothing() {
    let place = Place::corpus();
    // Mostly a hole: no disk holds it.
    let note = std::fs::File::create(place.workspace().join("memory/note.md")).unwrap();
    note.set_len(200 << 20).unwrap();
    place.write("memory/line.md", &"x".repeat(50 << 20));
    let memory = place.open(None);
    let started = Instant::now();
    let report = sync(&memory).await;
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!((report.indexed, report.error), (6, None));
    let issues = ["memory/line.md", "memory/note.md"]
        .map(|path| format!("{path} is larger than 2 MiB and not indexed"));
    assert_eq!(report.issues, issues);
    // A line just below the limit is cut into chunks.
    place.write("memory/line.md", &format!("{} walrus", "word ".repeat(400_000)));
    assert_eq!(sync(&memory).await.issues.len(), 1);
    assert_eq!(paths(&memory, "walrus").await, ["memory/line.md"]);
}

#[tokio::test]
async fn pipes_links_and_loops_are_left_out() {
    let place = Place::corpus();
    let inside = |path: &str| place.workspace().join(path);
    nix::unistd::mkfifo(&inside("memory/x.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink(inside("memory"), inside("memory/loop")).unwrap();
    symlink(inside("memory/self.md"), inside("memory/self.md")).unwrap();
    symlink("/etc/passwd", inside("memory/passwd.md")).unwrap();
    std::fs::create_dir(inside("memory/directory.md")).unwrap();
    std::fs::write(inside("memory/nul.md"), b"walrus \0 \xFF\xFE \xED\xA0\x80 invalid").unwrap();
    let memory = place.open(None);
    let report = tokio::time::timeout(Duration::from_secs(20), sync(&memory)).await.unwrap();
    assert_eq!((report.indexed, report.error, report.issues.len()), (7, None, 0));
    assert_eq!(paths(&memory, "walrus").await, ["memory/nul.md"]);
    assert!(paths(&memory, "root bin bash").await.is_empty());
    for path in ["memory/x.md", "memory/loop/long-log.md", "memory/self.md", "memory/passwd.md"] {
        let request = crate::GetRequest { path: path.into(), ..Default::default() };
        let answer = tokio::time::timeout(Duration::from_secs(5), memory.get(&request)).await.unwrap();
        assert!(answer.is_err(), "{path}");
    }
}

#[tokio::test]
async fn directories_of_programs_are_not_entered() {
    let place = Place::corpus();
    for number in 0..2_000 {
        place.write(&format!("memory/.venv/lib/{}/{number}.md", number % 20), "a walrus");
    }
    let deep = "d/".repeat(20);
    place.write(&format!("memory/{deep}deep.md"), "a narwhal");
    let memory = place.open(None);
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.issues.len()), (6, 1));
    assert!(report.issues[0].ends_with("is too deep to be indexed"), "{:?}", report.issues);
    assert!(paths(&memory, "walrus").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_vanish_while_they_are_read_are_borne() {
    let place = Place::corpus();
    let memory = place.open(None);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changing = {
        let (workspace, stop) = (place.workspace(), Arc::clone(&stop));
        std::thread::spawn(move || {
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let directory = workspace.join(format!("memory/{}", round % 7));
                let _ = std::fs::create_dir(&directory);
                for number in 0..20 {
                    let _ = std::fs::write(directory.join(format!("{number}.md")), format!("note {round}"));
                }
                let _ = std::fs::remove_dir_all(&directory);
            }
        })
    };
    for _ in 0..30 {
        let report = sync(&memory).await;
        assert_eq!(report.error, None);
        assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    }
    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
    sync(&memory).await;
    assert_eq!(sync(&memory).await.issues, Vec::<String>::new());
    assert_eq!(memory.status().await.unwrap().files, 6);
}

/// Set for processes that a test starts: the directory that they work in.
const WORKS_IN: &str = "OPENCLAW_TEST_MEMORY_WORKS_IN";

/// Starts one of the tests of this file as a process of its own, by a shell that runs `before` first.
fn run_below(place: &Place, before: &str, test: &str) -> bool {
    let program = std::env::current_exe().unwrap();
    let script = format!("{before}; exec \"$0\" --exact tests::bad_input::{test} --nocapture");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .env(WORKS_IN, place.dir.path())
        .output()
        .unwrap();
    if !output.status.success() {
        println!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

fn worked_in() -> Option<Place> {
    std::env::var_os(WORKS_IN).map(|directory| Place { dir: tempfile::TempDir::new_in(directory).unwrap() })
}

#[tokio::test]
async fn disk_full_process() {
    let Some(place) = worked_in() else { return };
    let other = Place::corpus();
    std::fs::rename(other.workspace(), place.workspace()).unwrap();
    let memory = place.open(Some(FakeEmbedder::new()));
    assert_eq!(sync(&memory).await.error, None);
    for number in 0..40 {
        let text: String =
            (0..400).map(|line| format!("note {number} line {line} words {}\n", number * line)).collect();
        place.write(&format!("memory/big{number}.md"), &text);
    }
    let report = sync(&memory).await;
    assert!(report.error.as_ref().is_some_and(|error| error.contains("can't be written")), "{report:?}");
    // What was found before is found.
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    for number in 0..40 {
        std::fs::remove_file(place.workspace().join(format!("memory/big{number}.md"))).unwrap();
    }
    place.write("memory/new.md", "a walrus");
    assert_eq!(sync(&memory).await.error, None);
    assert_eq!(paths(&memory, "walrus").await, ["memory/new.md"]);
    memory.close().await;
    let state: String =
        open_file(&place.store()).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "ok");
}

/// No file of the process may be larger than two megabytes. It is told so, and not killed.
#[test]
fn a_full_disk_stops_nothing_but_the_sync() {
    let place = Place::empty();
    assert!(run_below(&place, "trap '' XFSZ; ulimit -f 4096", "disk_full_process"));
}

#[tokio::test]
async fn no_watches_process() {
    let Some(place) = worked_in() else { return };
    let other = Place::corpus();
    std::fs::rename(other.workspace(), place.workspace()).unwrap();
    let mut settings = place.settings();
    settings.sync.watch = true;
    // The process may open no further file while the watch is begun: that fails as it does when there are no watches left.
    let watch = {
        let held: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        assert!(!held.is_empty());
        crate::watch::DirectoryWatch::new(|| {})
    };
    assert!(watch.is_none());
    let memory = open_with(settings, None);
    sync(&memory).await;
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
}

#[test]
fn without_a_watch_files_are_looked_at() {
    let place = Place::empty();
    assert!(run_below(&place, "ulimit -n 64", "no_watches_process"));
}

#[tokio::test]
async fn a_directory_that_cannot_be_watched_is_looked_at() {
    let mut watch = crate::watch::DirectoryWatch::new(|| {}).unwrap();
    // It is there, and is no directory that could be watched.
    watch.set([PathBuf::from("/proc/self/fd/999999"), PathBuf::from("/")]);
    assert!(watch.is_reliable());
    watch.set([PathBuf::from("x\0y")]);
    assert!(watch.is_reliable(), "what is not there need not be watched");
}

#[tokio::test]
async fn a_workspace_that_is_removed_while_it_is_watched_comes_back() {
    let place = Place::corpus();
    let mut settings = place.settings();
    settings.sync.watch = true;
    settings.sync.watch_debounce = Duration::from_millis(20);
    let memory = open_with(settings, None);
    sync(&memory).await;
    std::fs::remove_dir_all(place.workspace()).unwrap();
    let report = sync(&memory).await;
    assert_eq!((report.removed, report.issues[0].as_str()), (0, "workspace directory missing"));
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    place.write("memory/new.md", "a walrus");
    let report = sync(&memory).await;
    assert_eq!((report.indexed, report.error), (1, None));
    assert_eq!(paths(&memory, "walrus").await, ["memory/new.md"]);
}

#[tokio::test]
async fn a_read_only_index_is_searched() {
    let place = Place::corpus();
    let memory = place.open(None);
    sync(&memory).await;
    memory.close().await;
    let directory = place.store().parent().unwrap().to_owned();
    let set = |mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(place.store(), std::fs::Permissions::from_mode(mode & 0o666)).unwrap();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(0o555);
    let memory = place.open(None);
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    place.write("memory/new.md", "a walrus");
    let report = sync(&memory).await;
    // To the superuser nothing is read-only.
    assert!(report.error.is_some() || nix::unistd::geteuid().is_root(), "{report:?}");
    assert_eq!(paths(&memory, "apple trees").await[0], "memory/2026-01-29.md");
    memory.close().await;
    set(0o755);
}

#[tokio::test]
async fn every_query_is_answered() {
    let place = Place::corpus();
    for embedder in [None, Some(FakeEmbedder::new())] {
        for scoring in [crate::settings::Scoring::Corrected, crate::settings::Scoring::Compat] {
            let mut settings = place.settings();
            settings.query.hybrid.scoring = scoring;
            let memory = open_with(settings, embedder.clone());
            sync(&memory).await;
            let long = "apple ".repeat(1 << 18);
            let queries = [
                "",
                "   ",
                "\"",
                "\"\"\"",
                "'",
                "*",
                "apple*",
                "^apple",
                "-apple",
                "apple OR",
                "AND",
                "NOT apple",
                "NEAR(apple trees, 5)",
                "text: apple",
                "{text id}: apple",
                "(apple",
                "'; DROP TABLE chunks; --",
                "% _ ? ?1 :a @b $c",
                "\0",
                "apple\0trees",
                "!?.,;:()[]{}<>/\\|",
                "\u{200b}\u{feff}",
                "\u{fffd}\u{fffd}",
                "\u{10ffff}",
                "e\u{301}\u{301}\u{301}",
                "🍎🌳👨‍👩‍👧",
                &"a".repeat(1 << 20),
                &"会议".repeat(1 << 18),
                &long,
            ];
            for query in queries {
                let started = Instant::now();
                let request = SearchRequest { query: query.into(), ..SearchRequest::default() };
                let answer = tokio::time::timeout(Duration::from_secs(10), memory.search(&request)).await;
                answer.unwrap().unwrap();
                assert!(started.elapsed() < Duration::from_secs(5), "{:.20}", query);
            }
            assert_eq!(count(&place.store(), "chunks"), 13);
            memory.close().await;
        }
    }
}
