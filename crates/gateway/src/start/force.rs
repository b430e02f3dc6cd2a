//! `--force`: ends the gateway that holds the port (spec `cli.md` §9.5). Other programs are left alone.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::process::{command_line, is_gateway, listeners_on};

/// Time from SIGTERM to SIGKILL.
const POLITE: Duration = Duration::from_millis(700);
/// Time from SIGKILL to giving up.
const FIRM: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Reason why the port could not be freed.
#[derive(Debug, thiserror::Error)]
pub enum ForceError {
    /// A program that is no gateway listens there; the operator decides.
    #[error(
        "Force: port {port} is held by pid {pid} ({command}), which is not a gateway; stop it, or choose another port"
    )]
    NotGateway {
        /// The port.
        port: u16,
        /// The process.
        pid: u32,
        /// Command line of the process.
        command: String,
    },
    /// The process does not go away.
    #[error("Force: pid {pid} still holds port {port}")]
    Stays {
        /// The port.
        port: u16,
        /// The process.
        pid: u32,
    },
}

/// Ends the gateways that listen on the port; lines for the log.
pub(crate) async fn free_port(port: u16) -> Result<Vec<String>, ForceError> {
    if let Some((pid, command)) = holder_that_is_no_gateway(port) {
        return Err(ForceError::NotGateway { port, pid, command });
    }
    let killed: Vec<(u32, String)> =
        holders(port).map(|pid| (pid, command_line(pid).unwrap_or_default().join(" "))).collect();
    for (pid, _) in &killed {
        end(*pid, port).await?;
    }
    Ok(killed
        .into_iter()
        .map(|(pid, command)| format!("force: killed pid {pid} ({command}) on port {port}"))
        .collect())
}

/// Other processes that listen on the port.
fn holders(port: u16) -> impl Iterator<Item = u32> {
    listeners_on(port).into_iter().filter(|pid| *pid != std::process::id())
}

/// A program that holds the port and is no gateway: its process and its command line.
pub(crate) fn holder_that_is_no_gateway(port: u16) -> Option<(u32, String)> {
    let named = holders(port).map(|pid| (pid, command_line(pid).unwrap_or_default()));
    let mut others = named.filter(|(_, words)| !is_gateway(words));
    others.next().map(|(pid, words)| (pid, words.join(" ")))
}

async fn end(pid: u32, port: u16) -> Result<(), ForceError> {
    for (signal, patience) in [(Signal::SIGTERM, POLITE), (Signal::SIGKILL, FIRM)] {
        signal_process(pid, signal);
        let deadline = tokio::time::Instant::now() + patience;
        while tokio::time::Instant::now() < deadline {
            if !listeners_on(port).contains(&pid) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Err(ForceError::Stays { port, pid })
}

fn signal_process(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // The process may have gone by itself meanwhile.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
