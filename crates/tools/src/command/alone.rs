//! A command that nobody gave in a conversation: it runs to its end in the process group of its own guard.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Launch;
use super::guard::CommandLock;
use super::session::{CommandEnding, CommandSession, CommandSpec, signal_name};
use super::sessions::CommandOwner;
use super::start::{Input, start};

/// Characters of its output that are kept for the case that it fails.
const KEPT: usize = 4_000;
/// Characters of it that are told.
const TOLD: usize = 400;

/// Runs it. It ends with this process, and when the caller does not wait any more.
///
/// # Errors
/// Describes the failure, with the end of the command's output.
pub(crate) async fn run_alone(
    launch: Launch,
    limit: Duration,
    lock: Option<CommandLock>,
) -> Result<(), String> {
    let order = CommandSpec {
        command: String::new(),
        cwd: launch.directory.clone(),
        launch,
        timeout: Some(limit),
        max_output_chars: KEPT,
        max_pending_chars: KEPT,
        is_fed: false,
        in_terminal: false,
        lock,
    };
    let started = start(&order).map_err(|error| format!("it could not be started: {error}"))?;
    let kill = CancellationToken::new();
    let session =
        CommandSession::new(String::new(), &nobody(), &order, started.child.id(), Input::Closed, kill);
    session.drive(order, started).await;
    let how = match session.end().map(|end| end.ending) {
        Some(CommandEnding::Exited(0)) => return Ok(()),
        Some(CommandEnding::Exited(code)) => format!("it ended with code {code}"),
        Some(CommandEnding::Signalled(signal)) => format!("it was ended by {}", signal_name(signal)),
        Some(CommandEnding::TimedOut) => format!("it took longer than {} seconds", limit.as_secs()),
        Some(CommandEnding::Killed) | None => "it was ended".to_owned(),
    };
    let printed = session.printed();
    let printed = printed.trim();
    let start = printed.char_indices().rev().nth(TOLD - 1).map_or(0, |(at, _)| at);
    match printed.get(start..).unwrap_or_default() {
        "" => Err(how),
        tail => Err(format!("{how}: {tail}")),
    }
}

/// Returns an owner whose command is in no list and of whose end no session is notified.
fn nobody() -> CommandOwner {
    CommandOwner { scope: String::new(), is_elevated: false, told: None, kept: Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn how_it_failed_is_said_with_what_it_printed() {
        for (script, seconds, expect) in [
            ("echo fine", 60, Ok(())),
            ("echo no >&2; exit 3", 60, Err("it ended with code 3: no")),
            ("exit 3", 60, Err("it ended with code 3")),
            ("kill -TERM $$", 60, Err("it was ended by SIGTERM")),
            ("echo so far; exec sleep 1000", 1, Err("it took longer than 1 seconds: so far")),
        ] {
            let launch = Launch {
                program: "/bin/sh".into(),
                arguments: ["-c", script].map(Into::into).to_vec(),
                environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
                directory: "/".into(),
                ending: Vec::new(),
            };
            let ended = run_alone(launch, Duration::from_secs(seconds), None).await;
            assert_eq!(ended, expect.map_err(str::to_owned), "{script}");
        }
    }
}
