//! A program that is asked for something: it runs to its end in the process group of its own guard, and what it prints is
//! the answer.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use super::Launch;
use super::guard::CommandLock;
use super::session::{CommandSpec, signal_name};
use super::start::{Input, Started, start};

/// Time for which processes that a finished program left behind may hold its output open.
const GRACE: Duration = Duration::from_millis(500);
/// Time in which a killed program is gone.
const KILLED: Duration = Duration::from_secs(1);

/// A program and how it is asked.
#[derive(Debug, Default)]
pub struct ProgramCall {
    /// Absolute path, or a name that is looked for on the `PATH` of `environment`.
    pub program: OsString,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Whole environment of the program.
    pub environment: Vec<(String, String)>,
    /// Directory in which it starts.
    pub directory: PathBuf,
    /// Bytes that it is given to read.
    pub input: Vec<u8>,
    /// Time limit.
    pub limit: Duration,
    /// Largest answer in bytes.
    pub max_answer: usize,
    /// Bytes that are kept of what it says beside its answer, the last ones.
    pub max_said: usize,
    /// Lock that is held as long as it may run.
    pub lock: Option<CommandLock>,
}

/// Answer of a program that ended with code 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAnswer {
    /// Standard output of the program.
    pub output: Vec<u8>,
    /// The end of what it said beside it, on one line.
    pub said: String,
}

/// Reasons for which there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProgramFailure {
    /// The program can't be started.
    #[error("cannot be started: {0}")]
    NotStarted(#[from] std::io::Error),
    /// The program did not end in time, and was killed with all that it had started.
    #[error("did not end within {0:?} and was killed")]
    TimedOut(Duration),
    /// The answer was too long; the program was killed with all that it had started.
    #[error("printed more than {0} bytes and was killed")]
    TooMuchOutput(usize),
    /// The program ended with another code than 0, or by a signal.
    #[error("ended with {}: {said}", ending(.status))]
    Failed {
        /// Exit code or signal.
        status: ExitStatus,
        /// The end of what it said beside its answer, on one line.
        said: String,
    },
}

/// Names a status: `exit code 3`, `signal SIGKILL`.
pub(crate) fn ending(status: &ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {}", signal_name(signal)),
        (None, None) => "no status".to_owned(),
    }
}

impl ProgramCall {
    /// Runs the program and returns what it prints. It ends with this process, and when the caller does not wait any
    /// more; everything in its process group ends with it.
    ///
    /// # Errors
    /// [`ProgramFailure`], for anything but an exit with code 0.
    pub async fn answer(self) -> Result<ProgramAnswer, ProgramFailure> {
        let deadline = Instant::now() + self.limit;
        let bounds = AnswerBounds { limit: self.limit, max_answer: self.max_answer, max_said: self.max_said };
        let order = CommandSpec {
            command: String::new(),
            cwd: self.directory.clone(),
            launch: Launch {
                program: self.program,
                arguments: self.arguments,
                environment: self.environment,
                directory: self.directory,
                ending: Vec::new(),
            },
            timeout: None,
            max_output_chars: 0,
            max_pending_chars: 0,
            is_fed: !self.input.is_empty(),
            in_terminal: false,
            lock: self.lock,
        };
        // Dropping it kills the whole group.
        let mut started = start(&order)?;
        let ended = converse(&mut started, &self.input, deadline, bounds).await;
        started.guard.kill();
        if ended.is_err() {
            let _ = timeout(KILLED, started.child.wait()).await;
        }
        let Ended { status, output, said } = ended?;
        let said = one_line(&said);
        if status.success() {
            Ok(ProgramAnswer { output, said })
        } else {
            Err(ProgramFailure::Failed { status, said })
        }
    }
}

#[derive(Clone, Copy)]
struct AnswerBounds {
    limit: Duration,
    max_answer: usize,
    max_said: usize,
}

struct Ended {
    status: ExitStatus,
    output: Vec<u8>,
    said: Vec<u8>,
}

/// Gives the program its input and reads until it has ended and its pipes are closed, or outlive it by too much.
async fn converse(
    started: &mut Started,
    input: &[u8],
    mut deadline: Instant,
    bounds: AnswerBounds,
) -> Result<Ended, ProgramFailure> {
    let Started { child, out, err, input: stdin, .. } = started;
    let mut feeding = std::pin::pin!(feed(std::mem::replace(stdin, Input::Closed), input));
    let (mut is_fed, mut status) = (false, None);
    let (mut output, mut said) = (Vec::new(), Vec::new());
    loop {
        if let Some(status) = status.filter(|_| !out.is_open() && !err.is_open()) {
            return Ok(Ended { status, output, said });
        }
        tokio::select! { biased;
            () = sleep_until(deadline) => match status {
                Some(status) => return Ok(Ended { status, output, said }),
                None => return Err(ProgramFailure::TimedOut(bounds.limit)),
            },
            ended = child.wait(), if status.is_none() => {
                status = Some(ended?);
                deadline = Instant::now() + GRACE;
            }
            () = &mut feeding, if !is_fed => is_fed = true,
            count = out.read(), if out.is_open() => {
                output.extend_from_slice(out.taken(count));
                if output.len() > bounds.max_answer {
                    return Err(ProgramFailure::TooMuchOutput(bounds.max_answer));
                }
            }
            // Read to its end, so that whoever talks is not held up.
            count = err.read(), if err.is_open() => {
                said.extend_from_slice(err.taken(count));
                said.drain(..said.len().saturating_sub(bounds.max_said));
            }
        }
    }
}

/// A program that does not listen misses nothing it wanted.
async fn feed(stdin: Input, input: &[u8]) {
    if let Input::Pipe(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
}

fn one_line(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" | ").chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ProgramCall {
        ProgramCall {
            program: "sh".into(),
            arguments: ["-c", script].map(Into::into).to_vec(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("WORD".into(), "fine".into())],
            directory: "/".into(),
            limit: Duration::from_secs(60),
            max_answer: 100_000,
            max_said: 100,
            ..ProgramCall::default()
        }
    }

    #[tokio::test]
    async fn what_it_prints_is_the_answer_and_how_it_failed_is_said() {
        let answer = shell("echo $WORD; echo no >&2; pwd").answer().await.unwrap();
        assert_eq!((answer.output.as_slice(), answer.said.as_str()), (b"fine\n/\n".as_slice(), "no"));
        for (script, expect) in [
            ("echo out; echo boom >&2; exit 3", "ended with exit code 3: boom"),
            ("kill -TERM $$", "ended with signal SIGTERM: "),
            ("head -c 100000000 /dev/zero", "printed more than 100000 bytes and was killed"),
        ] {
            assert_eq!(shell(script).answer().await.unwrap_err().to_string(), expect, "{script}");
        }
        let loud = shell("head -c 100000000 /dev/zero | tr '\\0' e >&2; echo fine").answer().await.unwrap();
        assert_eq!((loud.output.as_slice(), loud.said.len()), (b"fine\n".as_slice(), 100));
        let missing = ProgramCall { program: "/nowhere/x".into(), ..shell("") };
        assert!(matches!(missing.answer().await.unwrap_err(), ProgramFailure::NotStarted(_)));
    }
}
