//! Probes the sandbox features of this kernel by using them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::enter;
use super::spec::{Level, Mount, Network, ProcessLimits, Spec};
use crate::sandbox::active::SHELL;

const PATIENCE: Duration = Duration::from_secs(30);

/// The most there is; else why there is nothing. `directory` is any that exists.
pub(in crate::sandbox) async fn level(program: &Path, directory: &Path) -> Result<Level, String> {
    let mut reasons = Vec::new();
    for level in [Level::Namespaces, Level::Landlock] {
        match works(program, directory, level).await {
            Ok(()) => return Ok(level),
            Err(why) => reasons.push(format!("{}: {why}", level.as_str())),
        }
    }
    Err(reasons.join("; "))
}

async fn works(program: &Path, directory: &Path, level: Level) -> Result<(), String> {
    let spec = Spec {
        level,
        mounts: vec![Mount { source: directory.to_owned(), target: "/workspace".into(), writable: true }],
        hidden: Vec::new(),
        tmpfs: vec![("/tmp".into(), None)],
        workdir: "/".into(),
        network: Network::None,
        hosts: Vec::new(),
        dns: Vec::new(),
        limits: ProcessLimits::default(),
        cgroup: None,
        terminal: false,
    };
    let child = Command::new(program)
        .args(enter::arguments(&spec))
        .args([SHELL, "-c", "echo ready"])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match timeout(PATIENCE, child).await {
        Ok(output) => output.map_err(|error| error.to_string())?,
        Err(_) => return Err("no answer".to_owned()),
    };
    // Not the status alone: any program may end with 0.
    match output.stdout == b"ready\n" {
        true => Ok(()),
        false => Err(reason(&output.stderr)),
    }
}

fn reason(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().last().unwrap_or("it said nothing").trim();
    line.strip_prefix(enter::FAILURE).unwrap_or(line).chars().take(300).collect()
}
