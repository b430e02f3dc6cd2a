//! Runs an installer: bounded in time and in what is kept of its output.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use openclaw_config::Environment;
use openclaw_config::redact::is_secret_name;
use openclaw_protocol::params::skills::SkillsInstallResult;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::failed;
use super::plan::InstallCommand;

/// Bytes of each output that are kept, the last ones.
const MAX_OUTPUT: usize = 64 * 1024;

/// Runs it to its end. It gets no secret of the gateway.
pub(crate) async fn run(
    order: &InstallCommand,
    environment: &Environment,
    limit: Duration,
    cancel: &CancellationToken,
) -> SkillsInstallResult {
    let name = order.program.display().to_string();
    let mut group = match start(order, environment) {
        Ok(child) => ProcessGroup(child),
        Err(error) => return failed(format!("{name} could not be started: {error}")),
    };
    let (out, err) = (group.0.stdout.take(), group.0.stderr.take());
    let ended = tokio::select! { biased;
        () = cancel.cancelled() => return failed(format!("{name} was stopped: the gateway goes down")),
        ended = tokio::time::timeout(limit, async {
            tokio::join!(tail(out), tail(err), group.0.wait())
        }) => ended,
    };
    let Ok((stdout, stderr, status)) = ended else {
        return failed(format!("{name} was stopped after {} s", limit.as_secs()));
    };
    let code = status.as_ref().ok().and_then(std::process::ExitStatus::code);
    let ok = code == Some(0);
    let message = if ok { "Installed".to_owned() } else { failure(code, &stdout, &stderr) };
    SkillsInstallResult { ok, message, stdout, stderr, code }
}

/// A process that heads a group, which ends with it.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Gone already is as good. A process that was waited for has no id any more.
        if let Some(pid) = self.0.id().and_then(|id| i32::try_from(id).ok()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn start(order: &InstallCommand, environment: &Environment) -> std::io::Result<Child> {
    let passed =
        environment.vars().filter(|(name, _)| !is_secret_name(name) && !name.starts_with("OPENCLAW_"));
    Command::new(&order.program)
        .args(&order.arguments)
        .current_dir(environment.home())
        .env_clear()
        .envs(passed)
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// The end of what comes.
async fn tail(reader: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut reader) = reader else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 8 * 1024]);
    while let Ok(count) = reader.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if kept.len() > 2 * MAX_OUTPUT {
            kept.drain(..kept.len() - MAX_OUTPUT);
        }
    }
    let excess = kept.len().saturating_sub(MAX_OUTPUT);
    let end = kept.get(excess..).unwrap_or_default();
    String::from_utf8_lossy(end).trim().to_owned()
}

/// The exit code and the line that most likely says why.
fn failure(code: Option<i32>, stdout: &str, stderr: &str) -> String {
    let exit = code.map_or_else(|| "by a signal".to_owned(), |code| format!("exit {code}"));
    let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    match last(stderr).or_else(|| last(stdout)) {
        Some(why) => format!("Install failed ({exit}): {why}"),
        None => format!("Install failed ({exit})"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    async fn shell(script: &str, limit: Duration) -> SkillsInstallResult {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let environment = vec![("GOBIN".to_owned(), "/b".to_owned())];
        let order = InstallCommand { program: PathBuf::from("/bin/sh"), arguments, environment };
        let vars = [
            ("HOME", "/"),
            ("PATH", "/bin:/usr/bin"),
            ("MY_TOKEN", "secret"),
            ("OPENCLAW_X", "1"),
            ("A", "b"),
        ];
        run(&order, &Environment::new(vars, "/"), limit, &CancellationToken::new()).await
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_an_installer_says_and_how_it_ends_is_told() {
        let done = shell("echo $A $GOBIN [$MY_TOKEN$OPENCLAW_X]; echo e >&2", LONG).await;
        assert_eq!((done.ok, done.stdout.as_str(), done.stderr.as_str()), (true, "b /b []", "e"));
        let done = shell("echo out; echo; echo no such formula >&2; exit 3", LONG).await;
        assert_eq!((done.ok, done.code), (false, Some(3)));
        assert_eq!(done.message, "Install failed (exit 3): no such formula");
        let done = shell("kill -9 $$", LONG).await;
        assert_eq!((done.message.as_str(), done.code), ("Install failed (by a signal)", None));
        let done = shell("head -c 300000 /dev/zero | tr '\\0' x; echo end", LONG).await;
        assert!(done.stdout.ends_with("xend") && done.stdout.len() <= MAX_OUTPUT, "{}", done.stdout.len());
        let order = InstallCommand {
            program: PathBuf::from("/nowhere/x"),
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        let none = Environment::new([("HOME", "/")], "/");
        let done = run(&order, &none, LONG, &CancellationToken::new()).await;
        assert!(done.message.starts_with("/nowhere/x could not be started"), "{}", done.message);
    }

    #[tokio::test]
    async fn an_installer_that_takes_too_long_is_stopped_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", pid_file.display());
        // Long enough for a busy machine to begin.
        let done = shell(&script, Duration::from_secs(5)).await;
        assert_eq!(done.message, "/bin/sh was stopped after 5 s");
        let pid: i32 = std::fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        let begun = std::time::Instant::now();
        while nix::sys::signal::kill(Pid::from_raw(pid), None).is_ok() && !is_zombie(pid) {
            assert!(begun.elapsed() < LONG, "the child lives on");
            tokio::task::yield_now().await;
        }
    }

    /// Dead, and not waited for by whoever inherited it.
    fn is_zombie(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    }
}
