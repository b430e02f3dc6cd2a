//! One command as a process group that outlives neither its call nor this process (spec `tools.md` §3.1 row 10, §3.2).

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use std::os::unix::process::ExitStatusExt;

use nix::sys::signal::Signal;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::guard::{CommandLock, Guard};
use super::output::{Output, Stream};

/// How long a killed command has to be gone, and a finished one's output to end.
const GRACE: Duration = Duration::from_secs(1);
/// Updates come no faster than this.
const UPDATE_EVERY: Duration = Duration::from_millis(250);
/// Far enough to mean never.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What to run.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) shell: String,
    pub(super) command: String,
    pub(super) cwd: PathBuf,
    /// The whole environment.
    pub(super) environment: Vec<(String, String)>,
    /// Absent: none.
    pub(super) timeout: Option<Duration>,
    pub(super) max_output_chars: usize,
    /// Held as long as the command may run.
    pub(super) lock: Option<CommandLock>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) ending: Ending,
    pub(super) output: String,
    pub(super) duration: Duration,
    /// Something the command left behind still held its output, and was killed.
    pub(super) stopped_leftovers: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(i32),
    Signalled(i32),
    TimedOut,
}

/// Why nothing came of it.
#[derive(Debug)]
pub(super) enum RunError {
    /// The call was cancelled; the command is dead.
    Aborted,
    /// The shell did not start.
    Start(io::Error),
}

/// Why the command is being brought to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    TimedOut,
    Aborted,
}

/// Runs the command to its end. `report` is given the pid and the last output now and then.
pub(super) async fn run(
    order: Order,
    cancel: &CancellationToken,
    report: &mut (dyn FnMut(Option<u32>, &str) + Send),
) -> Result<Finished, RunError> {
    let started = Instant::now();
    let deadline = started + order.timeout.unwrap_or(NEVER).min(NEVER);
    let mut guard = Guard::start(order.lock.as_ref()).map_err(RunError::Start)?;
    let mut child = start(&order, &guard).map_err(RunError::Start)?;
    let pid = child.id();
    let mut out = Pipe::new(child.stdout.take());
    let mut err = Pipe::new(child.stderr.take());
    let mut output = Output::new(order.max_output_chars);
    let (mut status, mut stop, mut grace, mut stopped_leftovers) = (None, None, None, false);
    let mut next_update = started;

    while status.is_none() || out.is_open() || err.is_open() {
        tokio::select! { biased;
            () = cancel.cancelled(), if stop.is_none() => {
                guard.kill();
                (stop, grace) = (Some(Stop::Aborted), Some(Instant::now() + GRACE));
            }
            () = sleep_until(deadline), if stop.is_none() && status.is_none() => {
                guard.kill();
                (stop, grace) = (Some(Stop::TimedOut), Some(Instant::now() + GRACE));
            }
            () = sleep_until(grace.unwrap_or(deadline)), if grace.is_some() => {
                stopped_leftovers = stop.is_none();
                guard.kill();
                break;
            }
            exit = child.wait(), if status.is_none() => {
                status = Some(exit.map_err(RunError::Start)?);
                grace = grace.or(Some(Instant::now() + GRACE));
            }
            count = out.read(), if out.is_open() => output.push(Stream::Out, out.taken(count)),
            count = err.read(), if err.is_open() => output.push(Stream::Err, err.taken(count)),
        }
        if Instant::now() >= next_update && output.has_news() {
            next_update = Instant::now() + UPDATE_EVERY;
            report(pid, output.tail());
        }
    }
    if status.is_some() {
        // What it put in the background with its output elsewhere lives on, as in a terminal, but not longer than we do.
        match &order.lock {
            Some(lock) => lock.keep(guard),
            None => guard.release(),
        }
    }
    let ending = match (stop, status) {
        (Some(Stop::Aborted), _) => return Err(RunError::Aborted),
        (Some(Stop::TimedOut), _) | (None, None) => Ending::TimedOut,
        (None, Some(status)) => ending(status),
    };
    Ok(Finished { ending, output: output.finish(), duration: started.elapsed(), stopped_leftovers })
}

fn start(order: &Order, guard: &Guard) -> io::Result<Child> {
    Command::new(&order.shell)
        .arg("-c")
        .arg(&order.command)
        // $0 of the command, as a terminal has it.
        .arg(&order.shell)
        .current_dir(&order.cwd)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(guard.group())
        .kill_on_drop(true)
        .spawn()
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::Exited(-1),
    }
}

/// `SIGKILL`, or the number where the system has no name for it.
pub(super) fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.as_str().to_owned())
}

/// One of the command's outputs, until it ends.
struct Pipe<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>) -> Self {
        Self { reader, buffer: vec![0; 16 * 1024] }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Waits for bytes and counts them; none is the end. Cancel-safe: a read that did not finish took nothing.
    async fn read(&mut self) -> usize {
        let Some(reader) = &mut self.reader else { return 0 };
        let count = reader.read(&mut self.buffer).await.unwrap_or(0);
        if count == 0 {
            self.reader = None;
        }
        count
    }

    /// The bytes of the last [`Self::read`].
    fn taken(&self, count: usize) -> &[u8] {
        self.buffer.get(..count).unwrap_or_default()
    }
}
