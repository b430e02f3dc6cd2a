//! Running handlers of hooks: a program that reads one value and writes one, in the process group of its own guard, with the
//! environment of the commands of `exec` (decision 18).

use std::io;
use std::time::Duration;

use openclaw_agent::hooks::answer::MAX_ANSWER;
use openclaw_agent::hooks::program::Running;
use openclaw_agent::hooks::{Program, ProgramError, Programs};
use secrecy::ExposeSecret as _;

use super::environment::compose;
use super::settings::ExecSettings;
use crate::command::program::{ProgramAnswer, ProgramCall, ProgramFailure, ending};

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

    async fn answer(
        &self,
        program: &Program,
        input: Vec<u8>,
        limit: Duration,
    ) -> Result<Vec<u8>, ProgramError> {
        let (file, arguments) = program
            .command
            .split_first()
            .ok_or_else(|| ProgramError::Start(io::ErrorKind::NotFound.into()))?;
        let own: Vec<(String, String)> = program
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
            .collect();
        let call = ProgramCall {
            program: file.clone(),
            arguments: arguments.to_vec(),
            environment: compose(&self.settings, &own, None),
            directory: program.dir.clone(),
            input,
            limit,
            max_answer: MAX_ANSWER,
            max_said: KEPT_WORDS,
            lock: self.settings.lock.clone(),
        };
        let ProgramAnswer { output, said } = call.answer().await.map_err(error)?;
        if !said.is_empty() {
            tracing::debug!(hook = %program.hook, "hook said: {said}");
        }
        Ok(output)
    }
}

impl Programs for Handlers {
    fn run<'a>(&'a self, program: &'a Program, input: Vec<u8>, limit: Duration) -> Running<'a> {
        Box::pin(self.answer(program, input, limit))
    }
}

fn error(failure: ProgramFailure) -> ProgramError {
    match failure {
        ProgramFailure::NotStarted(error) => ProgramError::Start(error),
        ProgramFailure::TimedOut(limit) => ProgramError::TimedOut(limit),
        ProgramFailure::TooMuchOutput(most) => ProgramError::TooMuchOutput(most),
        ProgramFailure::Failed { status, said } => {
            ProgramError::Failed { status: ending(&status), stderr: said }
        }
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
