//! The process that works until it is told to end, or is killed. It says `try <key> <n>` before an update and
//! `ack <key> <n>` when the store has answered; `n` is 0 when the row is deleted.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use openclaw_sessions::SessionStore;
use openclaw_sessions::store::FileStore;

use super::{options, set};

const DIR: &str = "OPENCLAW_STORE_TEST_DIR";
const FIRST: &str = "OPENCLAW_STORE_TEST_FIRST";
/// Tasks of the child; each has a row of its own in each of two stores.
const TASKS: usize = 3;

/// Runs as a child when it was started as one; as a test it has nothing to do.
#[tokio::test]
async fn entry() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let first: i64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let store = FileStore::open(options(Path::new(&dir))).unwrap();
    // Closing its input tells it to end.
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(work(store.clone(), task, first));
    }
    ended.await.unwrap().unwrap();
    tasks.shutdown().await;
    store.close().await.unwrap();
    say("closed");
}

async fn work(store: FileStore, task: usize, first: i64) {
    for n in first.. {
        let agent = if n % 3 == 0 { "ops" } else { "main" };
        let key = format!("agent:{agent}:k{task}");
        let parsed = store.rules().canonical(&key).unwrap();
        if n % 13 == 0 {
            say(&format!("try {key} 0"));
            store.delete(&parsed).await.unwrap();
            say(&format!("ack {key} 0"));
        } else {
            say(&format!("try {key} {n}"));
            store.update(&parsed, set(n)).await.unwrap();
            say(&format!("ack {key} {n}"));
        }
        if n % 50 == task as i64 {
            store.flush().await.unwrap();
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The listener is gone when this fails, and then so are we.
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

/// A child at work.
pub(crate) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts one; its numbers begin at `first`.
    pub(crate) fn start(dir: &Path, first: i64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::entry", "--nocapture"])
            .env(DIR, dir)
            .env(FIRST, first.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, lines }
    }

    /// Next thing that the worker says; `None` when it has ended.
    pub(crate) fn next(&mut self) -> Option<Said> {
        loop {
            let line = self.lines.next()?.ok()?;
            // The test harness talks as well, and a killed child ends in the middle of a line.
            let words: Vec<&str> = line.split(' ').collect();
            match *words.as_slice() {
                ["try", key, n] => return Some(Said::Try(key.to_owned(), n.parse().unwrap())),
                ["ack", key, n] => return Some(Said::Ack(key.to_owned(), n.parse().unwrap())),
                ["closed"] => return Some(Said::Closed),
                _ => {}
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Tells it to end.
    pub(crate) fn end(&mut self) {
        self.input = None;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Try(String, i64),
    Ack(String, i64),
    Closed,
}
