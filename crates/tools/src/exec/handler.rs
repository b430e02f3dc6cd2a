//! Running handlers of hooks: a program that reads one value and writes one, in the process group of its own guard, with the
//! environment of the commands of `exec` (decision 18).

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use std::os::unix::process::ExitStatusExt as _;

use openclaw_agent::hooks::answer::MAX_ANSWER;
use openclaw_agent::hooks::program::Running;
use openclaw_agent::hooks::{Program, ProgramError, Programs};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::environment::compose;
use super::settings::ExecSettings;
use crate::command::guard::Guard;
use crate::command::session::signal_name;

/// Time for which processes that a finished handler left behind may hold its output open.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of what a handler says beside its answer that are kept, the last ones.
const KEPT_WORDS: usize = 2_000;

/// Runs handlers.
#[derive(Debug)]
pub struct Handlers {
    settings: ExecSettings,
}

impl Handlers {
    /// Creates the runner of handlers, with the variables that commands inherit, except for
    /// withheld ones.
    pub fn new(settings: ExecSettings) -> Self {
        Self { settings }
    }

    async fn answer(&self, program: &Program, input: Vec<u8>) -> Result<Vec<u8>, ProgramError> {
        let mut guard = Guard::start(self.settings.lock.as_ref()).map_err(ProgramError::Start)?;
        let mut child = self.start(program, &guard).map_err(ProgramError::Start)?;
        let stdin = child.stdin.take();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let output = child.stdout.take();
        let words = child.stderr.take();
        let heard = {
            let talk = async {
                let say = say(stdin, &input);
                let listen = listen(output, &mut out);
                let overhear = overhear(words, &mut err);
                let ((), heard, ()) = tokio::join!(say, listen, overhear);
                heard
            };
            tokio::pin!(talk);
            tokio::select! { biased;
                heard = &mut talk => heard,
                // Processes it left behind may hold its output open for ever.
                status = child.wait() => match status {
                    Ok(_) => timeout(GRACE, talk).await.unwrap_or(OutputAmount::All),
                    Err(error) => return Err(ProgramError::Start(error)),
                },
            }
        };
        if heard == OutputAmount::TooMuch {
            return Err(ProgramError::TooMuchOutput(MAX_ANSWER));
        }
        let status = child.wait().await.map_err(ProgramError::Start)?;
        // Processes that the handler left behind are killed.
        guard.kill();
        let stderr = one_line(&err);
        if status.success() {
            if !stderr.is_empty() {
                tracing::debug!(hook = %program.hook, "hook said: {stderr}");
            }
            return Ok(out);
        }
        Err(ProgramError::Failed { status: ending(status), stderr })
    }

    fn start(&self, program: &Program, guard: &Guard) -> io::Result<Child> {
        let (file, arguments) = program.command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let own: Vec<(String, String)> = program
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
            .collect();
        Command::new(file)
            .args(arguments)
            .current_dir(&program.dir)
            .env_clear()
            .envs(compose(&self.settings, &own, None))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(guard.group())
            .kill_on_drop(true)
            .spawn()
    }
}

impl Programs for Handlers {
    fn run<'a>(&'a self, program: &'a Program, input: Vec<u8>, limit: Duration) -> Running<'a> {
        Box::pin(async move {
            // Dropping the attempt kills the whole group.
            match timeout(limit, self.answer(program, input)).await {
                Ok(answered) => answered,
                Err(_) => Err(ProgramError::TimedOut(limit)),
            }
        })
    }
}

/// Amount of output received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputAmount {
    All,
    TooMuch,
}

/// A handler that does not listen misses nothing it wanted.
async fn say(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
}

async fn listen(output: Option<impl AsyncRead + Unpin>, heard: &mut Vec<u8>) -> OutputAmount {
    let Some(output) = output else { return OutputAmount::All };
    let mut bounded = output.take(MAX_ANSWER as u64 + 1);
    // An error is the end too.
    let _ = bounded.read_to_end(heard).await;
    if heard.len() > MAX_ANSWER { OutputAmount::TooMuch } else { OutputAmount::All }
}

/// Reads to the end, so that whoever talks is not held up, and keeps the last of it.
async fn overhear(words: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut words) = words else { return };
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = words.read(&mut buffer).await {
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let excess = kept.len().saturating_sub(KEPT_WORDS);
        kept.drain(..excess);
    }
}

