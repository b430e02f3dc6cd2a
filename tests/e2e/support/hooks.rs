//! Hooks that write down what they are told.

use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use openclaw_testkit::DEADLINE;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// Programs in the configuration, in this order of priority.
pub(crate) fn commands(rows: &[(&str, String, i64)]) -> Value {
    let row = |(event, script, priority): &(&str, String, i64)| json!({"event": event, "command": ["/bin/sh", "-c", script], "priority": priority});
    let commands: Vec<Value> = rows.iter().map(row).collect();
    json!({"hooks": {"internal": {"enabled": true, "commands": commands}}})
}

/// Lines that hooks write.
pub(crate) struct Heard {
    path: PathBuf,
    lines: Lines<BufReader<pipe::Receiver>>,
}

impl Heard {
    pub(crate) fn at(path: PathBuf) -> Self {
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(&path).unwrap();
        Self { path, lines: BufReader::new(receiver).lines() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = timeout(DEADLINE, self.lines.next_line()).await.expect("a hook is told").unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// A program that writes what it is given, and answers with this.
    pub(crate) fn script(&self, answer: &str) -> String {
        format!(
            "#!/bin/sh\ngiven=$(cat)\nprintf '%s\\n' \"$given\" > {}\nprintf '%s' '{answer}'\n",
            self.path.display()
        )
    }
}
