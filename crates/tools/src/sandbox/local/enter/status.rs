//! Status of a command from `init` to `outer`: two bytes through a pipe, because an exit code can't
//! represent a signal.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsRawFd as _;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;

use super::{Doing as _, EnterError, bad};

/// Outcome of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandStatus {
    Exited(u8),
    Signalled(u8),
}

impl CommandStatus {
    pub(super) fn exited(code: i32) -> Self {
        Self::Exited(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
    }

    pub(super) fn signalled(signal: Signal) -> Self {
        Self::Signalled(u8::try_from(signal as i32).unwrap_or(u8::MAX))
    }

    fn bytes(self) -> [u8; 2] {
        match self {
            Self::Exited(code) => [0, code],
            Self::Signalled(signal) => [1, signal],
        }
    }

    fn of([kind, value]: [u8; 2]) -> Self {
        if kind == 0 { Self::Exited(value) } else { Self::Signalled(value) }
    }
}

/// A pipe whose writing end the next stage opens by the number that is given with it.
pub(super) fn pipe() -> Result<(PipeReader, PipeWriter, String), EnterError> {
    let (reader, writer) = std::io::pipe().doing("make a pipe")?;
    fcntl(&writer, FcntlArg::F_SETFD(FdFlag::empty())).doing("pass a pipe on")?;
    let number = writer.as_raw_fd().to_string();
    Ok((reader, writer, number))
}

/// Opens the end that was passed on, for this process alone: the number it was passed under is closed.
pub(super) fn open(number: &str) -> Result<File, EnterError> {
    let file = File::options().write(true).open(format!("/proc/self/fd/{number}"));
    let file = file.doing("open the status pipe")?;
    let number: i32 = number.parse().map_err(|_| bad("status"))?;
    nix::unistd::close(number).doing("close the status pipe")?;
    Ok(file)
}

pub(super) fn tell(file: &mut File, ended: CommandStatus) -> Result<(), EnterError> {
    file.write_all(&ended.bytes()).doing("tell how the command ended")
}

/// Waits to be told; nothing when `init` ended before.
pub(super) fn wait(mut reader: PipeReader) -> Option<CommandStatus> {
    let mut bytes = [0; 2];
    reader.read_exact(&mut bytes).ok().map(|()| CommandStatus::of(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_survives_the_pipe() {
        for (ended, bytes) in [
            (CommandStatus::exited(0), [0, 0]),
            (CommandStatus::exited(256 + 3), [0, 3]),
            (CommandStatus::signalled(Signal::SIGTERM), [1, 15]),
            (CommandStatus::signalled(Signal::SIGSYS), [1, 31]),
        ] {
            assert_eq!(ended.bytes(), bytes);
            assert_eq!(CommandStatus::of(bytes), ended);
        }
    }
}