fn one_line(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" | ").chars().filter(|letter| !letter.is_control()).collect()
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {}", signal_name(signal)),
        (None, None) => "no status".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;
    use std::time::Instant;

    use openclaw_config::Environment;
    use openclaw_config::settings::Exec;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn handlers() -> Handlers {
        let environment =
            Environment::new([("PATH", "/usr/bin:/bin"), ("OPENAI_API_KEY", "sk-1"), ("KEPT", "yes")], "/");
        let mut settings = ExecSettings::new(&Exec::default(), environment);
        settings.withheld = std::sync::Arc::new(["OPENAI_API_KEY".to_owned()].into());
        Handlers::new(settings)
    }

    fn program(script: &str, dir: &Path) -> Program {
        let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        Program { hook: "h".into(), command, dir: dir.to_owned(), env: vec![("OWN".into(), "own".into())] }
    }

    async fn run(script: &str, input: &str, limit: Duration) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let program = program(script, dir.path());
        let answered = handlers().run(&program, input.into(), limit).await;
        answered.map(|answer| String::from_utf8(answer).unwrap()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_handler_reads_its_input_and_inherits_no_secrets() {
        assert_eq!(run("cat", "{\"a\":1}", LONG).await.as_deref(), Ok("{\"a\":1}"));
        let said = run("echo $OPENAI_API_KEY-$KEPT-$OWN; pwd | grep -c tmp", "", LONG).await;
        assert_eq!(said.as_deref(), Ok("-yes-own\n1\n"));
    }

    #[tokio::test]
    async fn failures_say_what_happened() {
        let rows = [
            ("echo one >&2; echo two >&2; exit 3", "ended with exit code 3: one | two"),
            ("kill -9 $$", "ended with signal SIGKILL"),
            ("exit 1", "ended with exit code 1"),
        ];
        for (script, expect) in rows {
            assert_eq!(run(script, "", LONG).await, Err(expect.to_owned()), "{script}");
        }
        let nowhere = Program { command: vec!["/no/such/file".into()], ..program("", Path::new("/")) };
        let error = handlers().run(&nowhere, Vec::new(), LONG).await.unwrap_err();
        assert!(matches!(error, ProgramError::Start(_)), "{error}");
        let gone = program("true", Path::new("/no/such/dir"));
        assert!(matches!(handlers().run(&gone, Vec::new(), LONG).await, Err(ProgramError::Start(_))));
    }

    #[tokio::test]
    async fn a_handler_that_does_not_listen_or_talks_without_end_holds_nobody_up() {
        let long = "x".repeat(4 << 20);
        assert_eq!(run("exec <&-; echo done", &long, LONG).await.as_deref(), Ok("done\n"));
        assert_eq!(run("exit 0", &long, LONG).await.as_deref(), Ok(""));
        let error = run("yes", "", LONG).await.unwrap_err();
        assert!(error.starts_with("printed more than"), "{error}");
        let words = run("head -c 3000000 /dev/zero | tr '\\0' e >&2; exit 1", "", LONG).await.unwrap_err();
        assert_eq!(words.matches('e').count(), KEPT_WORDS + "ended exit code".matches('e').count());
        assert_eq!(run("exec >&- 2>&-; cat > /dev/null", "in", LONG).await.as_deref(), Ok(""));
    }

    #[tokio::test]
    async fn a_handler_that_hangs_is_killed_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        // Long enough for a busy machine to begin.
        let (pid, limit) = (dir.path().join("pid"), Duration::from_secs(5));
        let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        let begun = Instant::now();
        let error = handlers().run(&program(&script, dir.path()), Vec::new(), limit).await.unwrap_err();
        assert!(matches!(error, ProgramError::TimedOut(_)) && begun.elapsed() < LONG, "{error}");
        gone(&pid).await;
    }

    #[tokio::test]
    async fn what_a_handler_leaves_behind_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        // With its output, and without.
        for redirect in ["", "> /dev/null 2>&1"] {
            let script = format!("sleep 1000 {redirect} & echo $! > {}; echo answer", pid.display());
            let begun = Instant::now();
            let answer = handlers().run(&program(&script, dir.path()), Vec::new(), LONG).await.unwrap();
            assert_eq!(answer, b"answer\n");
            assert!(begun.elapsed() < LONG);
            gone(&pid).await;
        }
    }

    async fn gone(pid: &Path) {
        let pid = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        let gone = async {
            // A zombie whose parent is gone waits for the system's first process; it runs no more.
            while is_running(pid) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, gone).await.unwrap();
    }

    fn is_running(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
    }
}
