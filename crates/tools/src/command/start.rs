//! Starts a command: with pipes, or in a terminal of its own.

use std::io;
use std::process::Stdio;

use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::Launch;
use super::guard::Guard;
use super::session::CommandSpec;

/// Size of the terminal (spec `tools.md` §3.1 row 10).
const TERMINAL: (u16, u16) = (30, 120);

/// A command that runs, and what connects us with it.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) guard: Guard,
    pub(super) out: Pipe,
    pub(super) err: Pipe,
    pub(super) input: Input,
}

/// Destination of input to a command.
#[derive(Debug)]
pub(super) enum Input {
    /// Closed standard input.
    Closed,
    Pipe(ChildStdin),
    Terminal(OwnedWritePty),
}

/// Output pipe of a command, read to its end.
pub(super) struct Pipe {
    reader: Option<OutputReader>,
    buffer: Vec<u8>,
}

enum OutputReader {
    Out(ChildStdout),
    Err(ChildStderr),
    Terminal(OwnedReadPty),
}

/// Starts it in the group of a new guard, or, in a terminal, as the head of its own.
pub(super) fn start(order: &CommandSpec) -> io::Result<Started> {
    let Launch { ending, environment, .. } = &order.launch;
    let guard = Guard::start_with(order.lock.as_ref(), ending, environment)?;
    if order.in_terminal { in_terminal(order, guard) } else { with_pipes(order, guard) }
}

fn with_pipes(order: &CommandSpec, guard: Guard) -> io::Result<Started> {
    let launch = &order.launch;
    let mut child = Command::new(&launch.program)
        .args(&launch.arguments)
        .current_dir(&launch.directory)
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .stdin(if order.is_fed { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(guard.group())
        .kill_on_drop(true)
        .spawn()?;
    let out = Pipe::new(child.stdout.take().map(OutputReader::Out));
    let err = Pipe::new(child.stderr.take().map(OutputReader::Err));
    let input = child.stdin.take().map_or(Input::Closed, Input::Pipe);
    Ok(Started { child, guard, out, err, input })
}

fn in_terminal(order: &CommandSpec, mut guard: Guard) -> io::Result<Started> {
    let failed = |error: pty_process::Error| io::Error::other(error);
    let (pty, pts) = pty_process::open().map_err(failed)?;
    pty.resize(Size::new(TERMINAL.0, TERMINAL.1)).map_err(failed)?;
    let launch = &order.launch;
    let command = pty_process::Command::new(&launch.program)
        .args(&launch.arguments)
        .current_dir(&launch.directory)
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .kill_on_drop(true);
    let child = command.spawn(pts).map_err(failed)?;
    // Without its terminal, which goes with us, it gets a hangup; the guard ends what does not mind that.
    guard.watch(child.id())?;
    let (reader, writer) = pty.into_split();
    let out = Pipe::new(Some(OutputReader::Terminal(reader)));
    Ok(Started { child, guard, out, err: Pipe::new(None), input: Input::Terminal(writer) })
}

impl Pipe {
    fn new(reader: Option<OutputReader>) -> Self {
        Self { reader, buffer: vec![0; 16 * 1024] }
    }

    pub(super) fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Waits for bytes and counts them; none is the end. Cancel-safe: a read that did not finish took nothing.
    pub(super) async fn read(&mut self) -> usize {
        let buffer = &mut self.buffer;
        let count = match &mut self.reader {
            Some(OutputReader::Out(reader)) => some_of(reader, buffer).await,
            Some(OutputReader::Err(reader)) => some_of(reader, buffer).await,
            // A terminal that nobody holds open any more fails to be read: that is its end.
            Some(OutputReader::Terminal(reader)) => some_of(reader, buffer).await,
            None => 0,
        };
        if count == 0 {
            self.reader = None;
        }
        count
    }

    /// The bytes of the last [`Self::read`].
    pub(super) fn taken(&self, count: usize) -> &[u8] {
        self.buffer.get(..count).unwrap_or_default()
    }
}

async fn some_of(reader: &mut (impl AsyncRead + Unpin), buffer: &mut [u8]) -> usize {
    reader.read(buffer).await.unwrap_or(0)
}
