//! Looking at other processes: whether one lives, whether it is a gateway, which one listens on a port. By `/proc`; on
//! systems without it little can be told.

use std::path::Path;

use openclaw_sessions::process::{Sighting, look};

/// State of a process that a lock file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// The process has ended, or its id belongs to another program now.
    Gone,
    /// The process runs and is a gateway.
    Gateway,
    /// The process runs; it may or may not be a gateway.
    Unknown,
}

/// Looks at a process. `started` is its start time as a lock file gives it.
pub(crate) fn liveness(pid: u32, started: Option<u64>) -> Liveness {
    let Sighting::Alive(now) = look(pid) else { return Liveness::Gone };
    if started.zip(now.ticks).is_some_and(|(then, now)| then != now) {
        return Liveness::Gone;
    }
    match command_line(pid) {
        Some(words) if is_gateway(&words) => Liveness::Gateway,
        Some(_) => Liveness::Gone,
        None => Liveness::Unknown,
    }
}

/// The words of a process's command line; `None` where they can't be read.
pub(crate) fn command_line(pid: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// True if a command line is that of a gateway: ours or OpenClaw's.
pub(crate) fn is_gateway(words: &[String]) -> bool {
    let name = |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_openclaw = words.iter().filter_map(name).any(|name| name.starts_with("openclaw"))
        || words.iter().any(|word| word.contains("/openclaw/") || word.ends_with("/entry.js"));
    let is_daemon = words.iter().skip(1).any(|word| word == "gateway")
        || words.iter().any(|word| word == "openclaw-gateway");
    is_openclaw && is_daemon
}

/// The processes that listen on a TCP port of this machine.
pub(crate) fn listeners_on(port: u16) -> Vec<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| listening_sockets(&table, port))
        .collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| holds_any(*pid, &sockets)).collect()
}

/// Inode numbers of the listening sockets of a port in a table of `/proc/net`.
fn listening_sockets(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|fields| match fields.as_slice() {
        [_, local, _, state, _, _, _, _, _, inode, ..] if local.ends_with(&suffix) && *state == LISTEN => {
            Some((*inode).to_owned())
        }
        _ => None,
    })
    .collect()
}

fn holds_any(pid: u32, sockets: &[String]) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|link| {
        let link = link.to_string_lossy();
        link.strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|inode| sockets.iter().any(|socket| socket == inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_told_from_other_programs() {
        let rows = [
            ("/usr/bin/openclaw gateway run", true),
            ("openclaw --profile rescue gateway --port 19789", true),
            ("node /usr/lib/node_modules/openclaw/dist/entry.js gateway", true),
            ("openclaw-gateway", true),
            ("openclaw status", false),
            ("nginx: gateway", false),
            ("vim gateway", false),
            ("", false),
        ];
        for (line, expect) in rows {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(is_gateway(&words), expect, "{line}");
        }
    }

    #[test]
    fn listening_sockets_are_found_by_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                        0: 0100007F:4965 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1\n\
                        1: 0100007F:4965 0100007F:AAAA 01 00000000:00000000 00:00000000 00000000  1000        0 12346 1\n\
                        2: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12347 1\n";
        assert_eq!(listening_sockets(table, 18_789), ["12345"]);
    }

    #[test]
    fn this_test_lives_and_is_no_gateway() {
        let me = std::process::id();
        assert_eq!(liveness(me, None), Liveness::Gone, "its command line is another");
        assert_eq!(liveness(4_000_000, None), Liveness::Gone);
    }
}
