//! Session of a command from its start until it is forgotten: its output, its state, and its
//! outcome. A session outlives the call that started it once it was put in the background, but
//! never this process (spec `tools.md` §3.1 row 10, §3.2, §4).

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use std::os::unix::process::ExitStatusExt as _;

use nix::sys::signal::Signal;
use openclaw_config::clock::now_ms;
use openclaw_protocol::SessionKey;
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Launch;
use super::guard::CommandLock;
use super::output::{Output, Stream};
use super::promise::Promised;
use super::sessions::CommandOwner;
use super::start::{Input, Started};
use super::terminal::Queries;

/// Time that a killed command gets to end, and that the output of a finished one gets to close.
const GRACE: Duration = Duration::from_secs(1);
/// Time that a command gets to read what is written to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Far enough to mean never.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Command to run.
#[derive(Debug, Clone)]
pub(crate) struct CommandSpec {
    /// Program to start.
    pub(crate) launch: Launch,
    /// The command, as it is shown.
    pub(crate) command: String,
    /// Working directory, as it is shown.
    pub(crate) cwd: PathBuf,
    /// Absent: none.
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output_chars: usize,
    /// Maximum number of kept characters of output that was not polled yet.
    pub(crate) max_pending_chars: usize,
    /// True if input may be written to the command; else its standard input is empty.
    pub(crate) is_fed: bool,
    pub(crate) in_terminal: bool,
    /// Lock that is held as long as the command may run.
    pub(crate) lock: Option<CommandLock>,
}

/// A command.
#[derive(Debug)]
pub(crate) struct CommandSession {
    /// Id of two words.
    pub(crate) id: String,
    /// Scope that it belongs to: others do not see it.
    pub(crate) scope: String,
    /// True if it was elevated.
    pub(crate) is_elevated: bool,
    /// Session that is told of its end.
    pub(crate) told: Option<SessionKey>,
    /// Promise to tell its owner about it.
    pub(crate) promised: Mutex<Option<Promised>>,
    pub(crate) command: String,
    pub(crate) cwd: PathBuf,
    pub(crate) pid: Option<u32>,
    /// Unix milliseconds.
    pub(crate) started_at: i64,
    begun: Instant,
    state: Mutex<CommandState>,
    over: watch::Sender<bool>,
    /// Ends the command.
    kill: CancellationToken,
    input: tokio::sync::Mutex<Option<Input>>,
}

#[derive(Debug)]
struct CommandState {
    output: Output,
    /// Output that was not polled yet.
    news: Output,
    is_in_background: bool,
    end: Option<End>,
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) ending: CommandEnding,
    /// Unix milliseconds.
    pub(crate) at: i64,
    pub(crate) duration: Duration,
    /// True if a process that the command left behind still held its output, and was killed.
    pub(crate) stopped_leftovers: bool,
}

/// Way in which a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEnding {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    /// The command was killed on request.
    Killed,
}

/// Reason why the command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillReason {
    TimedOut,
    Killed,
}

/// Ends the command of a call that is dropped, unless it is in the background.
pub(crate) struct Foreground<'a>(pub(crate) &'a CommandSession);

impl Drop for Foreground<'_> {
    fn drop(&mut self) {
        if !self.0.is_in_background() {
            self.0.kill();
        }
    }
}

/// Error of writing to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotWritable;

impl CommandSession {
    pub(super) fn new(
        id: String,
        owner: &CommandOwner,
        order: &CommandSpec,
        pid: Option<u32>,
        input: Input,
        kill: CancellationToken,
    ) -> Self {
        Self {
            id,
            scope: owner.scope.clone(),
            is_elevated: owner.is_elevated,
            told: owner.told.clone(),
            promised: Mutex::default(),
            command: order.command.clone(),
            cwd: order.cwd.clone(),
            pid,
            started_at: now_ms(),
            begun: Instant::now(),
            state: Mutex::new(CommandState {
                output: Output::new(order.max_output_chars),
                news: Output::new(order.max_pending_chars),
                is_in_background: false,
                end: None,
            }),
            over: watch::Sender::new(false),
            kill,
            input: tokio::sync::Mutex::new(Some(input)),
        }
    }

