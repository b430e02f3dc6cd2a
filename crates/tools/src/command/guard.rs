//! Guards that end each command when this process is gone, however it died.
//!
//! A command runs in the process group of its guard: a shell that reads from a pipe whose other end
//! this process alone holds. An empty line means that nothing of the command is left; the end of
//! the pipe means that this process is gone, and the guard kills its group, or the one whose number
//! it was told. No moment is left open: while a command is being started, the child has a copy of
//! the pipe's other end, which closes when the command itself takes over, and by then it is in the
//! group. A process that leaves the group (`setsid`) is not reached, as with a timeout.
//!
//! A command of a container is no child of ours. For such a one the guard runs the program that ends it, and then kills its group.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, PipeWriter, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use openclaw_config::private_file;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use super::leftovers::Leftovers;

/// Signals a command sends to its own group do not end the guard.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2; group=0
while read -r line; do [ -n \"$line\" ] || exit 0; group=-$line; done
[ $# -eq 0 ] || \"$@\" </dev/null >/dev/null 2>&1
kill -s KILL -- \"$group\"";
const SHELL: &str = "/bin/sh";
/// Time that commands of a gateway that died get to end.
const WAIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);
/// Time limit of the program that ends a command elsewhere.
const ENDING: Duration = Duration::from_secs(10);

/// Name of the lock file, in the state directory. Its content says nothing.
const LOCK_NAME: &str = "commands.lock";

/// A lock held by this process and by the guard of each of its commands, so that the next gateway can wait for all of them
/// to be gone. The system lets go of it. It is on a file of its own that nobody else may open: whoever may open the state
/// directory could lock that.
///
/// Leftovers of finished commands are tied to the lock: they end with the last of these locks, or
/// with the process.
#[derive(Debug, Clone)]
pub struct CommandLock {
    /// Lock file; `None` if the lock could not be taken.
    file: Option<Arc<File>>,
    leftovers: Arc<Leftovers>,
}

impl CommandLock {
    /// Creates a substitute for a lock that can't be taken: the next gateway does not wait.
    pub fn unheld() -> Self {
        Self { file: None, leftovers: Arc::default() }
    }

    /// Takes the lock once no command of an earlier holder runs any more.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when some still run after a while, or what the system says.
    pub async fn acquire(state_dir: &Path) -> io::Result<Self> {
        let file = private_file::append(&state_dir.join(LOCK_NAME))?;
        let deadline = Instant::now() + WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file: Some(Arc::new(file)), ..Self::unheld() }),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Keeps what a finished command left in the background from outliving this process.
    pub(super) fn keep(&self, guard: Guard) {
        if guard.line.is_some() {
            self.leftovers.keep(guard);
        }
    }
}

/// The guard of one command. Dropping it kills what is left of the group, unless it was released.
#[derive(Debug)]
pub(crate) struct Guard {
    group: Pid,
    /// Pipe to the guard; `None` once the group was killed or released.
    line: Option<PipeWriter>,
    /// True if the guard has to run a program before the group is killed.
    ends_elsewhere: bool,
    /// Shell of the guard. It is not waited for before the end: until then no other process gets
    /// its number, which is the group's.
    shell: Child,
}

impl Guard {
    #[cfg(test)]
    fn start(lock: Option<&CommandLock>) -> io::Result<Self> {
        Self::start_with(lock, &[], &[])
    }

