//! Listeners on a port, from `/proc` (spec `cli.md` §3.4). Elsewhere, and for other users'
//! processes, little is known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;

use serde_json::{Value, json};

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";
/// Maximum number of processes looked at.
const MAX_PROCESSES: usize = 10_000;
/// Flags whose values are not shown.
const SECRET_FLAGS: &[&str] = &["--token", "--password"];

/// Ports that are tried for a free one.
const TRIED: u16 = 100;

/// Program that holds a port of this machine, such as `nginx (pid 7)`; `None` if the port is free.
pub(crate) fn holder(port: u16) -> Option<String> {
    let found = listeners(port);
    let named = found.iter().find_map(|listener| {
        let (command, pid) = (listener.get("command")?.as_str()?, listener.get("pid")?.as_u64()?);
        Some(format!("{command} (pid {pid})"))
    });
    let is_free = found.is_empty() && is_free(port);
    (!is_free).then(|| named.unwrap_or_else(|| "another program".to_owned()))
}

/// Free port near one that is taken.
pub(crate) fn free_port(taken: u16) -> Option<u16> {
    (taken.saturating_add(1)..=taken.saturating_add(TRIED)).find(|port| *port != taken && is_free(*port))
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The listeners of a port, as `gateway status` shows them.
pub(crate) fn listeners(port: u16) -> Vec<Value> {
    let sockets: Vec<(SocketAddr, String)> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| table.lines().filter_map(socket).collect::<Vec<_>>())
        .filter(|(address, _)| address.port() == port)
        .collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    let owners = owners(&sockets);
    sockets
        .iter()
        .map(|(address, inode)| {
            let address = address.to_string();
            match owners.iter().find(|(of, _)| of == inode) {
                Some((_, pid)) => described(*pid, &address),
                None => json!({ "address": address }),
            }
        })
        .collect()
}

/// Address and inode of a listening row.
fn socket(row: &str) -> Option<(SocketAddr, String)> {
    let mut fields = row.split_whitespace().skip(1);
    let local = fields.next()?;
    if fields.nth(1)? != LISTENING {
        return None;
    }
    let inode = fields.nth(5)?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(ip(address)?, port), inode.to_owned()))
}

/// An address as words of 32 bits in the machine's byte order.
fn ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0_u8; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// Owners of the sockets: inode and process id.
fn owners(sockets: &[(SocketAddr, String)]) -> Vec<(String, u32)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.take(MAX_PROCESSES)
        .flat_map(|pid| {
            let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let held = files.filter_map(|file| std::fs::read_link(file.path()).ok());
            held.filter_map(|target| inode_of(&target))
                .filter(|inode| sockets.iter().any(|(_, wanted)| wanted == inode))
                .map(|inode| (inode, pid))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn inode_of(link: &Path) -> Option<String> {
    Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

fn described(pid: u32, address: &str) -> Value {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    json!({
        "pid": pid,
        "command": read("comm").trim(),
        "address": address,
        "commandLine": without_secrets(&read("cmdline")),
        "user": user(pid),
    })
}

#[cfg(unix)]
fn user(pid: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let id = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let known = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(id)).ok().flatten();
    Some(known.map_or_else(|| id.to_string(), |user| user.name))
}

#[cfg(not(unix))]
fn user(_pid: u32) -> Option<String> {
    None
}

/// The words of a command line, as `/proc` separates them; reports are pasted, so secrets are left out.
fn without_secrets(command_line: &str) -> String {
    let mut hide_next = false;
    let words = command_line.split_terminator('\0').map(|word| {
        let is_value = std::mem::replace(&mut hide_next, SECRET_FLAGS.contains(&word));
        let flag = word.split_once('=').map(|(flag, _)| flag).filter(|flag| SECRET_FLAGS.contains(flag));
        match (is_value, flag) {
            (true, _) => "[redacted]".to_owned(),
            (false, Some(flag)) => format!("{flag}=[redacted]"),
            (false, None) => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_kernel_are_read() {
        if cfg!(target_endian = "big") {
            return;
        }
        let rows = [
            (
                "   0: 0100007F:4965 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 12345 1 0 100 0 0 10 0",
                Some(("127.0.0.1:18789", "12345")),
            ),
            (
                "   1: 00000000000000000000000001000000:4965 00000000000000000000000000000000:0000 0A 0:0 00:0 0  0 0 7 1",
                Some(("[::1]:18789", "7")),
            ),
            ("   2: 0100007F:4965 0100007F:C000 01 00000000:00000000 00:00000000 00000000  0 0 9 1", None),
            ("  sl  local_address rem_address   st tx_queue rx_queue", None),
        ];
        for (row, expect) in rows {
            let found = socket(row).map(|(address, inode)| (address.to_string(), inode));
            assert_eq!(found, expect.map(|(address, inode)| (address.to_owned(), inode.to_owned())), "{row}");
        }
    }

    #[test]
    fn secrets_of_a_command_line_are_left_out() {
        let line =
            ["openclaw", "gateway", "--token", "s3cret", "--password=other", "--port", "7", ""].join("\0");
        assert_eq!(
            without_secrets(&line),
            "openclaw gateway --token [redacted] --password=[redacted] --port 7"
        );
    }

    #[test]
    fn a_port_that_is_taken_has_a_holder_and_another_is_free() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(holder(port).is_some());
        assert_ne!(free_port(port), Some(port));
        drop(socket);
        assert_eq!(holder(port), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn our_own_listener_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let found = listeners(address.port());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["address"], json!(address.to_string()));
        assert_eq!(found[0]["pid"], json!(std::process::id()));
    }
}
