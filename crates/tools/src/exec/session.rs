//! One command from its start until it is forgotten: what it printed, whether it runs, how it ended. It outlives the call that started it
//! once it was put in the background, but never this process (spec `tools.md` §3.1 row 10, §3.2, §4).

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

use super::guard::CommandLock;
use super::output::{Output, Stream};
use super::promise::Promised;
use super::sessions::Owner;
use super::start::{Input, Started};
use super::terminal::Queries;
use crate::sandbox::Launch;

/// How long a killed command has to be gone, and a finished one's output to end.
const GRACE: Duration = Duration::from_secs(1);
/// How long a command may take to read what is written to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Far enough to mean never.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// What is started.
    pub(super) launch: Launch,
    /// The command, as it is shown.
    pub(super) command: String,
    /// Where it runs, as it is shown.
    pub(super) cwd: PathBuf,
    /// Absent: none.
    pub(super) timeout: Option<Duration>,
    pub(super) max_output_chars: usize,
    /// Of what was not polled yet.
    pub(super) max_pending_chars: usize,
    /// Whether something may be written to it; else its standard input is empty.
    pub(super) is_fed: bool,
    pub(super) in_terminal: bool,
    /// Held as long as the command may run.
    pub(super) lock: Option<CommandLock>,
}

/// A command.
#[derive(Debug)]
pub(crate) struct Session {
    /// Two words.
    pub(crate) id: String,
    /// Whose it is: others do not see it.
    pub(crate) scope: String,
    /// Whom its end is told.
    pub(super) told: Option<SessionKey>,
    /// What its owner was promised to hear of it.
    pub(super) promised: Mutex<Option<Promised>>,
    pub(crate) command: String,
    pub(crate) cwd: PathBuf,
    pub(crate) pid: Option<u32>,
    /// Unix milliseconds.
    pub(crate) started_at: i64,
    begun: Instant,
    state: Mutex<State>,
    over: watch::Sender<bool>,
    /// Ends the command.
    kill: CancellationToken,
    input: tokio::sync::Mutex<Option<Input>>,
}

#[derive(Debug)]
struct State {
    output: Output,
    /// What was not polled yet.
    news: Output,
    is_in_background: bool,
    end: Option<End>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) ending: Ending,
    /// Unix milliseconds.
    pub(crate) at: i64,
    pub(crate) duration: Duration,
    /// Something the command left behind still held its output, and was killed.
    pub(crate) stopped_leftovers: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    /// Somebody ended it.
    Killed,
}

/// Why the command is being brought to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    TimedOut,
    Killed,
}

/// Why nothing could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotWritable;

impl Session {
    pub(super) fn new(
        id: String,
        owner: &Owner,
        order: &Order,
        pid: Option<u32>,
        input: Input,
        kill: CancellationToken,
    ) -> Self {
        Self {
            id,
            scope: owner.scope.clone(),
            told: owner.told.clone(),
            promised: Mutex::default(),
            command: order.command.clone(),
            cwd: order.cwd.clone(),
            pid,
            started_at: now_ms(),
            begun: Instant::now(),
            state: Mutex::new(State {
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
    pub(super) async fn drive(&self, order: Order, started: Started) {
        let deadline = self.begun + order.timeout.unwrap_or(NEVER).min(NEVER);
        let Started { mut child, mut guard, mut out, mut err, .. } = started;
        let (mut status, mut stop, mut grace, mut stopped_leftovers) = (None, None, None, false);
        let mut queries = Queries::default();
        while status.is_none() || out.is_open() || err.is_open() {
            tokio::select! { biased;
                () = self.kill.cancelled(), if stop.is_none() => {
                    guard.kill();
                    (stop, grace) = (Some(Stop::Killed), Some(Instant::now() + GRACE));
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
                    // What can't be waited for is gone.
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
            // What it put in the background with its output elsewhere lives on, as in a terminal, but not longer than we do.
            match &order.lock {
                Some(lock) => lock.keep(guard),
                None => guard.release(),
            }
        } else {
            guard.kill();
            guard.has_killed().await;
        }
        let ending = match (stop, status.flatten()) {
            (Some(Stop::Killed), _) => Ending::Killed,
            (Some(Stop::TimedOut), _) | (None, None) => Ending::TimedOut,
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

    /// Says where the cursor is, as often as a program has asked its terminal. Whoever does not read is not waited for.
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

    /// Ends the command and all it left in its group. [`Session::ended`] tells when it is gone.
    pub(crate) fn kill(&self) {
        self.kill.cancel();
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.state.lock().end
    }

    /// How long it has run.
    pub(crate) fn runtime(&self) -> Duration {
        self.end().map_or_else(|| self.begun.elapsed(), |end| end.duration)
    }

    /// Puts it in the background; `false`: it has ended already.
    pub(super) fn put_in_background(&self) -> bool {
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
    pub(super) fn fresh_tail(&self) -> Option<String> {
        let mut state = self.state.lock();
        let has_news = state.output.has_news();
        has_news.then(|| state.output.tail().to_owned())
    }

    /// What it printed since this was last asked.
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

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::Exited(-1),
    }
}

/// `SIGKILL`, or the number where the system has no name for it.
pub(crate) fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.as_str().to_owned())
}