    /// Starts a guard that also runs `ending` to end the command, a program with its arguments.
    pub(crate) fn start_with(
        lock: Option<&CommandLock>,
        ending: &[OsString],
        environment: &[(String, String)],
    ) -> io::Result<Self> {
        let (reader, line) = io::pipe()?;
        let ends_elsewhere = !ending.is_empty();
        let environment = if ends_elsewhere { environment } else { &[] };
        let file = lock.and_then(|lock| lock.file.as_ref());
        let held = file.map(|file| file.try_clone()).transpose()?;
        let shell = Command::new(SHELL)
            .arg("-c")
            .arg(SCRIPT)
            .arg(SHELL)
            .args(ending)
            .current_dir("/")
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(reader)
            .stdout(held.map_or_else(Stdio::null, Stdio::from))
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pid = shell.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { group: Pid::from_raw(pid), line: Some(line), ends_elsewhere, shell })
    }

    /// The process group for the command.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw()
    }

    /// Guards the group that this process is the head of, in the place of its own: that of a command in a terminal.
    pub(super) fn watch(&mut self, pid: Option<u32>) -> io::Result<()> {
        let pid = pid.and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
        self.group = Pid::from_raw(pid);
        self.line.as_mut().map_or(Ok(()), |line| writeln!(line, "{pid}"))
    }

    /// Kills the command and everything it left in its group.
    pub(crate) fn kill(&mut self) {
        // Without its line the guard does the rest where there is more to do.
        if self.line.take().is_some() && !self.ends_elsewhere {
            self.kill_group();
        }
    }

    fn kill_group(&self) {
        // Gone already is as good.
        let _ = killpg(self.group, Signal::SIGKILL);
    }

    /// Waits until a killed command has ended elsewhere too, or that took too long.
    pub(crate) async fn has_killed(mut self) {
        if self.ends_elsewhere && timeout(ENDING, self.shell.wait()).await.is_err() {
            tracing::warn!("a command in a container may still run: it could not be ended");
            self.kill_group();
        }
    }

    /// Releases the guard because nothing is left to guard. Processes that still exist live on.
    pub(crate) fn release(&mut self) {
        if let Some(mut line) = self.line.take() {
            // A guard that is gone, because the command killed its whole group, needs no telling.
            let _ = line.write_all(b"\n");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn command(script: &str, guard: &Guard) -> Child {
        let mut command = Command::new(SHELL);
        command.arg("-c").arg(script).stdin(Stdio::piped()).process_group(guard.group());
        command.spawn().unwrap()
    }

    #[tokio::test]
    async fn a_command_ends_with_the_process_that_started_it() {
        let mut guard = Guard::start(None).unwrap();
        let mut child = command("exec sleep 1000", &guard);
        // The same happens to the pipe when this process dies.
        drop(guard.line.take());
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
    }

    #[tokio::test]
    async fn what_is_not_in_the_group_is_ended_by_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("note");
        let ending = ["/bin/sh", "-c", "echo \"$WORD\" > \"$0\"", note.to_str().unwrap()].map(OsString::from);
        let environment = [("WORD".to_owned(), "ended".to_owned())];
        let mut guard = Guard::start_with(None, &ending, &environment).unwrap();
        let mut child = command("exec sleep 1000", &guard);
        guard.kill();
        guard.has_killed().await;
        assert_eq!(std::fs::read_to_string(&note).unwrap(), "ended\n");
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
        let mut guard = Guard::start_with(None, &ending, &environment).unwrap();
        std::fs::remove_file(&note).unwrap();
        guard.release();
        assert_eq!(guard.shell.wait().await.unwrap().code(), Some(0));
        assert!(!note.exists(), "a released command is not ended");
    }

    #[tokio::test]
    async fn what_a_released_command_left_behind_lives_on() {
        let mut guard = Guard::start(None).unwrap();
        let mut child = command("read -r line; exit 3", &guard);
        guard.release();
        assert_eq!(guard.shell.wait().await.unwrap().code(), Some(0), "the guard is gone");
        drop(guard);
        drop(child.stdin.take());
        assert_eq!(child.wait().await.unwrap().code(), Some(3));
    }

    #[tokio::test]
    async fn what_a_finished_command_left_behind_ends_with_the_lock() {
        let lock = CommandLock::unheld();
        let guard = Guard::start(Some(&lock)).unwrap();
        let mut child = command("exec sleep 1000", &guard);
        lock.keep(guard);
        drop(lock);
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
    }

    #[tokio::test]
    async fn a_guard_with_nothing_left_to_guard_goes() {
        let lock = CommandLock::unheld();
        let (lonely, busy) = (Guard::start(Some(&lock)).unwrap(), Guard::start(Some(&lock)).unwrap());
        let (mut ended, mut running) = (command("exit 0", &lonely), command("read -r line; exit 3", &busy));
        let is_there = |group: Pid| killpg(group, None).is_ok();
        let (lonely_group, busy_group) = (lonely.group, busy.group);
        lock.keep(lonely);
        lock.keep(busy);
        ended.wait().await.unwrap();
        let gone = async {
            while is_there(lonely_group) {
                tokio::time::sleep(POLL).await;
            }
        };
        timeout(Duration::from_secs(30), gone).await.unwrap();
        assert!(is_there(busy_group));
        drop(running.stdin.take());
        assert_eq!(running.wait().await.unwrap().code(), Some(3));
    }

    #[tokio::test]
    async fn nobody_who_may_open_the_state_directory_keeps_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let neighbour = File::open(dir.path()).unwrap();
        neighbour.lock().unwrap();
        CommandLock::acquire(dir.path()).await.unwrap();
        let mode = std::fs::metadata(dir.path().join(LOCK_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn the_lock_is_had_when_no_guard_of_its_last_holder_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let first = CommandLock::acquire(dir.path()).await.unwrap();
        let mut guard = Guard::start(Some(&first)).unwrap();
        let mut child = command("exec sleep 1000", &guard);
        drop(first);
        let second = File::open(dir.path().join(LOCK_NAME)).unwrap();
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(guard.line.take());
        CommandLock::acquire(dir.path()).await.unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
    }
}