    /// Drives it to its end.
    pub(super) async fn drive(&self, order: CommandSpec, started: Started) {
        let deadline = self.begun + order.timeout.unwrap_or(NEVER).min(NEVER);
        let Started { mut child, mut guard, mut out, mut err, .. } = started;
        let (mut status, mut stop, mut grace, mut stopped_leftovers) = (None, None, None, false);
        let mut queries = Queries::default();
        while status.is_none() || out.is_open() || err.is_open() {
            tokio::select! { biased;
                () = self.kill.cancelled(), if stop.is_none() => {
                    guard.kill();
                    (stop, grace) = (Some(KillReason::Killed), Some(Instant::now() + GRACE));
                }
                () = sleep_until(deadline), if stop.is_none() && status.is_none() => {
                    guard.kill();
                    (stop, grace) = (Some(KillReason::TimedOut), Some(Instant::now() + GRACE));
                }
                () = sleep_until(grace.unwrap_or(deadline)), if grace.is_some() => {
                    stopped_leftovers = stop.is_none();
                    guard.kill();
                    break;
                }
                exit = child.wait(), if status.is_none() => {
                    // A process that can't be waited for is gone.
                    status = Some(exit.ok());
                    grace = grace.or(Some(Instant::now() + GRACE));
                }
                count = out.read(), if out.is_open() => {
                    let bytes = out.taken(count);
                    if order.in_terminal {
                        let (shown, asked) = queries.take(bytes);
                        self.print(Stream::Out, &shown);
                        self.answer(asked).await;
                    } else {
                        self.print(Stream::Out, bytes);
                    }
                }
                count = err.read(), if err.is_open() => self.print(Stream::Err, err.taken(count)),
            }
        }
        if status.is_some() && stop.is_none() && !order.in_terminal {
            // Processes in the background with their output elsewhere live on, as in a terminal,
            // but not longer than we do.
            match &order.lock {
                Some(lock) => lock.keep(guard),
                None => guard.release(),
            }
        } else {
            guard.kill();
            guard.has_killed().await;
        }
        let ending = match (stop, status.flatten()) {
            (Some(KillReason::Killed), _) => CommandEnding::Killed,
            (Some(KillReason::TimedOut), _) | (None, None) => CommandEnding::TimedOut,
            (None, Some(status)) => ending(status),
        };
        *self.input.lock().await = None;
        let end = End { ending, at: now_ms(), duration: self.begun.elapsed(), stopped_leftovers };
        let mut state = self.state.lock();
        state.output.end();
        state.news.end();
        state.end = Some(end);
        drop(state);
        self.over.send_replace(true);
    }

    /// Answers each cursor query of the program with the position. Does not wait for a program that
    /// does not read.
    async fn answer(&self, times: usize) {
        let Ok(mut input) = self.input.try_lock() else { return };
        let Some(Input::Terminal(terminal)) = input.as_mut() else { return };
        for _ in 0..times {
            let said = terminal.write(super::terminal::CURSOR.as_bytes());
            if !matches!(timeout(Duration::ZERO, said).await, Ok(Ok(1..))) {
                return;
            }
        }
    }

    fn print(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.state.lock();
        state.output.push(stream, bytes);
        state.news.push(stream, bytes);
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        let mut over = self.over.subscribe();
        // The sender lives as long as we do.
        let _ = over.wait_for(|over| *over).await;
    }

    /// Ends the command and all it left in its group. [`CommandSession::ended`] tells when it is gone.
    pub(crate) fn kill(&self) {
        self.kill.cancel();
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.state.lock().end
    }

    /// Returns the time for which the command has run.
    pub(crate) fn runtime(&self) -> Duration {
        self.end().map_or_else(|| self.begun.elapsed(), |end| end.duration)
    }

    /// Puts it in the background; `false`: it has ended already.
    pub(crate) fn put_in_background(&self) -> bool {
        let mut state = self.state.lock();
        state.is_in_background = state.end.is_none();
        state.is_in_background
    }

    pub(crate) fn is_in_background(&self) -> bool {
        self.state.lock().is_in_background
    }

    /// All that is kept of what it printed.
    pub(crate) fn printed(&self) -> String {
        self.state.lock().output.text().to_owned()
    }

    /// Characters that are kept, and whether there were more.
    pub(crate) fn size(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.output.chars(), state.output.is_cut())
    }

    /// The last of it.
    pub(crate) fn tail(&self) -> String {
        self.state.lock().output.tail().to_owned()
    }

    /// The last of it, if something came since this was asked.
    pub(crate) fn fresh_tail(&self) -> Option<String> {
        let mut state = self.state.lock();
        let has_news = state.output.has_news();
        has_news.then(|| state.output.tail().to_owned())
    }

    /// Returns the output since the last poll.
    pub(crate) fn poll(&self) -> String {
        self.state.lock().news.take()
    }

    /// Writes to its standard input.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), NotWritable> {
        let mut input = self.input.lock().await;
        let written = match input.as_mut() {
            Some(Input::Pipe(pipe)) => in_time(pipe, bytes).await,
            Some(Input::Terminal(terminal)) => in_time(terminal, bytes).await,
            Some(Input::Closed) | None => return Err(NotWritable),
        };
        written.map_err(|_| NotWritable)
    }

    /// Ends its standard input. A terminal is told so by its own sign.
    pub(crate) async fn close_input(&self) -> Result<(), NotWritable> {
        const END_OF_TRANSMISSION: &[u8] = b"\x04";
        let mut input = self.input.lock().await;
        match input.as_mut() {
            Some(Input::Terminal(terminal)) => {
                in_time(terminal, END_OF_TRANSMISSION).await.map_err(|_| NotWritable)
            }
            Some(Input::Pipe(_)) => {
                *input = Some(Input::Closed);
                Ok(())
            }
            Some(Input::Closed) | None => Err(NotWritable),
        }
    }
}

async fn in_time(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let writing = async {
        writer.write_all(bytes).await?;
        writer.flush().await
    };
    tokio::time::timeout(PATIENCE, writing).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
}

fn ending(status: ExitStatus) -> CommandEnding {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandEnding::Exited(code),
        (None, Some(signal)) => CommandEnding::Signalled(signal),
        (None, None) => CommandEnding::Exited(-1),
    }
}

/// `SIGKILL`, or the number where the system has no name for it.
pub(crate) fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.as_str().to_owned())
}
