//! The first process inside: builds the file system, starts the command and collects whatever ends. When it ends, the kernel kills
//! the rest. It stays as long as something is left, so that a server put in the background lives on, as it does without a sandbox.

use std::fs::File;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, sethostname};

use super::super::spec::{ENTER, Network};
use super::status::{self, CommandStatus};
use super::{Doing as _, EnterArgs, EnterError, INNER, capabilities, network, root};

pub(super) fn run(call: &EnterArgs) -> Result<u8, EnterError> {
    let mut file = status::open(&call.status.to_string_lossy())?;
    if call.spec.network == Network::None {
        network::raise_loopback()?;
    }
    sethostname("sandbox").doing("name the host")?;
    root::build(&call.spec)?;
    let mut inner = Command::new("/proc/self/exe");
    inner.arg(ENTER).arg(INNER).arg(&call.text).arg("").args(&call.command);
    let command = inner.spawn().doing("start the command")?;
    let command = Pid::from_raw(i32::try_from(command.id()).unwrap_or_default());
    // The command has the same user: it may neither look into this process nor borrow its rights.
    prctl::set_dumpable(false).doing("hide from the command")?;
    capabilities::give_up_own().doing("give up capabilities")?;
    loop {
        let (pid, ended) = match wait() {
            Ok(WaitStatus::Exited(pid, code)) => (pid, CommandStatus::exited(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, CommandStatus::signalled(signal)),
            Ok(_) | Err(Errno::EINTR) => continue,
            Err(_) => return Ok(0),
        };
        if pid == command {
            let_go_of_output();
            status::tell(&mut file, ended)?;
        }
    }
}

/// Closes the output: if it were held open, the command would seem to go on.
fn let_go_of_output() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(&null);
    }
}
